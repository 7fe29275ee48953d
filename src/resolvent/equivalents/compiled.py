"""The elementwise functions as compiled loops over rows.

Nothing is written twice: Numba compiles the very functions that NumPy runs on arrays, for one row, and each
stage becomes a loop. Exponentials and logarithms stay in the drivers, with NumPy, and nothing is reordered or
contracted, so that the results are the same numbers. The loops release the lock of the interpreter; the
drivers spread chunks of rows over threads as they do for NumPy.

Needs the `fast` extra. The machine code is cached beside this file, or in the user's cache directory where
that is read-only, under a fingerprint of the sources.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from inspect import isfunction
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
from numba.extending import register_jitable

from resolvent.equivalents import averages, blocks, equations, fresh, matrices, spikes
from resolvent.equivalents.averages import Array
from resolvent.equivalents.blocks import WORK
from resolvent.equivalents.equations import Linearised, Noise, Parameters, Point
from resolvent.equivalents.fresh import Errors, Rows
from resolvent.equivalents.matrices import Symmetric, Vector
from resolvent.equivalents.stages import Stages

SOURCES = (averages, blocks, equations, fresh, matrices, spikes)
INTERPRETED = (blocks.pivoted_response, fresh.pivoted_errors)


def _compilable(module: ModuleType) -> list[Callable[..., Any]]:
    """The module's own elementwise functions."""
    functions = (value for value in vars(module).values() if isfunction(value))
    return [f for f in functions if f.__module__ == module.__name__ and f not in INTERPRETED]


def _fingerprint() -> str:
    """A digest of the sources: Numba's own key does not see the functions that a cached one calls."""
    digest = hashlib.sha256()
    for module in SOURCES:
        digest.update(Path(str(module.__file__)).read_bytes())
    return digest.hexdigest()


for _module in SOURCES:
    for _function in _compilable(_module):
        register_jitable(_function)


def _loops(sources: str, cache: bool) -> Stages:
    """The stages, compiled at their first call."""
    compiled = numba.njit(nogil=True, cache=cache, error_model="numpy")

    @compiled
    def linearised(pars: Any, point: Any, out: Array) -> None:
        sources  # noqa: B018  (part of the cache's key)
        for i in range(out.shape[1]):
            row = Parameters(pars.c[i], pars.gamma[i], pars.a1[i], pars.s[i], pars.d[i])
            values = equations.linearised(row, Point(point.rho[i], point.V[i], point.Y[i]))
            for k in range(len(values)):
                out[k, i] = values[k]

    @compiled
    def newton(at: Any, log_share: Array, log_excess: Array, out: Array) -> None:
        sources  # noqa: B018
        for i in range(out.shape[1]):
            row = Linearised(
                at.share[i], at.miss[i], at.excess[i],
                at.share_rho[i], at.miss_rho[i], at.excess_rho[i],
                at.share_V[i], at.miss_V[i], at.excess_V[i],
                at.share_Y[i], at.miss_Y[i], at.excess_Y[i],
            )  # fmt: skip
            values = equations.newton(row, log_share[i], log_excess[i])
            for k in range(len(values)):
                out[k, i] = values[k]

    @compiled
    def solution(pars: Any, point: Any, out: Array) -> None:
        sources  # noqa: B018
        for i in range(out.shape[1]):
            row = Parameters(pars.c[i], pars.gamma[i], pars.a1[i], pars.s[i], pars.d[i])
            values = equations.solution(row, Point(point.rho[i], point.V[i], point.Y[i]))
            for k in range(len(values)):
                out[k, i] = values[k]

    @compiled
    def errors(rows: Any, gram: Any, noise: Any, out: Array) -> None:
        sources  # noqa: B018
        work = np.empty(WORK)
        for i in range(out.shape[1]):
            row = Rows(
                rows.ratio[i], rows.ridge[i], rows.a1[i], rows.sigma2[i], rows.shift[i], rows.skip[i],
                rows.mean_spike[i], rows.a2[i], rows.norm_variance[i], rows.label_mean[i],
                rows.target_overlap[i],
            )  # fmt: skip
            inner = Symmetric(gram.m00[i], gram.m01[i], gram.m02[i], gram.m11[i], gram.m12[i], gram.m22[i])
            at = Noise(
                noise.V[i], noise.b0[i], noise.x[i], noise.alpha[i], noise.j0[i], noise.j1[i], noise.i0[i],
                noise.share[i], noise.miss[i], noise.excess[i],
            )  # fmt: skip
            values = fresh.errors(row, inner, at, work)
            for k in range(len(values)):
                out[k, i] = values[k]

    def over(loop: Any, result: Any, width: int) -> Any:
        def run(first: tuple[Array, ...], *rest: Any) -> Any:
            out = np.empty((width, first[0].size))
            loop(first, *rest, out)
            return result(*out)

        return run

    def triple(*values: Array) -> Vector:
        return values[0], values[1], values[2]

    return Stages(
        over(linearised, Linearised, len(Linearised._fields)),
        over(newton, triple, 3),
        over(solution, Noise, len(Noise._fields)),
        over(errors, Errors, len(Errors._fields)),
    )


def _cached_loops() -> Stages:
    try:
        return _loops(_fingerprint(), cache=True)
    except RuntimeError:  # no folder to write to
        return _loops(_fingerprint(), cache=False)


LOOPS = _cached_loops()
