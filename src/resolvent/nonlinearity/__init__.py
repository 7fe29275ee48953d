"""Entry-wise nonlinearities and their Hermite coefficients."""
