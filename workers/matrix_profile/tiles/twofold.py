"""Arithmetic in twice the precision: a number as the unevaluated sum of two float64, high and low.

Method: error-free sums and products (Dekker 1971; Ogita, Rump, Oishi, SIAM J. Sci. Comput. 2005), products by fused
multiply-add. Nothing here may be compiled with fast mathematics, which would simplify the errors away.
"""

from typing import Any

from numba import njit, types
from numba.extending import intrinsic


@intrinsic
def fma(_context: Any, x: Any, y: Any, z: Any) -> Any:
    """x·y + z, rounded once."""

    def build(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), build


@njit(nogil=True, inline="always")
def two_sum(x: float, y: float) -> tuple[float, float]:
    """x + y rounded, and what that lost, exactly."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


@njit(nogil=True, inline="always")
def two_product(x: float, y: float) -> tuple[float, float]:
    """x·y rounded, and what that lost, exactly."""
    product = x * y
    return product, fma(x, y, -product)


@njit(nogil=True, inline="always")
def square(high: float, low: float) -> tuple[float, float]:
    """(high + low)²."""
    product = high * high
    return product, fma(high, high, -product) + 2.0 * high * low
