"""Every file format: what was written by other hands comes back, number by number."""

import json
import sys

import numpy as np
import pytest
from binary_files import ctranslate2_bytes, paired_rows, safetensors_bytes, write_gguf

from resolvent.checkpoints import open_checkpoint, read_heads

RNG = np.random.default_rng(0)
H, G, D_HEAD, D = 4, 2, 6, 32
Q, K = RNG.normal(size=(H * D_HEAD, D)).astype("f4"), RNG.normal(size=(G * D_HEAD, D)).astype("f4")
GAIN = RNG.normal(size=D).astype("f4")
LLAMA = {
    "model.layers.0.self_attn.q_proj.weight": Q,
    "model.layers.0.self_attn.k_proj.weight": K,
    "model.layers.0.input_layernorm.weight": GAIN,
}
CONFIG = {"model_type": "mistral", "num_attention_heads": H, "num_key_value_heads": G}


def check(source, tolerance=0.0, **options):
    heads = list(read_heads(source, **options))
    assert len(heads) == H
    for h, head in enumerate(heads):
        g = h // (H // G)
        np.testing.assert_allclose(head.W_Q, Q[h * D_HEAD : (h + 1) * D_HEAD], rtol=0, atol=tolerance)
        np.testing.assert_allclose(head.W_K, K[g * D_HEAD : (g + 1) * D_HEAD], rtol=0, atol=tolerance)
    return heads


def bfloat16_words(x):
    return (np.asarray(x, "f4").view(np.uint32) >> 16).astype(np.uint16)


def test_safetensors_file_and_folder(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    numpy.save_file(LLAMA, tmp_path / "model.safetensors", metadata={"format": "pt"})
    check(tmp_path / "model.safetensors", heads=H)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    heads = check(tmp_path)
    assert heads[0].kind == "mistral"
    assert heads[0].source == "model.safetensors: 'model.layers.0.self_attn.q_proj.weight'"
    check(str(tmp_path))


@pytest.mark.parametrize(
    ("dtype", "words", "tolerance"),
    [
        ("F64", lambda x: x.astype("f8"), 0),
        ("F32", lambda x: x, 0),
        ("F16", lambda x: x.astype("f2"), 2e-3),
        ("BF16", bfloat16_words, 3e-2),
    ],
)
def test_safetensors_types(tmp_path, dtype, words, tolerance):
    header, data = {}, b""
    for name, array in LLAMA.items():
        raw = words(array).tobytes()
        header[name] = {
            "dtype": dtype,
            "shape": array.shape,
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    (tmp_path / "m.safetensors").write_bytes(safetensors_bytes(header, data))
    heads = check(tmp_path / "m.safetensors", tolerance, heads=H)
    assert heads[0].W_Q.dtype == (np.float64 if dtype == "F64" else np.float32)


def test_safetensors_in_shards(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    shards = {name: f"model-{i}-of-3.safetensors" for i, name in enumerate(LLAMA)}
    for name, shard in shards.items():
        numpy.save_file({name: LLAMA[name]}, tmp_path / shard)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": shards}))
    check(tmp_path)
    check(index)


def gguf_tensors(order=paired_rows):
    return {
        "blk.0.attn_q.weight": order(Q, H),
        "blk.0.attn_k.weight": order(K, G),
        "blk.0.attn_norm.weight": GAIN,
    }


@pytest.mark.parametrize(
    ("kind", "tolerance"),
    [(None, 0), ("F16", 2e-3), ("BF16", 2e-2), ("Q8_0", 2e-2), ("Q4_0", 0.4), ("Q4_1", 0.3), ("Q5_0", 0.2)],
)
def test_gguf_undoes_the_pairing_of_rows(tmp_path, kind, tolerance):
    pytest.importorskip("gguf")
    write_gguf(tmp_path / "m.gguf", gguf_tensors(), kind=kind, heads=H, groups=G)
    heads = check(tmp_path / "m.gguf", tolerance)
    np.testing.assert_array_equal(heads[0].norm_gain, GAIN)
    assert heads[0].kind == "llama"
    assert heads[0].notes


def test_gguf_leaves_other_architectures_rows_alone(tmp_path):
    pytest.importorskip("gguf")
    write_gguf(tmp_path / "m.gguf", gguf_tensors(lambda W, _: W), arch="qwen2", heads=H, groups=G)
    check(tmp_path / "m.gguf")


def test_gguf_slices_are_those_of_the_whole(tmp_path):
    pytest.importorskip("gguf")
    write_gguf(tmp_path / "m.gguf", gguf_tensors(), kind="Q8_0", heads=H, groups=G)
    tensor = open_checkpoint(tmp_path / "m.gguf").tensors["blk.0.attn_q.weight"]
    whole = tensor.read()
    for rows, columns in (
        (slice(7, 17), slice(3, 9)),
        (slice(0, 1), slice(None)),
        (slice(5, 5), slice(None)),
    ):
        np.testing.assert_array_equal(tensor[rows, columns], whole[rows, columns])


def half(block, at):
    return float(np.frombuffer(bytes(block[at : at + 2]), "<f2")[0])


def naive_q4_k(block):
    """256 numbers from d, dmin (half), 12 bytes of 6-bit scales and minima, 128 bytes of 4-bit quanta."""
    d, dmin, packed, quanta = half(block, 0), half(block, 2), block[4:16], block[16:]
    out = []
    for j in range(8):
        if j < 4:
            scale, minimum = packed[j] & 63, packed[j + 4] & 63
        else:
            scale = (packed[j + 4] & 15) | ((packed[j - 4] >> 6) << 4)
            minimum = (packed[j + 4] >> 4) | ((packed[j] >> 6) << 4)
        for i in range(32):
            q = quanta[32 * (j // 2) + i]
            out.append(d * scale * (q >> 4 if j % 2 else q & 15) - dmin * minimum)
    return out


def naive_q6_k(block):
    """256 numbers from 128 bytes of low and 64 of high bits, 16 signed scales and d (half)."""
    low, high, scales, d = block[:128], block[128:192], block[192:208], half(block, 208)
    out = np.zeros(256)
    for n in range(2):
        for i in range(32):
            for part in range(4):
                bits = low[64 * n + i + 32 * (part % 2)] >> (4 * (part // 2)) & 15
                bits |= (high[32 * n + i] >> (2 * part) & 3) << 4
                scale = int(np.int8(np.uint8(scales[8 * n + 2 * part + i // 16])))
                out[128 * n + 32 * part + i] = d * scale * (bits - 32)
    return out


@pytest.mark.parametrize(
    ("kind", "number", "size", "halves", "naive"),
    [("Q4_K", 12, 144, (0, 2), naive_q4_k), ("Q6_K", 14, 210, (208,), naive_q6_k)],
)
def test_gguf_k_quants_against_the_format_written_out(tmp_path, kind, number, size, halves, naive):
    gguf = pytest.importorskip("gguf")
    rng = np.random.default_rng(3)
    blocks = rng.integers(0, 256, size=(4, 2, size), dtype=np.uint8)  # rows of 512 numbers
    for at in halves:
        scales = rng.uniform(0.01, 0.1, size=(4, 2)).astype("<f2")
        blocks[..., at : at + 2] = scales[..., None].view(np.uint8).reshape(4, 2, 2)
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "qwen2")
    writer.add_head_count(1)
    rows = blocks.reshape(4, 2 * size)
    for side in "qk":
        writer.add_tensor(f"blk.0.attn_{side}.weight", rows, raw_dtype=gguf.GGMLQuantizationType[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    (head,) = read_heads(tmp_path / "m.gguf")
    expected = [[x for block in row for x in naive(block.tolist())] for row in blocks]
    np.testing.assert_allclose(head.W_Q, expected, rtol=1e-5, atol=1e-6)
    assert gguf.GGMLQuantizationType[kind] == number


def test_gguf_without_its_package_says_what_to_install(tmp_path, monkeypatch):
    pytest.importorskip("gguf")
    write_gguf(tmp_path / "m.gguf", gguf_tensors(), kind="Q8_0", heads=H, groups=G)
    monkeypatch.setitem(sys.modules, "gguf.quants", None)
    with pytest.raises(ValueError, match=r"Q8_0 weights need the gguf package: pip install"):
        list(read_heads(tmp_path / "m.gguf"))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("dtype", ["f4", "f2", "f8"])
def test_npz(tmp_path, save, dtype):
    config = {"__config__": np.array(json.dumps(CONFIG))}
    save(tmp_path / "m.npz", **{name: array.astype(dtype) for name, array in LLAMA.items()}, **config)
    assert check(tmp_path / "m.npz", 2e-3 if dtype == "f2" else 0)[0].kind == "mistral"


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16", "int8", "int16"])
def test_ctranslate2(tmp_path, kind):
    W = np.concatenate([Q, K, K])
    name = "decoder/layer_0/self_attention/linear_0/weight"
    scale, tolerance = (
        {},
        {"float32": 0, "float16": 2e-3, "bfloat16": 3e-2, "int8": 2e-2, "int16": 4e-3}[kind],
    )
    stored = W.astype(kind) if kind.startswith("float") else W
    if kind == "bfloat16":
        stored = (bfloat16_words(W), kind)
    elif kind == "int8":
        scale = {name + "_scale": 127 / np.abs(W).max(axis=1)}
        stored = np.rint(W * scale[name + "_scale"][:, None]).astype(np.int8)
    elif kind == "int16":
        scale = {name + "_scale": np.float32(1024 / np.abs(W).max())}
        stored = np.rint(W * scale[name + "_scale"]).astype(np.int16)
    counts = {"decoder/num_heads": np.int16(H), "decoder/num_heads_kv": np.int16(G)}
    norm = {"decoder/layer_0/self_attention/layer_norm/gamma": GAIN, "decoder/pre_norm": np.int8(1)}
    variables = counts | norm | {name: stored} | {k: np.float32(v) for k, v in scale.items()}
    (tmp_path / "model.bin").write_bytes(ctranslate2_bytes(variables, [("projection", name)]))
    heads = check(tmp_path, tolerance)
    np.testing.assert_array_equal(heads[0].norm_gain, GAIN)
    assert heads[0].kind == "transformerdecodermodel"
    assert open_checkpoint(tmp_path).tensors["projection"].shape == W.shape
    (tmp_path / "model.bin").write_bytes(ctranslate2_bytes(variables | {"decoder/pre_norm": np.int8(0)}))
    assert check(tmp_path, tolerance)[0].norm_gain is None


def onnx_model(nodes, initialisers, path, **save):
    onnx = pytest.importorskip("onnx")
    graph = onnx.helper.make_graph(nodes, "g", [], [], initializer=initialisers)
    onnx.save(onnx.helper.make_model(graph), path, **save)


def test_onnx_named_initialisers(tmp_path):
    onnx = pytest.importorskip("onnx")
    arrays = [onnx.numpy_helper.from_array(array, name) for name, array in LLAMA.items()]
    onnx_model([], arrays, tmp_path / "model.onnx")
    check(tmp_path, heads=H)


def test_onnx_typed_field_and_half(tmp_path):
    onnx = pytest.importorskip("onnx")
    q, k, _ = LLAMA
    typed = onnx.helper.make_tensor(q, onnx.TensorProto.FLOAT, Q.shape, Q.ravel())  # float_data, not raw_data
    onnx_model([], [typed, onnx.numpy_helper.from_array(K.astype("f2"), k)], tmp_path / "model.onnx")
    check(tmp_path, 2e-3, heads=H)


def test_onnx_external_data(tmp_path):
    onnx = pytest.importorskip("onnx")
    arrays = [onnx.numpy_helper.from_array(array, name) for name, array in LLAMA.items()]
    onnx_model(
        [], arrays, tmp_path / "model.onnx", save_as_external_data=True, location="w.data", size_threshold=0
    )
    assert (tmp_path / "w.data").stat().st_size >= Q.nbytes
    check(tmp_path, heads=H)


def test_onnx_names_lost_in_the_export_are_found_again(tmp_path):
    onnx = pytest.importorskip("onnx")
    node, array = onnx.helper.make_node, onnx.numpy_helper.from_array
    stem = "encoder.layer.0.attention.self."
    wide = np.concatenate([K, RNG.normal(size=K.shape).astype("f4")])  # as many key heads as query heads
    bias = RNG.normal(size=H * D_HEAD).astype("f4")
    nodes = [
        node("MatMul", ["x", "onnx::MatMul_7"], ["y"], name="MatMul_12"),
        node("Add", [stem + "query.bias", "y"], ["z"], name="Add_13"),
        node("MatMul", ["x", "onnx::MatMul_8"], ["k"], name="/encoder/layer.0/attention/self/key/MatMul"),
    ]
    arrays = [
        array(np.ascontiguousarray(Q.T), "onnx::MatMul_7"),
        array(np.ascontiguousarray(wide.T), "onnx::MatMul_8"),
        array(bias, stem + "query.bias"),
    ]
    onnx_model(nodes, arrays, tmp_path / "model.onnx")
    for h, head in enumerate(read_heads(tmp_path, heads=H)):
        np.testing.assert_array_equal(head.W_Q, Q[h * D_HEAD : (h + 1) * D_HEAD])
        np.testing.assert_array_equal(head.W_K, wide[h * D_HEAD : (h + 1) * D_HEAD])
        np.testing.assert_array_equal(head.b_Q, bias[h * D_HEAD : (h + 1) * D_HEAD])


def test_onnx_gemm_may_hold_the_weight_either_way(tmp_path):
    onnx = pytest.importorskip("onnx")
    for transposed in (0, 1):
        weight = np.ascontiguousarray(Q if transposed else Q.T)
        nodes = [onnx.helper.make_node("Gemm", ["x", "w"], ["y"], name="/a/b/Gemm", transB=transposed)]
        onnx_model(nodes, [onnx.numpy_helper.from_array(weight, "w")], tmp_path / "model.onnx")
        np.testing.assert_array_equal(open_checkpoint(tmp_path).tensors["a.b.weight"].read(), Q)


class Tensor:
    """As much of a torch tensor as the reader looks at; refuses NumPy's own conversion, as bfloat16 does."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def __getitem__(self, index):
        return Tensor(self.array[index])

    def __array__(self, *_, **__):
        raise TypeError("Got unsupported ScalarType BFloat16")

    def detach(self):
        return self

    cpu = float = detach

    def numpy(self):
        return self.array


def test_state_dict_of_tensors_without_torch():
    check({name: Tensor(array) for name, array in LLAMA.items()} | {"_extra_state": None}, heads=H)


def test_torch_module_when_torch_is_there():
    torch = pytest.importorskip("torch")
    module = torch.nn.Module()
    module.layers = torch.nn.ModuleList([torch.nn.Module()])
    module.layers[0].self_attn = torch.nn.Module()
    for name, W in (("q_proj", Q), ("k_proj", K)):
        linear = torch.nn.Linear(D, len(W), bias=False)
        linear.weight.data = torch.tensor(W)
        setattr(module.layers[0].self_attn, name, linear)
    check(module, heads=H)
    check(module.to(torch.bfloat16), 3e-2, heads=H)


def test_unreadable_types_are_named_only_when_wanted(tmp_path):
    header = {
        "model.layers.0.self_attn.q_proj.weight": {
            "dtype": "F8_E4M3",
            "shape": [4, 4],
            "data_offsets": [0, 16],
        },
        "model.layers.0.self_attn.k_proj.weight": {
            "dtype": "F8_E4M3",
            "shape": [4, 4],
            "data_offsets": [0, 16],
        },
    }
    (tmp_path / "m.safetensors").write_bytes(safetensors_bytes(header, bytes(16)))
    assert len(open_checkpoint(tmp_path).tensors) == 2
    with pytest.raises(ValueError, match=r"q_proj.weight' is stored as 'F8_E4M3', which isn't read"):
        list(read_heads(tmp_path, heads=2))


def test_hub_without_its_package_or_a_network(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(
        ValueError, match=r"no file 'org/name' here, .* pip install 'resolvent\[checkpoints\]'"
    ):
        read_heads("org/name")

    class Offline:
        @staticmethod
        def snapshot_download(name, allow_patterns):
            assert "*.bin" not in allow_patterns
            raise OSError(f"no route to {name}\nand more")

    monkeypatch.setitem(sys.modules, "huggingface_hub", Offline)
    with pytest.raises(
        ValueError, match=r"'org/name' .* can't be fetched from the hub: no route to org/name$"
    ):
        read_heads("org/name")


def test_hub_models_are_read_from_the_folder_that_was_fetched(monkeypatch, tmp_path):
    class Hub:
        @staticmethod
        def snapshot_download(name, allow_patterns):
            del name, allow_patterns
            return str(tmp_path)

    monkeypatch.setitem(sys.modules, "huggingface_hub", Hub)
    with pytest.raises(ValueError, match="'org/name' has no safetensors on the hub"):
        read_heads("org/name")
    pytest.importorskip("safetensors.numpy").save_file(LLAMA, tmp_path / "model.safetensors")
    check("org/name", heads=H)


def written(folder):
    """One small file of each format."""
    onnx, _ = pytest.importorskip("onnx"), pytest.importorskip("gguf")
    pytest.importorskip("safetensors.numpy").save_file(LLAMA, folder / "m.safetensors")
    write_gguf(folder / "m.gguf", gguf_tensors(), kind="Q8_0", heads=H, groups=G, vocabulary=5)
    np.savez(folder / "m.npz", **LLAMA)
    np.savez_compressed(folder / "compressed.npz", **LLAMA)
    onnx_model([], [onnx.numpy_helper.from_array(W, name) for name, W in LLAMA.items()], folder / "m.onnx")
    variables = {"decoder/layer_0/self_attention/linear_0/weight": np.concatenate([Q, K, K])}
    heads = {"decoder/num_heads": np.int16(H), "decoder/num_heads_kv": np.int16(G)}
    (folder / "model.bin").write_bytes(ctranslate2_bytes(variables | heads))
    return sorted(folder.iterdir())


def test_damage_anywhere_gives_heads_or_one_line(tmp_path):
    rng = np.random.default_rng(0)
    for path in written(tmp_path):
        whole, damaged = path.read_bytes(), tmp_path / "damaged"
        for _ in range(150):
            content = bytearray(whole)
            for _ in range(rng.integers(1, 4)):
                at = (
                    int(rng.integers(min(len(content), 800)))
                    if rng.random() < 0.7
                    else -int(rng.integers(1, 300))
                )
                content[at : at + int(rng.integers(1, 9))] = rng.bytes(int(rng.integers(0, 9)))
            damaged.write_bytes(content)
            said = outcome(damaged)
            assert isinstance(said, int) or (len(said.splitlines()) == 1 and said.isprintable())


def outcome(path):
    """The number of heads, or what was wrong with the file; anything but a ValueError passes on."""
    try:
        return len(list(read_heads(path, heads=H)))
    except ValueError as error:
        return str(error)
