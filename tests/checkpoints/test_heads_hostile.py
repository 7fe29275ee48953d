"""Damaged, mislabelled and hostile files: one line each, nothing run, no memory taken."""

import io
import pickle
import resource
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from binary_files import ctranslate2_bytes, safetensors_bytes

from resolvent.checkpoints import read_heads
from resolvent.cli.app import run

Q, K = "model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.k_proj.weight"
STACK = "blocks.0.attn.W_{}"
NPY = "{'descr': '%s', 'fortran_order': False, 'shape': %s}"
CT2 = "decoder/layer_0/self_attention/linear_0/weight"


def entry(shape, start, stop, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, stop]}


def safetensors(q, k=None, size=64):
    return safetensors_bytes({Q: q, K: k or entry([4, 4], 0, 64)}, bytes(size))


def text(value):
    return struct.pack("<Q", len(value)) + value


def gguf(tensors=b"", pairs=b"", *, n_tensors=0, n_pairs=0, version=3):
    return b"GGUF" + struct.pack("<IQQ", version, n_tensors, n_pairs) + pairs + tensors


def gguf_tensor(name, shape, kind=0, offset=0):
    dims = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
    return text(name.encode()) + dims + struct.pack("<IQ", kind, offset)


def gguf_pair(key, kind, value):
    return text(key.encode()) + struct.pack("<I", kind) + value


def npz(name, member, compression=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        archive.writestr(name, member)
    return out.getvalue()


def npy(header, data=b""):
    line = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(line)) + line + data


def bomb():
    """128 MB of zeros under each name, in half a megabyte."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        header = npy(NPY % ("<f4", "(8192, 4096)"))
        for side in "QK":
            with archive.open(f"blocks.0.attn.W_{side}.npy", "w") as member:
                member.write(header)
                for _ in range(32):
                    member.write(bytes(2**22))
    return out.getvalue()


def field(number, value):
    """One protobuf field: bytes, or a number."""

    def varint(n):
        return bytes([n & 127 | 128]) + varint(n >> 7) if n > 127 else bytes([n])

    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def onnx(*tensors):
    return field(1, 8) + field(7, b"".join(field(5, tensor) for tensor in tensors))


def external(location):
    return b"".join(
        field(13, field(1, k) + field(2, v)) for k, v in [(b"location", location), (b"length", b"64")]
    )


class Trap:
    """Unpickling it leaves a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (Path.touch, (Path(self.path),))


def torch_zip(trap):
    return npz("archive/data.pkl", pickle.dumps(trap))


ONE_TENSOR = gguf_tensor("blk.0.attn_q.weight", (4, 4))
OBJECTS = io.BytesIO()
np.save(OBJECTS, np.array([{}], dtype=object), allow_pickle=True)

# name: (file name, its bytes, part of the message)
FILES = {
    "empty": ("m.safetensors", b"", "is empty"),
    "three bytes": ("m.gguf", b"GGU", "unknown format"),
    "noise": ("m.bin", bytes(range(100, 200)), "unknown format"),
    "hdf5": ("m.h5", b"\x89HDF\r\n\x1a\n" + bytes(64), "HDF5"),
    "safetensors, cut in the header": ("m.safetensors", safetensors(entry([4, 4], 0, 64))[:40], "truncated"),
    "safetensors, cut in the data": ("m.safetensors", safetensors(entry([4, 4], 0, 64))[:-1], "truncated"),
    "safetensors, header longer than all": ("m", struct.pack("<Q", 2**63) + b"{}" + bytes(64), "truncated"),
    "safetensors, no JSON": ("m", safetensors_bytes(b"{'a': 1}", bytes(64)), "not JSON"),
    "safetensors, deep JSON": ("m", safetensors_bytes(b'{"a":' + b"[" * 200000, bytes(64)), "not JSON"),
    "safetensors, a header of 11 MB": ("m", safetensors_bytes(b"{" + b" " * 11 * 2**20 + b"}"), "at most"),
    "safetensors, 10 MB of empty objects": (
        "m",
        safetensors_bytes(b'{"a":[' + b"{}," * 3_400_000 + b"{}]}", bytes(64)),
        "no valid shape",
    ),
    "safetensors, shape and length differ": ("m", safetensors(entry([2**40, 2**20], 0, 64)), "can't take"),
    "safetensors, length overflows": ("m", safetensors(entry([4, 4], 0, 2**63)), "truncated"),
    "safetensors, negative offset": ("m", safetensors(entry([4, 4], -64, 0)), "no valid shape"),
    "safetensors, backwards": ("m", safetensors(entry([4, 4], 64, 0)), "truncated"),
    "safetensors, shape of text": ("m", safetensors(entry(["4", 4], 0, 64)), "no valid shape"),
    "safetensors, shape of floats": ("m", safetensors(entry([4.0, 4], 0, 64)), "no valid shape"),
    "safetensors, no entry": ("m", safetensors([1, 2]), "no valid shape"),
    "safetensors, a name over many lines": (
        "m",
        safetensors_bytes({"a\nb\x1b[31m" * 50: entry([4, 4], 0, 64)}, bytes(64)),
        "no known attention layout",
    ),
    "safetensors, a matrix of three axes": (
        "m",
        safetensors(entry([2, 2, 4], 0, 64)),
        "a matrix is needed",
    ),
    "safetensors, a stack of no dimensions": (
        "m",
        safetensors_bytes({STACK.format(side): entry([2, 4, 0], 0, 0) for side in "QK"}, bytes(64)),
        "doesn't split into 2 heads of 0",
    ),
    "safetensors, a stack of many heads": (
        "m",
        safetensors_bytes({STACK.format(side): entry([2**62, 4, 4], 0, 64) for side in "QK"}, bytes(64)),
        "can't take",
    ),
    "index, a path upwards": (
        "m.json",
        b'{"weight_map": {"a": "../secret.safetensors"}}',
        "only plain names",
    ),
    "index, an absolute path": ("m.json", b'{"weight_map": {"a": "/etc/passwd"}}', "only plain names"),
    "index, a path of Windows": ("m.json", b'{"weight_map": {"a": "C:\\\\x"}}', "only plain names"),
    "index, a number": ("m.json", b'{"weight_map": {"a": 3}}', "only plain names"),
    "index, a missing shard": ("m.json", b'{"weight_map": {"a": "b.safetensors"}}', "is missing"),
    "index, none": ("m.json", b'{"weights": {}}', "no weight_map"),
    "gguf, cut": ("m.gguf", gguf(ONE_TENSOR, n_tensors=1)[:30], "truncated"),
    "gguf, version 1": ("m.gguf", gguf(version=1), "version 2 or 3"),
    "gguf, many tensors": ("m.gguf", gguf(n_tensors=2**60), "truncated"),
    "gguf, many pairs": ("m.gguf", gguf(n_pairs=2**60), "truncated"),
    "gguf, a long name": ("m.gguf", gguf(struct.pack("<Q", 2**62), n_tensors=1), "at most"),
    "gguf, a long array": (
        "m.gguf",
        gguf(pairs=gguf_pair("a", 9, struct.pack("<IQ", 4, 2**60)), n_pairs=1),
        "at most",
    ),
    "gguf, an array of arrays": (
        "m.gguf",
        gguf(pairs=gguf_pair("a", 9, struct.pack("<IQ", 9, 3)), n_pairs=1),
        "unknown type",
    ),
    "gguf, alignment 0": (
        "m.gguf",
        gguf(pairs=gguf_pair("general.alignment", 4, bytes(4)), n_pairs=1),
        "allowed are 1 to 65536",
    ),
    "gguf, one name for all": ("m.gguf", gguf(ONE_TENSOR * 2 + bytes(128), n_tensors=2), "twice"),
    "gguf, a huge shape": (
        "m.gguf",
        gguf(gguf_tensor("blk.0.attn_q.weight", (2**40, 2**40)) + bytes(99), n_tensors=1),
        "truncated",
    ),
    "gguf, a far offset": (
        "m.gguf",
        gguf(gguf_tensor("a", (4, 4), offset=2**63) + bytes(99), n_tensors=1),
        "truncated",
    ),
    "gguf, half a block": (
        "m.gguf",
        gguf(gguf_tensor("a", (5, 4), kind=8) + bytes(999), n_tensors=1),
        "multiple of 32",
    ),
    "gguf, a part": (
        "m.gguf",
        gguf(pairs=gguf_pair("split.count", 2, struct.pack("<H", 3)), n_pairs=1),
        "merge it",
    ),
    "pickle as safetensors": ("m.safetensors", pickle.dumps({"a": 1}, protocol=4), "is a pickle"),
    "pickle of old torch": ("m.bin", b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19." + bytes(64), "is a pickle"),
    "npz, cut": ("m.npz", npz("a.npy", npy("{}", bytes(999)))[:-30], "zip"),
    "npz, pickled objects": ("m.npz", npz("a.npy", OBJECTS.getvalue()), "holds pickled objects"),
    "npz, a huge shape": ("m.npz", npz("a.npy", npy(NPY % ("<f4", "(1099511627776,)"))), "wrong length"),
    "npz, code in the header": (
        "m.npz",
        npz("a.npy", npy("__import__('os').abort()")),
        "no valid npy header",
    ),
    "npz, no header": ("m.npz", npz("a.npy", b"what"), "no valid npy header"),
    "npz, a bomb": ("m.npz", bomb(), "unpacks to 134217"),
    "npz, a config of lists": (
        "m.npz",
        npz("__config__.npy", npy(NPY % ("<U4", "()"), "[1]\0".encode("utf-32-le"))),
        "must be a JSON object",
    ),
    "ctranslate2, cut": ("model.bin", ctranslate2_bytes({CT2: np.ones((12, 4), "f4")})[:-50], "truncated"),
    "ctranslate2, version 9": ("model.bin", ctranslate2_bytes({}, version=9), "version 4 to 6"),
    "ctranslate2, wrong length": (
        "model.bin",
        ctranslate2_bytes({CT2: np.ones((12, 4), "f4")}).replace(b"\x0c\0\0\0\4", b"\x0c\0\0\x80\4"),
        "can't take",
    ),
    "ctranslate2, alias of nothing": ("model.bin", ctranslate2_bytes({}, [("a", "b")]), "which it lacks"),
    "onnx, cut": ("m.onnx", onnx(field(8, b"a") + field(9, bytes(64)))[:-9], "truncated"),
    "onnx, an endless number": ("m.onnx", b"\x08" + b"\xff" * 99, "doesn't end"),
    "onnx, no graph": ("m.onnx", field(1, 8), "0 graphs"),
    "onnx, a huge shape": (
        "m.onnx",
        onnx(field(1, 2**40) + field(1, 2**40) + field(2, 1) + field(8, b"a") + field(9, bytes(64))),
        "can't take",
    ),
    "onnx, data elsewhere": (
        "m.onnx",
        onnx(field(1, 16) + field(2, 1) + field(8, b"a") + external(b"../secret")),
        "only plain names",
    ),
    "onnx, data missing": (
        "m.onnx",
        onnx(field(1, 16) + field(2, 1) + field(8, b"a") + external(b"w.data")),
        "which is missing",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_one_line_says_what_is_wrong(name, tmp_path):
    file, content, message = FILES[name]
    (tmp_path / file).write_bytes(content)
    with pytest.raises(ValueError, match=r"\w") as caught:
        list(read_heads(tmp_path / file, heads=2))
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", FILES)
def test_the_command_line_says_it_too(name, tmp_path, capsys):
    file, content, message = FILES[name]
    (tmp_path / file).write_bytes(content)
    assert run(["heads", str(tmp_path / file), "--heads", "2"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("resolvent: ")
    assert err.count("\n") == 1
    assert " ".join(message.split()) in err


def test_pickles_are_refused_whatever_they_are_called_and_never_run(tmp_path):
    trap = Trap(str(tmp_path / "sprung"))
    assert pickle.loads(pickle.dumps(trap)) is None
    (tmp_path / "sprung").unlink()
    for file in ("m.safetensors", "m.npz", "m.gguf", "m.onnx", "model.bin", "m.json", "m.pt"):
        for content in (*(pickle.dumps(trap, protocol=i) for i in range(2, 6)), torch_zip(trap)):
            (tmp_path / file).write_bytes(content)
            with pytest.raises(ValueError, match=r"is a pickle, .* convert it: safetensors.torch.save_file"):
                read_heads(tmp_path / file)
        # the oldest protocol is plain text without magic bytes
        (tmp_path / file).write_bytes(pickle.dumps(trap, protocol=0))
        with pytest.raises(ValueError, match="unknown format"):
            read_heads(tmp_path / file)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    "content", [b"{", b"[1]", b'{"num_attention_heads": 1000000000}', b'{"head_dim": "4"}']
)
def test_a_bad_config_is_one_line_too(content, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(safetensors(entry([4, 4], 0, 64)))
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"config.json|num_attention_heads|head_dim|heads must"):
        list(read_heads(tmp_path, heads=2) if b"dim" in content else read_heads(tmp_path))


def test_a_stack_without_heads(tmp_path):
    header = {STACK.format(side): entry([0, 4, 4], 0, 0) for side in "QK"}
    (tmp_path / "m").write_bytes(safetensors_bytes(header, bytes(64)))
    with pytest.raises(ValueError, match="doesn't say how many heads"):
        list(read_heads(tmp_path / "m"))


def test_what_is_not_there(tmp_path):
    with pytest.raises(ValueError, match="no checkpoint in the folder"):
        read_heads(tmp_path)
    with pytest.raises(ValueError, match=r"no such file or folder: '.*nothing'"):
        read_heads(tmp_path / "nothing")


def test_weights_that_are_not_finite(tmp_path):
    data = np.full((4, 4), np.nan, "f4").tobytes()
    (tmp_path / "m").write_bytes(safetensors_bytes({Q: entry([4, 4], 0, 64), K: entry([4, 4], 0, 64)}, data))
    head = next(read_heads(tmp_path / "m", heads=2))
    with pytest.raises(ValueError, match="layer 0 head 0: weights are not finite"):
        head.key_query()


def sparse_model(path, layers, d_model, rows, dtype="F16"):
    """A file whose header describes a model and whose numbers are a hole, all zeros."""
    size, header, at = {"F16": 2, "F32": 4}[dtype], {}, 0
    for layer in range(layers):
        for name in (Q, K):
            header[name.replace(".0.", f".{layer}.")] = entry(
                [rows, d_model], at, at + rows * d_model * size, dtype
            )
            at += rows * d_model * size
    with path.open("wb") as file:
        start = file.write(safetensors_bytes(header))
        file.truncate(start + at)
    return at


def in_a_process(code, *arguments, memory):
    """Output of code that may allocate no more than `memory` bytes (mapped files don't count)."""

    def limit():
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))

    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        preexec_fn=limit,
        capture_output=True,
        text=True,
        timeout=300,
        env={"PYTHONPATH": ":".join(sys.path), "OPENBLAS_NUM_THREADS": "1", "PATH": ""},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


READ_ALL = """
import re, sys, warnings
warnings.simplefilter("ignore", ResourceWarning)
from resolvent.checkpoints import read_heads
for path in sys.argv[1:]:
    try:
        print("heads", len(list(read_heads(path, heads=2))))
    except ValueError as error:
        print("refused", error)
# not ru_maxrss, which counts the process that started this one
print("peak", 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits and peak memory are read as on Linux")
def test_no_hostile_file_takes_500_megabytes(tmp_path):
    paths = []
    for i, (file, content, _) in enumerate(FILES.values()):
        folder = tmp_path / str(i)
        folder.mkdir()
        paths.append(folder / file)
        paths[-1].write_bytes(content)
    sparse_model(tmp_path / "huge.safetensors", 1, 2**18, 2**16)  # two matrices of 32 GB that do fit the file
    lines = in_a_process(READ_ALL, *paths, tmp_path / "huge.safetensors", memory=500 * 10**6).splitlines()
    assert sum(line.startswith("refused ") for line in lines) == len(FILES) + 1 >= 25
    assert "beyond the" in lines[-2]
    assert int(lines[-1].split()[1]) < 500e6


ANALYSE = """
import itertools, sys
from resolvent.checkpoints import read_heads, summarise_heads
heads = read_heads(sys.argv[1], heads=32)
print(sum(1 for _ in summarise_heads(itertools.islice(heads, int(sys.argv[2])))))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits are set as on Linux")
@pytest.mark.parametrize("count", [8, pytest.param(1024, marks=pytest.mark.slow)])
def test_a_model_of_7b_is_read_within_a_gibibyte(tmp_path, count):
    path = tmp_path / "model.safetensors"
    queries_and_keys = sparse_model(path, 32, 4096, 4096)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size + 13 * 10**9 - queries_and_keys)  # the layers' other weights
    assert in_a_process(ANALYSE, path, count, memory=2**30).split() == [str(count)]
