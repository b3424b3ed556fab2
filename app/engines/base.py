"""The port to a cluster: small enough to hold in the head. Every engine passes the same tests."""

from collections.abc import Mapping
from typing import Any, Protocol


class EngineDown(Exception):
    """The cluster cannot be reached now; what was asked may be asked again."""


class AskFailed(Exception):
    """What was asked of a worker raised there; the words are its own."""


def value_of(answer: Mapping[str, Any]) -> Any:
    """What `workers.joining:answer` returned: a value, or the words of what was raised. Raises AskFailed."""
    if "raised" in answer:
        raise AskFailed(answer["raised"])
    return answer["value"]


class Engine(Protocol):
    """A long-lived cluster that runs attempts on named workers."""

    name: str
    mode: str
    """`embedded`: the server's own children; `outside`: yours."""

    @property
    def address(self) -> str | None:
        """Where the cluster is; None while it is down."""
        ...

    @property
    def warnings(self) -> list[str]:
        """What people should know of this cluster: that its door stands open, for instance."""
        ...

    async def start(self, server_url: str) -> None:
        """Begin to bring the cluster up and to keep it up; returns at once."""
        ...

    async def workers(self) -> set[str]:
        """Addresses of the workers the cluster has now. Raises EngineDown."""
        ...

    async def submit(self, attempt: str, address: str, needs: Mapping[str, int]) -> None:
        """Have the worker at `address` run `attempt`. The attempt's id is its key: submitting it again changes nothing.

        Raises EngineDown.
        """
        ...

    async def ask(self, function: str, arguments: list[Any], address: str, seconds: float) -> Any:
        """Call `package.module:function` on a worker and return its answer, which JSON can say.

        Raises EngineDown where there is no such cluster or worker, TimeoutError, and AskFailed when the function raised.
        """
        ...

    def known(self) -> set[str]:
        """The attempts that were submitted and not forgotten yet."""
        ...

    async def forget(self, attempt: str) -> None:
        """The attempt has ended; the cluster need not know of it any longer."""
        ...

    async def stop(self) -> None:
        """Leave an outside cluster; end an embedded one, with all its processes."""
        ...
