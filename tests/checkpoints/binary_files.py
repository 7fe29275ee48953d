"""Writers of small checkpoints, independent of the readers: the formats' own packages where there are any."""

import json
import struct

import numpy as np

CT2_TYPES = {"float32": 0, "int8": 1, "int16": 2, "int32": 3, "float16": 4, "bfloat16": 5}


def safetensors_bytes(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def ctranslate2_bytes(variables, aliases=(), *, spec="TransformerDecoderModelSpec", version=6):
    """`variables`: name -> array, or (array of 16-bit words, "bfloat16")."""

    def text(value):
        return struct.pack("<H", len(value) + 1) + value.encode() + b"\0"

    out = [struct.pack("<I", version), text(spec), struct.pack("<II", 1, len(variables))]
    for name, value in variables.items():
        array, kind = value if isinstance(value, tuple) else (value, str(np.asarray(value).dtype))
        array = np.asarray(array)
        out += [text(name), struct.pack("<B", array.ndim), struct.pack(f"<{array.ndim}I", *array.shape)]
        out += [struct.pack("<BI", CT2_TYPES[kind], array.nbytes), array.tobytes()]
    out.append(struct.pack("<I", len(aliases)))
    out += [text(part) for pair in aliases for part in pair]
    return b"".join(out)


def write_gguf(path, tensors, *, arch="llama", heads=4, groups=2, kind=None, vocabulary=1000):
    """Through the gguf package, which permutes nothing itself; `kind` quantises the weights of attention."""
    from gguf import GGMLQuantizationType, GGUFWriter
    from gguf.quants import quantize

    writer = GGUFWriter(path, arch)
    writer.add_head_count(heads)
    writer.add_head_count_kv(groups)
    writer.add_embedding_length(next(iter(tensors.values())).shape[-1])
    writer.add_rope_dimension_count(6)
    writer.add_token_list([f"token{i}" for i in range(vocabulary)])
    writer.add_token_scores([0.0] * vocabulary)
    for name, array in tensors.items():
        if kind is None or array.ndim == 1:
            writer.add_tensor(name, array)
        else:
            qtype = GGMLQuantizationType[kind]
            writer.add_tensor(name, quantize(array.astype(np.float32), qtype), raw_dtype=qtype)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def paired_rows(W, heads):
    """llama.cpp's conversion: rows (j, j + d/2) of each head become neighbours (2j, 2j + 1)."""
    d = len(W) // heads
    out = np.empty_like(W)
    for h in range(heads):
        for j in range(d // 2):
            out[h * d + 2 * j] = W[h * d + j]
            out[h * d + 2 * j + 1] = W[h * d + j + d // 2]
    return out
