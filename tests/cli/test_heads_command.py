"""`resolvent heads` on small synthetic checkpoints: options, JSON, and one line for what is wrong."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from resolvent.checkpoints import read_heads, signal_direction, signal_shares, summarise_heads
from resolvent.cli.output import as_line
from resolvent.compare import compare_head, head_gains
from resolvent.setting import Setting, Tokens
from resolvent.simulate import Interrupted, simulate

D, D_HEAD, LAYERS, HEADS = 24, 4, 2, 3


def tensors(prefix="model.", seed=0):
    rng = np.random.default_rng(seed)
    found = {}
    for i in range(LAYERS):
        stem = f"{prefix}layers.{i}."
        for side in "qk":
            found[f"{stem}self_attn.{side}_proj.weight"] = rng.normal(size=(HEADS * D_HEAD, D))
        found[f"{stem}input_layernorm.weight"] = rng.uniform(0.5, 2, size=D)
    return found


def write_safetensors(folder, arrays, config):
    header, data = {}, b""
    for name, array in arrays.items():
        raw = array.astype("<f4").tobytes()
        span = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": span}
        data += raw
    text = json.dumps(header).encode()
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    if config:
        (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """Checkpoints with and without a configuration, one of two towers, and tokens."""
    work = tmp_path_factory.mktemp("heads")
    config = {"model_type": "llama", "num_attention_heads": HEADS}
    write_safetensors(work / "model", tensors(), config)
    write_safetensors(work / "bare", tensors(), None)
    write_safetensors(work / "towers", tensors("vision.") | tensors("decoder.", 1), config)
    rng = np.random.default_rng(2)
    labels = np.where(np.arange(40) % 2, 1, -1)
    np.savez(work / "tokens.npz", tokens=rng.normal(size=(D, 40)) + 0.3 * labels, labels=labels)
    np.savez(work / "narrow.npz", tokens=rng.normal(size=(D - 1, 40)), labels=labels)
    np.save(work / "tokens.npy", rng.normal(size=(D, 40)))
    np.save(work / "labels.npy", labels)
    return work


@pytest.fixture
def heads(resolvent, work, monkeypatch):
    """Run `resolvent heads ARGUMENTS` in the folder of the checkpoints."""
    monkeypatch.chdir(work)
    return lambda line: resolvent("heads", *line.split())


def test_the_table_is_the_summaries(heads, work):
    summaries = list(summarise_heads(read_heads(work / "model")))
    found = heads("model --json").json
    assert found["source"] == "model"
    assert found["heads"] == json.loads(json.dumps([summary.to_dict() for summary in summaries]))
    lines = heads("model").out.splitlines()
    assert lines[0] == "model: 6 heads (llama, 4 of 24 dimensions)"
    assert lines[2].split()[:5] == ["layer", "head", "|M|", "trace", "align"]
    for line, summary in zip(lines[3:9], summaries, strict=True):
        cells = line.split()
        assert [int(cells[0]), int(cells[1])] == [summary.layer, summary.head]
        numbers = [float(cell.rstrip("%")) for cell in cells[2:]]
        assert numbers == pytest.approx(
            [
                summary.norm,
                summary.trace,
                summary.alignment,
                summary.beyond_chance,
                summary.stable_rank,
                100 * summary.energy[0],
                100 * summary.energy[2],
                100,
                summary.symmetry,
                summary.shift,
                summary.misfit,
            ],
            rel=6e-3,
            abs=0.051,
        )
    assert lines[-1].startswith("rotary positions: M is the matrix of the score at distance 0")


def test_a_layer_and_a_head_of_it(heads):
    whole = heads("model --json").json["heads"]
    assert heads("model --layer 1 --json").json["heads"] == whole[3:]
    assert heads("model --head 2 --json").json["heads"] == [whole[2], whole[5]]
    assert heads("model --layer 1 --head 0 --json").json["heads"] == [whole[3]]


def test_gain_fit_and_number_of_heads(heads, work):
    folded = [summary.to_dict() for summary in summarise_heads(read_heads(work / "model"), gain=True)]
    assert heads("model --gain --json").json["heads"] == json.loads(json.dumps(folded))
    assert "norm gain folded in" in heads("model --gain").out
    fitted = next(summarise_heads(read_heads(work / "model"), fit_rank=2))
    assert heads("model --fit-rank 2 --json").json["heads"][0]["misfit"] == fitted.misfit
    assert heads("bare --heads 3 --json").json["heads"][0]["d_head"] == D_HEAD
    assert len(heads("bare --heads 6 --json").json["heads"]) == 6 * LAYERS


def test_of_two_towers_the_decoder_unless_told(heads):
    decoder, vision = (heads(f"towers {which} --json").json["heads"] for which in ("", "--stack vision"))
    assert decoder != vision
    assert vision == heads("model --json").json["heads"]


@pytest.mark.parametrize("tokens", ["tokens.npz", "tokens.npy --labels labels.npy"])
def test_shares_of_the_users_signal(heads, work, tokens):
    file = work / tokens.split()[0]
    loaded = np.load(file)
    X = loaded if file.suffix == ".npy" else loaded["tokens"]
    wanted = signal_shares(
        read_heads(work / "model"), X, np.load(work / "labels.npy"), count=2, permutations=49, seed=3
    )
    options = f"--tokens {tokens} --top 2 --permutations 49 --seed 3"
    found = heads(f"model {options} --json").json["heads"]
    for row, share in zip(found, wanted, strict=True):
        assert row["signal"]["key"] == share.key
        assert row["signal"]["adjusted_query"] == share.adjusted_query
        assert set(row["signal"]) == {
            "count",
            *(f"{name}{side}" for side in ("key", "query") for name in ("", "expected_", "p_", "adjusted_")),
        }
    # one head's p-values are corrected over all heads of the model
    assert heads(f"model --layer 1 --head 1 {options} --json").json["heads"] == [found[4]]
    text = heads(f"model {options}").out
    assert "Share of the signal in the top 2 keys and queries" in text
    assert f"{wanted[5].key:.2%}" in text.splitlines()[8]


COMPARE = "model --layer 1 --head 2 --compare --draws 2 --snr 2"


def test_one_head_predicted_beside_measured(heads, work):
    head = list(read_heads(work / "model"))[5]
    base = Setting(Tokens(ratio=0.4, snr=2.0), nonlinearity="relu", ridge=0.3)
    options = "--f relu --ratio 0.4 --ridge 0.3 --tau 0.5 --gain --seed 4"
    found = heads(f"{COMPARE} {options} --json").json
    assert found["source"] == "model"
    (row,) = found["heads"]
    wanted = compare_head(head, base, draws=2, seed=4, tau=0.5, gain=True)
    assert row == json.loads(as_line(wanted.as_dict()))
    assert (row["layer"], row["head"], row["over"]) == (1, 2, "ridge")
    assert list(row["places"]) == ["random", "top-key", "top-query"]
    assert len(row["x"]) == len(row["places"]["random"]["measured"]["linear"]["test"]["se"]) == 9
    assert row["setting"]["tau"] == pytest.approx(0.5)
    assert row["setting"]["n"] == 60
    text = heads(f"{COMPARE} {options}").out
    assert text.startswith("model: layer 1 head 2 (llama, 4 of 24), relu, snr 2, n = 60, p = 24, 2 draws\n")
    case = wanted.cases[1]
    mean, se = (values[4] for values in case.measured("attention", "test"))
    (line,) = [line for line in text.splitlines() if line.split()[:2] == ["top-key", "0.3"]]
    assert line.endswith(f" {case.predicted('attention', 'test')[4]:.4f}  {mean:.4f} +- {se:.4f}")


def test_over_snr_with_one_signal_and_the_users_own(heads, work):
    tokens = np.load(work / "tokens.npz")
    own = signal_direction(tokens["tokens"], tokens["labels"])
    head = list(read_heads(work / "model"))[5]
    found = heads(f"{COMPARE} --over snr --signal top-query --tokens tokens.npz --json").json["heads"][0]
    assert found["over"] == "snr"
    assert found["x"] == [0.0, 0.5, 1.0, 2.0, 4.0]
    signals = {"top-query": "top-query", "tokens": own}
    wanted = compare_head(head, Setting(Tokens(snr=2.0)), signals=signals, over="snr", draws=2)
    assert found["places"] == json.loads(as_line(wanted.as_dict()))["places"]


@pytest.mark.parametrize(
    ("options", "signal", "changes"),
    [
        ("", "top-key", {}),
        ("--signal random", "random", {}),
        ("--tokens tokens.npz", "tokens", {}),
        ("--gain --tau 2", "top-key", {"gain": True, "tau": 2.0}),
    ],
)
def test_all_heads_predicted(heads, work, options, signal, changes):
    setting = Setting(Tokens(snr=3.0), ridge=0.5)
    found = heads(f"model --all --snr 3 --ridge 0.5 {options} --json").json
    tokens = np.load(work / "tokens.npz")
    own = signal_direction(tokens["tokens"], tokens["labels"]) if signal == "tokens" else signal
    rows = list(head_gains(read_heads(work / "model"), setting, signal=own, **changes))
    assert found["heads"] == [json.loads(as_line(row.as_dict())) for row in rows]
    assert set(found["heads"][0]) == {"layer", "head", "query_signal", "attention", "linear", "gain"}
    assert (found["source"], found["signal"], found["setting"]["snr"]) == ("model", signal, 3.0)
    text = heads(f"model --all --snr 3 --ridge 0.5 {options}").out.splitlines()
    assert text[0] == f"model: tanh, ratio 0.5, snr 3, ridge 0.5, signal {signal}"
    assert float(text[8].split()[3]) == pytest.approx(rows[5].gain.train, abs=5e-5)
    one = heads(f"model --all --layer 1 --head 2 --snr 3 --ridge 0.5 {options} --json").json["heads"]
    assert one == found["heads"][5:]


@pytest.mark.parametrize("task", [f"{COMPARE} --signal random", "model --all"])
def test_pictures(heads, tmp_path, monkeypatch, task):
    monkeypatch.setattr("resolvent.plot.heads.FINE", {"ridge": 9, "snr": 5})
    assert heads(f"{task} --plot {tmp_path}/a.png").status == 0
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_an_interrupted_comparison_is_shown(heads, monkeypatch):
    class Late:
        calls = 0

        def __call__(self, *args, **options):
            self.calls += 1
            if self.calls == 3:
                raise Interrupted(np.empty((0, 2, 2, 9)), 2)
            return simulate(*args, **options)

    monkeypatch.setattr("resolvent.compare.heads.simulate", Late())
    outcome = heads(f"{COMPARE} --json")
    assert outcome.status == 130
    assert list(outcome.json["heads"][0]["places"]) == ["random", "top-key"]


WRONG = {
    "model --compare --all": ("--all cannot be given with --compare",),
    "model --compare": ("--compare takes one head, so --layer must be given too",),
    "model --compare --layer 0": ("--compare takes one head, so --head must be given too",),
    "model --compare --layer 0 --head 9": ("--head must be from 0 to 2, got 9",),
    "model --compare --layer 0 --head 0 --draws 1": ("--draws must be at least 2, got 1",),
    "model --compare --layer 0 --head 0 --seed -1": ("--seed must be at least 0, got -1",),
    "model --compare --layer 0 --head 0 --over n": ("--over", "ridge or snr"),
    "model --compare --layer 0 --head 0 --plot a.bmp": ("--plot", ".png, .pdf, .svg"),
    "model --compare --layer 0 --head 0 --ridge 0": ("--ridge must be positive",),
    "model --all --ridge 0": ("--ridge must be positive",),
    "model --all --tau 0": ("--tau must be positive, got 0",),
    "model --all --f tahn": ("--f", "did you mean tanh?"),
    "model --all --signal up": ("--signal", "random or top-key or top-query"),
    "model --all --tokens narrow.npz": ("--tokens must have 24 dimensions for these heads, got 23",),
    "model --all --head 3": ("--head must be from 0 to 2, got 3",),
    "model --all --draws 3": ("--draws 3 goes with --compare",),
    "model --all --over snr": ("--over snr goes with --compare",),
    "model --all --fit-rank 2": ("--fit-rank 2 goes without --compare and --all",),
    "model --all --top 2": ("--top 2 goes without --compare and --all",),
    "model --ridge 1": ("--ridge 1.0 goes with --compare or --all",),
    "model --signal random": ("--signal random goes with --compare or --all",),
    "model --keep-diagonal": ("--keep-diagonal", "goes with --compare or --all"),
    "model --plot a.png": ("--plot a.png goes with --compare or --all",),
    "model --align 1": ("--align", "Unknown option"),
    "model --weights a.npy": ("--weights", "Unknown option"),
    "nothing": ("no such file or folder: 'nothing'",),
    "tokens.npz": ("no known attention layout", "tokens"),
    "labels.npy": ("a single npy array", "safetensors"),
    "bare": ("doesn't say how many heads; give --heads NUMBER",),
    "model --heads 5": ("doesn't split into 5 heads",),
    "model --heads 0": ("--heads must be a positive integer, got 0",),
    "model --layer 2": ("--layer must be one of 0 to 1, got 2",),
    "model --layer -1": ("--layer must be one of 0 to 1, got -1",),
    "model --layer 1.5": ("--layer must be an integer",),
    "model --head 3": ("--head must be from 0 to 2, got 3",),
    "model --stack vision": ("--stack must be part of one of 'model.'", "'vision'"),
    "model --fit-rank -1": ("--fit-rank must be an integer from 0 on, got -1",),
    "model --tokens none.npz": ("--tokens", "No such file"),
    "model --tokens narrow.npz": ("--tokens", "24 rows", "got 23"),
    "model --tokens tokens.npy": ("--tokens", "--labels"),
    "model --tokens tokens.npz --top 0": ("--top must be at least 1, got 0",),
    "model --tokens tokens.npz --permutations 0": ("--permutations must be a positive integer, got 0",),
    "model --labels labels.npy": ("--labels labels.npy goes with --tokens FILE",),
    "model --top 3": ("--top 3 goes with --tokens FILE",),
    "model --permutations 9": ("--permutations 9 goes with --tokens FILE",),
    "model --nonsense": ("--nonsense", "Unknown option"),
    "model model": ("'model' is not used",),
    "x" * 5000: ("can't be read",),
}


@pytest.mark.parametrize("line", WRONG, ids=[line[:60] for line in WRONG])
def test_wrong_input_is_one_line(heads, line):
    status, out, err = heads(line)
    assert (status, out) == (2, "")
    assert err.startswith("resolvent: ")
    assert err.count("\n") == 1
    for words in WRONG[line]:
        assert words in err


def test_a_gain_that_is_not_known(heads, work):
    bare = {name: array for name, array in tensors().items() if "norm" not in name}
    write_safetensors(work / "no_gain", bare, {"num_attention_heads": HEADS})
    status, _, err = heads("no_gain --gain")
    assert status == 2
    assert "no norm gain is known" in err


def test_a_hub_id_without_a_network_or_without_the_package(heads, monkeypatch):
    def unreachable(*_, **__):
        raise ConnectionError("no route to the hub\nand more lines")

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(snapshot_download=unreachable))
    status, out, err = heads("org/name")
    assert (status, out) == (2, "")
    assert err == (
        "resolvent: 'org/name' is no file here and can't be fetched from the hub: no route to the hub\n"
    )
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    status, _, err = heads("org/name")
    assert status == 2
    assert "pip install 'resolvent[checkpoints]'" in err


def test_interrupted_between_layers_keeps_the_first(heads, monkeypatch):
    def stopping(rows, **options):
        for summary in summarise_heads(rows, **options):
            if summary.layer == 1:
                raise KeyboardInterrupt
            yield summary

    monkeypatch.setattr("resolvent.cli.heads.summarise_heads", stopping)
    outcome = heads("model --json")
    assert outcome.status == 130
    assert len(outcome.json["heads"]) == HEADS
    assert "later heads are missing" in outcome.err
