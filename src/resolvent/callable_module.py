"""Modules that share their name with the one function they are about, such as `predict`, can be called as
that function.

`resolvent.predict(setting)` and `resolvent.predict.Prediction` then mean the same whichever is imported
first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


class CallableModule(ModuleType):
    """A module that calls its `__wrapped__` function."""

    __wrapped__: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function that the module is named after."""
        return self.__wrapped__(*args, **kwargs)


def call_as(function: Callable[..., Any], module: str) -> None:
    """Make the module `module` callable as `function`."""
    target = sys.modules[module]
    target.__class__ = CallableModule
    target.__wrapped__ = function  # type: ignore[attr-defined]
