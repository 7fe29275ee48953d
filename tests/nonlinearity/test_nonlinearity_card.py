"""The card: its fields, and that its words follow from the numbers."""

import json

import pytest

from resolvent.nonlinearity import card, known_names, nonlinearity


@pytest.mark.parametrize("name", known_names())
@pytest.mark.parametrize("centred", [True, False])
def test_fields(name: str, centred: bool) -> None:
    f = nonlinearity(name, centred=centred)
    record = card(f)
    fields = record.as_dict()
    assert list(fields) == [
        *("name", "a0", "a1", "a2", "nu", "sigma2", "linear_share", "kept_diagonal", "sentence"),
    ]
    json.dumps(fields, allow_nan=False)
    assert fields["name"] == name
    assert {key: fields[key] for key in ("a0", "a1", "a2", "nu", "sigma2")} == f.coefficients().as_dict()
    text = str(record)
    assert max(len(line) for line in text.splitlines()) <= 90
    assert text.splitlines()[0].startswith(name)


@pytest.mark.parametrize(
    ("spec", "words", "absent"),
    [
        (
            "hermite2",
            ["f is even, so a1 = 0", "flat in the signal-to-noise ratio", "two more spikes"],
            "% of",
        ),
        ("hermite3", ["a1 = 0:", "memorisation", "no further spike"], "even"),
        ("identity", ["f is linear", "shifts K by 1 times"], "noise, which"),
        (
            "tanh",
            ["93 % of its variance is linear", "no further spike", "vanishes in the limit"],
            "a2 is not 0",
        ),
        ("relu", ["73.3 % of its variance is linear", "two more spikes", "shifts K by 1"], "Its mean"),
        ("exp", ["two more spikes", "diagonal cannot be kept"], "shifts K"),
        ("t*sin(t)", ["f(t)/t does not settle"], "cannot be kept"),
    ],
)
def test_words(spec: str, words: list[str], absent: str) -> None:
    sentence = card(nonlinearity(spec)).sentence
    for word in words:
        assert word in sentence
    assert absent not in sentence


def test_an_uncentred_function_is_told_about_its_mean() -> None:
    assert "centring removes it" in card(nonlinearity("relu", centred=False)).sentence


def test_kept_diagonal_at_p_and_in_the_limit() -> None:
    f = nonlinearity("tanh")
    assert card(f).kept_diagonal == 0.0
    assert card(f, p=100).kept_diagonal == f.kept_diagonal(100)
    assert "at p = 100" in str(card(f, p=100))
    assert card(nonlinearity("leaky_relu")).kept_diagonal == 1.0
    assert card(nonlinearity("cubic"), p=100).kept_diagonal is None
    with pytest.raises(ValueError, match="p must be at least 1"):
        card(f, p=0)


def test_scale_reaches_the_coefficients() -> None:
    f = nonlinearity("tanh")
    assert card(f, scale=2.0).coefficients == f.coefficients(2.0)
    assert "N(0, 2^2)" in str(card(f, scale=2.0))
