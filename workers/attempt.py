"""The driver of one attempt: claim it, run it in a forked child, deliver its outcome.

This is the task an engine runs. An engine may run it twice; the claim lets exactly one execution through (decision 4).
"""

import logging
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from workers import agent as agents
from workers.agent import Agent
from workers.calls import call_of
from workers.contract import Artifact, Claim, EventType, Outcome, Task, call_by_name
from workers.executions import Execution
from workers.failures import JobFailure, as_problem, storage_words
from workers.fetching import fetched
from workers.host import Host, current_host
from workers.link import Refused, ServerAway
from workers.nursery_client import NurseryGone, Piece, PieceFailed, PieceKilled
from workers.spread.door import Door
from workers.spread.spreading import Spreading
from workers.storage.base import Desk, Interrupted
from workers.storage.depot import Hurry
from workers.storage.shared import SharedDesk
from workers.training import drive_judge as training
from workers.training.drive import drive
from workers.training.node_messages import LEAVING_SECONDS

log = logging.getLogger(__name__)

PROBE = "probe"
CLUSTERS: Final[Mapping[str, str]] = {
    "dask": "workers.spread.dask:open_cluster",
    "ray": "workers.spread.ray:open_cluster",
}
"""backend → what opens the cluster that its pieces are spread over."""

OUTCOME_FILE = "outcome.json"
LOG_FILE = "log.txt"
CLAIM_RETRY_SECONDS = 1.0
DELIVERY_SECONDS = 5.0
"""For the files of an attempt that ends because its worker leaves."""
STOPPED_SECONDS = 30.0
"""And for those of one that was told to stop."""


def execute(attempt: str) -> str:
    """Run `attempt` on this worker, and return how it ended once the server knows. What an engine sees is only that word."""
    agent, host = agents.current(agents.INTRODUCTION_SECONDS), current_host()
    nonce = uuid.uuid4().hex
    task = _claim(agent, attempt, nonce)
    if task is None:
        return "refused"
    try:
        agent.keep_up_with(task.storage)
    except (ServerAway, Refused) as fault:  # it runs with what was known, or fails with words
        log.warning("the server's storage could not be found anew: %s", fault)
    outcome = _Driver(agent, host, task, nonce).drive()
    return outcome.end


def _claim(agent: Agent, attempt: str, nonce: str) -> Task | None:
    while True:
        try:
            return agent.link.claim(attempt, Claim(nonce=nonce, worker=agent.worker))
        except ServerAway:
            if agent.closing.wait(CLAIM_RETRY_SECONDS):
                return None
        except Refused as refusal:
            log.info("attempt %s is not ours to run: %s", attempt, refusal)
            return None


class _Driver:
    def __init__(self, agent: Agent, host: Host, task: Task, claim: str) -> None:
        self.agent, self.host, self.task = agent, host, task
        self.desk: Desk = SharedDesk()
        self.piece: Piece | None = None
        grace = LEAVING_SECONDS if task.training else 0.0
        grace += 0.0 if agent.storage.shared else 2 * DELIVERY_SECONDS
        self.execution = Execution(attempt=task.attempt, claim=claim, stop=self.stop, grace_seconds=grace)

    @property
    def folder(self) -> Path:
        return Path(self.task.folder)

    def drive(self) -> Outcome:
        self.agent.begin(self.execution)
        with self.agent.storage.desk(self.task.attempt, self.execution.claim, self.execution.stopping) as self.desk:
            outcome = self.delivered(self.outcome_of_running())
            try:
                write_outcome(self.folder / OUTCOME_FILE, outcome)
                self.put_back([OUTCOME_FILE])
            except Exception as fault:
                # A full disk, say. The server is told all the same; only a crash of it at this moment would run the job again.
                log.error("the outcome of attempt %s could not be written: %s", self.task.attempt, fault)
            self.agent.deliver(self.execution, outcome)
        return outcome

    def delivered(self, outcome: Outcome) -> Outcome:
        """The outcome once its files are with the server; another one where they cannot be."""
        try:
            if not self.put_back([each.name for each in outcome.artifacts]):
                return without_files(outcome)
        except Exception as fault:
            log.exception("the files of attempt %s could not be delivered", self.task.attempt)
            return without_files(outcome, as_problem(fault))
        try:
            artifacts = self.desk.settled([each.model_dump() for each in outcome.artifacts])
            return outcome.model_copy(update={"artifacts": [Artifact.model_validate(each) for each in artifacts]})
        except (JobFailure, Interrupted) as fault:  # they are there; only how long the logs became is not known
            log.warning("the server's logs of attempt %s could not be looked at: %s", self.task.attempt, fault)
            return outcome

    def put_back(self, names: Sequence[str]) -> bool:
        """A worker that leaves has little time for it, and a job that is to stop not much; any other tries until the server takes them."""
        limit = Hurry((self.agent.closing, DELIVERY_SECONDS), (self.execution.stopping, STOPPED_SECONDS))
        return self.desk.deliver(
            names, limit, lambda words: self.relay({"type": "warning", "data": {"message": words}})
        )

    def stop(self) -> None:
        """Called by the agent, from its thread, at most once. The child may not have been forked yet; `run` looks after it is."""
        if self.piece:
            self.piece.kill()

    def outcome_of_running(self) -> Outcome:
        identity = {"attempt": self.task.attempt, "claim": self.execution.claim}
        try:
            value = self.run()
            return Outcome(**identity, end="succeeded", **value)
        except training.Stopped as stop:
            return Outcome(**identity, end="stopped", artifacts=stop.artifacts)
        except training.Failed as failure:
            return Outcome(**identity, end="failed", error=failure.problem, artifacts=failure.artifacts)
        except (PieceKilled, Interrupted):
            return Outcome(**identity, end="stopped")
        except PieceFailed as failure:
            return Outcome(**identity, end="failed", error=failure.problem)
        except NurseryGone as loss:
            # A worker that leaves takes its nursery along, and that is no fault of the job's.
            if self.agent.closing.is_set():
                return Outcome(**identity, end="stopped")
            return Outcome(**identity, end="lost", error=loss.problem())
        except JobFailure as failure:
            return Outcome(**identity, end="failed", error=failure.problem())
        except OSError as fault:
            log.exception("the driver of attempt %s failed", self.task.attempt)
            return Outcome(**identity, end="failed", error=JobFailure(storage_words(fault)).problem())
        except Exception as fault:
            log.exception("the driver of attempt %s failed", self.task.attempt)
            return Outcome(**identity, end="failed", error=as_problem(fault))

    def run(self) -> dict[str, Any]:
        self.task = fetched(self.task, self.desk, self.relay)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.desk.watch(self.task.folder)
        if self.task.kind == PROBE:
            return probe_everywhere(self.agent, self.task, self.execution.claim)
        if self.task.training:
            return self.train()
        if self.task.plan["backend"] in CLUSTERS:
            return self.spread(CLUSTERS[self.task.plan["backend"]])
        with self.host.slot.whole(unless=self.execution.stopping) as mine:
            if not mine:
                raise PieceKilled
            return self.follow()

    def train(self) -> dict[str, Any]:
        """Ranks here and on the other workers of the gang, which are this job's alone; ended by `drive`, which looks whether to stop."""
        with self.host.slot.whole(unless=self.execution.stopping) as mine:
            if not mine:
                raise PieceKilled
            cluster = partial(call_by_name, CLUSTERS[self.agent.introduction.engine])
            return drive(self.agent, self.host, self.task, self.execution, self.relay, cluster, desk=self.desk)

    def spread(self, cluster: str) -> dict[str, Any]:
        """The child cuts the work into pieces and hands them through its door; they run on every worker, this one included."""
        ours, theirs = Door.pair()
        spreading = Spreading(ours, partial(call_by_name, cluster), self.agent, self.task.attempt, self.execution.claim)
        spreading.start()
        try:
            return self.follow(born_with=[theirs.channel.fileno()], then=theirs.close)
        finally:
            theirs.close()
            spreading.close()

    def follow(self, born_with: Sequence[int] = (), then: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """Fork the child, call `then`, and relay what it says until it ends."""
        with call_of(self.task) as call:
            nursery = self.host.nursery_for(call.device, unless=self.execution.stopping)
            if self.execution.stopping.is_set():
                raise PieceKilled
            log_file = str(self.folder / LOG_FILE)
            self.piece = nursery.fork(call.function, call.arguments, log_file, born_with=born_with, fresh=call.fresh)
            then()
            if self.execution.stopping.is_set():
                self.piece.kill()
            value: dict[str, Any] = self.piece.follow(self.relay)
        return value

    def relay(self, message: dict[str, Any]) -> None:
        self.agent.event(self.execution, EventType(message["type"]), message["data"])


def without_files(outcome: Outcome, problem: dict[str, Any] | None = None) -> Outcome:
    """What an outcome is worth whose files nobody has: a success is none. With a problem it failed; else it goes on elsewhere."""
    if outcome.end != "succeeded":
        return outcome.model_copy(update={"artifacts": []})
    end: Literal["failed", "stopped"] = "failed" if problem else "stopped"
    return Outcome(attempt=outcome.attempt, claim=outcome.claim, end=end, error=problem)


def probe_everywhere(agent: Agent, task: Task, claim: str) -> dict[str, Any]:
    """A job of kind `probe`: the server asks every worker, ours among them, and says what they found."""
    found = agent.link.probe(task.attempt, claim, task.params["check"])
    if found["problem"]:
        raise PieceFailed(found["problem"])
    return {"summary": {"workers": found["workers"]}}


def write_outcome(path: Path, outcome: Outcome) -> None:
    """On disk before it is told: whole under its name, or not there."""
    temporary = path.with_suffix(".partial")
    with open(temporary, "w", encoding="utf-8") as stream:
        stream.write(outcome.model_dump_json())
        stream.flush()
        os.fsync(stream.fileno())
    temporary.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
