"""Every layout on weights built head by head, so that the right answer is known without any reader."""

import numpy as np
import pytest

from resolvent.checkpoints import LAYOUTS, Layout, read_heads

L, H, G, D_HEAD, D = 3, 4, 2, 6, 10  # layers, query heads, key heads, d_head, d_model


class Truth:
    """Random weights by layer and head, and the gains of the norms."""

    def __init__(self, groups=H, seed=0):
        rng = np.random.default_rng(seed)
        self.groups = groups
        self.Q, self.bQ = rng.normal(size=(L, H, D_HEAD, D)), rng.normal(size=(L, H, D_HEAD))
        self.K, self.bK = rng.normal(size=(L, groups, D_HEAD, D)), rng.normal(size=(L, groups, D_HEAD))
        self.V, self.bV = rng.normal(size=(L, groups, D_HEAD, D)), rng.normal(size=(L, groups, D_HEAD))
        self.gain = rng.normal(size=(L, D))

    def stacked(self, layer):
        """Rows of all heads one below the other: W and b of queries, keys, values."""
        for W, b in ((self.Q, self.bQ), (self.K, self.bK), (self.V, self.bV)):
            yield W[layer].reshape(-1, D), b[layer].ravel()


def separate(truth, query, key, gain, *, transpose=False, bias=True):
    tensors = {}
    for layer in range(L):
        (Q, bQ), (K, bK), _ = truth.stacked(layer)
        tensors[query.format(layer)], tensors[key.format(layer)] = (Q.T, K.T) if transpose else (Q, K)
        if bias:
            tensors[query.format(layer).replace("weight", "bias").replace("W_", "b_")] = bQ
            tensors[key.format(layer).replace("weight", "bias").replace("W_", "b_")] = bK
        tensors[gain.format(layer, layer - 1)] = truth.gain[layer]
    return tensors


def fused(truth, name, gain, *, transpose=False):
    tensors = {}
    for layer in range(L):
        weights, biases = zip(*truth.stacked(layer), strict=True)
        W = np.concatenate(weights)
        tensors[name.format(layer)] = W.T if transpose else W
        tensors[name.format(layer).replace("weight", "bias")] = np.concatenate(biases)
        tensors[gain.format(layer, layer - 1)] = truth.gain[layer]
    return tensors


def interleaved(truth, name, gain):
    tensors = {}
    for layer in range(L):
        rows, bias = [], []
        for head in range(H):  # NeoX: query, key and value of one head, then of the next
            for W, b in ((truth.Q, truth.bQ), (truth.K, truth.bK), (truth.V, truth.bV)):
                rows.append(W[layer, head])
                bias.append(b[layer, head])
        tensors[name.format(layer)] = np.concatenate(rows)
        tensors[name.format(layer).replace("weight", "bias")] = np.concatenate(bias)
        tensors[gain.format(layer)] = truth.gain[layer]
    return tensors


def bert(truth, prefix):
    stem = prefix + "encoder.layer.{}.attention.self."
    tensors = separate(truth, stem + "query.weight", stem + "key.weight", prefix + "gain.{}")
    for layer in range(L):  # the norm that a layer reads stands at the end of the layer before
        name = "embeddings" if layer == 0 else f"encoder.layer.{layer - 1}.output"
        tensors[f"{prefix}{name}.LayerNorm.weight"] = truth.gain[layer]
    tensors[f"{prefix}encoder.layer.{L - 1}.output.LayerNorm.weight"] = np.full(D, 7.0)
    return tensors


def stacked(truth):
    """TransformerLens: W_Q of shape (heads, d_model, d_head), queries x W_Q."""
    tensors = {}
    for i in range(L):
        stem = f"blocks.{i}.attn."
        tensors |= {stem + "W_Q": truth.Q[i].swapaxes(1, 2), stem + "W_K": truth.K[i].swapaxes(1, 2)}
        tensors |= {stem + "b_Q": truth.bQ[i], stem + "b_K": truth.bK[i], f"blocks.{i}.ln1.w": truth.gain[i]}
    return tensors


P, WHOLE, GROUPED = "model.layers.{}.", Truth(), Truth(G)
CASES = {
    "llama": (
        GROUPED,
        separate(
            GROUPED,
            P + "self_attn.q_proj.weight",
            P + "self_attn.k_proj.weight",
            P + "input_layernorm.weight",
            bias=False,
        ),
    ),
    "qwen2, with biases": (
        GROUPED,
        separate(
            GROUPED,
            P + "self_attn.q_proj.weight",
            P + "self_attn.k_proj.weight",
            P + "input_layernorm.weight",
        ),
    ),
    "phi3": (GROUPED, fused(GROUPED, P + "self_attn.qkv_proj.weight", P + "input_layernorm.weight")),
    "gpt2": (WHOLE, fused(WHOLE, "h.{}.attn.c_attn.weight", "h.{}.ln_1.weight", transpose=True)),
    "gpt2, prefixed": (
        WHOLE,
        fused(WHOLE, "transformer.h.{}.attn.c_attn.weight", "transformer.h.{}.ln_1.weight", transpose=True),
    ),
    "gpt_neox": (
        WHOLE,
        interleaved(
            WHOLE,
            "gpt_neox.layers.{}.attention.query_key_value.weight",
            "gpt_neox.layers.{}.input_layernorm.weight",
        ),
    ),
    "bert": (WHOLE, bert(WHOLE, "")),
    "roberta": (WHOLE, bert(WHOLE, "roberta.")),
    "vit": (
        WHOLE,
        separate(
            WHOLE,
            "vit.encoder.layer.{}.attention.attention.query.weight",
            "vit.encoder.layer.{}.attention.attention.key.weight",
            "vit.encoder.layer.{}.layernorm_before.weight",
        ),
    ),
    "vit, transformers 5": (
        WHOLE,
        separate(
            WHOLE,
            "layers.{}.attention.q_proj.weight",
            "layers.{}.attention.k_proj.weight",
            "layers.{}.layernorm_before.weight",
        ),
    ),
    "timm": (WHOLE, fused(WHOLE, "blocks.{}.attn.qkv.weight", "blocks.{}.norm1.weight")),
    "whisper": (
        WHOLE,
        separate(
            WHOLE,
            "model.decoder.layers.{}.self_attn.q_proj.weight",
            "model.decoder.layers.{}.self_attn.k_proj.weight",
            "model.decoder.layers.{}.self_attn_layer_norm.weight",
        ),
    ),
    "whisper, OpenAI's names": (
        WHOLE,
        separate(
            WHOLE,
            "decoder.blocks.{}.attn.query.weight",
            "decoder.blocks.{}.attn.key.weight",
            "decoder.blocks.{}.attn_ln.weight",
        ),
    ),
    "clip": (
        WHOLE,
        separate(
            WHOLE,
            "vision_model.encoder.layers.{}.self_attn.q_proj.weight",
            "vision_model.encoder.layers.{}.self_attn.k_proj.weight",
            "vision_model.encoder.layers.{}.layer_norm1.weight",
        ),
    ),
    "t5": (
        WHOLE,
        separate(
            WHOLE,
            "decoder.block.{}.layer.0.SelfAttention.q.weight",
            "decoder.block.{}.layer.0.SelfAttention.k.weight",
            "decoder.block.{}.layer.0.layer_norm.weight",
        ),
    ),
    "transformer_lens": (WHOLE, stacked(WHOLE)),
    "transformer_lens, grouped": (GROUPED, stacked(GROUPED)),
    "glassllm": (
        GROUPED,
        separate(
            GROUPED,
            "blocks.{}.attn.W_Q",
            "blocks.{}.attn.W_K",
            "blocks.{}.norm1.gamma",
            transpose=True,
        ),
    ),
    "ctranslate2": (
        GROUPED,
        fused(
            GROUPED,
            "decoder/layer_{}/self_attention/linear_0/weight",
            "decoder/layer_{}/self_attention/layer_norm/gamma",
        ),
    ),
    "gguf": (
        GROUPED,
        separate(GROUPED, "blk.{}.attn_q.weight", "blk.{}.attn_k.weight", "blk.{}.attn_norm.weight"),
    ),
    "gguf, fused": (GROUPED, fused(GROUPED, "blk.{}.attn_qkv.weight", "blk.{}.attn_norm.weight")),
}


class Module:
    """As much of a torch module as the reader looks at."""

    def __init__(self, tensors, **config):
        self.tensors, self.config = tensors, config

    def state_dict(self):
        return self.tensors


@pytest.mark.parametrize("name", CASES)
def test_heads_are_the_ones_that_were_put_in(name):
    truth, tensors = CASES[name]
    heads = list(read_heads(Module(tensors, num_attention_heads=H, num_key_value_heads=truth.groups)))
    assert [(head.layer, head.head) for head in heads] == [(i, h) for i in range(L) for h in range(H)]
    for head in heads:
        group = head.head // (H // truth.groups)
        np.testing.assert_array_equal(head.W_Q, truth.Q[head.layer, head.head])
        np.testing.assert_array_equal(head.W_K, truth.K[head.layer, group])
        np.testing.assert_array_equal(head.norm_gain, truth.gain[head.layer])
        if name == "llama":
            assert head.b_Q is None
            assert head.b_K is None
        else:
            np.testing.assert_array_equal(head.b_Q, truth.bQ[head.layer, head.head])
            np.testing.assert_array_equal(head.b_K, truth.bK[head.layer, group])
        assert head.kind == name.split(",")[0].replace("qwen2", "llama").replace("roberta", "bert")
        rotary = any("distance 0" in note for note in head.notes)
        assert rotary == (head.kind in {"llama", "phi3", "gpt_neox", "glassllm"})


def test_every_layout_of_the_table_is_tested():
    tested = set()
    for _, tensors in CASES.values():
        tested |= {row.query for row in LAYOUTS if row.stacks(tensors)}
    assert tested == {row.query for row in LAYOUTS}


def test_scores_are_those_of_the_attention_layer():
    truth, tensors = CASES["qwen2, with biases"]
    head = list(read_heads(tensors | {"x": np.ones(1)}, heads=H))[5]
    X = np.random.default_rng(1).normal(size=(D, 7))
    q, k = truth.Q[1, 1] @ X, truth.K[1, 0] @ X
    scores = np.array([[k[:, i] @ q[:, j] for j in range(7)] for i in range(7)])
    np.testing.assert_allclose(X.T @ head.matrix() @ X, scores)


def test_stacked_weights_say_themselves_how_many_heads():
    tensors = {name: array for name, array in stacked(GROUPED).items() if "ln1" not in name}
    heads = list(read_heads(tensors))
    assert len(heads) == L * H
    assert heads[0].norm_gain is None  # folded into the weights
    np.testing.assert_array_equal(heads[5].W_K, GROUPED.K[1, 0])
    with pytest.raises(ValueError, match="doesn't split into 3 heads"):
        list(read_heads(tensors, heads=3))


def test_towers_of_clip_have_configurations_of_their_own():
    tensors = CASES["clip"][1]
    text = {name.replace("vision", "text"): array for name, array in tensors.items()}
    config = {"text_config": {"num_attention_heads": 2}, "vision_config": {"num_attention_heads": H}}
    for stack, count in (("vision", H), ("text", 2)):
        heads = list(read_heads(Module(tensors | text, **config), stack=stack))
        assert len(heads) == L * count
        np.testing.assert_array_equal(heads[0].norm_gain, WHOLE.gain[0])


def test_t5_says_what_its_scores_are():
    tensors = CASES["t5"][1]
    encoder = {name.replace("decoder", "encoder"): array + 1 for name, array in tensors.items()}
    config = {"num_heads": H, "d_kv": D_HEAD, "model_type": "t5"}
    head = next(read_heads(Module(tensors | encoder, **config)))
    np.testing.assert_array_equal(head.W_Q, WHOLE.Q[0, 0])
    assert any("no factor 1/sqrt(d_head)" in note for note in head.notes)
    head = next(read_heads(Module(tensors | encoder, **config), stack="encoder"))
    np.testing.assert_array_equal(head.W_Q, WHOLE.Q[0, 0] + 1)


def test_gguf_norms_that_follow_attention():
    tensors = separate(WHOLE, "blk.{}.attn_q.weight", "blk.{}.attn_k.weight", "unused.{}")
    tensors["token_embd_norm.weight"] = WHOLE.gain[0]
    tensors |= {f"blk.{i}.layer_output_norm.weight": WHOLE.gain[(i + 1) % L] for i in range(L)}
    for head in read_heads(Module(tensors, num_attention_heads=H)):
        np.testing.assert_array_equal(head.norm_gain, WHOLE.gain[head.layer])


def test_gemma_gains_are_stored_less_one_and_mistral_ones_are_not():
    truth, tensors = CASES["llama"]
    for kind, offset in (("gemma2", 1), ("mistral", 0)):
        head = next(read_heads(Module(tensors, num_attention_heads=H, model_type=kind)))
        assert head.kind == kind
        np.testing.assert_array_equal(head.norm_gain, truth.gain[0] + offset)


def test_head_dim_of_gemma_is_not_d_model_over_heads():
    assert D_HEAD * H != D
    truth, tensors = CASES["llama"]
    head = next(read_heads(Module(tensors, text_config={"num_attention_heads": H, "head_dim": D_HEAD})))
    np.testing.assert_array_equal(head.W_K, truth.K[0, 0])


@pytest.mark.parametrize("length", [D_HEAD, H * D_HEAD])
def test_norms_on_queries_and_keys_are_folded_in(length):
    truth, tensors = CASES["qwen2, with biases"]
    rng = np.random.default_rng(2)
    gains = {side: rng.normal(size=length if side == "q" else min(length, G * D_HEAD)) for side in "qk"}
    normed = tensors | {f"{P.format(1)}self_attn.{side}_norm.weight": gain for side, gain in gains.items()}
    heads = list(read_heads(normed, heads=H))
    q_gain = np.resize(gains["q"], (H, D_HEAD))
    k_gain = np.resize(gains["k"], (G, D_HEAD))
    head = heads[H + 3]
    np.testing.assert_allclose(head.W_Q, truth.Q[1, 3] * q_gain[3][:, None])
    np.testing.assert_allclose(head.b_Q, truth.bQ[1, 3] * q_gain[3])
    np.testing.assert_allclose(head.W_K, truth.K[1, 1] * k_gain[1][:, None])
    assert any("factor per token" in note for note in head.notes)
    assert not any("factor per token" in note for note in heads[0].notes)


def test_bart_norms_follow_attention_unlike_whispers():
    _, tensors = CASES["whisper"]
    assert next(read_heads(Module(tensors, decoder_attention_heads=H, model_type="bart"))).norm_gain is None


def test_a_model_of_ones_own():
    truth, _ = CASES["llama"]
    tensors = separate(truth, "mine.{}.ask.weight", "mine.{}.answer.weight", "mine.{}.gain")
    with pytest.raises(ValueError, match=r"no known attention layout .*'mine.0.ask.weight'.*layout=Layout\("):
        read_heads(tensors, heads=H)
    layout = Layout("mine", "mine.{i}.ask.weight", "mine.{i}.answer.weight", gain="mine.{i}.gain")
    head = list(read_heads(tensors, heads=H, layout=layout))[-1]
    np.testing.assert_array_equal(head.W_K, truth.K[2, 1])
    assert head.kind == "mine"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "doesn't say how many heads; give heads=NUMBER"),
        ({"heads": 5}, "doesn't split into 5 heads of 4"),
        ({"heads": 0}, "heads must be a positive integer, got 0"),
        ({"heads": True}, "heads must be a positive integer, got True"),
    ],
)
def test_a_wrong_number_of_heads_is_said(options, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        list(read_heads(CASES["llama"][1], **options))


def test_a_missing_key_is_named():
    tensors = dict(CASES["vit"][1])
    del tensors["vit.encoder.layer.1.attention.attention.key.weight"]
    with pytest.raises(ValueError, match=r"'vit.encoder.layer.1.attention.attention.key.weight' is missing"):
        list(read_heads(tensors, heads=H))


def test_layouts_are_checked():
    with pytest.raises(ValueError, match="split must be separate, fused or interleaved, got 'both'"):
        Layout("mine", "{i}", split="both")
    with pytest.raises(ValueError, match="key template belongs to separate"):
        Layout("mine", "{i}", "{i}", split="fused")
    with pytest.raises(ValueError, match="query must name the layer"):
        Layout("mine", "query", "key")


def test_what_is_no_model_is_a_type_error():
    with pytest.raises(TypeError, match="a path, a hub id, a module or a mapping of arrays, got int"):
        read_heads(3)
