"""Every page of the documentation runs as printed, and the documented commands need no set-up before them."""

import re
import shutil
from pathlib import Path

import pytest
from pages import run_page

ROOT = Path(__file__).parents[2]
WORDS = ROOT / "src" / "resolvent" / "dataset" / "minilm_vader.npz"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
DOCUMENTED = [("README.md", ["demo", "tests"]), ("CONTRIBUTING.md", ["checks"])]
COMMAND = re.compile(r"^<!-- command: (\w+) -->\n+```sh\n([^\n]+)\n```$", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_page_runs_as_printed(page, tmp_path, monkeypatch):
    shutil.copy(WORDS, tmp_path / "embeddings.npz")  # stands for the reader's own tokens
    monkeypatch.chdir(tmp_path)
    run_page(page)


@pytest.mark.parametrize(("page", "names"), DOCUMENTED)
def test_documented_commands_are_one_line_each_and_start_from_nothing(page, names):
    commands = dict(COMMAND.findall((ROOT / page).read_text(encoding="utf-8")))
    assert list(commands) == names
    for command in commands.values():
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install -q ")


def page_of(folder: Path, text: str) -> Path:
    path = folder / "page.md"
    path.write_text(text, encoding="utf-8")
    return path


def test_blocks_share_a_namespace_and_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = """
```python
from pathlib import Path
```

1. Indented in a list:

   ```python
   >>> _ = Path("note").write_text("kept")
   >>> 1 + 1
   2
   ```

<!-- not run: it would fail -->
```python
>>> 1 / 0
```

```text
resolvent nonsense
```
"""
    assert run_page(page_of(tmp_path, text)) == 3
    assert (tmp_path / "note").read_text(encoding="utf-8") == "kept"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```python\n>>> 1 + 1\n3\n```\n", 'File "page.md", line 2'),
        ("```sh\nresolvent nonsense\n```\n", "page.md:2: resolvent nonsense"),
        ("```console\n$ resolvent --version\nanother version\n```\n", "another version"),
        ("```text\n>>> 1 + 1\n2\n```\n", "page.md:2: a 'text' block is not run"),
        ("```python\n>>> 1 + 1\n2\n", "not closed"),
    ],
)
def test_a_page_that_is_wrong_fails(text, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match=re.escape(message)):
        run_page(page_of(tmp_path, text))


def test_code_without_prompts_must_run(tmp_path):
    with pytest.raises(ZeroDivisionError):
        run_page(page_of(tmp_path, "```python\n1 / 0\n```\n"))


def test_a_block_between_two_that_are_not_run_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    skipped = "<!-- not run: WHY -->\n```python\n>>> 1 / 0\n```\n\n"
    assert run_page(page_of(tmp_path, skipped + "```python\n>>> 1 + 1\n2\n```\n\n" + skipped)) == 1
