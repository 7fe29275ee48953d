"""What a benchmark is: a name, a sentence and a function that returns the rows of its table."""

from collections.abc import Callable
from dataclasses import dataclass

Row = dict[str, str | float | int | None]
Run = Callable[[bool], list[Row]]  # the argument asks for a quick version


@dataclass(frozen=True)
class Benchmark:
    name: str
    question: str
    run: Run


BENCHMARKS: dict[str, Benchmark] = {}


def benchmark(name: str, question: str) -> Callable[[Run], Run]:
    """Register a function: one file in this folder, imported by `__main__`, holds one benchmark."""

    def register(run: Run) -> Run:
        BENCHMARKS[name] = Benchmark(name, question, run)
        return run

    return register
