"""The package as it is installed: its public names, its metadata, what it loads, and what its wheel holds."""

from __future__ import annotations

import pkgutil
import re
import subprocess
import sys
from importlib import import_module
from importlib.metadata import packages_distributions, requires, version
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import resolvent

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "resolvent"
OPTIONAL = {"explorer", "figures", "plot", "sklearn"}  # edges that may load what they draw with or plug into
COMPILED = "resolvent.equivalents.compiled"  # is Numba code, imported when it is asked for
HEAVY = {"matplotlib", "numba", "pandas", "pyarrow", "safetensors", "scipy", "sklearn", "xarray"}

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages([str(SOURCE)], "resolvent.")
    if module.name.split(".")[1] not in OPTIONAL | {"__main__"} and module.name != COMPILED
)
PUBLIC = ["resolvent", *(name for name in MODULES if name.count(".") == 1 and (SOURCE / name[10:]).is_dir())]


@pytest.mark.parametrize("name", [name for name in PUBLIC if name != "resolvent.cli"])
def test_public_names_exist_and_are_documented(name):
    module = import_module(name)
    assert module.__doc__
    for public in module.__all__:
        assert getattr(module, public).__doc__, f"{name}.{public}"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'predcit'"):
        getattr(resolvent, "predcit")  # noqa: B009


def test_types_are_shipped():
    assert (SOURCE / "py.typed").is_file()


def test_versions_agree():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert version("resolvent") == resolvent.__version__
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [resolvent.__version__]


def fresh(code: str) -> str:
    """What a new interpreter prints when it runs the code."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded_by(code: str) -> set[str]:
    """Top-level modules that a new interpreter has loaded when it has run the code."""
    report = "\nimport sys; print(); print(*{name.partition('.')[0] for name in sys.modules})"
    return set(fresh(code + report).splitlines()[-1].split())


def test_importing_the_package_loads_nothing_heavy():
    assert loaded_by("import resolvent") & (HEAVY | {"numpy", "rich"}) == set()


def test_help_loads_nothing_heavy():
    code = """
import sys
sys.argv = ["resolvent", "--help"]
from resolvent.cli import main
try:
    main()
except SystemExit as stop:
    assert not stop.code
"""
    assert loaded_by(code) & HEAVY == set()


def test_modules_load_nothing_heavy_at_their_top():
    modules = [name for name in MODULES if name.split(".")[1] != "cli"]
    assert loaded_by("\n".join(f"import {name}" for name in modules)) & (HEAVY | {"rich"}) == set()


def required_modules() -> set[str]:
    """Top-level modules of what `pip install resolvent` installs, extras left out."""
    seen: set[str] = set()
    waiting = ["resolvent"]
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in seen:
            continue
        seen.add(name)
        needs = [Requirement(line) for line in requires(name) or []]
        waiting += [need.name for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]
    owners = packages_distributions()
    return {module for module, names in owners.items() if seen & {canonicalize_name(name) for name in names}}


def test_the_core_works_without_any_extra():
    allowed = required_modules() | sys.stdlib_module_names | {"resolvent"}
    code = f"""
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {allowed!r}:
            raise ModuleNotFoundError(f"{{name}} is blocked", name=name)
sys.meta_path.insert(0, Blocked())
for name in {MODULES!r}:
    __import__(name)
from resolvent import Setting, predict, simulate
setting = Setting()
print(predict(setting), simulate(setting, n=32, draws=2, seed=0))
"""
    assert "pytest" not in allowed
    assert "attention" in fresh(code)


def test_the_wheel_holds_the_sources_the_data_and_nothing_else(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(ZipFile(wheel).namelist())
    metadata = {name for name in names if name.startswith(f"resolvent-{resolvent.__version__}.dist-info/")}
    files = {path for path in SOURCE.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert names - metadata == {path.relative_to(SOURCE.parent).as_posix() for path in files}
    assert {name.partition("/")[2] for name in metadata} >= {"entry_points.txt", "licenses/LICENSE"}
