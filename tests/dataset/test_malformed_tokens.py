"""Malformed files: each gives one line, a ValueError that names the file and says what is wrong."""

from __future__ import annotations

import io
import struct
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.lib import format as npy

from resolvent.dataset import LabelledTokens, memory, read_tokens

RNG = np.random.default_rng(0)
TOKENS = RNG.standard_normal((3, 8))
LABELS = np.array([1, -1] * 4)


def npz(**arrays):
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def npy_bytes(array, allow_pickle=False):
    out = io.BytesIO()
    npy.write_array(out, array, allow_pickle=allow_pickle)
    return out.getvalue()


def claiming(shape, descr="<f8", data=b""):
    out = io.BytesIO()
    npy.write_array_header_1_0(out, {"descr": descr, "fortran_order": False, "shape": shape})
    return out.getvalue() + data


def archive(**members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(f"{name}.npy", data)
    return out.getvalue()


def with_tokens(tokens, labels=LABELS, **more):
    return npz(tokens=np.asarray(tokens), labels=np.asarray(labels), **more)


def spoiled(value, at=(1, 2)):
    tokens = TOKENS.copy()
    tokens[at] = value
    return with_tokens(tokens)


def encrypted():
    data = bytearray(archive(tokens=npy_bytes(TOKENS), labels=npy_bytes(LABELS)))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.find(signature)
        while at >= 0:
            data[at + offset] |= 1
            at = data.find(signature, at + 1)
    return bytes(data)


def bad_checksum():
    data = bytearray(npz(tokens=TOKENS, labels=LABELS))
    data[data.find(TOKENS.tobytes()[:16]) + 3] ^= 255
    return bytes(data)


CSV = "a,b,label\n1,2,0\n2,3,1\n3,1,0\n4,4,1\n"
GOOD = with_tokens(TOKENS)

NPZ = {
    "not a zip": (b"hello, these are no tokens", "not readable .BadZipFile"),
    "truncated": (GOOD[: len(GOOD) // 2], "not readable .BadZipFile"),
    "one byte": (b"P", "BadZipFile"),
    "encrypted": (encrypted(), "RuntimeError.*encrypted"),
    "bad checksum": (bad_checksum(), "BadZipFile.*CRC"),
    "no tokens": (npz(x=TOKENS, labels=LABELS), "no array named tokens; it holds labels, x"),
    "no labels": (npz(tokens=TOKENS), "no array named labels; it holds tokens"),
    "nothing inside": (archive(), "no array named tokens or labels; it holds nothing"),
    "member is no npy": (archive(tokens=b"1 2 3", labels=npy_bytes(LABELS)), "magic string"),
    "member is empty": (archive(tokens=b"", labels=npy_bytes(LABELS)), "magic string"),
    "huge shape": (
        archive(tokens=claiming((10**6, 10**9)), labels=npy_bytes(LABELS)),
        "needs 298.* GiB of memory",
    ),
    "overflowing shape": (
        archive(tokens=claiming((2**62, 2**62)), labels=npy_bytes(LABELS)),
        "GiB of memory",
    ),
    "negative shape": (archive(tokens=claiming((-3, 8)), labels=npy_bytes(LABELS)), r"shape \(-3, 8\)"),
    "huge label strings": (
        archive(tokens=npy_bytes(TOKENS), labels=claiming((10**6,), "<U500000000")),
        r"labels of shape \(1000000,\) needs 1862645 GiB",
    ),
    "data cut short": (
        archive(tokens=npy_bytes(TOKENS)[:-8], labels=npy_bytes(LABELS)),
        "192 bytes promised, 184 there",
    ),
    "unknown version": (
        archive(tokens=b"\x93NUMPY\x09\x00" + bytes(90), labels=npy_bytes(LABELS)),
        "version 9.0",
    ),
    "endless header": (
        archive(
            tokens=b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31) + b" " * 10**6, labels=npy_bytes(LABELS)
        ),
        "expected 2147483648 bytes",
    ),
    "header is code": (
        archive(
            tokens=b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + b"__import__('os')".ljust(118), labels=b""
        ),
        "malformed|parse|node",
    ),
    "pickled tokens": (
        archive(tokens=npy_bytes(np.array([[1, None]], dtype=object), True), labels=npy_bytes(LABELS)),
        "tokens holds pickled Python objects, which are never loaded",
    ),
    "pickled labels": (
        npz(tokens=TOKENS, labels=np.array(list("abababab"), dtype=object)),
        "labels holds pickled",
    ),
    "structured": (npz(tokens=np.zeros((3, 8), "i4,f4"), labels=LABELS), "tokens must be real numbers"),
    "complex": (with_tokens(TOKENS + 1j), "tokens must be real numbers, got complex128"),
    "strings": (with_tokens(TOKENS.astype(str)), "tokens must be real numbers, got <U"),
    "booleans": (with_tokens(TOKENS > 0), "tokens must be real numbers, got bool"),
    "dates": (npz(tokens=TOKENS.astype("i8").astype("M8[s]"), labels=LABELS), "tokens must be real numbers"),
    "NaN": (spoiled(np.nan), r"tokens hold 1 NaN or infinite values, the first at \(1, 2\)"),
    "infinite": (spoiled(-np.inf, (0, 0)), r"tokens hold 1 NaN or infinite values, the first at \(0, 0\)"),
    "tokens vector": (with_tokens(TOKENS[0]), r"tokens must be a matrix .*got shape \(8,\)"),
    "tokens cube": (with_tokens(TOKENS[None]), "tokens must be a matrix"),
    "scalar tokens": (with_tokens(1.0), "tokens must be a matrix"),
    "labels matrix": (with_tokens(TOKENS, LABELS[:, None]), r"labels must be a vector, got shape \(8, 1\)"),
    "wrong number of labels": (with_tokens(TOKENS, LABELS[:7]), "tokens are 3 x 8 but there are 7 labels"),
    "one class": (with_tokens(TOKENS, np.ones(8)), "two values, all 8 tokens have 1.0"),
    "three classes": (
        with_tokens(TOKENS, np.arange(8) % 3),
        r"two values, got 3 \(0, 1, 2\); set one against the rest, e.g. labels == 0",
    ),
    "many classes": (with_tokens(TOKENS, np.arange(8)), r"got 8 \(0, 1, 2, \.\.\.\)"),
    "NaN label": (with_tokens(TOKENS, np.where(LABELS > 0, 1.0, np.nan)), "4 labels are missing.*token 1,"),
    "empty label": (
        with_tokens(TOKENS, ["a", "", "a", "a", " ", "a", "a", "b"]),
        "2 labels are missing.*token 1,",
    ),
    "complex labels": (with_tokens(TOKENS, LABELS * 1j), "labels must be booleans, real numbers or strings"),
    "byte labels": (
        with_tokens(TOKENS, LABELS.astype("S")),
        "labels must be booleans, real numbers or strings",
    ),
    "lone label": (
        with_tokens(TOKENS, [1] + [0] * 7),
        "each label needs at least 2 tokens, the rarer one has 1",
    ),
    "one dimension": (with_tokens(TOKENS[:1]), "at least 2 dimensions, got p = 1"),
    "no dimension": (with_tokens(TOKENS[:0]), "at least 2 dimensions, got p = 0"),
    "three tokens": (with_tokens(np.ones((5, 3)), [0, 1, 1]), "at least 4 tokens are needed, got n = 3"),
    "no tokens at all": (
        with_tokens(np.ones((5, 0)), np.ones(0)),
        "labels must take two values, there are none",
    ),
    "all zero": (with_tokens(np.zeros((3, 8))), "3 of 3 dimensions never vary"),
    "constant dimension": (
        with_tokens(np.vstack([TOKENS, np.full(8, 7.0)])),
        "1 of 4 dimensions never vary, the first is 3",
    ),
    "background_mean too long": (
        with_tokens(TOKENS, background_mean=np.ones(4)),
        r"background_mean must have shape \(3,\)",
    ),
    "background_cov too large": (
        with_tokens(TOKENS, background_cov=np.eye(8)),
        r"background_cov must have shape \(3, 3\)",
    ),
    "background_cov vector": (
        with_tokens(TOKENS, background_cov=np.ones(3)),
        "background_cov must be a matrix",
    ),
    "background_cov asymmetric": (
        with_tokens(TOKENS, background_cov=np.eye(3) + np.eye(3, k=1)),
        "must be symmetric, got correlations that differ by 1$",
    ),
    "background_cov zero": (
        with_tokens(TOKENS, background_cov=np.zeros((3, 3))),
        r"positive diagonal, got 0 at 0$",
    ),
    "background_cov NaN": (
        with_tokens(TOKENS, background_cov=np.full((3, 3), np.nan)),
        "background_cov hold 9 NaN",
    ),
    "background_cov complex": (
        with_tokens(TOKENS, background_cov=np.eye(3) * 1j),
        "background_cov must be real",
    ),
}

TEXT = {
    "one line": ("a,b,label\n", "labels must take two values, there are none"),
    "blank lines": ("\n\n", "one column named label or labels is wanted, got 0"),
    "ragged, short": (CSV + "1,2\n", "line 6 has 2 fields where the header has 3"),
    "ragged, long": (CSV + "1,2,0,\n", "line 6 has 4 fields where the header has 3"),
    "a word": (CSV.replace("3,1", "3,one"), "line 4, column 'b': 'one' is not a number"),
    "a gap": (CSV.replace("3,1", "3,"), "line 4, column 'b': '' is not a number"),
    "nan": (CSV.replace("3,1", "3,nan"), "NaN or infinite"),
    "inf": (CSV.replace("3,1", "3,-Infinity"), "NaN or infinite"),
    "overflow": (CSV.replace("3,1", "3,1e999"), "NaN or infinite"),
    "complex": (CSV.replace("3,1", "3,1j"), "is not a number"),
    "missing label": (CSV.replace("3,1,0", "3,1,"), "labels are missing"),
    "no label column": (CSV.replace("label", "c"), "got 0 .columns 'a', 'b', 'c'"),
    "two label columns": (CSV.replace("a,", "labels,"), "got 2"),
    "no header": ("1,2,0\n3,4,1\n", "one column named label"),
    "semicolons": (CSV.replace(",", ";"), "one column named label or labels is wanted, got 0"),
    "row index": (",a,label\n0,1,0\n", "column 1 looks like a row index"),
    "one dimension": ("a,label\n1,0\n2,1\n", "got p = 1"),
    "unclosed quote": (CSV + '"5,5,1\n', "not readable .Error"),
    "five labels": (CSV + "5,6,2\n", "two values, got 3"),
}


def refusal(path, message, **more):
    with pytest.raises(ValueError, match=message) as caught:
        read_tokens(path, **more)
    assert type(caught.value) is ValueError
    text = str(caught.value)
    assert "\n" not in text
    assert str(path.name) in text
    assert len(text) < 700
    return text


@pytest.mark.parametrize(("data", "message"), NPZ.values(), ids=NPZ.keys())
def test_npz(tmp_path, data, message):
    path = tmp_path / "bad.npz"
    path.write_bytes(data)
    refusal(path, message)


@pytest.mark.parametrize(("text", "message"), TEXT.values(), ids=TEXT.keys())
def test_csv(tmp_path, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    refusal(path, message)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a,b,label\n\xff\xfe,1,0\n", "UTF-8|utf-8"),
        (b"\x00\x00,\x00", "one column"),
        (b"a" * 200_000, "field larger"),
    ],
)
def test_csv_bytes(tmp_path, data, message):
    path = tmp_path / "bad.csv"
    path.write_bytes(data)
    refusal(path, message)


def test_the_good_files_are_good(tmp_path):
    (tmp_path / "good.npz").write_bytes(GOOD)
    (tmp_path / "good.csv").write_text(CSV)
    assert read_tokens(tmp_path / "good.npz").n == 8
    assert read_tokens(tmp_path / "good.csv").n == 4


def test_paths(tmp_path):
    refusal(tmp_path / "absent.npz", "cannot be read: No such file")
    (tmp_path / "folder.npz").mkdir()
    refusal(tmp_path / "folder.npz", "is not a file")
    refusal(tmp_path / ("x" * 300 + ".npz"), "cannot be read: File name too long")
    with pytest.raises(ValueError, match="cannot be read: embedded null"):
        read_tokens("a\0b.npz")
    for name in ("tokens.txt", "tokens", "tokens.pkl", "tokens.npz.gz"):
        (tmp_path / name).write_bytes(GOOD)
        refusal(tmp_path / name, r"must end in one of \.npz, \.npy, \.parquet, \.csv")
    for suffix in ("npz", "npy", "csv", "parquet"):
        (tmp_path / f"empty.{suffix}").touch()
        refusal(tmp_path / f"empty.{suffix}", "is empty")


def test_npy_pairs(tmp_path):
    np.save(tmp_path / "x.npy", TOKENS)
    np.save(tmp_path / "y.npy", LABELS)
    (tmp_path / "a.npz").write_bytes(GOOD)
    refusal(tmp_path / "x.npy", "a second file with the labels")
    refusal(tmp_path / "a.npz", "a second file with the labels", labels=tmp_path / "y.npy")
    refusal(tmp_path / "y.npy", "tokens must be a matrix", labels=tmp_path / "x.npy")
    refusal(tmp_path / "x.npy", "magic string", labels=tmp_path / "a.npz")
    with pytest.raises(ValueError, match=r"gone\.npy' cannot be read"):
        read_tokens(tmp_path / "x.npy", labels=tmp_path / "gone.npy")


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    good = {"a": [1.0, 2, 3, 5], "b": [1, 2, 2, 1], "label": [0, 1, 0, 1]}
    tables = [
        ({**good, "a": [1.0, None, 3, 4]}, "tokens hold 1 NaN or infinite"),
        ({**good, "b": [1, 2, None, 1]}, "tokens hold 1 NaN or infinite"),
        ({**good, "a": list("wxyz")}, "column 'a' must hold one real number a token, got string"),
        ({**good, "a": [[1.0, 2.0]] * 4}, "column 'a' must hold one real number a token, got list"),
        ({**good, "a": [True, False] * 2}, "column 'a' must hold one real number a token, got bool"),
        ({**good, "label": [0, 1, None, 1]}, "the label of token 2 is missing"),
        ({**good, "label": [0, 1, 2, 1]}, "two values, got 3"),
        ({**good, "label": [b"a", b"b"] * 2}, "labels must be booleans"),
        ({**good, "__index_level_0__": [0, 1, 2, 3]}, "column 4 looks like a row index"),
        ({"a": [1.0] * 4, "b": [1] * 4}, "one column named label"),
        ({"a": [], "b": [], "label": []}, "column 'a' must hold one real number a token, got null"),
    ]
    for number, (table, message) in enumerate(tables):
        path = tmp_path / f"bad{number}.parquet"
        parquet.write_table(pyarrow.table(table), path)
        refusal(path, message)
    path = tmp_path / "cut.parquet"
    parquet.write_table(pyarrow.table(good), path)
    path.write_bytes(path.read_bytes()[:-20])
    refusal(path, "not readable|magic bytes|Parquet")


def test_memory_is_judged_before_anything_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 2**20)
    (tmp_path / "a.npz").write_bytes(with_tokens(np.ones((100, 1000)), np.arange(1000) % 2))
    refusal(
        tmp_path / "a.npz",
        r"tokens of shape \(100, 1000\) needs 0\.00313 GiB of memory, 0\.000977 GiB is available",
    )
    (tmp_path / "a.csv").write_text("a,b,c,d,label\n" + "1,2,3,4,1\n" * 50_000)
    refusal(tmp_path / "a.csv", "about 50002 tokens needs")
    (tmp_path / "b.csv").write_text(" " * 2**21)
    refusal(tmp_path / "b.csv", "its text needs")
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {name: np.zeros(50_000) for name in ("a", "b", "label")}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    refusal(tmp_path / "a.parquet", "50000 tokens of 2 dimensions needs")


def test_memory_unknown_is_no_refusal(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: None)
    memory.refuse_beyond_memory(2**80, "anything")


def test_memory_of_this_machine():
    available = memory.available_bytes()
    assert available is None or 2**20 < available < 2**50


@pytest.mark.parametrize(
    ("tokens", "labels", "message"),
    [
        ([["a", "b"], ["c", "d"]], [0, 1], "tokens must be real numbers"),
        (TOKENS, None, "labels must be a vector"),
        (TOKENS, [None] * 8, "labels must be booleans"),
        (TOKENS[0], LABELS, "tokens must have 2 dimensions"),
    ],
)
def test_arrays(tokens, labels, message):
    with pytest.raises(ValueError, match=message):
        LabelledTokens.from_arrays(tokens, labels)


def survives(path):
    """Reading spoiled bytes gives tokens or one line, nothing else."""
    try:
        read_tokens(path)
        return True
    except ValueError as error:
        return type(error) is ValueError and "\n" not in str(error)


FUZZ = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@FUZZ
@given(edits=st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_any_spoiled_archive(tmp_path, edits):
    data = bytearray(GOOD)
    for at, value in edits:
        data[at] = value
    (tmp_path / "fuzz.npz").write_bytes(data)
    assert survives(tmp_path / "fuzz.npz")


@FUZZ
@given(header=st.text(st.characters(codec="latin-1"), max_size=80))
def test_any_npy_header(tmp_path, header):
    text = header.encode("latin-1")
    (tmp_path / "fuzz.npy").write_bytes(
        b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(64)
    )
    np.save(tmp_path / "y.npy", LABELS)
    with pytest.raises(ValueError, match="fuzz") as caught:
        read_tokens(tmp_path / "fuzz.npy", labels=tmp_path / "y.npy")
    assert type(caught.value) is ValueError
    assert "\n" not in str(caught.value)


@FUZZ
@given(text=st.text(st.sampled_from('ab,.1"\n\r;- e'), max_size=60))
def test_any_csv(tmp_path, text):
    (tmp_path / "fuzz.csv").write_text("a,b,label\n" + text)
    assert survives(tmp_path / "fuzz.csv")
