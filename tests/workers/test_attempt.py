"""The driver of an attempt, where its folder is of no use: the job still ends, and says why."""

from pathlib import Path
from threading import Event

import pytest

from workers.attempt import OUTCOME_FILE, _Driver
from workers.contract import Artifact, Outcome, Task
from workers.storage.base import StorageLost
from workers.storage.shared import SharedDesk, SharedStorage


class Recorder:
    """Stands where the agent stands, and keeps what it is told."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.delivered: list[Outcome] = []
        self.closing, self.storage = Event(), SharedStorage()

    def begin(self, execution) -> None:
        self.began.append(execution.attempt)

    def deliver(self, execution, outcome: Outcome) -> None:
        self.delivered.append(outcome)


def drive(folder: Path) -> Outcome:
    task = Task(attempt="att_1", job="job_1", kind="matrix_profile", params={}, sources={}, plan={}, folder=str(folder))
    agent = Recorder()
    outcome = _Driver(agent, None, task, "nonce").drive()  # type: ignore[arg-type]
    assert agent.began == ["att_1"]
    assert agent.delivered == [outcome]
    return outcome


def test_a_folder_that_cannot_be_made_fails_the_job_with_words(tmp_path):
    (tmp_path / "file").write_text("in the way")
    outcome = drive(tmp_path / "file" / "1")
    assert outcome.end == "failed"
    assert outcome.error is not None
    assert "Not a directory" in outcome.error["detail"]


def test_an_outcome_that_cannot_be_written_is_delivered_all_the_same(tmp_path):
    (tmp_path / OUTCOME_FILE).with_suffix(".partial").mkdir()
    assert drive(tmp_path).end == "failed"
    assert not (tmp_path / OUTCOME_FILE).exists()


class Nowhere(SharedDesk):
    """A server that takes no files."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.fault = fault

    def deliver(self, names, limit, say) -> bool:
        if self.fault:
            raise self.fault
        return False


@pytest.mark.parametrize(
    ("fault", "end"),
    [(None, "stopped"), (StorageLost("no"), "failed"), (UnicodeEncodeError("utf-8", "x", 0, 1, "odd"), "failed")],
)
def test_a_success_whose_files_nobody_has_is_none(tmp_path, fault, end):
    task = Task(
        attempt="att_1", job="job_1", kind="matrix_profile", params={}, sources={}, plan={}, folder=str(tmp_path)
    )
    driver = _Driver(Recorder(), None, task, "nonce")  # type: ignore[arg-type]
    driver.desk = Nowhere(fault)
    file = Artifact(name="result.json", bytes=1, sha256="0", media_type="application/json")
    done = Outcome(attempt="att_1", claim="nonce", end="succeeded", summary={}, artifacts=[file])
    outcome = driver.delivered(done)
    assert (outcome.end, outcome.artifacts) == (end, [])
    # What failed or was stopped stays what it is.
    for other in ("failed", "stopped"):
        assert driver.delivered(done.model_copy(update={"end": other})).end == other
