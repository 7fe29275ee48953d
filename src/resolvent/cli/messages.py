"""One-line messages for wrong command lines: they name the flag, the value and what is allowed."""

from __future__ import annotations

import re
from typing import Any, Literal, get_args, get_origin

from cyclopts import CycloptsError
from cyclopts.exceptions import (
    CoercionError,
    MissingArgumentError,
    RepeatArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)

FIELDS = (
    *("ratio", "snr", "label_mean", "label_noise", "tokens", "labels", "whiten"),
    *("align", "key_norm", "query_norm", "key_cos", "query_cos", "key_query_cos"),
    *("ridge", "skip", "keep_diagonal", "n", "p", "draws", "seed", "plot"),
)
KINDS = {int: "an integer", float: "a number", bool: "given without a value"}


def flag_names(message: str) -> str:
    """The message with the names of setting fields written as flags."""
    pattern = rf"(?<![-\w])({'|'.join(FIELDS)})(?= (?:must|cannot|already|takes)\b)"
    return re.sub(pattern, lambda match: "--" + match[1].replace("_", "-"), message)


def usage_line(error: CycloptsError) -> str:
    """What cyclopts would show in a panel, in one line."""
    match error:
        case CoercionError() if error.argument is not None and error.token is not None:
            flag = error.token.keyword or error.argument.name
            return f"{flag} must be {_kind(error.target_type)}, got {error.token.value!r}"
        case UnusedCliTokensError():
            unused = " ".join(error.unused_tokens or [])
            return f"{unused!r} is not used: values go after a flag. See resolvent --help."
        case MissingArgumentError() if error.argument is not None:
            return f"{error.argument.name} needs a value"
        case RepeatArgumentError() if error.token is not None:
            return f"{error.token.keyword} may be given once"
        case UnknownOptionError() | UnknownCommandError():
            return f"{error} See resolvent --help."
    return str(error)


def _kind(kind: Any) -> str:
    """What a flag of this type takes."""
    if get_origin(kind) is Literal:
        return " or ".join(map(str, get_args(kind)))
    return KINDS.get(kind, getattr(kind, "__name__", str(kind)))
