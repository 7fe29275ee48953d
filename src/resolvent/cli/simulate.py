"""`resolvent simulate`."""

from typing import Annotated

from cyclopts import Parameter

from resolvent.cli.flags import PROBE, Json, SettingFlags, SizeFlags
from resolvent.cli.output import progress_wanted, show
from resolvent.simulate import simulate as simulate_setting

_DEFAULT, _SIZE = SettingFlags(), SizeFlags()


def simulate(
    *,
    flags: SettingFlags = _DEFAULT,
    size: SizeFlags = _SIZE,
    causal: Annotated[
        bool,
        Parameter(
            group=PROBE,
            negative="",
            help="Tokens attend to those before them alone: measured only, the theory does not predict it.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Measure the training and test error of attention and of linear regression by exact simulation."""
    sizes, shown = size.given(), progress_wanted(json)
    show(simulate_setting(flags.setting(), **sizes, causal=causal, progress=shown), json)
