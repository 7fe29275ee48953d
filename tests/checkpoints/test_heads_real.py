"""Real models: the number of heads, and forward passes that fail when Q or K is wrong."""

import json
import sys

import numpy as np
import numpy_models
import pytest
from published_models import model_path

from resolvent.checkpoints import read_heads
from resolvent.checkpoints.tensors import Cursor, map_file


@pytest.mark.parametrize(
    ("name", "count", "shape", "kind"),
    [
        ("minilm", 72, (32, 384), "bert"),
        ("smollm2", 270, (64, 576), "llama"),
        ("whisper", 24, (64, 384), "whisper"),
        ("glassllm", 16, (32, 128), "glassllm"),
    ],
)
def test_counts_shapes_and_gains(name, count, shape, kind):
    heads = list(read_heads(model_path(name)))
    assert len(heads) == count
    assert len({(head.layer, head.head) for head in heads}) == count
    for head in heads:
        assert head.W_Q.shape == head.W_K.shape == shape
        assert head.kind == kind
        assert head.norm_gain is not None
        assert head.norm_gain.shape == shape[1:]


def test_the_other_tower_is_read_on_request():
    assert len(list(read_heads(model_path("whisper"), stack="encoder"))) == 24
    with pytest.raises(ValueError, match=r"stack must be part of one of .*decoder.*, got 'vision'"):
        read_heads(model_path("whisper"), stack="vision")


@pytest.mark.parametrize("name", ["smollm2", "glassllm"])
def test_grouped_keys_are_shared_within_groups_only(name):
    heads = [head for head in read_heads(model_path(name)) if head.layer == 1]
    group = {"smollm2": 3, "glassllm": 2}[name]
    for a in heads:
        for b in heads:
            assert np.array_equal(a.W_K, b.W_K) == (a.head // group == b.head // group)
            assert np.array_equal(a.W_Q, b.W_Q) == (a.head == b.head)


def keys_reversed(head):
    return head.W_Q, head.W_K[::-1]


def sides_exchanged(head):
    return head.W_K, head.W_Q


def rows_in_pairs(head):
    """Undoes the undoing: rows as GGUF stores them."""
    return tuple(W.reshape(2, -1, W.shape[1]).swapaxes(0, 1).reshape(W.shape) for W in (head.W_Q, head.W_K))


def test_minilm_reproduces_published_similarities():
    # The example of the model's documentation (sbert.net, quickstart), whose four digits are known.
    path = model_path("minilm")
    ids = {word: i for i, word in enumerate((path / "vocab.txt").read_text("utf-8").split("\n"))}
    sentences = [
        "[CLS] the weather is lovely today . [SEP]",
        "[CLS] it ' s so sunny outside ! [SEP]",
        "[CLS] he drove to the stadium . [SEP]",
    ]
    tokens = [[ids[word] for word in sentence.split()] for sentence in sentences]
    E = np.array([numpy_models.minilm(path, sentence) for sentence in tokens])
    np.testing.assert_allclose((E @ E.T)[np.triu_indices(3, 1)], [0.6660, 0.1046, 0.1411], atol=6e-5)
    for damage in (keys_reversed, sides_exchanged):
        E = np.array([numpy_models.minilm(path, sentence, damage=damage) for sentence in tokens])
        assert abs((E @ E.T)[0, 1] - 0.6660) > 0.1


def gguf_vocabulary(path):
    """The tokens of a GGUF file, found by their key."""
    memory = map_file(path)
    key = b"tokenizer.ggml.tokens"
    cursor = Cursor(memory, "vocabulary")
    cursor.at = bytes(memory[: 2**21]).index(key) + len(key) + 8
    return {cursor.text(cursor.number("Q")): i for i in range(cursor.number("Q"))}


def smollm2_loss(**options):
    path = model_path("smollm2")
    ids = gguf_vocabulary(path)
    text = "The Ġcapital Ġof ĠFrance Ġis ĠParis Ġ. ĠThe Ġsun Ġrises Ġin Ġthe Ġeast Ġand Ġsets Ġin Ġthe Ġwest"
    tokens = [ids[word] for word in text.split()]
    return numpy_models.next_token_loss(numpy_models.smollm(path, tokens, **options), tokens)


def test_smollm2_predicts_the_next_token():
    assert smollm2_loss() < 0.35 * np.log(49152)


@pytest.mark.slow
def test_smollm2_needs_its_rows_in_the_order_given():
    # Rotary positions see the order, so undoing GGUF's pairing of rows is right.
    right = smollm2_loss()
    assert smollm2_loss(damage=rows_in_pairs) > right + 0.5
    assert smollm2_loss(damage=keys_reversed) > right + 3


def whisper_loss(**options):
    path = model_path("whisper")
    vocabulary = json.loads((path / "tokenizer.json").read_text("utf-8"))
    ids = vocabulary["model"]["vocab"] | {
        token["content"]: token["id"] for token in vocabulary["added_tokens"]
    }
    text = "Ġand Ġthen ĠI Ġwant Ġto Ġshow Ġyou Ġsome Ġof Ġthe Ġthings Ġthat Ġwe Ġhave Ġbeen Ġworking Ġon"
    tokens = [ids[word] for word in ("<|startoftranscript|> <|notimestamps|> " + text).split()]
    return numpy_models.next_token_loss(numpy_models.whisper(path, tokens, **options)[1:], tokens[1:])


def test_whisper_predicts_the_next_token():
    assert whisper_loss() < 0.4 * np.log(51864)


@pytest.mark.slow
def test_whisper_needs_its_heads_as_given():
    right = whisper_loss()
    assert whisper_loss(damage=keys_reversed) > right + 2
    assert whisper_loss(damage=sides_exchanged) > right + 1


def test_glassllm_agrees_with_its_own_forward_pass(monkeypatch):
    path = model_path("glassllm")
    monkeypatch.setattr(sys, "path", [*sys.path, str(path.parents[2])])
    package = pytest.importorskip("glassllm")
    model, tokenizer = package.load_pretrained("en")
    ids = tokenizer.encode("Once upon a time there was a king who lived in a great house with his wife.")
    logits = numpy_models.glassllm(path, ids)
    np.testing.assert_allclose(logits, model.forward(ids).data[0], atol=1e-4)
    wrong = numpy_models.glassllm(path, ids, damage=keys_reversed)
    assert np.abs(wrong - logits).max() > 1
