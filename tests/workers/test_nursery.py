"""The nursery: children that start at once, say what they do, and die when told to, with all they started."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import psutil
import pytest

from tests.house import eventually
from workers.failures import JobFailure, OutOfMemory
from workers.nursery_client import Ending, Nursery, NurseryGone, PieceFailed, PieceKilled

ERRANDS = "tests.workers.errands"


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    nursery = Nursery([f"{ERRANDS}:warm_nothing"], {})
    nursery.wait_ready(20)
    assert nursery.ready.is_set()
    yield nursery
    nursery.close()


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid)


def run(nursery: Nursery, errand: str, *arguments: object, log: str | None = None):
    heard: list[dict] = []
    value = nursery.fork(f"{ERRANDS}:{errand}", list(arguments), log).follow(heard.append)
    return value, heard


def test_a_child_returns_its_value_and_tells_what_it_does(nursery, tmp_path):
    value, heard = run(nursery, "talk", log=str(tmp_path / "log.txt"))
    assert value == "done"
    assert [message["type"] for message in heard] == ["phase", "progress", "log", "warning"]
    assert heard[1]["data"] == {"fraction": 0.5, "done": 1, "total": 2, "unit": "pieces", "eta_seconds": 0.5}
    assert (tmp_path / "log.txt").read_text().splitlines() == ["said aloud", "a line"]


def test_arguments_larger_than_any_packet_arrive(nursery):
    values = [float(i) for i in range(200_000)]
    assert run(nursery, "answer", values)[0] == values


def test_each_child_is_fresh_and_leads_its_own_session(nursery):
    first, second = run(nursery, "identity")[0], run(nursery, "identity")[0]
    assert first["pid"] != second["pid"]
    assert first["pid"] == first["session"]
    assert first["parent"] == nursery.process.pid


def test_a_child_holds_nothing_of_its_parents_but_its_pipe_and_the_workers_log(nursery):
    workers_log = os.readlink(f"/proc/{nursery.process.pid}/fd/2")
    blocker = nursery.fork(f"{ERRANDS}:sleep_with_family", [])
    try:
        files = run(nursery, "open_files")[0]
        assert sorted(target.partition(":")[0] for target in files.values() if target != workers_log) == ["pipe"]
    finally:
        blocker.kill()
        with pytest.raises(PieceKilled):
            blocker.follow(lambda message: None)


def test_the_parent_stays_single_threaded(nursery):
    run(nursery, "answer", 1)
    assert psutil.Process(nursery.process.pid).num_threads() == 1


FAILING = f"""
import sys
from workers.nursery_client import Nursery, PieceFailed
nursery = Nursery(["{ERRANDS}:warm_nothing"], {{}})
try:
    nursery.fork("{ERRANDS}:fail", [], sys.argv[1]).follow(print)
except PieceFailed as failure:
    print(failure.problem)
nursery.close()
"""


def test_a_failure_of_ours_is_told_without_its_text_which_stays_in_the_workers_log(tmp_path):
    log = tmp_path / "log.txt"
    done = subprocess.run(
        [sys.executable, "-c", FAILING, str(log)], capture_output=True, text=True, timeout=60, check=True
    )
    assert "/problems/internal" in done.stdout
    assert "secret" not in done.stdout
    assert "secret" not in log.read_text()
    assert "ValueError: secret text" in done.stderr


def test_memory_that_runs_out_is_told_apart(nursery):
    with pytest.raises(PieceFailed) as failure:
        run(nursery, "run_out_of_memory")
    assert failure.value.problem["type"] == "/problems/out-of-memory"
    with pytest.raises(OutOfMemory):
        run(nursery, "die")  # as the kernel's out-of-memory killer does it


def test_an_end_without_a_word_is_a_failure(nursery):
    with pytest.raises(JobFailure, match="code 7"):
        run(nursery, "leave")


def test_kill_ends_a_child_and_all_it_started_wherever_that_hides(nursery):
    pids: list[int] = []
    piece = nursery.fork(f"{ERRANDS}:sleep_with_family", [])

    def kill_when_told(message: dict) -> None:
        pids.extend(int(word) for word in message["data"]["message"].split())
        piece.kill()

    started = time.monotonic()
    with pytest.raises(PieceKilled):
        piece.follow(kill_when_told)
    assert time.monotonic() - started < 5
    assert len(pids) == 4
    eventually(lambda: all(gone(pid) for pid in pids), 2)
    assert run(nursery, "answer", "still here")[0] == "still here"


def test_what_a_child_leaves_behind_ends_with_it(nursery):
    pid, _ = run(nursery, "leave_a_daemon")
    eventually(lambda: gone(pid), 2)


def test_a_daemon_ends_with_the_child_that_started_it_and_not_with_another(nursery):
    first = nursery.fork(f"{ERRANDS}:stay_with_a_daemon", [])
    pids: list[int] = []
    thread = threading.Thread(target=_follow_until_killed, args=(first, pids))
    thread.start()
    eventually(lambda: pids)
    run(nursery, "leave_a_daemon")  # ends, and with it what it left
    assert not gone(pids[0])
    first.kill()
    thread.join(5)
    eventually(lambda: gone(pids[0]), 2)


def _follow_until_killed(piece, pids: list[int]) -> None:
    with pytest.raises(PieceKilled):
        piece.follow(lambda message: pids.append(int(message["data"]["message"])))


def test_a_signal_reaches_the_child_and_is_its_own_to_answer(nursery):
    piece = nursery.fork(f"{ERRANDS}:wait_for_a_signal", [])
    assert piece.follow(lambda message: piece.signal(signal.SIGUSR1)) == "heard"
    piece.signal(signal.SIGTERM)  # it has ended: nothing happens
    assert run(nursery, "answer", "still here")[0] == "still here"


def test_an_ending_says_what_the_system_says(nursery):
    assert nursery.fork(f"{ERRANDS}:leave", []).hear(lambda message: None) == Ending(None, 7, False)
    assert nursery.fork(f"{ERRANDS}:die", []).hear(lambda message: None) == Ending(None, -9, False)
    ending = nursery.fork(f"{ERRANDS}:answer", [1]).hear(lambda message: None)
    assert ending == Ending({"type": "returned", "value": 1}, 0, False)


def test_what_has_not_the_form_of_a_message_is_passed_over(nursery, tmp_path):
    spec = {"rank": 1, "folder": str(tmp_path)}
    heard: list[dict] = []
    ending = nursery.fork("tests.training.errands:scribble", [spec]).hear(heard.append)
    assert ending.code == 0
    assert ending.answer is not None
    assert ending.answer["value"]["end"] == "finished"
    assert [json.dumps(message, allow_nan=False) for message in heard]
    assert all(isinstance(message["type"], str) and isinstance(message["data"], dict) for message in heard)
    assert heard[-1] == {"type": "beat", "data": {"rank": 1, "step": 1, "stage": "fit"}}
    assert {"type": "banana", "data": {}} in heard  # whoever listens knows which types there are


def test_a_line_without_an_end_is_no_reason_to_remember_all_of_it(nursery):
    heard: list[dict] = []
    ending = nursery.fork("tests.training.errands:never_end_a_line", [{}]).hear(heard.append)
    assert [message["data"]["message"] for message in heard] == ["still here"]
    assert ending == Ending({"type": "returned", "value": "done"}, 0, False)


def test_a_listener_that_fails_hears_on_and_the_child_has_its_end(nursery, caplog):
    heard: list[str] = []

    def fail(message: dict) -> None:
        heard.append(message["type"])
        raise KeyError("banana")

    ending = nursery.fork(f"{ERRANDS}:talk", []).hear(fail)
    assert ending == Ending({"type": "returned", "value": "done"}, 0, False)
    assert heard == ["phase", "progress", "log", "warning"]
    assert caplog.text.count("could not be taken") == 1


def test_a_nursery_may_have_an_environment_of_its_own(monkeypatch):
    monkeypatch.setenv("SLURM_NTASKS", "4")
    nursery = Nursery([f"{ERRANDS}:warm_nothing"], {"OWN": "1"}, base={"PATH": os.environ["PATH"]})
    found = run(nursery, "variables")[0]
    nursery.close()
    assert found["OWN"] == "1"
    assert "SLURM_NTASKS" not in found


def test_many_children_at_once(nursery):
    results: list[int] = []
    threads = [threading.Thread(target=lambda i=i: results.append(run(nursery, "answer", i)[0])) for i in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == list(range(20))


def test_closing_ends_the_nursery_and_its_children():
    nursery = Nursery([f"{ERRANDS}:warm_nothing"], {})
    piece = nursery.fork(f"{ERRANDS}:sleep_with_family", [])
    family: list[int] = []
    thread = threading.Thread(target=_follow_quietly, args=(piece, family))
    thread.start()
    eventually(lambda: family)
    nursery.close()
    thread.join(5)
    assert all(gone(pid) for pid in family)


def _follow_quietly(piece, family: list[int]) -> None:
    with pytest.raises(JobFailure):
        piece.follow(lambda message: family.extend(int(word) for word in message["data"]["message"].split()))


def test_a_nursery_that_dies_fails_its_pieces_and_takes_them_along(nursery):
    piece = nursery.fork(f"{ERRANDS}:sleep_with_family", [])

    def kill_the_nursery(message: dict) -> None:
        os.kill(nursery.process.pid, signal.SIGKILL)

    with pytest.raises(NurseryGone):
        piece.follow(kill_the_nursery)
    with pytest.raises(NurseryGone):
        run(nursery, "answer", 1)


def test_one_that_cannot_warm_says_so_by_ending():
    nursery = Nursery([f"{ERRANDS}:fail_to_warm"], {})
    nursery.wait_ready(20)
    assert not nursery.ready.is_set()
    nursery.close()


def test_one_that_is_still_warming_is_closed_at_once():
    nursery = Nursery([f"{ERRANDS}:warm_for_ever"], {})
    started = time.monotonic()
    nursery.close()
    assert time.monotonic() - started < 5
    assert nursery.process.returncode == -signal.SIGKILL


OWNER = f"""
import sys, time
from workers.nursery_client import Nursery
nursery = Nursery(["{ERRANDS}:warm_nothing"], {{}})
piece = nursery.fork("{ERRANDS}:sleep_with_family", [])
print(nursery.process.pid, flush=True)
piece.follow(lambda message: print(message["data"]["message"], flush=True))
"""


def test_kill_9_of_the_worker_leaves_nothing_of_it():
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    pids = [int(word) for line in (owner.stdout.readline(), owner.stdout.readline()) for word in line.split()]
    assert len(pids) == 5
    owner.kill()
    owner.wait()
    owner.stdout.close()
    eventually(lambda: all(gone(pid) for pid in pids), 5)


def test_a_nursery_that_still_warms_ends_with_its_worker():
    """The worker here is a process that starts a nursery which takes long to warm, and is killed with -9."""
    program = (
        "import time; from workers.nursery_client import Nursery; "
        f"print(Nursery(['{ERRANDS}:warm_slowly'], {{}}).process.pid, flush=True); time.sleep(600)"
    )
    worker = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    with worker, worker.stdout as told:
        pid = int(told.readline())
        time.sleep(1)  # it is in the middle of warming
        assert psutil.pid_exists(pid)
        worker.kill()
        eventually(lambda: gone(pid), 10)
