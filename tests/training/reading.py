"""Configurations read where jobs have them read: in forks of a real training nursery."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from workers.contract import TrainingParams
from workers.host import TRAINING, Host, set_current_host
from workers.nursery_client import Nursery
from workers.probes.finding import in_child
from workers.training.rules import DEFAULT_ALLOW

PL = "lightning.pytorch"
BORING = f"{PL}.demos.boring_classes"
MODEL = {"class_path": f"{BORING}.BoringModel"}
DATA = {"class_path": f"{BORING}.BoringDataModule"}


def callback(name: str, **arguments: Any) -> dict[str, Any]:
    return {"class_path": f"{PL}.callbacks.{name}", "init_args": arguments}


@dataclass(frozen=True)
class Reader:
    """A training nursery, and what to ask it."""

    host: Host

    @property
    def nursery(self) -> Nursery:
        return self.host.nursery_for(TRAINING)

    def call(self, name: str, *arguments: Any) -> Any:
        """A function of `tests.training.read_toys`, in a child."""
        return in_child(self.nursery, f"tests.training.read_toys:{name}", *arguments)

    def faults(
        self, source: str | None = None, allow: tuple[str, ...] = DEFAULT_ALLOW, **params: Any
    ) -> dict[str, str]:
        """pointer below `/params/config` → detail, of parsing alone."""
        sent = TrainingParams(**params).model_dump(mode="json")
        found: list[dict[str, str]] = self.call("faults", sent, list(allow), source)
        return {each["pointer"].removeprefix("/params/config"): each["detail"] for each in found}


_made: list[Reader] = []


@pytest.fixture(scope="session")
def reader() -> Iterator[Reader]:
    """One nursery for all modules that import this: it takes seconds to warm."""
    if not _made:
        _made.append(Reader(Host({}, devices=())))
    set_current_host(_made[0].host)
    yield _made[0]
    set_current_host(None)
    _made[0].host.close()
