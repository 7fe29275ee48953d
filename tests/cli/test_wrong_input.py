"""Wrong input: one line on stderr that names the flag, the value and what is allowed; exit 2; nothing else.

Each case is a command line and the words that its one line must hold.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest

MODEL = ("predict", "simulate", "compare")
SIZED = ("simulate", "compare")

NUMBERS = {
    "ratio": {"0": "positive", "-1": "positive"},
    "snr": {"-1": "zero or positive"},
    "ridge": {"-0.1": "zero or positive"},
    "align": {},
    "label-mean": {"1": "between -1 and 1", "-1": "between -1 and 1"},
    "label-noise": {"0.6": "between 0 and 0.5", "-0.1": "between 0 and 0.5"},
    "skip": {},
}
ANGLES = {
    "key-norm": {"-1": "zero or positive"},
    "query-norm": {"-1": "zero or positive"},
    "key-cos": {"1.5": "between -1 and 1"},
    "query-cos": {"-1.5": "between -1 and 1"},
    "key-query-cos": {"2": "between -1 and 1"},
}
NOT_NUMBERS = {
    "nan": "finite",
    "inf": "finite",
    "-inf": "finite",
    "1e400": "finite",
    "1e300": "at most 1e+15",
    "many": "a number",
    "''": "a number",
    "none": "a number",
    "1,2": "a number",
    "--json": "a number",
}


def number_cases():
    """Every flag of a setting with every number that it must refuse."""
    for flags, base in ((NUMBERS, {}), (ANGLES, {"key-norm": "1", "query-norm": "1"})):
        for name, wrong in flags.items():
            for value, allowed in (NOT_NUMBERS | wrong).items():
                rest = " ".join(f"--{k} {v}" for k, v in base.items() if k != name)
                shown = "inf" if value == "1e400" else "1e+300" if value == "1e300" else value.strip("'")
                for command in MODEL if value == "nan" or value in wrong else ("predict",):
                    yield f"{command} --{name} {value} {rest}", (f"--{name}", shown, allowed)
            yield f"predict --{name}", (f"--{name} needs a value",)
            yield f"predict --{name} 0.1 --{name} 0.2", (f"--{name} may be given once",)


def size_cases():
    for command in SIZED:
        for name, low in (("n", 4), ("draws", 2 if command == "compare" else 1), ("seed", 0)):
            rest = "" if name == "n" else "--n 16"
            yield f"{command} --{name} {low - 1} {rest}", (f"--{name}", f"at least {low}", f"got {low - 1}")
            for value in ("-7", "2.5", "1e9", "nan", "inf", "few", "none", "''", "99x"):
                allowed = "at least" if value == "-7" else "an integer"
                yield f"{command} --{name} {value} {rest}", (f"--{name}", value.strip("'"), allowed)
            yield f"{command} --{name}", (f"--{name} needs a value",)
        yield f"{command} --n 100000000", ("GiB", "n = 100000000", "--n", "available")
        yield f"{command} --n 99999999999999999999", ("GiB", "99999999999999999999", "--n", "available")
        yield f"{command} --ratio 1e9 --n 1024", ("GiB", "p = 1024000000000", "--ratio")
        yield f"{command} --ratio 0.01 --n 64", ("--ratio", "at least 2", "got 1")
        yield f"{command} --ratio 1e-9", ("--ratio", "at least 2", "got 0")
        span = "--ratio 0.25 --n 8 --key-norm 1 --query-norm 1 --key-cos 0.3"
        yield f"{command} {span}", ("--ratio", "at least 3", "got 2")
    for value in ("1", "0", "-3"):
        yield f"predict --p {value}", ("--p", "at least 2", value)
    for value in ("0", "-3"):
        yield f"nonlinearity tanh --p {value}", ("--p", "at least 1", value)
    for command in ("predict", "nonlinearity tanh"):
        for value in ("2.5", "many", "1e3", "none"):
            yield f"{command} --p {value}", ("--p", "an integer", value)


LONG = "+".join(["t"] * 400)
DEEP = "sin(" * 90 + "t" + ")" * 90
EXPRESSIONS = {
    "tahn": ("'tahn'", "did you mean tanh?"),
    "TANH": ("'TANH'", "did you mean tanh?"),
    "zzz": ("'zzz'", "known names", "tanh", "relu", "hermite3"),
    "": ("''",),
    "t*nan": ("'nan'",),
    "tan(t)": ("'tan'", "did you mean 'tanh'?"),
    "__import__('os')": ("'__import__'",),
    "t.__class__": ("'t.__class__'", "not allowed"),
    "(lambda: t)()": ("not allowed",),
    "[t for t in t]": ("not allowed",),
    "9**9**9": ("exponents must lie in [-64, 64]",),
    "t**9**9": ("exponents must lie in [-64, 64]",),
    "1" * 400 + "*t": ("too large",),
    LONG: ("too long", "799", "500"),
    DEEP: ("nested too deeply", "60"),
    "t+": ("'t+'",),
    "3": ("depend on t", "'3'"),
    "tanh": None,  # a control: this one is right
    "1/t": ("1/t", "not finite"),
    "log(t)": ("log(t)", "not finite"),
    "exp(t^2)": ("exp(t^2)", "not square-integrable"),
    "exp(exp(t))": ("exp(exp(t))", "not square-integrable"),
    "1e200*t": ("1e200*t", "too large"),
}


def expression_cases():
    for text, words in EXPRESSIONS.items():
        if words is not None:
            for command in MODEL:
                yield f"{command} --f {shlex.quote(text)}", ("--f", *words)
            yield f"nonlinearity {shlex.quote(text)}", ("F:", *words)
    for f in ("exp", "t^2", "hermite3", "relu2"):
        for command in MODEL:
            yield f"{command} --keep-diagonal --f {f}", ("--keep-diagonal", f, "grows faster than linearly")


def weight_cases():
    for name in ANGLES:
        for value in ("0.5", "0"):
            yield f"predict --align 1 --{name} {value}", (f"--{name}", "--align")
    yield "predict --align 0 --key-norm 1", ("--key-norm", "--align")
    for command in MODEL:
        yield f"{command} --key-norm 1", ("--key-norm", "--query-norm")
        yield f"{command} --query-norm 1", ("--query-norm", "--key-norm")
        yield f"{command} --key-cos 0.5", ("--key-cos", "--key-norm")
        yield f"{command} --query-norm 1 --query-cos 0.5", ("--query-norm", "--key-norm")
        for cosines in ((1, 1, -1), (0.9, 0.9, 0), (0, 0.8, 0.7)):
            text = "--key-cos {} --query-cos {} --key-query-cos {}".format(*cosines)
            words = ("--key-cos", "--query-cos", "--key-query-cos cannot be", str(cosines[2]))
            yield f"{command} --key-norm 1 --query-norm 1 {text}", words


def command_line_cases():
    yield "predit", ("predit", 'Did you mean "predict"?')
    yield "--nonsense", ("--nonsense",)
    for command in (*MODEL, "demo", "nonlinearity tanh"):
        yield f"{command} --nonsense", ("--nonsense", "Unknown option")
        yield f"{command} --json=3", ("--json", "without a value", "'3'")
        yield f"{command} --json --json", ("--json may be given once",)
        yield f"{command} --no-json", ("--no-json", "Did you mean --json?")
        yield f"{command} --ratio 0.5 --flags.ratio 0.7", ("Unknown option",)
    for command in MODEL:
        yield f"{command} --raito 1", ("--raito", "Did you mean --ratio?")
        yield f"{command} -r 1", ("-r", "Unknown option")
        yield f"{command} 0.5", ("'0.5' is not used",)
        yield f"{command} -- 5", ("'5' is not used",)
        yield f"{command} --keep-diagonal yes", ("'yes' is not used",)
        yield f"{command} --centred=maybe", ("--centred", "'maybe'", "without a value")
        yield f"{command} --centred --uncentred", ("centred may be given once",)
        yield f"{command} --f tanh --f relu", ("--f may be given once",)
        yield f"{command} --f", ("--f needs a value",)
    yield "predict --n 100", ("--n", "Unknown option")
    yield "predict --plot a.png", ("--plot", "Unknown option")
    yield "simulate --plot a.png", ("--plot", "Unknown option")
    yield "simulate --p 10", ("--p", "Unknown option")
    yield "simulate --tokens good.npz", ("--tokens", "Unknown option")
    yield "demo tanh", ("'tanh' is not used",)
    yield "demo --draws 1", ("--draws", "Unknown option")
    yield "nonlinearity", ("F needs a value",)
    yield "nonlinearity --json", ("F needs a value",)
    yield "nonlinearity tanh relu", ("'relu' is not used", "--plot")
    yield "nonlinearity tanh a.png b.png --plot", ("'b.png' is not used",)
    yield "nonlinearity tanh --plot --json", ("--plot", "FILE", "--json")
    yield "nonlinearity tanh --plot=a.png", ("--plot", "without a value", "'a.png'")
    yield "nonlinearity tanh --ratio 1", ("--ratio", "Unknown option")


def file_cases():
    """Pictures that cannot be written and tokens that cannot be read or used."""
    for command, tail in (("compare --plot", ""), ("compare --tokens good.npz --plot", "")):
        yield f"{command} a.bmp {tail}", ("--plot", ".png, .pdf, .svg", "a.bmp")
        yield f"{command} a {tail}", ("--plot", ".png, .pdf, .svg", "got a")
        yield f"{command} '' {tail}", ("--plot", ".png, .pdf, .svg")
        yield f"{command} .png {tail}", ("--plot", ".png, .pdf, .svg")
        yield f"{command} nowhere/a.png {tail}", ("--plot", "folder", "nowhere/a.png")
        yield f"{command} good.npz/a.png {tail}", ("--plot", "folder", "good.npz/a.png")
        yield f"{command} folder.png {tail}", ("--plot", "folder.png")
        yield f"{command} {tail}", ("--plot needs a value",)
    for name in ("a.bmp", "a", "nowhere/a.png", "folder.png"):
        yield f"nonlinearity tanh {name} --plot", ("--plot", name)
    tokens = {
        "nothing.npz": ("nothing.npz", "No such file"),
        "notes.txt": ("notes.txt", ".npz, .npy, .parquet, .csv"),
        "folder.npz": ("folder.npz", "not a file"),
        "''": ("not a file",),
        "junk.npz": ("junk.npz", "not readable"),
        "pickled.npz": ("pickled.npz", "pickled"),
        "no_labels.npz": ("no_labels.npz", "no array named labels"),
        "empty.csv": ("empty.csv", "empty"),
        "ragged.csv": ("ragged.csv", "line 3 has 2 fields"),
        "words.csv": ("words.csv", "'x' is not a number"),
        "one_class.npz": ("one_class.npz", "labels must take two values"),
        "three_classes.npz": ("three_classes.npz", "two values", "got 3", "one against the rest"),
        "holes.npz": ("holes.npz", "NaN", "(2, 3)"),
        "line.npz": ("line.npz", "at least 2 dimensions", "p = 1"),
        "three_tokens.npz": ("three_tokens.npz", "at least 4 tokens", "n = 3"),
        "four_tokens.npz": ("at least 5", "got 4"),
        "lonely.npz": ("lonely.npz", "at least 2 tokens"),
        "mismatch.npz": ("mismatch.npz", "50", "60 labels"),
        "flat.npz": ("flat.npz", "never vary"),
        "tokens.npy": ("tokens.npy", "--labels"),
        "good.npz --labels labels.npy": ("good.npz", "--labels"),
        "tokens.npy --labels nothing.npy": ("nothing.npy", "No such file"),
        "tokens.npy --labels tokens.npy": ("labels must be a vector",),
        "tokens.npy --labels notes.txt": ("notes.txt",),
    }
    for arguments, words in tokens.items():
        yield f"compare --tokens {arguments}", ("--tokens", *words)
    yield "compare --tokens", ("--tokens needs a value",)
    yield "compare --labels labels.npy", ("--labels", "--tokens")
    for choice in ("none", "auto", "background"):
        yield f"compare --whiten {choice}", ("--whiten", choice, "--tokens")
    for choice in ("pca", "''", "Background"):
        yield f"compare --tokens good.npz --whiten {choice}", ("--whiten", "auto or none or background")
    yield "compare --tokens good.npz --whiten background", ("--whiten", "background", "'none'")


def own_token_cases():
    """What the tokens decide cannot be given beside them, the default value no more than another."""
    for flag in ("ratio 1", "ratio 0.5", "snr 2", "snr 1", "label-mean 0.2", "label-mean 0", "n 100", "n 60"):
        yield f"compare --tokens good.npz --{flag}", (f"--{flag}", "--tokens")
    for flag in ("label-noise 0.1", "key-norm 1", "query-norm 1", "key-cos 0.5", "query-cos 0.5"):
        yield f"compare --tokens good.npz --{flag}", (f"--{flag}", "--tokens")
    yield "compare --tokens good.npz --key-query-cos 0.5", ("--key-query-cos 0.5", "--tokens", "--align")
    for flag, words in {
        "draws 1": ("at least 2", "got 1"),
        "draws 0": ("at least 2", "got 0"),
        "seed -1": ("at least 0", "got -1"),
        "align nan": ("finite", "nan"),
        "ridge -1": ("zero or positive", "got -1"),
        "f tahn": ("did you mean tanh?",),
    }.items():
        yield f"compare --tokens good.npz --{flag}", (f"--{flag.split()[0]}", *words)


CASES = [
    case
    for cases in (
        number_cases,
        size_cases,
        expression_cases,
        weight_cases,
        command_line_cases,
        file_cases,
        own_token_cases,
    )
    for case in cases()
]


def listing(folder):
    return sorted((str(path), path.stat().st_mtime_ns) for path in folder.rglob("*"))


def check_refusal(outcome, words):
    status, out, err = outcome
    assert status == 2
    assert out == ""
    assert err.startswith("resolvent: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert len(err) < 700
    for word in words:
        assert word in err


@pytest.mark.parametrize(("line", "words"), CASES, ids=[line[:70] for line, _ in CASES])
def test_one_line_and_nothing_else(resolvent, folder, line, words):
    before = listing(folder)
    check_refusal(resolvent(*shlex.split(line)), words)
    assert listing(folder) == before


def test_there_are_enough_cases():
    assert len({line for line, _ in CASES}) > 300
    assert {line.split()[0] for line, _ in CASES} >= {*MODEL, "nonlinearity", "demo"}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "line",
    [
        "predict --ratio nan",
        "compare --tokens holes.npz",
        "nonlinearity tahn",
        "predit",
    ],
)
def test_as_a_process(line):
    command = [sys.executable, "-m", "resolvent", *line.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    check_refusal((done.returncode, done.stdout, done.stderr), ())


@pytest.mark.usefixtures("folder")
def test_debug_shows_where_it_comes_from():
    command = [sys.executable, "-m", "resolvent", "predict", "--debug", "--ratio", "-1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "ratio must be positive, got -1" in done.stderr
    assert done.stdout == ""


def test_debug_alone_changes_nothing(resolvent):
    assert resolvent("predict", "--debug") == resolvent("predict")


@pytest.mark.usefixtures("folder")
def test_a_folder_without_leave_to_write_is_refused_before_any_work(resolvent, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    check_refusal(resolvent("compare", "--plot", "a.png"), ("--plot", "a.png"))
