"""A picture appears whole or not at all, and a path that cannot hold one is refused first."""

from __future__ import annotations

import os
import stat

import pytest
from matplotlib.figure import Figure

from resolvent.nonlinearity import nonlinearity
from resolvent.plot import checked_path, plot_nonlinearity
from resolvent.plot.files import save

BEGINS = {".png": b"\x89PNG\r\n\x1a\n", ".pdf": b"%PDF-", ".svg": b"<?xml"}
ENDS = {".png": b"IEND\xaeB`\x82", ".pdf": b"%%EOF\n", ".svg": b"</svg>\n"}


@pytest.mark.parametrize("suffix", BEGINS)
def test_the_file_is_whole(tmp_path, suffix):
    path = tmp_path / f"tanh{suffix}"
    plot_nonlinearity(nonlinearity("tanh"), path)
    written = path.read_bytes()
    assert written.startswith(BEGINS[suffix])
    assert written.endswith(ENDS[suffix])
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_the_suffix_may_be_in_capitals(tmp_path):
    save(Figure(), tmp_path / "A.PNG")
    assert (tmp_path / "A.PNG").read_bytes().startswith(BEGINS[".png"])


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), KeyboardInterrupt(), MemoryError()]
)
def test_a_failed_save_leaves_what_was_there(tmp_path, monkeypatch, error):
    path = tmp_path / "a.png"
    path.write_bytes(b"the picture of yesterday")

    def half(self, name, **_):  # noqa: ARG001
        with open(name, "wb") as file:
            file.write(b"half of a pict")
        raise error

    monkeypatch.setattr(Figure, "savefig", half)
    with pytest.raises(type(error)):
        save(Figure(), path)
    assert path.read_bytes() == b"the picture of yesterday"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_permissions_are_those_of_any_new_file(tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        save(Figure(), tmp_path / "a.png")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.png").stat().st_mode) == mode


def test_paths_that_cannot_hold_a_picture(tmp_path, monkeypatch):
    (tmp_path / "folder.png").mkdir()
    assert checked_path(tmp_path / "a.svg") == tmp_path / "a.svg"
    for name in ("a.jpg", "a", ".png", "a.png.gz"):
        with pytest.raises(ValueError, match=r"^plot must end in \.png, \.pdf, \.svg, got "):
            checked_path(tmp_path / name)
    with pytest.raises(ValueError, match=r"^plot must be a file, got the folder .*folder\.png$"):
        checked_path(tmp_path / "folder.png")
    with pytest.raises(ValueError, match="existing folder"):
        checked_path(tmp_path / "nowhere" / "a.png")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(ValueError, match="that can be written to"):
        checked_path(tmp_path / "a.png")
