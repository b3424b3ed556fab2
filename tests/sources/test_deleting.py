"""A source stays while a job that has not ended names it."""

import pytest

from app.db.tables import Job, SourceRow
from app.jobs.states import FINAL, State
from app.jobs.views import NO_PROGRESS
from app.kit.clock import now
from app.kit.problems import NotFound
from app.sources import queries
from tests.desk import Desk


@pytest.fixture
def desk(tmp_path):
    desk = Desk(tmp_path / "home")
    yield desk
    desk.close()


def source(name):
    return SourceRow(
        id=f"src_{name}", owner="local", name=name, format="zip", bytes=1, sha256=name, modules=[name], created_at=now()
    )


def job(name, state, named):
    return Job(
        id=f"job_{name}",
        owner="local",
        kind="training",
        state=state,
        progress=NO_PROGRESS,
        params={"config": {"source": "src_none"}, "source": named},
        execution={},
        plan={"backend": "cpu", "resolved": {"accelerator": "cpu", "devices": 1, "num_nodes": 1}},
        labels={},
        created_at=now(),
        finished_at=now() if state in FINAL else None,
    )


def test_jobs_that_have_not_ended_need_their_source(desk):
    def fill(db):
        db.add_all([source("none"), *(source(state) for state in State)])
        db.add_all([job(state, state, f"src_{state}") for state in State])
        db.add(job("bare", State.RUNNING, None))

    desk.write(fill)
    needed = {state for state in State if desk.read(lambda db, of=state: queries.jobs_that_need(db, f"src_{of}"))}
    assert needed == set(State) - FINAL
    assert desk.read(lambda db: queries.jobs_that_need(db, "src_none")) == 0


def test_a_source_of_another_is_not_there(desk):
    desk.write(lambda db: db.add(source("mill")))
    assert desk.read(lambda db: queries.source_of(db, "src_mill", "local")).modules == ["mill"]
    with pytest.raises(NotFound):
        desk.read(lambda db: queries.source_of(db, "src_mill", "another"))
