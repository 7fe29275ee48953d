"""From a checkpoint's tensors to heads: find the layout, count the heads, cut each one out of the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from resolvent.checkpoints.head import Array, Head
from resolvent.checkpoints.layouts import LAYOUTS, Layout
from resolvent.checkpoints.tensors import Checkpoint, Tensor, quoted

LARGEST_HEAD = 2**24  # numbers in one head's W_Q: 64 MB, as 1024 rows for tokens of dimension 16384
LARGEST_COUNT = 2**14  # heads of a layer, dimensions of a head
OFFSET_GAINS = {"gemma", "gemma2", "gemma3", "gemma3_text"}  # gains stored as their difference from one
NORMS_FOLLOW = {"bart", "marian", "blenderbot-small"}  # named like Whisper's, but behind attention
ROTARY = "rotary positions: M is the matrix of the score at distance 0"
NORMED = "keys and queries are normalised, gains folded in: M holds up to a factor per token"


@dataclass(frozen=True)
class Stack:
    """The layers of one tower of a model that share a layout and a name prefix."""

    layout: Layout
    prefix: str
    layers: tuple[int, ...]

    def only(self, layer: int) -> Stack:
        """One of the layers."""
        if layer not in self.layers:
            last = f" to {self.layers[-1]}" if len(self.layers) > 1 else ""
            raise ValueError(f"layer must be one of {self.layers[0]}{last}, got {layer}")
        return replace(self, layers=(layer,))


@dataclass(frozen=True)
class Sizes:
    """How one layer's weights split: query heads, key heads, rows per head."""

    heads: int
    groups: int
    d_head: int


def find_stack(checkpoint: Checkpoint, layout: Layout | None = None, stack: str | None = None) -> Stack:
    """The layers to read: those whose prefix contains `stack`, by default the decoder, else the deepest.

    Where several layouts share a query's name, the one whose norm exists is meant.

    Raises ValueError when no layout fits, naming tensors seen, or no prefix contains `stack`.
    """
    names = checkpoint.tensors.keys()
    found = [
        Stack(row, prefix, layers)
        for row in (LAYOUTS if layout is None else (layout,))
        for prefix, layers in row.stacks(names).items()
        if not row.stacked or len(checkpoint.tensors[row.query_name(prefix, layers[0])].shape) == 3
    ]
    if not found:
        telling = sorted(names, key=lambda name: "att" not in name.lower())[:4]
        seen = ", ".join(quoted(name) for name in telling)
        raise ValueError(
            f"{checkpoint.source}: no known attention layout among its {len(names)} tensors ({seen}, ...); "
            "give one: read_heads(source, layout=Layout(name, query, key, ...)) with its tensors' names"
        )
    wanted = [entry for entry in found if stack is None or stack in entry.prefix]
    if not wanted:
        prefixes = ", ".join(sorted({quoted(entry.prefix) for entry in found}))
        raise ValueError(
            f"stack must be part of one of {prefixes} in {checkpoint.source}, got {quoted(stack)}"
        )
    return max(
        wanted,
        key=lambda entry: (
            entry.layout.stacked,
            "decoder" in entry.prefix,
            len(entry.layers),
            entry.layout.gain_name(entry.prefix, entry.layers[0]) in names,
        ),
    )


def cut_heads(checkpoint: Checkpoint, stack: Stack, heads: int | None = None) -> Iterator[Head]:
    """Every head of the stack in order, each read from the file when its turn comes.

    Raises ValueError when the weights' shapes don't split into the number of heads.
    """
    for layer in stack.layers:
        sizes = _sizes(checkpoint, stack, layer, heads)
        for head in range(sizes.heads):
            yield _head(checkpoint, stack, layer, head, sizes)


def _names(stack: Stack, layer: int) -> tuple[str, str]:
    query = stack.layout.query_name(stack.prefix, layer)
    return query, stack.layout.key.format(p=stack.prefix, i=layer) if stack.layout.key else query


def _matrix(checkpoint: Checkpoint, name: str, stacked: bool) -> Tensor:
    tensor = checkpoint.tensors.get(name)
    if tensor is None or len(tensor.shape) != 2 + stacked:
        shape = "is missing" if tensor is None else f"has shape {tensor.shape}, a matrix is needed"
        raise ValueError(f"{checkpoint.source}: tensor {quoted(name)} {shape}")
    return tensor.stacked if stacked else tensor


def _sizes(checkpoint: Checkpoint, stack: Stack, layer: int, heads: int | None) -> Sizes:
    axis, split, stacked = stack.layout.axis, stack.layout.split, stack.layout.stacked
    query, key = (_matrix(checkpoint, name, stacked) for name in _names(stack, layer))
    rows, d_model = query.shape[axis], query.shape[1 - axis]
    side = next((side for side in ("decoder", "encoder") if side in stack.prefix), "")
    names = (f"{side}_attention_heads", "num_attention_heads", "n_head", "n_heads", "num_heads")
    count = heads or _count(checkpoint, stack, layer, *names)
    if stacked:
        count = count or checkpoint.tensors[_names(stack, layer)[0]].shape[0]
    if not count:
        raise ValueError(
            f"{checkpoint.source}: its configuration doesn't say how many heads; give heads=NUMBER"
        )
    groups = (
        _count(checkpoint, stack, layer, f"{side}_key_value_heads", "num_key_value_heads", "n_kv_heads")
        or count
    )
    blocks = {"separate": count, "fused": count + 2 * groups, "interleaved": 3 * count}[split]
    d_head = _count(checkpoint, stack, layer, "head_dim", "d_kv") or rows // blocks
    if split == "separate" and d_head:
        groups = key.shape[axis] // d_head
    right = (
        d_head
        and rows == blocks * d_head
        and key.shape[1 - axis] == d_model
        and groups
        and count % groups == 0
    )
    if not right or (split == "separate" and key.shape[axis] != groups * d_head):
        raise ValueError(
            f"{checkpoint.source}: {quoted(_names(stack, layer)[0])} of shape {query.shape}, "
            f"with keys of shape {key.shape}, doesn't split into {count} heads of {d_head}"
        )
    if max(count, d_head) > LARGEST_COUNT or d_head * d_model > LARGEST_HEAD:
        raise ValueError(
            f"{checkpoint.source}: a head of {d_head} x {d_model} is beyond the {LARGEST_HEAD} allowed"
        )
    return Sizes(count, groups, d_head)


def _count(checkpoint: Checkpoint, stack: Stack, layer: int, *names: str) -> int | None:
    """The first of the configuration's entries that is there; some files keep one number per layer.

    Models of text and pictures keep a configuration for each tower inside theirs.
    """
    nested = checkpoint.config.get("vision_config" if "vision" in stack.prefix else "text_config")
    for config in (checkpoint.config, nested if isinstance(nested, Mapping) else {}):
        for name in names:
            value = config.get(name)
            if isinstance(value, list) and layer < len(value):
                value = value[layer]
            if value is None:
                continue
            if type(value) is not int or not 1 <= value <= LARGEST_COUNT:
                raise ValueError(
                    f"{checkpoint.source}: {name} must be from 1 to {LARGEST_COUNT}, got {quoted(value)}"
                )
            return value
    return None


def _starts(split: str, sizes: Sizes, head: int, group: int) -> tuple[int, int]:
    """The first rows of the head's query and key (the table in `layouts`)."""
    d = sizes.d_head
    if split == "separate":
        return head * d, group * d
    if split == "fused":
        return head * d, (sizes.heads + group) * d
    return 3 * head * d, (3 * head + 1) * d


def _head(checkpoint: Checkpoint, stack: Stack, layer: int, head: int, sizes: Sizes) -> Head:
    layout, names, kind = stack.layout, _names(stack, layer), _kind(checkpoint, stack)
    group = head // (sizes.heads // sizes.groups)
    starts = _starts(layout.split, sizes, head, group)
    sides, normed = [], False
    for i, template in enumerate((layout.query_norm, layout.key_norm)):
        weight, bias = _rows(checkpoint, names[i], starts[i], sizes.d_head, layout)
        scale = _gain(checkpoint, template and template.format(p=stack.prefix, i=layer), kind, layout)
        if scale is not None:
            normed = True
            weight, bias = _scaled(weight, bias, scale, (head, group)[i], names[i])
        sides.append((weight, bias))
    (W_Q, b_Q), (W_K, b_K) = sides
    gain = None
    if kind not in NORMS_FOLLOW:
        gain = _gain(checkpoint, layout.gain_name(stack.prefix, layer), kind, layout)
    notes = (ROTARY,) * bool(checkpoint.config.get("rotary", layout.rotary)) + (NORMED,) * normed
    notes += (layout.note,) * bool(layout.note)
    source = f"{checkpoint.source}: {quoted(names[0])}"
    return Head(layer, head, W_Q, W_K, b_Q, b_K, kind, gain, source, notes)


def _kind(checkpoint: Checkpoint, stack: Stack) -> str:
    kind = checkpoint.config.get("model_type")
    return kind if isinstance(kind, str) and kind else stack.layout.name


def _rows(
    checkpoint: Checkpoint, name: str, start: int, d_head: int, layout: Layout
) -> tuple[Array, Array | None]:
    """A head's d_head x d_model block of a weight, and its part of the bias of the same name."""
    part = slice(start, start + d_head)
    tensor = _matrix(checkpoint, name, layout.stacked)
    block = np.ascontiguousarray(tensor[part, :] if layout.axis == 0 else tensor[:, part].T)
    if name.endswith("weight"):
        bias = checkpoint.tensors.get(name.removesuffix("weight") + "bias")
    else:
        bias = checkpoint.tensors.get(name.replace("attn.W_", "attn.b_"))
        if bias is not None and layout.stacked and len(bias.shape) == 2:
            bias = bias.flat
    return block, None if bias is None or len(bias.shape) != 1 else bias[(part,)]


def _gain(checkpoint: Checkpoint, name: str | None, kind: str, layout: Layout) -> Array | None:
    tensor = checkpoint.tensors.get(name or "")
    if tensor is None or len(tensor.shape) != 1 or tensor.shape[0] > LARGEST_HEAD:
        return None
    return tensor.read() + 1 if layout.offset_gain and kind in OFFSET_GAINS else tensor.read()


def _scaled(
    weight: Array, bias: Array | None, scale: Array, place: int, name: str
) -> tuple[Array, Array | None]:
    """Weight and bias with the gain of a norm on queries or keys: one for all heads, or one for each."""
    d_head = len(weight)
    if len(scale) != d_head:
        scale = scale[place * d_head : (place + 1) * d_head]
    if len(scale) != d_head:
        raise ValueError(f"{quoted(name)}: the gain of its norm has too few entries for heads of {d_head}")
    return weight * scale[:, None], None if bias is None else bias * scale
