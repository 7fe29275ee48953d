"""`resolvent figure`: each figure registered and on disk, whole; numbers agree; wrong input is one line."""

from __future__ import annotations

import json
import pkgutil

import numpy as np
import pytest
from figure_tools import rows, small_panels
from safetensors.numpy import save_file

import resolvent.figures
from resolvent.checkpoints import read_heads
from resolvent.cli.app import run
from resolvent.figures import FIGURES, Plan, draw_figure
from resolvent.figures.drawing import draw
from resolvent.figures.files import write
from resolvent.figures.record import Map

PLUMBING = {"along", "drawing", "files", "linear", "record", "registry", "render", "verdict"}
SLOW = {"aligned", "linear-component", "alignment", "phase", "words"}  # the refined equivalent takes seconds


def test_every_file_that_is_a_figure_is_registered():
    found = {module.name for module in pkgutil.iter_modules(resolvent.figures.__path__)} - PLUMBING
    modules = {figure.panels.__module__.rpartition(".")[2] for figure in FIGURES.values()}
    assert found == modules
    assert len(FIGURES) == len(found)
    for name, figure in FIGURES.items():
        assert figure.name == name
        assert figure.title
        assert figure.quick.n < figure.full.n


@pytest.mark.parametrize("name", FIGURES)
def test_the_picture_and_the_table_show_the_numbers(name, tmp_path):
    panels = small_panels(name)
    files = write(name, panels, "A caption.", tmp_path)
    assert [file.name for file in files] == [f"{name}.png", f"{name}.pdf", f"{name}.csv"]
    assert sorted(tmp_path.iterdir()) == sorted(files)  # and nothing half written
    table = rows(tmp_path / f"{name}.csv")
    for panel in panels:
        mine = [row for row in table if row["panel"] == panel.title]
        assert mine, panel.title
        if isinstance(panel, Map):
            continue
        for s in panel.series:
            points = [row for row in mine if row["series"] == s.label]
            np.testing.assert_array_equal([float(row[panel.x]) for row in points], s.x)
            measured = [float(row["measured"] or "nan") for row in points]
            np.testing.assert_array_equal(measured, s.measured)
    picture = draw(panels, "A caption that says it.")
    assert "A caption that says it." in [text.get_text() for text in picture.texts]
    titles = [ax.get_title() for ax in picture.axes if ax.get_title()]
    assert titles == [panel.title for panel in panels]
    for ax, panel in zip([ax for ax in picture.axes if ax.get_title()], panels, strict=True):
        if not isinstance(panel, Map):
            drawn = np.concatenate([c.lines[0].get_xdata() for c in ax.containers])
            expected = [x for s in panel.series for x in s.x[s.points]] + [s.measured for s in panel.spikes]
            np.testing.assert_allclose(sorted(drawn), sorted(expected))
            assert all(c.lines[2] for c in ax.containers)  # every point has its bar


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in FIGURES]
)
def test_quick_numbers_agree(name, tmp_path, monkeypatch):
    monkeypatch.setattr("resolvent.figures.head._installed", lambda: None)
    drawn = draw_figure(name, tmp_path, quick=True)
    table = rows(tmp_path / f"{name}.csv")
    measured = [row for row in table if row["measured"] and row["panel"] and row["series"] != "difference"]
    measured = [row for row in measured if "less" not in row["series"]]
    largest = {row["panel"]: 0.0 for row in table}
    for row in table:
        largest[row["panel"]] = max(largest[row["panel"]], abs(float(row["predicted"] or 0.0)))
    assert len(measured) >= 16
    share = {"words": 0.25, "spectrum": 0.15}.get(name, 0.05)  # real data; places of spikes at n = 384
    for row in measured:
        value, se = float(row["measured"]), float(row["se"])
        expected = float(row["refined"] or row["predicted"])
        edges = 0.05 * largest[row["panel"]] if row["series"] == "bulk" else 0.0
        assert abs(value - expected) < 4.0 * se + share * abs(expected) + edges, row
    assert drawn.caption in str(drawn)


def test_the_head_of_a_checkpoint_is_read(tmp_path):
    rng = np.random.default_rng(0)
    tensors = {f"h.{i}.attn.c_attn.weight": rng.standard_normal((24, 72)) for i in range(3)}
    save_file(tensors, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2", "n_head": 2}))
    plan = Plan(n=999, draws=2, checkpoint=tmp_path / "model.safetensors")
    panels = FIGURES["head"].panels(plan)
    caption = FIGURES["head"].caption(panels, plan)
    assert "layer 1 head 0 (gpt2, 12 of 24) of " in caption
    assert "/model.safetensors, p = 24" in caption
    K, Q = list(read_heads(tmp_path / "model.safetensors"))[2].key_query()
    M = K.T @ Q
    rank = np.linalg.norm(M) ** 2 / np.linalg.norm(M, 2) ** 2
    assert panels[0].title == f"training error, stable rank {rank:.1f}"


def test_json_lists_the_files_that_were_written(tmp_path, capsys):
    assert run(["figure", "linear-snr", "--quick", "--json", "-o", str(tmp_path / "new")]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert sorted(answer["files"]) == sorted(str(path) for path in (tmp_path / "new").iterdir())
    assert len(answer["files"]) == 3
    assert answer["captions"]["linear-snr"].startswith("Linear regression against snr")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bar"], "figure must be one of linear-ridge, "),
        (["linear-snr", "-o", "{file}"], "--folder must be one that can be written to, got "),
        (["linear-snr", "-o", "{file}/deeper"], "--folder must be one that can be written to, got "),
    ],
)
def test_wrong_input_is_one_line(arguments, message, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    given = [argument.format(file=tmp_path / "file") for argument in arguments]
    assert run(["figure", *given]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_all_draws_every_figure_and_an_interrupt_keeps_what_is_done(tmp_path, capsys, monkeypatch):
    done = []

    def once(name, folder, **_):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(name)
        return f"{name} in {folder}"

    monkeypatch.setattr("resolvent.figures.draw_figure", once)
    assert run(["figure", "all", "-o", str(tmp_path)]) == 130
    assert done == list(FIGURES)[:2]
    assert "interrupted: 2 of" in capsys.readouterr().err
