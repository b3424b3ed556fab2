"""Who asks. With `AUTH=off` there is one owner, whoever reaches the port."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends


@dataclass(frozen=True)
class CallerIdentity:
    name: str


def _caller() -> CallerIdentity:
    return CallerIdentity("local")


Caller = Annotated[CallerIdentity, Depends(_caller)]
