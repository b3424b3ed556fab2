"""The driver of an attempt, where its folder is of no use: the job still ends, and says why."""

from pathlib import Path
from threading import Event

from workers.attempt import OUTCOME_FILE, _Driver
from workers.contract import Outcome, Task
from workers.storage.shared import SharedStorage


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
