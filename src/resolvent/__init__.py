"""The random-matrix theory of attention as a tool: predict, measure and compare."""
