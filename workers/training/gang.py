"""A job's ranks on all its nodes, from the first to the last: all begin or none, all end together, and how is known.

One thread decides, here on the first node. It hears from this node's supervisor and from the other nodes' through the cluster.
"""

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from workers.agent import Agent
from workers.contract import Node
from workers.nursery_client import Nursery
from workers.spread.base import Cluster
from workers.training.failures_named import RendezvousFailed
from workers.training.gang_end import GangEnd
from workers.training.gang_local import LocalNode
from workers.training.gang_remote import RemoteNode
from workers.training.node_messages import (
    ASKED,
    AT_ONCE,
    DELIVERING_SECONDS,
    LEAVING,
    PEER_FAILED,
    NodeEnd,
    NodeWork,
    Patience,
)

HOME: Final = 0
"""This machine's node."""
LOOK_SECONDS: Final = 0.1
GOODBYE_SECONDS: Final = 3.0
MOST_AT_ONCE: Final = 1000
"""Messages taken between two looks."""
HERE_SECONDS: Final = 60.0
"""All nodes have begun within so long, or none does."""
READY_SECONDS: Final = 240.0
"""And have loaded what ranks are forked from within so long."""
ANSWER_SECONDS: Final = 6.0
"""How much longer than it has patience with its ranks a node may take to say that they have ended."""


class AnyNode(Protocol):
    """A node, as the deciding thread has it."""

    def go(self) -> None: ...

    def end(self, patience: Patience) -> None: ...


class Gang:
    """One attempt's nodes; the first work is this machine's. `run` once."""

    def __init__(
        self,
        agent: Agent,
        nursery: Nursery,
        works: Sequence[NodeWork],
        nodes: Sequence[Node],
        cluster: Cluster | None,
        stopping: threading.Event,
        stop_file: Path,
        losses: "queue.SimpleQueue[str]",
        relay: Callable[[dict[str, Any]], None],
    ) -> None:
        """losses: where the keeper of the ranks' meeting point says that it has ended.  relay: takes what ranks say."""
        self._agent, self._stopping, self._stop_file, self._losses, self._relay = (
            agent,
            stopping,
            stop_file,
            losses,
            relay,
        )
        self._inbox: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._local = LocalNode(nursery, works[0], self._inbox.put)
        self._remotes = {
            work.node: RemoteNode(cluster, node, work, self._inbox.put)
            for work, node in zip(works[1:], nodes[1:], strict=True)
            if cluster is not None
        }
        self._addresses = {work.node: node.address for work, node in zip(works[1:], nodes[1:], strict=True)}
        self._closing: set[int] = set()
        """Nodes whose workers leave, or are lost."""
        self._steps: dict[int, str] = {}
        """node → how far it is: `here`, `ready`, `over`."""
        self._result = GangEnd()
        self._patience: Patience | None = None
        self._until = float("inf")
        """When nodes that have not said that their ranks ended are given up."""

    def run(self) -> GangEnd:
        """Returns when all ranks have ended, or their nodes are lost."""
        for remote in self._remotes.values():
            remote.start()
        if self._gather():
            self._local.go()
            for remote in self._remotes.values():
                remote.go()
            self._see_through({HOME, *self._remotes})
        else:
            self._end(AT_ONCE)
            self._see_through(set(self._remotes))
        self._wait_for_goodbyes()
        return self._result

    # ---- the deciding thread -----------------------------------------------------------------------------------

    def _gather(self) -> bool:
        """Wait until every node is ready; false when one will not be, or all are to stop."""
        began = time.monotonic()
        while any(self._steps.get(node) != "ready" for node in self._remotes):
            self._hear()
            if "over" in self._steps.values() and not (self._result.problem or self._result.asked):
                self._result.lost = (
                    self._result.lost or "One of the job's workers gave up its part before it had begun."
                )
            if self._result.lost or self._result.problem or self._result.asked:
                return False
            if "here" in self._steps.values():  # it fetches, and its worker is seen to live
                began = time.monotonic()
            waited = time.monotonic() - began
            late = [node for node in self._remotes if node not in self._steps] if waited > HERE_SECONDS else []
            if late or waited > READY_SECONDS:
                seconds = HERE_SECONDS if late else READY_SECONDS
                self._result.lost = (
                    f"Not all of the job's {len(self._remotes) + 1} workers were ready within {seconds:.0f} s."
                )
                return False
        return not self._result.asked

    def _see_through(self, nodes: set[int]) -> None:
        """Until the ranks of all these nodes have ended."""
        while any(self._steps.get(node) != "over" for node in nodes):
            self._hear()
            if time.monotonic() > self._until:
                for node in nodes - {HOME}:
                    if self._steps.get(node) != "over":
                        self._remotes[node].give_up()
                        self._lose(node, "One of the job's workers did not say that its ranks had ended.")

    def _wait_for_goodbyes(self) -> None:
        """Until the server knows that a worker which leaves has left, or is lost: the job would be placed there again."""
        leaving = {self._addresses[node] for node in self._closing}
        until = time.monotonic() + GOODBYE_SECONDS
        while leaving & (self._agent.peers or {}).keys() and not self._stopping.is_set() and time.monotonic() < until:
            time.sleep(LOOK_SECONDS)

    def _hear(self) -> None:
        with contextlib.suppress(queue.Empty):
            self._take(self._inbox.get(timeout=LOOK_SECONDS))
            for _ in range(MOST_AT_ONCE):
                self._take(self._inbox.get_nowait())
        self._look()

    def _look(self) -> None:
        """What nobody says: that all are to stop, and that a worker hangs."""
        closing = self._agent.closing.is_set()
        if closing or self._stopping.is_set():
            self._stop(LEAVING if closing else ASKED)
        with contextlib.suppress(queue.Empty):
            self._find({**RendezvousFailed(self._losses.get_nowait()).problem(), "at": time.time()})
        if self._agent.peers is not None:
            for node, address in self._addresses.items():
                if address not in self._agent.peers and self._steps.get(node) != "over":
                    self._remotes[node].give_up()
                    self._lose(node, "One of the job's workers was lost.")

    def _take(self, happening: dict[str, Any]) -> None:
        match happening:
            case {"type": "said", "message": message}:
                self._relay(message)
            case {"type": "here" | "fetched" | "ready" as step, "node": node}:
                self._steps[node] = step
            case {"type": "delivering"}:
                self._until = max(self._until, time.monotonic() + DELIVERING_SECONDS)
            case {"type": "ended", "end": end} if end["value"] is None:
                self._end(PEER_FAILED)
            case {"type": "leaving", "closing": closing, "node": node}:
                self._closing |= {node} if closing else set()
                self._stop(LEAVING if closing else ASKED)
            case {"type": "lost", "node": node, "reason": reason}:
                self._lose(node, reason)
            case {"type": "over", "end": NodeEnd() as end}:
                self._over(end)

    def _over(self, end: NodeEnd) -> None:
        self._steps[end.node] = "over"
        self._result.ranks.extend(end.ranks)
        self._result.artifacts.extend(end.artifacts)
        if end.problem:
            self._find(end.problem)
        if end.leaving and self._patience is None:
            self._stop(ASKED)
        if end.lost:
            self._result.lost = self._result.lost or end.lost
            self._end(PEER_FAILED)

    def _stop(self, patience: Patience) -> None:
        """Ask the ranks to stop, all at the same step."""
        if self._patience is None:
            self._result.asked = True
            self._stop_file.touch()
        self._end(patience)

    def _find(self, problem: dict[str, Any]) -> None:
        if self._result.problem is None and not self._result.asked:
            self._result.problem = problem
        self._end(PEER_FAILED)

    def _lose(self, node: int, reason: str) -> None:
        if self._result.lost is None and self._steps.get(node) != "over":
            self._result.lost = reason
            self._closing.add(node)
        self._steps[node] = "over"
        self._end(PEER_FAILED)

    def _end(self, patience: Patience) -> None:
        """Have all nodes end their ranks. Being told again only hastens it."""
        if self._patience is not None and sum(_seconds(patience)) >= sum(_seconds(self._patience)):
            return
        self._patience = patience
        self._until = min(self._until, time.monotonic() + sum(_seconds(patience)) + ANSWER_SECONDS)
        nodes: list[AnyNode] = [self._local, *self._remotes.values()]
        for node in nodes:
            node.end(patience)


def _seconds(patience: Patience) -> tuple[float, float]:
    return patience.grace_seconds, patience.term_seconds
