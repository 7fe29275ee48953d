"""What a user writes down: tokens, weights, nonlinearity, ridge. All validation of a setting lives here."""

from resolvent.setting.low_rank import LowRankWeights
from resolvent.setting.matrix import MatrixWeights
from resolvent.setting.setting import Setting
from resolvent.setting.tokens import Tokens
from resolvent.setting.weights import Weights

__all__ = ["LowRankWeights", "MatrixWeights", "Setting", "Tokens", "Weights"]
