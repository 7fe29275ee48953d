"""What a user writes down: tokens, weights, nonlinearity, ridge. All validation of a setting lives here."""

from resolvent.setting.setting import Setting
from resolvent.setting.tokens import Tokens
from resolvent.setting.weights import Weights

__all__ = ["Setting", "Tokens", "Weights"]
