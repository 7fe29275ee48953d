"""`resolvent demo`: the main job without an argument."""

from __future__ import annotations

import sys

from resolvent.cli.output import progress_wanted
from resolvent.compare import compare, compare_tokens
from resolvent.dataset import demo_tokens
from resolvent.setting import Setting, Tokens, Weights

DRAWS = 10


def demo() -> None:
    """Attention against linear regression, predicted and measured: synthetic tokens, then real words."""
    progress = progress_wanted(False)
    print("1. Synthetic tokens: 1000 of dimension 500, |mu|^2 = 2, tanh\n")
    for align, title in ((0.0, "weights off"), (0.5, "weights aligned with the signal")):
        setting = Setting(Tokens(0.5, 2.0), Weights.aligned(align))
        print(f"--- {title}: {compare(setting, n=1000, draws=DRAWS, progress=progress)}\n")
    print("2. Real words: 2237 word embeddings of MiniLM, labelled by the VADER sentiment lexicon\n")
    for align, title in ((0.0, "weights off"), (1.0, "weights aligned with the class direction")):
        result = compare_tokens(
            demo_tokens(), Setting(weights=Weights.aligned(align)), draws=DRAWS, progress=progress
        )
        print(f"--- {title}\n\n{result}\n")
    print("Your own tokens: resolvent compare --tokens FILE --align 1", file=sys.stdout)
