"""The token that admits a worker to a server: from the command line, the environment, or a file."""

import os
from pathlib import Path

from workers.failures import CannotJoin


def join_token(told: str | None) -> str | None:
    """`told` by `--token`, else `TIDEMILL_JOIN_TOKEN`, else what the file says that `TIDEMILL_JOIN_TOKEN_FILE` names. Raises CannotJoin."""
    if token := told or os.environ.get("TIDEMILL_JOIN_TOKEN"):
        return token
    named = os.environ.get("TIDEMILL_JOIN_TOKEN_FILE")
    if not named:
        return None
    try:
        token = Path(named).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as fault:
        why = getattr(fault, "strerror", None) or "it is no text of plain letters"
        raise CannotJoin(f"TIDEMILL_JOIN_TOKEN_FILE names {named}, which cannot be read: {why}.") from fault
    if not token:
        raise CannotJoin(f"TIDEMILL_JOIN_TOKEN_FILE names {named}, which is empty; put the server's join token there.")
    return token
