"""Real tokens that ship with the package: sentiment words, embedded by a sentence model."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import as_file, files

from resolvent.dataset.labelled import LabelledTokens
from resolvent.dataset.reading import read_tokens


def demo_tokens() -> LabelledTokens:
    """2237 English words in 384 dimensions, labelled by the sign of their human sentiment rating.

    Embeddings of all-MiniLM-L6-v2 (Apache-2.0), ratings of the VADER lexicon (MIT); `minilm_vader.md` beside
    the data says what was computed and under which licences.

    >>> print(demo_tokens())  # doctest: +ELLIPSIS
    MiniLM embeddings of the words of the VADER sentiment lexicon: 2237 tokens of 384 dimensions, ...
    """
    with as_file(files("resolvent.dataset") / "minilm_vader.npz") as path:
        tokens = read_tokens(path)
    return replace(tokens, source="MiniLM embeddings of the words of the VADER sentiment lexicon")
