"""The table "Do they look at sentiment?" of docs/checkpoints.md, from the words that ship with the package.

Each word passes through MiniLM between [CLS] and [SEP]; its vector at the input of a layer is what that
layer's heads read.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import numpy_models
import pytest
from published_models import model_path

from resolvent.checkpoints import open_checkpoint, read_heads, signal_shares
from resolvent.dataset import demo_tokens

PAGE = Path(__file__).parents[2] / "docs" / "checkpoints.md"
LEVEL = 0.05


@cache
def words():
    """The words' ids in the model, each between [CLS] and [SEP], and their labels."""
    with np.load(files("resolvent.dataset") / "minilm_vader.npz", allow_pickle=False) as archive:
        spelled, labels = archive["words"], archive["labels"]
    vocabulary = (model_path("minilm") / "vocab.txt").read_text("utf-8").split("\n")
    ids = {word: i for i, word in enumerate(vocabulary)}
    return np.array([[ids["[CLS]"], ids[word], ids["[SEP]"]] for word in spelled]), labels


def test_the_shipped_words_are_rows_of_this_models_table():
    ids, labels = words()
    data = demo_tokens()
    np.testing.assert_array_equal(data.labels, labels)
    table = open_checkpoint(model_path("minilm")).tensors["embeddings.word_embeddings.weight"].read()
    np.testing.assert_allclose(data.tokens, table[ids[:, 1]].T, atol=2e-4)  # shipped in half precision


@cache
def tokens_by_layer():
    ids, _ = words()
    parts = np.array_split(ids, 20)
    layers = [[x[:, 1] for x in numpy_models.minilm_layers(model_path("minilm"), part)] for part in parts]
    return {layer: np.concatenate(found).T for layer, found in enumerate(zip(*layers, strict=True))}


@pytest.mark.slow
@pytest.mark.parametrize(("count", "name"), [(1, "1"), (4, "4"), (16, "16"), (32, "32, the whole head")])
def test_the_documented_numbers_are_measured_ones(count, name):
    _, labels = words()
    shares = signal_shares(
        read_heads(model_path("minilm")), tokens_by_layer(), labels, count=count, permutations=9999
    )
    alone = sum(p < LEVEL for share in shares for p in (share.p_key, share.p_query))
    corrected = [
        (share, side)
        for share in shares
        for side in ("key", "query")
        if getattr(share, f"adjusted_{side}") < LEVEL
    ]
    for share, side in corrected:
        print(count, side, share)
    (row,) = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith(f"| {name} |")]
    assert row.startswith(f"| {name} | {alone} | {len(corrected)}")
