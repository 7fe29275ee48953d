"""What is written comes back, and a file keeps to its sweep."""

import numpy as np
import pytest
from sweeps import OVER, SETTING, SIZES, small

from resolvent import Setting, Tokens, Weights, sweep
from resolvent.sweep.journal import DamagedJournal

LIBRARY = {".nc": "netCDF4", ".zarr": "zarr", ".parquet": "pyarrow"}


def path_of(tmp_path, suffix):
    pytest.importorskip(LIBRARY[suffix], reason="needs the extra io")
    return tmp_path / f"sweep{suffix}"


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_a_dataset_comes_back_identical(suffix, tmp_path):
    import xarray

    path = path_of(tmp_path, suffix)
    written = small(path)
    opened = xarray.open_dataset(path) if suffix == ".nc" else xarray.open_zarr(path, chunks=None)
    with opened as read:
        assert read.load().identical(written)
    assert sorted(p.name for p in tmp_path.iterdir()) == [path.name, path.name + ".journal"]


def test_parquet_has_a_row_for_each_point(tmp_path):
    path = path_of(tmp_path, ".parquet")
    import pyarrow.parquet

    written = small(path)
    rows = pyarrow.parquet.read_table(path).to_pylist()
    assert len(rows) == 4 * 3 * 2
    for row in rows:
        at = {name: row[name] for name in OVER}
        for name in ("predicted", "measured", "standard_error"):
            for method in ("attention", "linear"):
                for error in ("train", "test"):
                    place = at | {"method": method, "error": error}
                    assert row[f"{name}_{method}_{error}"] == written[name].sel(place).item()
        assert row["difference_test"] == written["difference"].sel(at | {"error": "test"}).item()
        assert row["converged"] is True


@pytest.mark.parametrize("suffix", LIBRARY)
def test_the_same_call_writes_the_same_again(suffix, tmp_path):
    path = path_of(tmp_path, suffix)
    assert small(path).identical(small(path))


@pytest.mark.parametrize("suffix", LIBRARY)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"over": OVER | {"ridge": [0.01]}}, "ridge is 3 values .*1.0.* there and 1 values .0.01. here"),
        ({"setting": Setting(Tokens(0.5, 2.0), Weights.none())}, "key_norm is not set there and 0.0 here"),
        ({"simulate": SIZES | {"seed": 8}}, "seed is 7 there and 8 here"),
        ({"simulate": None}, "draws is 3 there and not set here"),
    ],
)
@pytest.mark.parametrize("left", ["file", "journal"])
def test_another_sweep_is_refused_with_what_differs(suffix, change, words, left, tmp_path, monkeypatch):
    path = path_of(tmp_path, suffix)
    sweep(SETTING, OVER, simulate=SIZES, path=path)
    if left == "file":
        (tmp_path / f"sweep{suffix}.journal").rename(tmp_path / "elsewhere")
    elif path.is_dir():
        path.rename(tmp_path / "elsewhere")
    else:
        path.unlink()
    monkeypatch.setattr("resolvent.sweep.run.process_pool", None)
    monkeypatch.setattr("resolvent.sweep.run.in_process", None)
    call = {"setting": SETTING, "over": OVER, "simulate": SIZES} | change
    with pytest.raises(ValueError, match=words) as caught:
        sweep(**call, path=path)
    assert "\n" not in str(caught.value)


def test_another_function_of_the_same_name_is_refused(tmp_path):
    path = path_of(tmp_path, ".nc")
    sweep(Setting(nonlinearity=lambda t: t**3), {"snr": [1.0]}, path=path)
    with pytest.raises(ValueError, match="coefficients is a0"):
        sweep(Setting(nonlinearity=lambda t: t**2), {"snr": [1.0]}, path=path)


@pytest.mark.parametrize("suffix", LIBRARY)
def test_a_file_of_something_else_is_left_alone(suffix, tmp_path):
    path = path_of(tmp_path, suffix)
    path.write_bytes(b"precious")
    with pytest.raises(ValueError, match="is not a sweep"):
        sweep(SETTING, OVER, path=path)
    assert path.read_bytes() == b"precious"


@pytest.mark.parametrize("header", [b"", b"{", b"[1, 2]", b"\xff"])
def test_a_header_that_cannot_be_read_is_one_line(header, tmp_path):
    path = path_of(tmp_path, ".nc")
    small(path)
    (tmp_path / "sweep.nc.journal" / "header.json").write_bytes(header)
    with pytest.raises(ValueError, match=r"header.json can't be read"):
        small(path)


def test_a_journal_without_a_header_is_not_ours(tmp_path):
    path = path_of(tmp_path, ".nc")
    (tmp_path / "sweep.nc.journal").mkdir()
    (tmp_path / "sweep.nc.journal" / "notes.txt").write_text("precious")
    with pytest.raises(ValueError, match=r"has no header\.json"):
        small(path)


DAMAGE = {
    "cut": lambda line: line[:-20],
    "without its end": lambda line: line[:-1],
    "another digit": lambda line: line.replace(b"1", b"2", 1),
    "another cell": lambda line: line.replace(b'{"cell": ', b'{"cell": 9', 1),
    "bytes": lambda line: b"\xff\x00" + line[2:],
    "nothing": lambda _: b"\n",
    "another thing": lambda _: b"[1, 2]\n",
    "deep": lambda _: b"[" * 100_000 + b"\n",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_line_is_reported_and_its_cell_measured_again(damage, tmp_path, monkeypatch):
    path = path_of(tmp_path, ".nc")
    whole = small(path)
    (lines,) = (tmp_path / "sweep.nc.journal").glob("*.jsonl")
    *others, last = lines.read_bytes().splitlines(keepends=True)
    lines.write_bytes(b"".join(others) + DAMAGE[damage](last))
    asked = counting(monkeypatch)
    with pytest.warns(DamagedJournal, match="1 damaged line in"):
        assert small(path).identical(whole)
    assert asked == [7]
    assert small(path).identical(whole)  # and is forgotten
    assert asked == [7]


def counting(monkeypatch):
    """The cells that are measured from now on."""
    from resolvent.sweep.cells import Measure

    asked, measure = [], Measure.__call__
    monkeypatch.setattr(Measure, "__call__", lambda self, cell: asked.append(cell) or measure(self, cell))
    return asked


def test_what_is_finished_is_not_measured_again(tmp_path, monkeypatch):
    path = path_of(tmp_path, ".nc")
    whole = small(path)
    (lines,) = (tmp_path / "sweep.nc.journal").glob("*.jsonl")
    kept = lines.read_bytes().splitlines(keepends=True)
    lines.write_bytes(b"".join(kept[:2] + kept[5:]))
    asked = counting(monkeypatch)
    again = small(path)
    assert asked == [2, 3, 4]
    assert {k: v.values.tobytes() for k, v in again.items()} == {
        k: v.values.tobytes() for k, v in whole.items()
    }


@pytest.mark.parametrize(
    ("name", "message"), [("x.csv", "must end in .nc, .zarr, .parquet"), ("no/x.nc", "in an existing folder")]
)
def test_a_path_is_checked_before_any_work(name, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        small(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_missing_library_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr("resolvent.sweep.files.find_spec", lambda _: None)
    with pytest.raises(ImportError, match=r"needs the extra io: pip install 'resolvent\[io\]'"):
        small(tmp_path / "x.zarr")


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = path_of(tmp_path, ".nc")
    small(path)
    before = path.read_bytes()

    def full(_, new):
        new.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(__import__("resolvent.sweep.files", fromlist=["x"])._WRITERS, ".nc", full)
    with pytest.raises(OSError, match="No space left"):
        small(path)
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["sweep.nc", "sweep.nc.journal"]


def test_numbers_in_the_journal_are_exact(tmp_path):
    from resolvent.sweep.journal import Journal

    journal = Journal(tmp_path / "j")
    journal.open({})
    values = np.array([[0.1, 1e-308, np.pi], [np.nan, np.inf, -0.0]])
    journal.append(3, values)
    assert journal.read(4, (2, 3))[3].tobytes() == values.tobytes()
