"""A training attempt from its claim to its end, on the first worker of its gang: prepare, run the ranks, say how it ended."""

import contextlib
import logging
import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from workers.agent import Agent
from workers.contract import Node, Task, TrainingParams
from workers.executions import Execution
from workers.failures import JobFailure
from workers.host import TRAINING, Host
from workers.nursery_client import Nursery, NurseryGone, PieceFailed, PieceKilled
from workers.spread.base import Cluster
from workers.storage.base import Desk
from workers.storage.depot import Hurry
from workers.storage.shared import SharedDesk
from workers.training import keeper
from workers.training.drive_artifacts import INPUTS, artifacts_below
from workers.training.drive_events import is_event
from workers.training.drive_judge import Failed, Stopped, judge
from workers.training.drive_prepared import Prepared, needs_preparing
from workers.training.drive_specs import STOP_FILE, works_of
from workers.training.gang import Gang
from workers.training.gang_address import meeting_place
from workers.training.gang_end import GangEnd
from workers.training.node_files import refuse_scattered, with_server_paths
from workers.training.node_messages import RANK, NodeWork
from workers.training.node_remote import with_interface
from workers.training.rules import Resolved
from workers.training.spec import SHARED_LOG

PREPARE: Final = "workers.training.drive_prepare:prepare"
LOOK_SECONDS: Final = 0.05

Relay = Callable[[dict[str, Any]], None]

log = logging.getLogger(__name__)


def drive(
    agent: Agent,
    host: Host,
    task: Task,
    execution: Execution,
    relay: Relay,
    open_cluster: Callable[[], Cluster],
    call: str = RANK,
    desk: Desk | None = None,
) -> dict[str, Any]:
    """The `summary`, `provenance` and `artifacts` of an attempt that succeeded. Raises Stopped, Failed, and NurseryGone where
    a worker of the gang was lost."""
    return Drive(agent, host, task, execution, relay, open_cluster, call, desk or SharedDesk()).run()


class Drive:
    def __init__(
        self,
        agent: Agent,
        host: Host,
        task: Task,
        execution: Execution,
        relay: Relay,
        open_cluster: Callable[[], Cluster],
        call: str,
        desk: Desk,
    ) -> None:
        self.agent, self.host, self.task, self.execution, self.call = agent, host, task, execution, call
        self.desk = desk
        self._relay, self._open_cluster = relay, open_cluster
        self.folder = Path(task.folder)

    def run(self) -> dict[str, Any]:
        try:
            (self.folder / STOP_FILE).unlink(missing_ok=True)
            nursery = self.host.nursery_for(TRAINING, unless=self.execution.stopping)
            prepared = self.prepare(nursery)
            end = self.launch(nursery, prepared)
        except PieceKilled:
            raise Stopped(artifacts_below(self.folder)) from None
        except PieceFailed as failure:
            raise Failed(failure.problem, artifacts_below(self.folder)) from failure
        except NurseryGone:
            raise
        except JobFailure as failure:
            if self.is_to_stop():  # a worker that leaves ends its nursery, and that is no fault of the job's
                raise Stopped(artifacts_below(self.folder)) from failure
            raise Failed(failure.problem(), artifacts_below(self.folder)) from failure
        (self.folder / STOP_FILE).unlink(missing_ok=True)
        return judge(self.task, prepared, end, self.say)

    # ---- before ------------------------------------------------------------------------------------------------

    def prepare(self, nursery: Nursery) -> Prepared:
        """In a child, which is killed when the job is to stop. Raises PieceKilled, PieceFailed."""
        self.phase("preparing")
        if self.is_to_stop():
            raise PieceKilled
        if not needs_preparing(self.task):
            return Prepared(paths={})
        piece = nursery.fork(PREPARE, [self.task.model_dump(mode="json")], str(self.folder / SHARED_LOG))

        def kill_when_to_stop() -> None:
            while not piece.ended.wait(LOOK_SECONDS):
                if self.is_to_stop():
                    piece.kill()
                    return

        threading.Thread(target=kill_when_to_stop, name="preparing", daemon=True).start()
        return Prepared.model_validate(piece.follow(self.relay))

    def is_to_stop(self) -> bool:
        return self.execution.stopping.is_set() or self.agent.closing.is_set()

    # ---- the ranks ---------------------------------------------------------------------------------------------

    def launch(self, nursery: Nursery, prepared: Prepared) -> GangEnd:
        with contextlib.ExitStack() as stack:
            cluster = stack.enter_context(self.cluster()) if len(self.nodes) > 1 else None
            address = meeting_place(self.nodes, cluster.reached_by if cluster else lambda: "")
            losses: queue.SimpleQueue[str] = queue.SimpleQueue()
            port = stack.enter_context(keeper.kept(nursery, address, str(self.folder / SHARED_LOG), losses.put))
            home, *others = works_of(self.task, self.execution.claim, prepared, address, port, self.call)
            others = self.with_files_elsewhere(others)
            gang = Gang(
                self.agent,
                nursery,
                [with_interface(home), *others],
                self.nodes,
                cluster,
                self.execution.stopping,
                self.folder / STOP_FILE,
                losses,
                self.relay,
            )
            self.phase("starting")
            return gang.run()

    def with_files_elsewhere(self, works: list[NodeWork]) -> list[NodeWork]:
        """The other nodes' work, which may be on machines that have to fetch what was made here. Raises NeedsSharedStorage."""
        assert self.task.training is not None
        if works and not all(node.shares_storage for node in self.nodes):
            params = TrainingParams.model_validate(self.task.params)
            refuse_scattered(params, Resolved.model_validate(self.task.plan["resolved"]))
            made = [path.relative_to(self.folder).as_posix() for path in (self.folder / INPUTS).glob("*")]
            self.desk.deliver(made, Hurry((self.execution.stopping, 0.0), (self.agent.closing, 0.0)), self.say)
        return [with_server_paths(work, self.desk) for work in works]

    def cluster(self) -> "contextlib.closing[Cluster]":
        try:
            return contextlib.closing(self._open_cluster())
        except OSError as fault:  # no fault of the job's: another attempt may find it there
            raise NurseryGone(f"The cluster could not be asked for the job's other workers: {fault}") from fault

    @property
    def nodes(self) -> list[Node]:
        assert self.task.training is not None
        return self.task.training.nodes

    # ---- what it says ------------------------------------------------------------------------------------------

    def relay(self, message: dict[str, Any]) -> None:
        """Never raises: it is called in the middle of what must come to an end."""
        if not is_event(message):
            return
        try:
            self._relay(message)
        except Exception:
            log.exception("an event of attempt %s was left out", self.task.attempt)

    def phase(self, name: str) -> None:
        self.relay({"type": "phase", "data": {"phase": name}})

    def say(self, line: str) -> None:
        with contextlib.suppress(OSError), open(self.folder / SHARED_LOG, "a", encoding="utf-8") as shared:
            shared.write(f"{line}\n")
        self.relay({"type": "log", "data": {"message": line}})
