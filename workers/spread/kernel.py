"""The child's half of a piece: one call of a kernel. It imports little, for it is imported anew in every child."""

from typing import Any

from workers import births
from workers.contract import call_by_name
from workers.spread.parcel import Parcel


def call(function: str, reporter: object) -> None:
    """Call STUMPY's kernel with its arguments, and leave what it returns in the third parcel."""
    shared, own, result = (Parcel(descriptor) for descriptor in births.born_with)
    arguments: dict[int, Any] = {**shared.open(), **own.open()}
    result.fill(call_by_name(function, *(arguments[position] for position in sorted(arguments))))
