"""What a child is told when it is born, and what it was born with."""

from dataclasses import dataclass

born_with: tuple[int, ...] = ()
"""Descriptors that this child was given at birth, beyond those it reports on."""


@dataclass(frozen=True)
class Birth:
    """What a child is told: what to call, and the numbers of its descriptors."""

    call: str
    payload: int
    report: int
    log: str | None
    born_with: tuple[int, ...] = ()
