"""Reading: every format gives the same tokens; orientation, labels and notes are as documented."""

from __future__ import annotations

import csv
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from resolvent.dataset import LabelledTokens, estimate, read_tokens, standardise
from resolvent.dataset.memory import COPIES, FLOAT

P, N = 5, 12


@pytest.fixture
def arrays():
    rng = np.random.default_rng(0)
    return rng.standard_normal((P, N)), np.where(np.arange(N) % 3 == 0, 1, 0)


def write_csv(path, tokens, labels, name="label", at=2):
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        names = [f"x{j}" for j in range(tokens.shape[0])]
        out.writerow([*names[:at], name, *names[at:]])
        for token, label in zip(tokens.T.tolist(), labels, strict=True):
            out.writerow([*token[:at], label, *token[at:]])
    return path


def write_parquet(path, tokens, labels, at=2):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {f"x.{j}": row for j, row in enumerate(tokens)}
    names = list(columns)
    columns["label"] = labels
    names.insert(at, "label")
    parquet.write_table(pyarrow.table({name: pyarrow.array(columns[name]) for name in names}), path)
    return path


def write_npz(path, tokens, labels, **more):
    np.savez(path, tokens=tokens, labels=labels, **more)
    return path


def test_every_format_gives_the_same_tokens(tmp_path, arrays):
    tokens, labels = arrays
    np.save(tmp_path / "x.npy", tokens)
    np.save(tmp_path / "y.npy", labels)
    read = [
        read_tokens(write_npz(tmp_path / "a.npz", tokens, labels)),
        read_tokens(tmp_path / "x.npy", labels=tmp_path / "y.npy"),
        read_tokens(str(write_csv(tmp_path / "a.csv", tokens, labels))),
        read_tokens(write_parquet(tmp_path / "a.parquet", tokens, labels)),
    ]
    for data in read:
        np.testing.assert_array_equal(data.tokens, tokens)
        np.testing.assert_array_equal(data.labels, np.where(labels == 1, 1.0, -1.0))
        assert data.label_names == (0, 1)
        assert (data.p, data.n) == (P, N)
        assert data.tokens.dtype == data.labels.dtype == np.float64


@pytest.mark.parametrize("dtype", ["f2", "f4", ">f8", "i1", "u2", "i8", "g"])
def test_real_dtypes_become_float64(tmp_path, arrays, dtype):
    tokens = np.abs(np.round(arrays[0] * 10)).astype(dtype)
    data = read_tokens(write_npz(tmp_path / "a.npz", tokens, arrays[1]))
    assert data.tokens.dtype == np.float64
    np.testing.assert_array_equal(data.tokens, tokens.astype(np.float64))


def test_compressed_and_fortran_ordered(tmp_path, arrays):
    np.savez_compressed(tmp_path / "a.npz", tokens=np.asfortranarray(arrays[0]), labels=arrays[1])
    np.testing.assert_array_equal(read_tokens(tmp_path / "a.npz").tokens, arrays[0])


def test_transposed_tokens_are_turned_and_said(tmp_path, arrays):
    data = read_tokens(write_npz(tmp_path / "a.npz", arrays[0].T, arrays[1]))
    np.testing.assert_array_equal(data.tokens, arrays[0])
    assert "Tokens are the 12 rows of a 12 x 5 matrix, which was transposed." in data.notes


def test_a_square_matrix_is_taken_by_columns_and_said():
    square = np.random.default_rng(1).standard_normal((6, 6))
    data = LabelledTokens.from_arrays(square, [0, 1] * 3)
    np.testing.assert_array_equal(data.tokens, square)
    assert data.notes[0] == "Tokens are the 6 columns of a 6 x 6 matrix by convention: it is square."


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ([3, 3, 7, 7], (3, 7)),
        ([1.5, -2.0, 1.5, -2.0], (-2.0, 1.5)),
        ([False, True, True, False], (False, True)),
        (["pos", "neg", "neg", "pos"], ("neg", "pos")),
        (["10", "9", "9", "10"], (9, 10)),
        (["1", "1.0", "-1", "-1.0"], (-1.0, 1.0)),
        (np.array([0, 255, 0, 255], dtype=np.uint8), (0, 255)),
    ],
)
def test_the_larger_or_later_label_is_plus_one(labels, names):
    data = LabelledTokens.from_arrays(np.random.default_rng(0).standard_normal((2, 4)), labels)
    assert data.label_names == names
    assert type(data.label_names[0]) is type(names[0])
    values = [float(v) if isinstance(names[0], float) else v for v in np.asarray(labels).tolist()]
    expected = [1.0 if type(names[1])(v) == names[1] else -1.0 for v in values]
    np.testing.assert_array_equal(data.labels, expected)
    assert f"Label {names[1]!r} is +1 and {names[0]!r} is -1." in data.notes


def test_background_and_unused_arrays(tmp_path, arrays):
    cov = np.eye(P) + 0.1
    path = write_npz(
        tmp_path / "a.npz",
        *arrays,
        background_mean=np.arange(P),
        background_cov=cov,
        words=np.array(["a"] * N),
    )
    data = read_tokens(path)
    np.testing.assert_array_equal(data.background_mean, np.arange(P))
    np.testing.assert_array_equal(data.background_cov, cov)
    assert "Not used: words." in data.notes
    assert str(path) in str(data)


def test_unused_objects_are_not_even_looked_at(tmp_path, arrays):
    path = write_npz(tmp_path / "a.npz", *arrays, extra=np.array([{}, None], dtype=object))
    assert "Not used: extra." in read_tokens(path).notes


def test_repeated_tokens_are_counted(arrays):
    tokens = arrays[0].copy()
    tokens[:, 4] = tokens[:, 7] = tokens[:, 0]
    assert "2 tokens repeat an earlier one exactly." in LabelledTokens.from_arrays(tokens, arrays[1]).notes
    assert not any("repeat" in note for note in LabelledTokens.from_arrays(*arrays).notes)


def test_csv_details(tmp_path):
    path = tmp_path / "a.CSV"
    path.write_text(
        '\ufeff"LABELS",a,"b, or c"\n yes,1,2e0\nno ,3,4\n\nno,5,6\nyes,-7,8.5\n', encoding="utf-8"
    )
    data = read_tokens(path)
    np.testing.assert_array_equal(data.tokens, [[1, 3, 5, -7], [2, 4, 6, 8.5]])
    np.testing.assert_array_equal(data.labels, [1, -1, -1, 1])


def test_parquet_with_strings_in_dictionaries_and_narrow_numbers(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table(
        {
            "a": pyarrow.array(np.array([1, 2, 3, 5], dtype=np.float32)),
            "b": pyarrow.array([1, -1, 1, 4], pyarrow.int32()),
            "label": pyarrow.array(["x", "y", "y", "x"]).dictionary_encode(),
        }
    )
    parquet.write_table(table, tmp_path / "a.parquet")
    data = read_tokens(tmp_path / "a.parquet")
    np.testing.assert_array_equal(data.tokens, [[1, 2, 3, 5], [1, -1, 1, 4]])
    assert data.label_names == ("x", "y")


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"^reading parquet needs pyarrow: pip install 'resolvent\[io\]'$"):
        read_tokens(tmp_path / "a.parquet")


def test_importing_the_package_needs_numpy_alone():
    code = (
        "import sys; import resolvent.dataset; "
        "print([m for m in ('scipy', 'pyarrow', 'matplotlib', 'xarray', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_reading_to_estimating_stays_within_the_memory_it_announces(tmp_path):
    p, n = 150, 6000
    rng = np.random.default_rng(0)
    path = write_npz(tmp_path / "a.npz", rng.standard_normal((p, n)).astype("f4"), np.arange(n) % 2)
    tracemalloc.start()
    try:
        estimate(standardise(read_tokens(path)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.1 * COPIES * FLOAT * p * n


@settings(deadline=None)
@given(
    hnp.arrays(np.float32, (3, 6), elements=st.floats(-1e6, 1e6, width=32), unique=True),
    st.permutations([0, 0, 0, 1, 1, 1]),
)
def test_csv_keeps_every_digit(tmp_path_factory, tokens, labels):
    path = write_csv(tmp_path_factory.mktemp("csv") / "a.csv", tokens.astype(np.float64), labels)
    np.testing.assert_array_equal(read_tokens(path).tokens, tokens.astype(np.float64))


@settings(deadline=None)
@given(st.integers(2, 6), st.integers(7, 20), st.integers(0, 2**32 - 1))
def test_orientation_is_recovered_and_label_values_do_not_matter(p, n, seed):
    rng = np.random.default_rng(seed)
    tokens, labels = rng.standard_normal((p, n)), rng.permutation(np.arange(n) % 2)
    straight = LabelledTokens.from_arrays(tokens, labels)
    turned = LabelledTokens.from_arrays(tokens.T, np.where(labels, "b", "a"))
    np.testing.assert_array_equal(straight.tokens, turned.tokens)
    np.testing.assert_array_equal(straight.labels, turned.labels)
