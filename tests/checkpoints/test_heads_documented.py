"""The table of docs/checkpoints.md is what the real models give today."""

from pathlib import Path

import numpy as np
import pytest
from published_models import model_path

from resolvent.checkpoints import read_heads, summarise_heads

PAGE = Path(__file__).parents[2] / "docs" / "checkpoints.md"
MODELS = {
    "MiniLM": ("minilm", None),
    "SmolLM2": ("smollm2", None),
    "Whisper, decoder": ("whisper", "decoder"),
    "Whisper, encoder": ("whisper", "encoder"),
    "glassllm": ("glassllm", None),
}


def row(model, gain):
    name, stack = MODELS[model]
    heads = list(summarise_heads(read_heads(model_path(name), stack=stack), gain=gain, fit_rank=0))

    def middle(field, digits, sign=""):
        low, mid, high = np.percentile([getattr(head, field) for head in heads], [0, 50, 100])
        return f"{mid:{sign}.{digits}f} ({low:{sign}.{digits}f} to {high:{sign}.{digits}f})"

    beyond = np.array([head.beyond_chance for head in heads])
    cells = [
        model + (", gain folded in" if gain else ""),
        f"{len(heads)}",
        f"{heads[0].d_head} of {heads[0].d_model}",
        middle("alignment", 2, "+"),
        f"{np.mean(np.abs(beyond) > 3):.0%}",
        f"{np.mean(beyond < -3):.0%}",
        middle("stable_rank", 1),
        middle("symmetry", 2, "+"),
        f"{min(head.misfit for head in heads):.3f}",
        f"{heads[0].floor:.3f}",
    ]
    return "| " + " | ".join(cells) + " |"


@pytest.mark.parametrize("gain", [False, True])
@pytest.mark.parametrize(
    "model", [pytest.param(name, marks=pytest.mark.slow) if name == "SmolLM2" else name for name in MODELS]
)
def test_the_documented_numbers_are_measured_ones(model, gain):
    assert row(model, gain) in PAGE.read_text("utf-8").splitlines()
