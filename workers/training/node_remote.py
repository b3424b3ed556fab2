"""A node of a gang whose driver is on another worker: what that worker's driver calls here, through the cluster."""

import contextlib
import logging
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any, Final

from workers import agent as agents
from workers.agent import Agent
from workers.failures import JobFailure
from workers.host import TRAINING, Host, current_host
from workers.link import Refused, ServerAway
from workers.nursery_client import NurseryGone
from workers.storage.base import Desk, Interrupted
from workers.storage.depot import Hurry
from workers.training.drive_artifacts import artifacts_below
from workers.training.gang_address import interface_to
from workers.training.node import NodeSupervisor
from workers.training.node_files import with_own_files
from workers.training.node_messages import (
    ASKED,
    DELIVERING_SECONDS,
    LEAVING,
    LEAVING_SECONDS,
    STUCK,
    NodeEnd,
    NodeWork,
    Patience,
)

log = logging.getLogger(__name__)

NEWS_SECONDS: Final = 2.0
"""So long a question for news waits for some."""
SILENCE_SECONDS: Final = 120.0
"""A driver that did not ask for so long has lost sight of this node, and the server perhaps as well."""
LOOK_SECONDS: Final = 0.1
DELIVERY_SECONDS: Final = 5.0
"""For the files of a node whose worker leaves."""


class Station:
    """One gang's node here, between its supervisor and its driver's calls."""

    def __init__(self) -> None:
        self.go, self.over = threading.Event(), threading.Event()
        """Every node is ready: begin. It is to end: whatever has not begun does not."""
        self._news: list[dict[str, Any]] = []
        self._dropped = 0
        self._changed = threading.Condition()
        self._supervisor: NodeSupervisor | None = None
        self._patience: Patience | None = None
        self._asked_at = time.monotonic()

    def put(self, message: dict[str, Any]) -> None:
        with self._changed:
            self._news.append(message)
            self._changed.notify_all()

    def news(self, seen: int, patience_seconds: float = NEWS_SECONDS) -> list[dict[str, Any]]:
        """What the driver has not seen, as soon as there is some; what it has seen is forgotten."""
        with self._changed:
            self._asked_at = time.monotonic()
            del self._news[: max(0, seen - self._dropped)]
            self._dropped = max(self._dropped, seen)
            self._changed.wait_for(lambda: self._news, patience_seconds)
            return list(self._news)

    def end(self, patience: Patience) -> None:
        with self._changed:
            self._patience = patience
            supervisor = self._supervisor
        self.over.set()
        if supervisor:
            supervisor.end(patience)

    def supervise(self, supervisor: NodeSupervisor) -> NodeEnd:
        with self._changed:
            self._supervisor, patience = supervisor, self._patience
        if patience:
            supervisor.end(patience)
        finished = threading.Event()
        threading.Thread(target=self._listen_for_silence, args=(finished,), name="silence", daemon=True).start()
        try:
            return supervisor.run()
        finally:
            finished.set()

    def is_silent(self) -> bool:
        return time.monotonic() - self._asked_at > SILENCE_SECONDS

    def _listen_for_silence(self, finished: threading.Event) -> None:
        while not finished.wait(1.0):
            if self.is_silent():
                self.end(STUCK)


_stations: dict[tuple[str, str], Station] = {}
"""(attempt, claim) → its node here."""
_ended: deque[tuple[str, str]] = deque(maxlen=200)
"""Those that were to end, lately: a run that comes after its end does not begin."""


def run(told: dict[str, Any]) -> dict[str, Any]:
    """Called by the gang's driver: run a node's ranks. Returns when they have ended, with the news that were not asked for."""
    work = NodeWork.model_validate(told)
    agent, host = agents.current(agents.INTRODUCTION_SECONDS), current_host()
    name, station = (work.attempt, work.claim), Station()
    if _stations.setdefault(name, station) is not station:
        raise JobFailure("This node runs already.")  # an engine may run a task twice
    if name in _ended:
        station.over.set()
    try:
        end = _run(agent, host, work, station)
    except NurseryGone as loss:
        end = NodeEnd(node=work.node, ranks=[], lost=str(loss), leaving=agent.closing.is_set())
    except JobFailure as failure:
        end = NodeEnd(node=work.node, ranks=[], problem={**failure.problem(), "at": time.time()})
    finally:
        del _stations[name]
    return {"end": end.model_dump(mode="json"), "seen": station._dropped, "news": station.news(0, 0.0)}


def _run(agent: Agent, host: Host, work: NodeWork, station: Station) -> NodeEnd:
    with contextlib.suppress(ServerAway, Refused):
        agent.keep_up_with(work.storage)
    with agent.piece(work.attempt, work.claim, LEAVING_SECONDS) as ticket:
        ticket.stop_with(lambda: _leave(agent, station))
        with (
            agent.storage.desk(work.attempt, work.claim, station.over, work.node) as desk,
            host.slot.whole(unless=station.over) as mine,
        ):
            if mine:
                station.put({"type": "here"})
                here = _settled(work, desk, station)
                station.put({"type": "fetched"})
                nursery = host.nursery_for(TRAINING, unless=station.over)
                station.put({"type": "ready"})
                while not station.go.wait(LOOK_SECONDS) and not station.over.is_set():
                    if station.is_silent():
                        station.over.set()
            if station.over.is_set():
                return NodeEnd(node=work.node, ranks=[], leaving=ticket.stopping.is_set())
            end = station.supervise(NodeSupervisor(nursery, with_interface(here), station.put))
            artifacts = _delivered(agent, work, desk, station, Path(here.ranks[0].spec["folder"]))
            return end.model_copy(update={"leaving": ticket.stopping.is_set(), "artifacts": artifacts})


def _settled(work: NodeWork, desk: Desk, station: Station) -> NodeWork:
    """With its files here, and what it will write on its way to the server."""
    try:
        here = with_own_files(work, desk)
    except Interrupted:
        return work  # which does not begin
    folder = here.ranks[0].spec["folder"]
    Path(folder).mkdir(parents=True, exist_ok=True)
    desk.watch(folder)
    return here


def _delivered(agent: Agent, work: NodeWork, desk: Desk, station: Station, folder: Path) -> list[dict[str, Any]]:
    """What this node left, once it is with the server; nothing where the driver sees it itself."""
    if desk.shared and work.home_shares:
        return []
    station.put({"type": "delivering"})
    artifacts = artifacts_below(folder)
    limit = Hurry((agent.closing, DELIVERY_SECONDS), (station.over, DELIVERING_SECONDS / 2))
    there = desk.deliver([str(each["name"]) for each in artifacts], limit, log.warning)
    return artifacts if there else []


def _leave(agent: Agent, station: Station) -> None:
    """The server says that this attempt is not to go on here, or this worker leaves. The driver may be asking all ranks to stop
    at the same step just now, so there is time for that."""
    closing = agent.closing.is_set()
    station.put({"type": "leaving", "closing": closing})
    station.end(LEAVING if closing else ASKED)


def with_interface(work: NodeWork) -> NodeWork:
    """The work of this node, its ranks told over which interface it reaches the place where they meet. Raises RendezvousFailed."""
    ranks = []
    for rank in work.ranks:
        meeting = rank.spec.get("master_address")
        told = {"interface": interface_to(meeting)} if meeting else {}
        ranks.append(rank.model_copy(update={"spec": {**rank.spec, **told}}))
    return work.model_copy(update={"ranks": ranks})


def news(attempt: str, claim: str, seen: int) -> list[dict[str, Any]]:
    """Called by the driver, again and again: what happened here since it had seen so many."""
    station = _stations.get((attempt, claim))
    if station is None:  # its run has not begun, or has ended and told all itself
        time.sleep(LOOK_SECONDS)
        return []
    return station.news(seen)


def go(attempt: str, claim: str) -> None:
    """Called by the driver: all nodes are ready."""
    if station := _stations.get((attempt, claim)):
        station.go.set()


def end(attempt: str, claim: str, grace_seconds: float, term_seconds: float) -> None:
    """Called by the driver: the ranks are to end."""
    _ended.append((attempt, claim))
    if station := _stations.get((attempt, claim)):
        station.end(Patience(grace_seconds, term_seconds))
