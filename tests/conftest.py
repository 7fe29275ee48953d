"""One thread for linear algebra in each test process, no display, and property tests that repeat themselves.

The environment must be set before NumPy is loaded, hence here.
"""

import os

from hypothesis import settings

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
os.environ["MPLBACKEND"] = "agg"

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
