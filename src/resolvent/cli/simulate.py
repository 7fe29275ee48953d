"""`resolvent simulate`."""

from resolvent.cli.flags import Json, SettingFlags, SizeFlags
from resolvent.cli.output import progress_wanted, show
from resolvent.simulate import simulate as simulate_setting

_DEFAULT, _SIZE = SettingFlags(), SizeFlags()


def simulate(*, flags: SettingFlags = _DEFAULT, size: SizeFlags = _SIZE, json: Json = False) -> None:
    """Measure the training and test error of attention and of linear regression by exact simulation."""
    show(simulate_setting(flags.setting(), **size.given(), progress=progress_wanted(json)), json)
