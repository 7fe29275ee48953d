"""A setting with some of its values replaced by name: what a sweep or a phase diagram varies.

Angles change one at a time. Where w_K and w_Q are orthogonal outside the signal, they stay so when one of
them turns: key_query_cos = key_cos query_cos unless it is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from resolvent.setting.setting import Setting
from resolvent.setting.weights import Weights

TOKENS = ("ratio", "snr", "label_mean", "label_noise")
ANGLES = ("key_norm", "query_norm", "key_cos", "query_cos", "key_query_cos")
PROBE = ("ridge", "skip", "beta")
NUMBERS = (*TOKENS, *PROBE, "align", *ANGLES)
CHOICES = ("f", "keep_diagonal", "centred")
NAMES = (*NUMBERS, *CHOICES)


def varied(setting: Setting, values: Mapping[str, Any]) -> Setting:
    """The setting with `values`, by name, in place of its own.

    Names are those of `Tokens`, `Weights` and `Setting`, and f. Raises ValueError for another name, for
    weights that exclude each other, and what the setting itself raises.

    >>> setting = varied(Setting(), {"snr": 3.0, "f": "relu"})
    >>> setting.tokens.snr, setting.f.name
    (3.0, 'relu')
    """
    checked_names(values)
    own = {"nonlinearity" if name == "f" else name: values[name] for name in values if name in _OWN}
    if "f" in values and values["f"] != "softmax" and "beta" not in values:
        own["beta"] = None
    tokens = replace(setting.tokens, **{name: values[name] for name in TOKENS if name in values})
    angles = {name: values[name] for name in ("align", *ANGLES) if name in values}
    weights = _weights(setting.weights, angles) if angles else setting.weights
    return replace(setting, tokens=tokens, weights=weights, **own)


def checked_names(names: Mapping[str, Any]) -> None:
    """ValueError for a name that no setting has."""
    for name in names:
        if name not in NAMES:
            raise ValueError(f"only {', '.join(NAMES)} can vary, got {name!r}")


_OWN = (*PROBE, *CHOICES)


def _weights(weights: object, values: dict[str, Any]) -> Weights:
    """Weights with align, or with some of the norms and cosines, replaced."""
    if not isinstance(weights, Weights):
        raise ValueError(f"{next(iter(values))} can vary only for one head with weights I + w_K w_Q'")
    angles = [name for name in values if name != "align"]
    if "align" in values and angles:
        raise ValueError(f"align already fixes the weights, so {angles[0]} cannot vary with it")
    if not angles:
        return replace(weights, **values)
    if weights.align is not None:
        if np.any(weights.align):
            raise ValueError(f"align already fixes the weights, so {angles[0]} cannot vary")
        weights = Weights.none()
    fields = {name: getattr(weights, name) for name in ANGLES} | values
    apart = weights.key_query_cos == np.multiply(weights.key_cos, weights.query_cos)
    if "key_query_cos" not in values and np.all(apart):
        fields["key_query_cos"] = np.multiply(fields["key_cos"], fields["query_cos"])
    return Weights(**fields)
