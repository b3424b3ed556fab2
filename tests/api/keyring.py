"""A server that asks for keys, and the keys of those who ask it."""

import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

from tests.house import Api, House


def keys(house: House, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`python -m app keys …` on the house's HOME."""
    return subprocess.run(
        [sys.executable, "-m", "app", "keys", *arguments, "--home", str(house.home)],
        capture_output=True,
        text=True,
        timeout=60,
    )


@dataclass
class Keyring:
    """The server, and every secret that it ever showed."""

    house: House
    shown: list[str] = field(default_factory=list)
    clients: list[Api] = field(default_factory=list)

    def first(self, owner: str, scopes: str) -> str:
        """A key made by the command line."""
        made = keys(self.house, "create", "--owner", owner, "--scopes", scopes)
        assert made.returncode == 0, made.stderr
        (key,) = made.stdout.splitlines()
        self.shown.append(key)
        return key

    def make(self, admin: Api, owner: str, *scopes: str, **asked: Any) -> dict[str, Any]:
        """A key made by an admin."""
        answer = admin.post("/keys", json={"owner": owner, "scopes": scopes, **asked})
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        self.shown.append(made["key"])
        return made

    def client(self, key: str | None = None) -> Api:
        """A client that shows this key, or none."""
        client = self.house.api()
        client.headers.update({"Authorization": f"Bearer {key}"} if key else {})
        self.clients.append(client)
        return client
