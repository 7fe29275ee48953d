"""The figures by name, in the order of the story."""

from __future__ import annotations

from resolvent.figures import (
    aligned,
    alignment,
    head,
    linear_component,
    linear_ridge,
    linear_size,
    linear_snr,
    no_signal,
    phase_diagram,
    spectrum,
    words,
)
from resolvent.figures.record import Figure

FIGURES: dict[str, Figure] = {
    module.FIGURE.name: module.FIGURE
    for module in (
        linear_ridge,
        linear_size,
        linear_snr,
        no_signal,
        aligned,
        linear_component,
        alignment,
        spectrum,
        phase_diagram,
        head,
        words,
    )
}
