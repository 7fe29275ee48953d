"""The application: its commands, and errors as one line on stderr instead of a panel or a traceback.

Exit status: 0 done, 1 a computation failed, 2 wrong input, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from resolvent import __version__
from resolvent.cli.messages import flag_names, usage_line
from resolvent.cli.output import show

COMMANDS = {
    "demo": ("resolvent.cli.demo:demo", "The main job on synthetic tokens, then on real words."),
    "predict": ("resolvent.cli.predict:predict", "Limits of the training and test error."),
    "simulate": ("resolvent.cli.simulate:simulate", "Measure the same errors by exact simulation."),
    "compare": ("resolvent.cli.compare:compare", "Predicted beside measured, and who wins."),
    "sweep": ("resolvent.cli.sweep:sweep", "A grid of settings, predicted and measured, to a file."),
    "phase": ("resolvent.cli.phase:phase", "Where attention beats linear regression."),
    "figure": ("resolvent.cli.figure:figure", "The figures of the theory, measured and predicted."),
    "spectrum": ("resolvent.cli.spectrum:spectrum", "Density and isolated eigenvalues of K or H'H/n."),
    "convergence": ("resolvent.cli.convergence:convergence", "From which n on the limit is right."),
    "explore": ("resolvent.cli.explore:explore", "The web page on which the theory moves."),
    "heads": ("resolvent.cli.heads:heads", "The attention heads of a pretrained model."),
    "advise": ("resolvent.cli.advise:advise", "What to choose: nonlinearity, ridge, alignment, and why."),
    "architecture": (
        "resolvent.cli.architecture:architecture",
        "Head counts, grouped keys: multi-head softmax.",
    ),
    "nonlinearity": ("resolvent.cli.nonlinearity:nonlinearity", "The card of a nonlinearity."),
}

app = App(
    name="resolvent",
    version=f"resolvent {__version__}",
    help="The random-matrix theory of attention: predict, measure and compare the errors of a ridge probe on "
    "nonlinear attention features and of linear regression.",
    help_epilogue="An error is one line; --debug shows where it comes from.",
    version_flags=["--version"],
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
)
for _name, (_target, _help) in COMMANDS.items():
    app.command(_target, name=_name, help=_help)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character still gets the rest
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def run(arguments: list[str]) -> int:
    """Run one command; wrong input and failed computations print one line on stderr."""
    debug = "--debug" in arguments
    arguments = [a for a in arguments if a != "--debug"]
    try:
        app(arguments or ["--help"], exit_on_error=False, print_error=False, result_action="return_value")
        print(end="", flush=True)
    except CycloptsError as error:
        return _fail(usage_line(error), 2, debug)
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt as stop:
        record = getattr(stop, "record", None)
        if record is not None:
            show(record, "--json" in arguments)
        return _fail(str(stop) or "interrupted", 130, debug)
    except Exception as error:
        status, message = _status(error), str(error) or type(error).__name__
        return _fail(flag_names(message) if status == 2 else message, status, debug)
    return 0


def _status(error: Exception) -> int:
    """2 for what the user gave, 1 for what went wrong with it."""
    wrong_input = isinstance(error, (ValueError, TypeError, ImportError))
    return 2 if wrong_input and type(error).__name__ != "LinAlgError" else 1  # a ValueError to NumPy


def _fail(message: str, status: int, debug: bool) -> int:
    if debug:
        raise  # the exception that is being handled
    print(f"resolvent: {' '.join(message.split())}", file=sys.stderr)
    return status
