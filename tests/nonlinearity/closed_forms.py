"""Closed forms of (a0, a1, a2, nu) under N(0, s^2), by Stein's identity a_k = s^k E f^(k)/sqrt(k!)."""

from math import asin, e, erfc, exp, pi, sqrt

Row = tuple[float, float, float, float]


def density(x: float) -> float:
    return exp(-x * x / 2) / sqrt(2 * pi)


def above(x: float) -> float:
    """P(xi > x)."""
    return erfc(x / sqrt(2)) / 2


def identity(s: float) -> Row:
    return 0, s, 0, s**2


def erf(s: float) -> Row:
    return 0, 2 * s / sqrt(pi * (1 + 2 * s**2)), 0, 2 / pi * asin(2 * s**2 / (1 + 2 * s**2))


def relu(s: float) -> Row:
    return s / sqrt(2 * pi), s / 2, s / (2 * sqrt(pi)), s**2 / 2


def leaky_relu(s: float) -> Row:
    return 0.99 * s / sqrt(2 * pi), 0.505 * s, 0.99 * s / (2 * sqrt(pi)), s**2 * 1.0001 / 2


def elu(s: float) -> Row:
    below = exp(s**2 / 2) * above(s)
    nu = s**2 / 2 + exp(2 * s**2) * above(2 * s) - 2 * below + 0.5
    return s / sqrt(2 * pi) + below - 0.5, s * (0.5 + below), s**2 * below / sqrt(2), nu


def gelu(s: float) -> Row:
    peak = 1 / sqrt(2 * pi * (1 + s**2))
    share = s**2 / (1 + s**2)
    nu = s**2 * (0.25 + asin(share) / (2 * pi) + share / (pi * sqrt(1 + 2 * s**2)))
    return s**2 * peak, s / 2, s**2 * (2 - share) * peak / sqrt(2), nu


def relu2(s: float) -> Row:
    return s**2 / 2, s**2 * sqrt(2 / pi), s**2 / sqrt(2), 1.5 * s**4


def absolute(s: float) -> Row:
    return s * sqrt(2 / pi), 0, s / sqrt(pi), s**2


def sign(_s: float) -> Row:
    return 0, sqrt(2 / pi), 0, 1


def sine(s: float) -> Row:
    return 0, s * exp(-(s**2) / 2), 0, (1 - exp(-2 * s**2)) / 2


def cosine(s: float) -> Row:
    return exp(-(s**2) / 2), 0, -(s**2) * exp(-(s**2) / 2) / sqrt(2), (1 + exp(-2 * s**2)) / 2


def exponential(s: float) -> Row:
    m = exp(s**2 / 2)
    return m, s * m, s**2 * m / sqrt(2), m**4


def shifted_exponential(s: float) -> Row:
    """exp(t - 1/2)."""
    a0, a1, a2, nu = exponential(s)
    return a0 / sqrt(e), a1 / sqrt(e), a2 / sqrt(e), nu / e


def hermite2(s: float) -> Row:
    return s**2 - 1, 0, sqrt(2) * s**2, 3 * s**4 - 2 * s**2 + 1


def hermite3(s: float) -> Row:
    return 0, 3 * s**3 - 3 * s, 0, 15 * s**6 - 18 * s**4 + 9 * s**2


def quadratic(s: float) -> Row:
    return s**2, 0, sqrt(2) * s**2, 3 * s**4


def cubic(s: float) -> Row:
    return 0, 3 * s**3, 0, 15 * s**6


def shifted_relu(s: float) -> Row:
    """relu(t - 0.3)."""
    b = 0.3 / s
    nu = s**2 * ((1 + b**2) * above(b) - b * density(b))
    return s * (density(b) - b * above(b)), s * above(b), s * density(b) / sqrt(2), nu


def shifted_sign(s: float) -> Row:
    """sign(t - 1.7)."""
    b = 1.7 / s
    return 2 * above(b) - 1, 2 * density(b), sqrt(2) * b * density(b), 1


def gate(s: float) -> Row:
    """where(t > 0.123, t, 0)."""
    b = 0.123 / s
    a1 = s * (above(b) + b * density(b))
    return s * density(b), a1, s * (1 + b**2) * density(b) / sqrt(2), s * a1


def nearly_linear(s: float) -> Row:
    """t + 1e-5 t^2."""
    return 1e-5 * s**2, s, 1e-5 * sqrt(2) * s**2, s**2 + 3e-10 * s**4


CLOSED_FORMS = {
    "identity": identity,
    "erf": erf,
    "relu": relu,
    "leaky_relu": leaky_relu,
    "elu": elu,
    "gelu": gelu,
    "relu2": relu2,
    "abs": absolute,
    "sign": sign,
    "sin": sine,
    "cos": cosine,
    "exp": exponential,
    "exp(t - 1/2)": shifted_exponential,
    "hermite2": hermite2,
    "hermite3": hermite3,
    "quadratic": quadratic,
    "cubic": cubic,
    "relu(t - 0.3)": shifted_relu,
    "sign(t - 1.7)": shifted_sign,
    "where(t > 0.123, t, 0)": gate,
    "t + 1e-5*t^2": nearly_linear,
}
