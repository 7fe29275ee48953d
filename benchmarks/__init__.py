"""Speed measured beside accuracy: `python -m benchmarks` prints tables and writes JSON."""
