"""The version that workers speak: looked at before anything else they send, which another version may have changed."""

from typing import Annotated

from fastapi import Header

from app.control.admission import VersionMismatch
from workers.contract import PROTOCOL, VERSION


def same_version(
    spoken: Annotated[str | None, Header(alias=PROTOCOL)] = None,
) -> None:
    """A dependency. Raises VersionMismatch."""
    if spoken != VERSION:
        theirs = (
            f"version {spoken} of the protocol" if spoken else "a version of the protocol that does not say its number"
        )
        raise VersionMismatch(
            f"The worker speaks {theirs}, and this server version {VERSION}. Install the same Tidemill on both."
        )
