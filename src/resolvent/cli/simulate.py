"""`resolvent simulate`."""

from __future__ import annotations

from resolvent.cli.flags import Json, SettingFlags, SizeFlags
from resolvent.cli.output import progress_wanted, show
from resolvent.simulate import simulate as simulate_setting

_DEFAULT, _SIZE = SettingFlags(), SizeFlags()


def simulate(*, flags: SettingFlags = _DEFAULT, size: SizeFlags = _SIZE, json: Json = False) -> None:
    """Measure the training and test error of attention and of linear regression by exact simulation."""
    setting = flags.setting()
    show(
        simulate_setting(setting, n=size.n, draws=size.draws, seed=size.seed, progress=progress_wanted(json)),
        json,
    )
