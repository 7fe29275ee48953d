import doctest
from pathlib import Path

import resolvent.engine as engine


def test_the_page_runs():
    page = Path(__file__).parents[2] / "docs" / "engine.md"
    outcome = doctest.testfile(str(page), module_relative=False)
    assert outcome.attempted > 30
    assert outcome.failed == 0


def test_public_names_exist_and_are_sorted():
    assert list(engine.__all__) == sorted(engine.__all__)
    assert all(hasattr(engine, name) for name in engine.__all__)
