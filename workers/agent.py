"""One agent per worker: it says once a second what runs here, carries events and outcomes to the server, and stops what the
answer names. That report is the heartbeat of every attempt on this worker (decision 6).
"""

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from workers import health
from workers.contract import EventType, Join, Outcome, Probe, Report, ReportAnswer, ReportedEvent, Running, StorageFacts
from workers.executions import Execution, Ticket
from workers.link import Link, Refused, ServerAway, Unknown
from workers.storage.base import Storage
from workers.storage.settle import obstacle, settle
from workers.storage.shared import SharedStorage

log = logging.getLogger(__name__)

REPORT_SECONDS = 1.0
MAX_BUFFERED_EVENTS = 10_000
"""Kept while the server is away; beyond that the oldest go."""
MAX_EVENTS_A_REPORT = 500
MAX_STOPPED = 1000
AT_ONCE = frozenset({EventType.PHASE, EventType.WARNING})


class Agent:
    """Knows what runs on this worker. Drivers talk to it from their own threads."""

    def __init__(
        self,
        link: Link,
        introduction: Join,
        probe: Callable[[str], list[Probe]],
        storage: Storage | None = None,
    ) -> None:
        self.link, self._probe = link, probe
        self.storage: Storage = storage or SharedStorage()
        self.introduction = introduction
        self.worker = introduction.id
        self._executions: dict[str, Execution] = {}
        self._tickets: list[Ticket] = []
        self._stopped: deque[str] = deque(maxlen=MAX_STOPPED)
        """Attempts that were to stop, lately: a piece of theirs that comes late does not begin."""
        self._events: deque[ReportedEvent] = deque(maxlen=MAX_BUFFERED_EVENTS)
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._said_more = threading.Event()
        self.closing = threading.Event()
        self.peers: dict[str, int] | None = None
        """Addresses of the workers that the server counts as up; None before it said so."""
        self._thread = threading.Thread(target=self._run, name="agent", daemon=True)

    def start(self) -> None:
        """Join and begin to report. Raises Refused when the server does not take this worker."""
        self._join()
        self._thread.start()

    def probe(self, check: str) -> list[Probe]:
        """Run the probes of this worker again, `all` or one of them; what it says when it joins again is what they found now."""
        found = self._probe(check)
        self._keep(found)
        return found

    def add_probes(self, found: list[Probe]) -> None:
        """What took longer to find out than joining: the server is told, by joining again, before the next report."""
        self._keep(found)
        self._said_more.set()
        self._wake.set()

    def _keep(self, found: list[Probe]) -> None:
        with self._lock:
            probes = {each.name: each for each in (*self.introduction.probes, *found)}
            self.introduction = self.introduction.model_copy(update={"probes": list(probes.values())})

    def nudge(self) -> None:
        """Report at once."""
        self._wake.set()

    # ---- for drivers -------------------------------------------------------------------------------------------

    def begin(self, execution: Execution) -> None:
        with self._lock:
            self._executions[execution.attempt] = execution

    @contextmanager
    def piece(self, attempt: str, claim: str, grace_seconds: float = 0.0) -> Iterator[Ticket]:
        """Report a piece of an attempt for as long as it runs here."""
        ticket = Ticket(attempt, claim, grace_seconds)
        with self._lock:
            self._tickets.append(ticket)
            if attempt in self._stopped or self.closing.is_set():
                ticket.stopping.set()
        try:
            yield ticket
        finally:
            with self._lock:
                self._tickets.remove(ticket)

    def event(self, execution: Execution, kind: EventType, data: dict[str, Any]) -> None:
        """Put an event on its way. Progress overtaken by newer progress of the same attempt is dropped."""
        with self._lock:
            last = self._events[-1] if self._events else None
            if kind is EventType.PROGRESS and last and last.type is kind and last.attempt == execution.attempt:
                self._events.pop()
            execution.numbered += 1
            self._events.append(
                ReportedEvent(
                    attempt=execution.attempt,
                    claim=execution.claim,
                    number=execution.numbered,
                    at=datetime.now(UTC),
                    type=kind,
                    data=data,
                )
            )
        if kind in AT_ONCE:
            self._wake.set()

    def deliver(self, execution: Execution, outcome: Outcome) -> None:
        """Return once the server has acknowledged the outcome, or this worker is closing."""
        with self._lock:
            execution.outcome = outcome
        self._wake.set()
        while not execution.acknowledged.wait(0.2):
            if self.closing.is_set() and not self._thread.is_alive():
                return

    def close(self, patience_seconds: float = 2.0) -> None:
        """Leave, so that nothing more is placed here and what runs here goes on elsewhere; then stop it."""
        self.closing.set()
        self._wake.set()
        self._thread.join(patience_seconds)
        self._end_in_good_order()
        try:
            self.link.leave(self.worker)
        except (ServerAway, Refused) as away:
            log.info("could not say goodbye: %s", away)
        with self._lock:
            running, tickets = list(self._executions.values()), list(self._tickets)
        for execution in running:
            self._stop(execution)
        for ticket in tickets:
            ticket.stop()

    def _end_in_good_order(self) -> None:
        """What needs a moment to stop, to write a checkpoint for instance, has it before this worker leaves; then the last is told."""
        with self._lock:
            executions = [each for each in self._executions.values() if each.grace_seconds]
            tickets = [each for each in self._tickets if each.grace_seconds]
        if not executions and not tickets:
            return
        for execution in executions:
            self._stop(execution)
        for ticket in tickets:
            ticket.stop()
        graces = [*(each.grace_seconds for each in executions), *(each.grace_seconds for each in tickets)]
        deadline = time.monotonic() + max(graces)
        while any(each.outcome is None for each in executions) or any(each in self._tickets for each in tickets):
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
        if not self._thread.is_alive():
            with contextlib.suppress(ServerAway, Refused):
                self._report()

    # ---- the thread --------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self.closing.is_set():
            if self._said_more.is_set():
                self._said_more.clear()
                self._rejoin()
            try:
                self._report()
            except ServerAway as away:
                log.info("the server is away (%s); trying again", away)
            except Unknown:
                self._rejoin()
            except Refused as refusal:
                log.error("the server refused a report: %s", refusal)
            except Exception:
                log.exception("a report failed; the next one follows")  # without reports this worker would be a corpse
            self._wake.wait(REPORT_SECONDS)
            self._wake.clear()

    def _report(self) -> None:
        with self._lock:
            events = [self._events[i] for i in range(min(len(self._events), MAX_EVENTS_A_REPORT))]
            executions = list(self._executions.values())
            outcomes = [e.outcome for e in executions if e.outcome and not self._waits_for_goodbye(e.outcome)]
            here = {(ticket.attempt, ticket.claim) for ticket in self._tickets}
        running = [Running(attempt=e.attempt, claim=e.claim) for e in executions]
        pieces = [Running(attempt=attempt, claim=claim) for attempt, claim in sorted(here)]
        # Events go before the outcome of their attempt: an outcome waits until no event of its attempt is left behind.
        left_behind = {event.attempt for event in list(self._events)[len(events) :]}
        ready = [outcome for outcome in outcomes if outcome.attempt not in left_behind]
        answer = self.link.report(self.worker, Report(running=running, pieces=pieces, events=events, outcomes=ready))
        health.note(self.worker)
        self._carry_out(answer, events)

    def _waits_for_goodbye(self, outcome: Outcome) -> bool:
        """What was stopped because this worker leaves is not told before it has left: the server would place it here again."""
        return outcome.end == "stopped" and self.closing.is_set()

    def _carry_out(self, answer: ReportAnswer, sent: list[ReportedEvent]) -> None:
        done = {(event.attempt, event.number) for event in sent}
        self.peers = self.peers if answer.peers is None else answer.peers
        with self._lock:
            self._events = deque(
                (e for e in self._events if (e.attempt, e.number) not in done), maxlen=MAX_BUFFERED_EVENTS
            )
            acknowledged = [self._executions.pop(a) for a in answer.acknowledged if a in self._executions]
            to_stop = [self._executions[a] for a in answer.stop if a in self._executions]
            self._stopped.extend(a for a in answer.stop if a not in self._stopped)
            tickets = [ticket for ticket in self._tickets if ticket.attempt in answer.stop]
            if self._events:
                self._wake.set()
        for execution in acknowledged:
            execution.acknowledged.set()
        for execution in to_stop:
            self._stop(execution)
        for ticket in tickets:
            ticket.stop()

    def _stop(self, execution: Execution) -> None:
        if not execution.stopping.is_set():
            execution.stopping.set()
            execution.stop()

    def _join(self) -> None:
        while not self.closing.is_set():
            try:
                self.link.join(self.introduction)
                return
            except ServerAway as away:
                log.info("the server is away (%s); trying again", away)
                self.closing.wait(REPORT_SECONDS)

    def keep_up_with(self, storage: StorageFacts | None) -> None:
        """The server's storage may be another one by now, or no longer where this worker found it. Raises ServerAway, Refused."""
        if storage is None or self.storage.facts is None:
            return
        if storage != self.storage.facts or (self.storage.shared and obstacle(storage)):
            self.storage = settle(self.link)
            facts = self.storage.facts
            told = {"storage": facts.id if facts else None, "shares_storage": self.storage.shared}
            self.introduction = self.introduction.model_copy(update=told)
            self._said_more.set()

    def _rejoin(self) -> None:
        try:
            with contextlib.suppress(ServerAway):
                self.keep_up_with(self.link.storage() if self.storage.facts else None)
            self._join()
        except Refused as refusal:
            log.error("the server does not take this worker back: %s", refusal)


_current: Agent | None = None
_introduced = threading.Event()
INTRODUCTION_SECONDS = 300.0
"""How long an engine's task may be early: a cluster hands out work as soon as a worker is on it, before it has warmed and joined."""


def set_current(agent: Agent) -> None:
    """Make `agent` the one that drivers in this process find."""
    global _current
    _current = agent
    _introduced.set()


def nudge() -> None:
    """Called by the server through the engine: there is something to stop, so do not wait for the next second."""
    current().nudge()


def probe(check: str) -> list[dict[str, Any]]:
    """Called by the server through the engine: try again what this worker can do, and say what was found."""
    return [found.model_dump(mode="json") for found in current().probe(check)]


def mark_closing() -> None:
    """From here on, what ends here was ended by this worker's own leaving."""
    if _current is not None:
        _current.closing.set()


def storage() -> Storage:
    """The server's storage; what the paths say where no agent runs in this process."""
    return _current.storage if _current else SharedStorage()


def current(patience_seconds: float = 0.0) -> Agent:
    """This process's agent. Raises RuntimeError where none is introduced within the time."""
    _introduced.wait(patience_seconds)
    if _current is None:
        raise RuntimeError("no Tidemill agent runs in this process; workers are started with `python -m workers`")
    return _current
