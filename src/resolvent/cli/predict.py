"""`resolvent predict`."""

from typing import Annotated

from resolvent.cli.flags import PROBE, Json, SettingFlags, number
from resolvent.cli.output import show
from resolvent.predict import predict as predict_setting

_DEFAULT = SettingFlags()


def predict(
    *,
    flags: SettingFlags = _DEFAULT,
    p: Annotated[int | None, number(PROBE, "Dimension at which size effects are taken.")] = None,
    json: Json = False,
) -> None:
    """Limits of the training and test error of attention and of linear regression."""
    show(predict_setting(flags.setting(), p=p), json)
