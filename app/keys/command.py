"""`python -m app keys …`: make, list and revoke keys, through the server that runs on HOME, or in its place where none does."""

import argparse
import asyncio
import logging
import sys
from datetime import timedelta
from typing import Any, Final

import httpx

from app.callers import Scope
from app.db.engine import reading_engine
from app.db.reader import Reader
from app.files import Files
from app.keys import queries, secret
from app.keys.reaching import operator
from app.kit.clock import now, rfc3339
from app.settings import Settings
from app.starting import CannotStart

log = logging.getLogger(__name__)

COLUMNS: Final = ("id", "owner", "name", "scopes", "created_at", "expires_at", "last_used_at")


def describe(parser: argparse.ArgumentParser) -> None:
    """What may be said after `keys`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="create | list | revoke")
    create = actions.add_parser("create", help="make a key and print it, which is the only time that it is shown")
    create.add_argument("--owner", required=True, help="whose things it reaches")
    create.add_argument("--scopes", required=True, help=f"what it is for, separated by commas: {', '.join(Scope)}")
    create.add_argument("--name", default="", help="what it is for, in your own words")
    create.add_argument("--days", type=float, help="for how long it is taken; else for ever")
    listing = actions.add_parser("list", help="all keys, without their secrets")
    revoke = actions.add_parser("revoke", help="end a key, at once")
    revoke.add_argument("id", help="as `keys list` shows it")
    for action in (create, listing, revoke):
        # Left out where it is not said, so that one said before `keys` counts.
        action.add_argument("--home", default=argparse.SUPPRESS, help="folder of the database")


def run(options: argparse.Namespace, settings: Settings) -> int:
    """Carry it out. Raises CannotStart."""
    if options.action != "create" and not (settings.home / "tidemill.db").exists():
        raise CannotStart(f"{settings.home.resolve()} has no database, and so no keys; say where it is with --home.")
    asyncio.run(ACTIONS[options.action](options, settings))
    return 0


async def _create(options: argparse.Namespace, settings: Settings) -> None:
    expires = None
    if options.days is not None:
        try:
            expires = rfc3339(now() + timedelta(days=options.days))
        except (OverflowError, ValueError):
            raise CannotStart(f"--days is {options.days}, and no calendar reaches so far.") from None
    asked = {
        "owner": options.owner,
        "name": options.name,
        "scopes": [scope.strip() for scope in options.scopes.split(",")],
        "expires_at": expires,
    }
    home = settings.home.resolve()
    first = not Files.of(settings).database.exists()
    async with operator(settings) as client:
        made = await _answer(client, "POST", "/keys", 201, json=asked)
    print(made["key"], flush=True)
    print(f"This is {made['id']} of {made['owner']!r}; it is shown this once.", file=sys.stderr)
    if first:
        print(f"{home} had no database and has one now; start the server with this --home.", file=sys.stderr)


async def _list(options: argparse.Namespace, settings: Settings) -> None:
    rows: list[list[str]] = [list(COLUMNS)]
    async with operator(settings) as client:
        cursor: str | None = ""
        while cursor is not None:
            page = await _answer(
                client, "GET", "/keys", 200, params={"limit": 200, **({"cursor": cursor} if cursor else {})}
            )
            rows += [[_cell(key[column]) for column in COLUMNS] for key in page["items"]]
            cursor = page["next"]
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _cell(value: Any) -> str:
    text = ",".join(value) if isinstance(value, list) else str(value or "-")
    return "".join(character if character.isprintable() else "?" for character in text)


async def _revoke(options: argparse.Namespace, settings: Settings) -> None:
    if not secret.is_id(options.id):
        # Whoever takes the key for its id does not find it in a log afterwards.
        said = "a key" if options.id.startswith(secret.PREFIX) else repr(options.id[:100])
        raise CannotStart(f"{said} is not the id of a key, which begins with `key_`; `keys list` shows them.")
    async with operator(settings) as client:
        await _answer(client, "DELETE", f"/keys/{options.id}", 204)
    print(f"{options.id} is revoked.", file=sys.stderr)


ACTIONS: Final = {"create": _create, "list": _list, "revoke": _revoke}


def warn_without_keys(settings: Settings) -> None:
    """A server that asks for keys and has none serves nobody; said once, when it starts."""
    if settings.auth == "keys" and not Reader(reading_engine(Files.of(settings).database)).call(
        lambda db: queries.newest_keys(db, 1)
    ):
        log.warning("there is no key yet: make one with `python -m app keys create --owner NAME --scopes admin`")


async def _answer(client: httpx.AsyncClient, method: str, path: str, success: int, **request: Any) -> Any:
    """What came, as JSON. Raises CannotStart for any status but `success`, with the problem's own sentence where there is one."""
    try:
        answer = await client.request(method, path, **request)
    except httpx.TransportError as fault:
        raise CannotStart(f"the running server did not answer ({fault or type(fault).__name__}); try again.") from None
    if answer.is_error and answer.headers.get("content-type") == "application/problem+json":
        problem = answer.json()
        faults = [f"{fault['pointer'].strip('/')} {fault['detail']}" for fault in problem.get("errors", ())]
        raise CannotStart("; ".join(faults) or problem["detail"])
    if answer.status_code != success:
        raise CannotStart(
            f"the running server answered {method} {path} with {answer.status_code}; is it another version?"
        )
    return answer.json() if answer.content else None
