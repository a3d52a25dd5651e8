"""Student's t distribution, as far as an interval of a mean needs it. Pure."""

import math
from functools import cache

PRECISION = 1e-10
STEPS = 300


@cache
def quantile(p: float, freedom: int) -> float:
    """The value that is exceeded with a probability of 1 - *p*, for *p* from 0.5 on."""
    low, high = 0.0, 1.0
    while _below(high, freedom) < p:
        low, high = high, high * 2
    while high - low > PRECISION * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _below(middle, freedom) < p else (low, middle)
    return (low + high) / 2


def _below(t: float, freedom: int) -> float:
    """The probability of less than *t*, which is not negative."""
    return 1 - _incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5) / 2


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Regularised: the part of the beta function up to *x*."""
    if x in {0.0, 1.0}:
        return x
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(1 - x, b, a)
    log = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    log += a * math.log(x) + b * math.log1p(-x)
    return math.exp(log) / a / _continued_fraction(x, a, b)


def _continued_fraction(x: float, a: float, b: float) -> float:
    """
    1 + d1 / (1 + d2 / (1 + ...)), evaluated from the tail; it converges fast for the *x* that
    `_incomplete_beta` lets through.
    """
    value = 1.0
    for step in range(STEPS, 0, -1):
        m = step // 2
        if step % 2 == 0:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        value = 1 + term / value
    return value
