"""Forward passes in plain NumPy that take queries and keys from `read_heads` and all else from the file.

They are the proof of the readers: with wrong rows, sides or order in Q and K the model stops working.
"""

import numpy as np
from scipy.special import erf, log_softmax, softmax

from resolvent.checkpoints import open_checkpoint, read_heads


class Model:
    """Weights by name, and heads by layer; `damage` changes every head, to show that a test can fail."""

    def __init__(self, path, damage=lambda head: (head.W_Q, head.W_K), **options):
        checkpoint = open_checkpoint(path)
        self.tensors, self.damage = checkpoint.tensors, damage
        self.layers = {}
        for head in read_heads(path, **options):
            self.layers.setdefault(head.layer, []).append(head)

    def __getitem__(self, name):
        return self.tensors[name].read()

    def attend(self, layer, x, values, *, turn=lambda z: z, causal=True):
        """Outputs of all heads side by side; `values` maps a head's number to its value rows (tokens x d)."""
        out = []
        for head in self.layers[layer]:
            W_Q, W_K = self.damage(head)
            q = turn(x @ W_Q.T + (0 if head.b_Q is None else head.b_Q))
            k = turn(x @ W_K.T + (0 if head.b_K is None else head.b_K))
            scores = q @ k.swapaxes(-1, -2) / np.sqrt(head.d_head)
            if causal:
                scores = np.where(np.tri(len(x), dtype=bool), scores, -np.inf)
            out.append(softmax(scores, axis=-1) @ values(head.head))
        return np.concatenate(out, axis=-1)


def layer_norm(x, gain, bias, eps):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * gain + bias


def rms_norm(x, gain, eps):
    return x / np.sqrt(np.mean(x**2, axis=1, keepdims=True) + eps) * gain


def silu(x):
    return x / (1 + np.exp(-x))


def gelu(x):
    return x * (1 + erf(x / np.sqrt(2))) / 2


def rotate(x, base, *, halves=True):
    """Rotary positions; a pair is (j, j + d/2) in Hugging Face's order and (2j, 2j + 1) in the paper's."""
    n, d = x.shape
    angle = np.outer(np.arange(n), base ** (-2.0 * np.arange(d // 2) / d))
    first, second = (x[:, : d // 2], x[:, d // 2 :]) if halves else (x[:, 0::2], x[:, 1::2])
    turned = first * np.cos(angle) - second * np.sin(angle), second * np.cos(angle) + first * np.sin(angle)
    return np.concatenate(turned, axis=1) if halves else np.stack(turned, axis=2).reshape(n, d)


def next_token_loss(logits, ids):
    """Mean loss in nats of tokens 1, 2, ... each predicted from those before it."""
    return -log_softmax(logits[:-1], axis=1)[np.arange(len(ids) - 1), ids[1:]].mean()


def minilm_layers(path, ids, **options):
    """Token vectors at the input of every layer, then at the output; ids may be a batch of sequences."""
    m = Model(path, **options)
    x = (
        m["embeddings.word_embeddings.weight"][ids]
        + m["embeddings.position_embeddings.weight"][: np.shape(ids)[-1]]
        + m["embeddings.token_type_embeddings.weight"][0]
    )
    x = layer_norm(x, m["embeddings.LayerNorm.weight"], m["embeddings.LayerNorm.bias"], 1e-12)
    for layer, heads in m.layers.items():
        yield x
        p, d = f"encoder.layer.{layer}.", heads[0].d_head

        def linear(z, name, p=p):
            return z @ m[p + name + ".weight"].T + m[p + name + ".bias"]

        def norm(z, name, p=p):
            return layer_norm(z, m[p + name + ".weight"], m[p + name + ".bias"], 1e-12)

        v = linear(x, "attention.self.value")
        mixed = m.attend(layer, x, lambda h, v=v, d=d: v[..., h * d : (h + 1) * d], causal=False)
        x = norm(x + linear(mixed, "attention.output.dense"), "attention.output.LayerNorm")
        x = norm(x + linear(gelu(linear(x, "intermediate.dense")), "output.dense"), "output.LayerNorm")
    yield x


def minilm(path, ids, **options):
    """Mean of the last layer's token vectors, normalised: the sentence's embedding."""
    *_, x = minilm_layers(path, ids, **options)
    pooled = x.mean(axis=-2)
    return pooled / np.linalg.norm(pooled, axis=-1, keepdims=True)


def smollm(path, ids, *, layers=None, **options):
    """Logits of a LLaMA-like model in GGUF."""
    m = Model(path, **options)
    table = m.tensors["token_embd.weight"]
    x = np.concatenate([table[i : i + 1, :] for i in ids])
    for layer, heads in list(m.layers.items())[:layers]:
        p, d = f"blk.{layer}.", heads[0].d_head
        h = rms_norm(x, m[p + "attn_norm.weight"], 1e-5)
        v = h @ m[p + "attn_v.weight"].T
        group = len(heads) // (v.shape[1] // d)
        mixed = m.attend(
            layer,
            h,
            lambda k, v=v, d=d, group=group: v[:, k // group * d : (k // group + 1) * d],
            turn=lambda z: rotate(z, 1e5),
        )
        x = x + mixed @ m[p + "attn_output.weight"].T
        h = rms_norm(x, m[p + "ffn_norm.weight"], 1e-5)
        x = (
            x
            + (silu(h @ m[p + "ffn_gate.weight"].T) * (h @ m[p + "ffn_up.weight"].T))
            @ m[p + "ffn_down.weight"].T
        )
    return rms_norm(x, m["output_norm.weight"], 1e-5) @ table.read().T


def glassllm(path, ids, **options):
    """Logits of glassllm: x W, grouped keys, rotary pairs (2j, 2j + 1)."""
    m = Model(path, **options)
    x = m["E"][ids]
    for layer, heads in m.layers.items():
        p, d = f"blocks.{layer}.", heads[0].d_head
        h = rms_norm(x, m[p + "norm1.gamma"], 1e-6)
        v = h @ m[p + "attn.W_V"]
        mixed = m.attend(
            layer,
            h,
            lambda k, v=v, d=d: v[:, k // 2 * d : (k // 2 + 1) * d],
            turn=lambda z: rotate(z, 1e4, halves=False),
        )
        x = x + mixed @ m[p + "attn.W_O"]
        h = rms_norm(x, m[p + "norm2.gamma"], 1e-6)
        x = x + (silu(h @ m[p + "ffn.W1"]) * (h @ m[p + "ffn.W3"])) @ m[p + "ffn.W2"]
    return rms_norm(x, m["norm_f.gamma"], 1e-6) @ m["E"].T


def whisper(path, ids, *, frames=100, **options):
    """Logits of Whisper's decoder in CTranslate2's names, listening to two seconds of silence."""
    m = Model(path, stack="decoder", **options)

    def linear(z, name):
        return z @ m[name + "/weight"].T + m[name + "/bias"]

    def norm(z, name):
        return layer_norm(z, m[name + "/gamma"], m[name + "/beta"], 1e-5)

    def feed(z, p):
        return z + linear(gelu(linear(norm(z, p + "ffn/layer_norm"), p + "ffn/linear_0")), p + "ffn/linear_1")

    def self_attend(model, z, p, layer, *, causal):
        d = model.layers[layer][0].d_head
        h = norm(z, p + "self_attention/layer_norm")
        v = linear(h, p + "self_attention/linear_0")[:, -len(model.layers[layer]) * d :]
        mixed = model.attend(layer, h, lambda k: v[:, k * d : (k + 1) * d], causal=causal)
        return z + linear(mixed, p + "self_attention/linear_1")

    heard = _listen(Model(path, stack="encoder", **options), frames, self_attend, feed, norm)
    x = m["decoder/embeddings/weight"][ids] + m["decoder/position_encodings/encodings"][: len(ids)]
    for layer, heads in m.layers.items():
        p = f"decoder/layer_{layer}/"
        x = self_attend(m, x, p, layer, causal=True)
        q = linear(norm(x, p + "attention/layer_norm"), p + "attention/linear_0")
        k, v = np.split(linear(heard, p + "attention/linear_1"), 2, axis=1)
        by_head = [np.split(z, len(heads), axis=1) for z in (q, k, v)]
        mixed = [softmax(q @ k.T / np.sqrt(q.shape[1]), axis=1) @ v for q, k, v in zip(*by_head, strict=True)]
        x = feed(x + linear(np.concatenate(mixed, axis=1), p + "attention/linear_2"), p)
    return norm(x, "decoder/layer_norm") @ m["decoder/embeddings/weight"].T


def _listen(m, frames, self_attend, feed, norm):
    """The encoder's output for silence, a spectrogram of -1.5 everywhere."""

    def convolve(z, name, stride):
        padded = np.pad(z, ((1, 1), (0, 0)))
        taps = [padded[i : i + len(z) : stride] @ m[name + "/weight"][:, :, i].T for i in range(3)]
        return gelu(sum(taps) + m[name + "/bias"])

    x = convolve(convolve(np.full((2 * frames, 80), -1.5), "encoder/conv1", 1), "encoder/conv2", 2)
    x = x + m["encoder/position_encodings/encodings"][:frames]
    for layer in m.layers:
        p = f"encoder/layer_{layer}/"
        x = feed(self_attend(m, x, p, layer, causal=False), p)
    return norm(x, "encoder/layer_norm")
