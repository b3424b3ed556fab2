"""What every command does first: read the settings, know the secret that workers show."""

import logging
import os
import re
import secrets
import sys
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from app.kit.middleware import RequestIdFilter
from app.settings import Settings

log = logging.getLogger(__name__)

JOIN_TOKEN: Final = "join-token"  # noqa: S105 - the name of a file
SECRETS: Final = frozenset({"join_token"})
"""Settings whose value is shown to nobody, not even when it is wrong."""


class CannotStart(Exception):
    """The command cannot do its work; the message says why and what to do."""


def log_to_stderr(level: str) -> None:
    """One line for each record, with the id of the request it belongs to."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(RequestIdFilter())
    logging.basicConfig(
        level=level.upper(),
        format="%(asctime)s %(name)s %(levelname)s [%(request_id)s] %(message)s",
        handlers=[handler],
    )
    for noisy in ("distributed", "alembic", "uvicorn.access", "asyncio", "httpx"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def settings_of(said: dict[str, Any]) -> Settings:
    """The settings, those said on the command line before those of the environment."""
    try:
        return Settings(**said)
    except ValidationError as fault:
        faults = [(str(error["loc"][0]), error["input"], error["msg"]) for error in fault.errors()]
        names = {name: f"--{name}" if name in said else f"TIDEMILL_{name.upper()}" for name, _, _ in faults}
        shown = {name: "not usable" if name in SECRETS else repr(value) for name, value, _ in faults}
        raise CannotStart("; ".join(f"{names[name]} is {shown[name]}. {why}" for name, _, why in faults)) from None


def with_join_token(settings: Settings) -> Settings:
    """The settings with the secret that workers must show, from where it is said; with AUTH=keys there is one in any case."""
    if settings.join_token is not None:
        return settings
    if settings.join_token_file is not None:
        return settings.model_copy(update={"join_token": _read_token(settings.join_token_file)})
    if settings.auth == "off":
        return settings
    made = settings.home.resolve() / JOIN_TOKEN
    if not made.exists():
        _write_token(made)
    log.info("workers elsewhere join with the token in %s", made)
    return settings.model_copy(update={"join_token": _read_token(made)})


def _read_token(path: Path) -> str:
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as fault:
        why = getattr(fault, "strerror", None) or "it is no text"
        raise CannotStart(f"{path} should hold the join token and cannot be read ({why}).") from None
    if not re.fullmatch(r"[!-~]+", token):
        raise CannotStart(
            f"{path} should hold the join token, one word of visible ASCII characters, and holds something else."
        )
    return token


def _write_token(path: Path) -> None:
    """Whole or not at all, and never for others to read."""
    partial = path.with_name(f"{path.name}.new")
    partial.unlink(missing_ok=True)
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as stream:
        stream.write(f"{secrets.token_hex(32)}\n")
        stream.flush()
        os.fsync(stream.fileno())
    partial.replace(path)
