"""The story of a key: made, shown once, asked for with every request, revoked."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from fastapi import Response
from sqlmodel import Session

from app.callers import CallerIdentity, Scope
from app.db.idempotency import Keyed, earlier, remember
from app.db.reader import Reader
from app.db.tables import ApiKey
from app.db.writer import Writer
from app.keys import queries, secret
from app.keys.schemas import KeyRequest
from app.keys.views import created
from app.kit.clock import now
from app.kit.idempotency import StoredAnswer, replay
from app.kit.ids import new_id
from app.kit.problems import Unavailable

USE_NOTED: Final = timedelta(minutes=1)
"""How exactly it is known when a key was last used: one write in so long, however often it is."""


@dataclass(frozen=True)
class Admitted:
    """A key that was taken at the door."""

    key_id: str
    identity: CallerIdentity
    expires_at: datetime | None


class KeyService:
    def __init__(self, reader: Reader, writer: Writer) -> None:
        self.reader, self.writer = reader, writer
        self._noted: dict[str, datetime] = {}
        self._revoked: set[str] = set()

    async def admit(self, shown: str) -> Admitted | None:
        """Whose key this is; None for one that is unknown, has expired or was revoked, and nobody hears which.

        Every request asks the database anew, so that a key which is revoked ends with that.
        """
        key_id = secret.id_in(shown)
        if key_id is None:
            return None
        row = await self.reader.run(lambda db: db.get(ApiKey, key_id))
        if not secret.matches(shown, row.digest if row else None) or row is None:
            return None
        if row.expires_at and row.expires_at <= now():
            return None
        self._note(row)
        identity = CallerIdentity(row.owner, frozenset(Scope(scope) for scope in row.scopes))
        return Admitted(row.id, identity, row.expires_at)

    def still_good(self, admitted: Admitted) -> bool:
        """Whether what was admitted some time ago would be so now."""
        expired = admitted.expires_at is not None and admitted.expires_at <= now()
        return admitted.key_id not in self._revoked and not expired

    def _note(self, row: ApiKey) -> None:
        """Keep when it was used; nobody waits for that, and it may fail."""
        at, key_id = now(), row.id
        last = max(filter(None, (row.last_used_at, self._noted.get(key_id))), default=None)
        if last and at - last < USE_NOTED:
            return
        self._noted[key_id] = at
        with contextlib.suppress(Unavailable):  # the server is stopping
            self.writer.submit(lambda db: queries.note_use(db, key_id, at))

    async def create(self, request: KeyRequest, by: CallerIdentity, keyed: Keyed | None = None) -> Response:
        """Make a key and show it. The answer that is kept, to be given again to the same request, is without its secret."""
        key_id = new_id(secret.ID_PREFIX)
        key = secret.make(key_id)

        def unit(db: Session) -> Response:
            if keyed and (first := earlier(db, keyed)):
                return replay(first)
            row = ApiKey(
                id=key_id,
                owner=request.owner or by.name,
                name=request.name,
                scopes=[str(scope) for scope in request.scopes],
                digest=secret.digest(key),
                created_at=now(),
                expires_at=request.expires_at,
            )
            db.add(row)
            if keyed:
                remember(db, keyed, StoredAnswer.of(created(row, key=None)))
            return created(row, key)

        return await self.writer.run(unit)

    async def newest(self, limit: int, after: tuple[datetime, str] | None = None) -> Sequence[ApiKey]:
        return await self.reader.run(lambda db: queries.newest_keys(db, limit, after))

    async def get(self, key_id: str) -> ApiKey:
        return await self.reader.run(lambda db: queries.key_of(db, key_id))

    async def revoke(self, key_id: str) -> None:
        """From the moment this returns no request with the key is taken, and no stream that it opened goes on."""
        await self.writer.run(lambda db: db.delete(queries.key_of(db, key_id)))
        self._revoked.add(key_id)
