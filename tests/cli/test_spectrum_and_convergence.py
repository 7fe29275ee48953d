"""`resolvent spectrum` and `resolvent convergence`: fields, pictures, and wrong input in one line."""

import pytest

ALIGNED = ("--snr", "2", "--align", "0.5")


@pytest.mark.parametrize("of", ["attention", "features"])
def test_spectrum(resolvent, tmp_path, of):
    plot = tmp_path / "spectrum.png"
    found = resolvent(
        "spectrum", "--of", of, *ALIGNED, "--n", "120", "--seed", "2", "--plot", plot, "--json"
    ).json
    assert set(found) >= {"setting", "of", "atoms", "support", "outliers", "mass", "measured"}
    assert found["of"] == of
    assert found["mass"] == pytest.approx(1.0, abs=1e-6)
    assert found["atoms"] == ([{"place": 0.0, "mass": 0.5}] if of == "features" else [])
    assert [set(o) for o in found["outliers"]] == [{"place", "kind", "overlap"}]
    assert found["outliers"][0]["kind"] == "signal"
    measured = found["measured"]
    assert (measured["n"], measured["p"], measured["seed"]) == (120, 60, 2)
    assert measured["outliers"][-1] == pytest.approx(measured["largest"])
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_spectrum_as_text(resolvent):
    outcome = resolvent("spectrum", *ALIGNED, "--n", "64")
    assert [line.split()[0] for line in outcome.out.splitlines()] == [
        "support",
        "atom",
        "outlier",
        "mass",
        "measured",
    ]


def test_convergence(resolvent, tmp_path):
    plot = tmp_path / "convergence.pdf"
    arguments = ("--sizes", "96,32,48", "--draws", "3", "--seed", "4", "--plot", plot, "--json")
    found = resolvent("convergence", *ALIGNED, *arguments).json
    assert found["setting"] | {"draws": 3, "seed": 4} == found["setting"]
    assert [row["n"] for row in found["sizes"]] == [32, 48, 96]
    assert set(found["sizes"][0]["attention"]["train"]) == {"predicted", "refined", "mean", "se", "gap"}
    assert set(found["rate"]["linear"]) == set(found["within"]["linear"]) == {"train", "test"}
    assert len(found["cautions"]) == 1
    assert plot.read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("spectrum", "--of", "weights"), "--of must be attention or features, got 'weights'"),
        (("spectrum", "--n", "3"), "--n must be at least 4, got 3"),
        (("spectrum", "--n", "2.5"), "--n must be an integer, got '2.5'"),
        (("spectrum", "--plot", "spectrum.gif"), "--plot must end in .png"),
        (
            ("spectrum", "--of", "attention", "--key-norm", "1", "--query-norm", "2"),
            "keys and queries must be equal: otherwise K is not symmetric and its spectrum not real",
        ),
        (
            ("convergence", "--sizes", "64,many"),
            "--sizes must be integers with commas between them, got '64,many'",
        ),
        (("convergence", "--sizes", "64"), "--sizes must be at least two different n, got [64]"),
        (("convergence", "--sizes", "16,32", "--tolerance", "0"), "--tolerance must be positive, got 0"),
        (("convergence", "--sizes", "16,32", "--draws", "1"), "--draws must be at least 2, got 1"),
    ],
)
def test_wrong_input_is_one_line(resolvent, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = resolvent(*arguments)
    assert outcome.status == 2
    assert outcome.out == ""
    assert message in outcome.err
    assert outcome.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
