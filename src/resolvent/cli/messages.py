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

# fields where they open a message, and fields anywhere in one
PLAIN = (
    "ratio|snr|beta|noise|covariance|normalise|tau|signal|tokens|whiten|align|ridge|skip|n|p|draws|seed|plot"
    "|over|workers|x|y|of|sizes|tolerance|folder|port|layer|head|heads|stack|top|permutations|fit_rank|d|groups"
)
JOINED = (
    "norm_spread|label_mean|label_noise|key_norm|query_norm|key_cos|query_cos|key_query_cos|keep_diagonal"
    "|d_k|d_v|d_out"
)
KINDS = {int: "an integer", float: "a number", bool: "given without a value"}


def flag_names(message: str) -> str:
    """The message with the names of setting fields written as flags.

    >>> flag_names("key_cos must be between -1 and 1, got 2")
    '--key-cos must be between -1 and 1, got 2'
    >>> flag_names("p = round(ratio n) must be at least 2, got 1: raise ratio or n")
    'p = round(ratio n) must be at least 2, got 1: raise --ratio or --n'
    """
    message = re.sub(r"(?<=: )(raise|lower) (\w+) or (\w+)$", r"\1 --\2 or --\3", message)
    fields = rf"^(?:{PLAIN})(?= must\b)|\b(?:{JOINED})\b"
    message = message.replace("give heads=NUMBER", "give --heads NUMBER")
    return re.sub(fields, lambda match: "--" + match[0].replace("_", "-"), message)


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
    """What a flag of this type, or of an optional one, takes."""
    if get_origin(kind) is Literal:
        return " or ".join(map(str, get_args(kind)))
    kinds = [k for k in get_args(kind) or (kind,) if k is not type(None)]
    return KINDS.get(kinds[0], getattr(kinds[0], "__name__", str(kinds[0])))
