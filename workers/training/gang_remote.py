"""A node of the gang on another worker, as the driver sees it."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, Final

from workers.contract import Node
from workers.spread.base import CallFailed, Cluster, WorkerGone
from workers.training.node_messages import NodeEnd, NodeWork, Patience

RUN: Final = "workers.training.node_remote:run"
NEWS: Final = "workers.training.node_remote:news"
GO: Final = "workers.training.node_remote:go"
END: Final = "workers.training.node_remote:end"
PAUSE_SECONDS: Final = 0.2
ANSWER_SECONDS: Final = 120.0
"""A worker that does not answer a question for news for so long is lost."""

Put = Callable[[dict[str, Any]], None]


class RemoteNode:
    """Puts what happens there into the gang's inbox: what its supervisor tells, then `{"type": "over", "end": NodeEnd}`, or
    `{"type": "lost", "node", "reason"}`."""

    def __init__(self, cluster: Cluster, node: Node, work: NodeWork, put: Put) -> None:
        self._cluster, self._node, self._work, self._put = cluster, node, work, put
        self._seen = 0
        self._given_up = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._follow, name=f"node {self._work.node}", daemon=True).start()

    def go(self) -> None:
        self._call(GO)

    def end(self, patience: Patience) -> None:
        self._call(END, patience.grace_seconds, patience.term_seconds)

    def give_up(self) -> None:
        """Nobody waits for it any longer."""
        self._given_up.set()

    def _call(self, function: str, *arguments: Any) -> "Future[Any]":
        return self._cluster.call(self._node.address, function, [self._work.attempt, self._work.claim, *arguments])

    def _follow(self) -> None:
        try:
            running = self._cluster.call(self._node.address, RUN, [self._work.model_dump(mode="json")])
            self._listen(running)
            told = running.result()
        except (WorkerGone, CallFailed, OSError) as fault:
            self._lose(str(fault))
            return
        self._deliver(told["seen"], told["news"])
        self._put({"type": "over", "end": NodeEnd.model_validate(told["end"])})

    def _listen(self, running: "Future[Any]") -> None:
        """Until the run has ended. Raises WorkerGone."""
        while not running.done() and not self._given_up.is_set():
            seen = self._seen
            asked = self._call(NEWS, seen)
            done, _ = wait({running, asked}, ANSWER_SECONDS, FIRST_COMPLETED)
            if not done:
                raise WorkerGone(f"the worker on {self._node.host} did not answer for {ANSWER_SECONDS:.0f} s")
            if asked in done and asked.exception() is None:
                self._deliver(seen, asked.result())
            elif asked in done:
                time.sleep(PAUSE_SECONDS)  # the run will say what it is
        if self._given_up.is_set():
            raise WorkerGone("it did not end in time")

    def _deliver(self, first: int, news: list[dict[str, Any]]) -> None:
        """Pass on what was not seen yet of the news from number `first` on."""
        for message in news[max(0, self._seen - first) :]:
            self._put({**message, "node": self._work.node})
        self._seen = max(self._seen, first + len(news))

    def _lose(self, reason: str) -> None:
        self._put(
            {"type": "lost", "node": self._work.node, "reason": f"The worker on {self._node.host} was lost: {reason}."}
        )
