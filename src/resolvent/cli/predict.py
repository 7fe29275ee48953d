"""`resolvent predict`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from resolvent.cli.flags import PROBE, Json, SettingFlags
from resolvent.cli.output import show
from resolvent.predict import predict as predict_setting

_DEFAULT = SettingFlags()


def predict(
    *,
    flags: SettingFlags = _DEFAULT,
    p: Annotated[
        int | None, Parameter(group=PROBE, help="Dimension at which size effects are taken.")
    ] = None,
    json: Json = False,
) -> None:
    """Limits of the training and test error of attention and of linear regression."""
    show(predict_setting(flags.setting(), p=p), json)
