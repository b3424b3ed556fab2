"""What every engine promises, shown on a real cluster of each, with one worker."""

import time

import pytest

from app.engines.base import AskFailed, EngineDown
from tests.engines.clerk import HOLD, REFUSE
from tests.engines.rig import Rig, ray_folders
from tests.house import eventually, listening
from tests.processes import all_gone, below, lives, words


def gone_within_two_seconds(rig: Rig, address: str) -> None:
    eventually(lambda: address not in rig.workers(), 2)


def test_a_worker_joins_the_server_by_the_address_that_the_cluster_knows(rig):
    introduction = rig.joined()
    assert rig.engine.mode == "embedded"
    assert rig.engine.address
    assert introduction["engine"] == rig.engine.name
    assert introduction["resources"]["CPU"] == introduction["threads"] == 1
    probes = {probe["name"]: probe for probe in introduction["probes"]}
    assert probes[rig.engine.name]["evidence"] == "executed"
    assert probes["cpu"]["evidence"] == "executed"


def test_a_question_is_answered_by_the_worker(rig):
    assert rig.ask("os:getpid") == rig.joined()["pid"]
    assert rig.ask("builtins:sum", [20, 22]) == 42
    assert rig.ask("workers.agent:nudge") is None


def test_what_a_question_raises_comes_back_in_words(rig):
    with pytest.raises(AskFailed, match="ValueError: invalid literal"):
        rig.ask("builtins:int", "forty-two")
    with pytest.raises(AskFailed, match="FileNotFoundError"):
        rig.ask("os:listdir", "/no/such/folder")


def test_a_question_to_nobody_finds_the_worker_missing(rig):
    nobody = {"dask": "tcp://127.0.0.1:1", "ray": "ray://wk_0000000000000000"}[rig.engine.name]
    with pytest.raises(EngineDown):
        rig.ask("os:getpid", at=nobody)


def test_a_question_that_takes_too_long_is_given_up_and_holds_nobody_up(rig):
    pid, started = rig.ask("os:getpid"), time.monotonic()
    with pytest.raises(TimeoutError):
        rig.ask("time:sleep", 3, seconds=0.5)
    assert rig.ask("os:getpid") == pid
    assert time.monotonic() - started < 2


def test_an_attempt_submitted_twice_runs_once(rig):
    rig.joined()
    rig.clerk.answer_to_claims = HOLD
    rig.submit("att_twice")
    rig.submit("att_twice")
    (nonce,) = eventually(lambda: rig.clerk.claims.get("att_twice"))
    rig.submit("att_twice")
    # It goes on asking, and nobody else does.
    seen = rig.clerk.asked[nonce]
    eventually(lambda: rig.clerk.asked[nonce] >= seen + 2)
    assert rig.clerk.claims["att_twice"] == [nonce]
    assert rig.engine.known() == {"att_twice"}
    rig.clerk.answer_to_claims = REFUSE


def test_an_attempt_that_has_ended_and_is_forgotten_may_be_submitted_again(rig):
    rig.joined()
    rig.clerk.answer_to_claims = REFUSE
    rig.submit("att_again")
    eventually(lambda: len(rig.clerk.claims.get("att_again", [])) == 1)
    rig.run(rig.engine.forget("att_again"))
    assert "att_again" not in rig.engine.known()
    rig.run(rig.engine.forget("att_never_heard_of"))
    time.sleep(0.5)
    rig.submit("att_again")
    eventually(lambda: len(rig.clerk.claims["att_again"]) == 2)


def test_nothing_of_it_can_be_reached_from_outside(rig):
    rig.worker()
    assert {address.removeprefix("::ffff:") for address in listening(rig.family())} == {"127.0.0.1"}


def test_a_worker_that_is_killed_is_gone_at_once_and_a_new_one_comes(rig):
    address, introduction = rig.worker(), rig.joined()
    (worker,) = [process for process in rig.family() if process.pid == introduction["pid"]]
    family = [worker, *below(worker)]
    assert len(family) > 1  # its nursery
    worker.kill()
    gone_within_two_seconds(rig, address)
    eventually(lambda: all_gone(family), 5)
    assert rig.worker() != address


def test_a_worker_whose_owner_is_killed_goes_with_it(rig):
    """On Dask a worker is its own owner; on Ray a process owns the actor that is the worker."""
    address = rig.joined()["address"]
    family = rig.ask("tests.engines.inside:family")
    (owner,) = rig.owners()
    owner.kill()
    gone_within_two_seconds(rig, address)
    eventually(lambda: not any(lives(pid) for pid in family), 5)
    assert rig.worker() != address


def test_a_cluster_that_dies_is_started_again_with_its_workers(rig, monkeypatch):
    # The worker that is started here loads torch too, as a user's does by default: the next test stops it while it does.
    monkeypatch.setenv("TIDEMILL_TRAINING_WARM", "true")
    address, family = rig.worker(), rig.family()
    rig.head().kill()
    eventually(lambda: rig.engine.address is None or not rig.workers(), 5)
    eventually(lambda: all_gone(family), 15)
    assert rig.worker() != address
    assert rig.engine.known() == set()
    assert rig.ask("builtins:sum", [20, 22]) == 42


def test_stopped_in_the_middle_of_work_it_leaves_nothing(rig):
    introduction = rig.joined()
    rig.clerk.answer_to_claims = HOLD
    rig.submit("att_last")
    eventually(lambda: rig.clerk.claims.get("att_last"))
    eventually(lambda: any("workers.training.warm:warm" in words(each) for each in rig.family()))
    family, started = rig.family(), time.monotonic()
    rig.stop()
    assert time.monotonic() - started < 8
    assert introduction["id"] in rig.clerk.left  # the worker has said goodbye
    assert all_gone(family)
    assert not rig.family()
    assert not ray_folders(rig.folder)
    assert not [path for path in rig.folder.rglob("*") if path.name in ("token", "head.json")]
    assert rig.engine.address is None
    with pytest.raises(EngineDown):
        rig.run(rig.engine.workers())
