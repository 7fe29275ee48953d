"""The explorer: one web page, served to this machine alone, on which the theory moves.

    state of the page (`view`)  ->  curves, spectrum, phase diagram, card (`panels`), code (`code`)
                                ->  measured points and the user's own tokens (`work`, in a process: `jobs`)

`routes` serves them, `guard` decides who may ask, `serve` opens the port and the browser.
"""

from resolvent.explorer.serve import serve

__all__ = ["serve"]
