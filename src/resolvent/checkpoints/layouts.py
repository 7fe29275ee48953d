"""Where architectures keep the keys and queries of each head.

A layout is a row of the table `LAYOUTS`: templates of tensor names, with {p} for a prefix, {i} for the layer
and {l} for the layer before it, and how the weights split into heads. With H query heads, G key heads and d
rows per head, query head h reads key head g = h // (H/G) and begins at row

                   in W_Q      in W_K
    separate       h d         g d
    fused          h d         (H + g) d        of one weight, [queries; keys; values]
    interleaved    3 h d       (3 h + 1) d      of one weight, [query; key; value] head by head

To read an architecture that isn't here, append a row or give `read_heads` a `Layout`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """One architecture's names and split.

    `axis` is the weight's axis over the heads' dimensions (1 where tokens multiply from the left, x W).
    `gain` is the norm whose output the head reads, `first_gain` that of layer 0 where norms follow
    attention. `offset_gain` marks rows shared with models that store their gains less one, `stacked` weights
    of shape (heads, d_model, d_head). `note` says what M leaves out.

    Raises ValueError for an unknown split, a template without {i}, or a key template where it doesn't belong.
    """

    name: str
    query: str
    key: str | None = None
    split: str = "separate"
    axis: int = 0
    gain: str | None = None
    first_gain: str | None = None
    query_norm: str | None = None
    key_norm: str | None = None
    rotary: bool = False
    offset_gain: bool = False
    stacked: bool = False
    note: str = ""

    def __post_init__(self) -> None:
        if self.split not in ("separate", "fused", "interleaved"):
            raise ValueError(f"split must be separate, fused or interleaved, got {self.split!r}")
        if (self.split == "separate") != (self.key is not None):
            raise ValueError(
                f"layout {self.name}: a key template belongs to separate weights and only to them"
            )
        if "{i}" not in self.query or self.axis not in (0, 1):
            raise ValueError(f"layout {self.name}: query must name the layer as {{i}}, and axis be 0 or 1")

    def stacks(self, names: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """The prefixes under which the queries appear, each with its layers in order."""
        pattern = re.escape(self.query).replace(r"\{p\}", "(?P<p>.*)").replace(r"\{i\}", "(?P<i>[0-9]{1,4})")
        found: dict[str, set[int]] = {}
        for match in filter(None, (re.fullmatch(pattern, name) for name in names)):
            named = match.groupdict()
            found.setdefault(named.get("p", ""), set()).add(int(named["i"]))
        return {prefix: tuple(sorted(layers)) for prefix, layers in found.items()}

    def query_name(self, prefix: str, layer: int) -> str:
        """The name of the layer's query weights."""
        return self.query.format(p=prefix, i=layer)

    def gain_name(self, prefix: str, layer: int) -> str | None:
        """The name of the gain that shapes the layer's input."""
        template = self.first_gain if self.first_gain and layer == 0 else self.gain
        return template and template.format(p=prefix, i=layer, l=layer - 1)


def _projections(name: str, gain: str, *, rotary: bool, offset_gain: bool = False) -> Layout:
    stem = "{p}layers.{i}."
    return Layout(
        name,
        stem + "self_attn.q_proj.weight",
        stem + "self_attn.k_proj.weight",
        gain=stem + gain + ".weight",
        query_norm=stem + "self_attn.q_norm.weight",
        key_norm=stem + "self_attn.k_norm.weight",
        rotary=rotary,
        offset_gain=offset_gain,
    )


def _gguf(name: str, gain: str, first_gain: str | None = None, *, fused: bool = False) -> Layout:
    return Layout(
        name,
        "blk.{i}.attn_qkv.weight" if fused else "blk.{i}.attn_q.weight",
        None if fused else "blk.{i}.attn_k.weight",
        "fused" if fused else "separate",
        gain=gain,
        first_gain=first_gain,
        query_norm="blk.{i}.attn_q_norm.weight",
        key_norm="blk.{i}.attn_k_norm.weight",
    )


LAYOUTS: tuple[Layout, ...] = (
    # LLaMA, Mistral, Qwen, Gemma, Phi-1 and -2; then Whisper and OPT, with the same projections
    _projections("llama", "input_layernorm", rotary=True, offset_gain=True),
    _projections("whisper", "self_attn_layer_norm", rotary=False),
    _projections("clip", "layer_norm1", rotary=False),
    Layout(
        "t5",
        "{p}block.{i}.layer.0.SelfAttention.q.weight",
        "{p}block.{i}.layer.0.SelfAttention.k.weight",
        gain="{p}block.{i}.layer.0.layer_norm.weight",
        note="scores have no factor 1/sqrt(d_head), and a bias by relative position is added to them",
    ),
    Layout(
        "phi3",
        "{p}layers.{i}.self_attn.qkv_proj.weight",
        split="fused",
        gain="{p}layers.{i}.input_layernorm.weight",
        rotary=True,
    ),
    Layout("gpt2", "{p}h.{i}.attn.c_attn.weight", split="fused", axis=1, gain="{p}h.{i}.ln_1.weight"),
    Layout(
        "gpt_neox",
        "{p}layers.{i}.attention.query_key_value.weight",
        split="interleaved",
        gain="{p}layers.{i}.input_layernorm.weight",
        rotary=True,
    ),
    Layout(  # BERT and RoBERTa, whose norms follow attention
        "bert",
        "{p}encoder.layer.{i}.attention.self.query.weight",
        "{p}encoder.layer.{i}.attention.self.key.weight",
        gain="{p}encoder.layer.{l}.output.LayerNorm.weight",
        first_gain="{p}embeddings.LayerNorm.weight",
    ),
    Layout(
        "vit",
        "{p}encoder.layer.{i}.attention.attention.query.weight",
        "{p}encoder.layer.{i}.attention.attention.key.weight",
        gain="{p}encoder.layer.{i}.layernorm_before.weight",
    ),
    Layout(  # the same in memory, as transformers 5 names it
        "vit",
        "{p}layers.{i}.attention.q_proj.weight",
        "{p}layers.{i}.attention.k_proj.weight",
        gain="{p}layers.{i}.layernorm_before.weight",
    ),
    Layout(  # timm's vision transformers
        "timm", "{p}blocks.{i}.attn.qkv.weight", split="fused", gain="{p}blocks.{i}.norm1.weight"
    ),
    Layout(  # OpenAI's own names for Whisper
        "whisper",
        "{p}blocks.{i}.attn.query.weight",
        "{p}blocks.{i}.attn.key.weight",
        gain="{p}blocks.{i}.attn_ln.weight",
    ),
    Layout(  # x W with one matrix per side, and rotary positions: glassllm
        "glassllm",
        "{p}blocks.{i}.attn.W_Q",
        "{p}blocks.{i}.attn.W_K",
        axis=1,
        gain="{p}blocks.{i}.norm1.gamma",
        rotary=True,
    ),
    Layout(  # the gain is there unless it was folded into the weights
        "transformer_lens",
        "{p}blocks.{i}.attn.W_Q",
        "{p}blocks.{i}.attn.W_K",
        gain="{p}blocks.{i}.ln1.w",
        stacked=True,
    ),
    Layout(
        "ctranslate2",
        "{p}layer_{i}/self_attention/linear_0/weight",
        split="fused",
        gain="{p}layer_{i}/self_attention/layer_norm/gamma",
        query_norm="{p}layer_{i}/self_attention/q_norm/gamma",
        key_norm="{p}layer_{i}/self_attention/k_norm/gamma",
    ),
    _gguf("gguf", "blk.{i}.attn_norm.weight"),
    _gguf("gguf", "blk.{i}.attn_norm.weight", fused=True),
    _gguf("gguf", "blk.{l}.layer_output_norm.weight", "token_embd_norm.weight"),
    _gguf("gguf", "blk.{l}.layer_output_norm.weight", "token_embd_norm.weight", fused=True),
)
