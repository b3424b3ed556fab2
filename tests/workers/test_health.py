"""`python -m workers health`: what a container's health check hears."""

import os
import subprocess
import sys
import time

import pytest

from workers import health


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    place = tmp_path / "health"
    monkeypatch.setenv("TIDEMILL_HEALTH_DIR", str(place))
    health._told.clear()
    return place


def asked(seconds: float = 15) -> tuple[int, str]:
    command = [sys.executable, "-m", "workers", "health", "--seconds", str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout


def other_process(*notes: str) -> subprocess.Popen[str]:
    """Another worker's process, which makes these notes and stays."""
    code = "import sys; from workers import health; [health.note(n or None) for n in sys.argv[1:]]; print(flush=True); input()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *notes], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    process.stdout.readline()
    return process


def test_without_workers_nothing_is_well(folder):
    assert asked() == (1, "No worker runs here, or none has found its cluster yet.\n")


def test_one_that_was_answered_lately_is_well_and_one_that_was_not_is_not():
    health.begin()
    code, words = asked()
    assert code == 1
    assert f"has not joined yet (process {os.getpid()})" in words
    health.note("wk_1")
    code, words = asked()
    assert code == 0
    assert words.startswith(f"Worker wk_1 (process {os.getpid()}): the server answered it ")
    time.sleep(1.1)
    assert asked(seconds=1)[0] == 1


def test_all_that_live_must_be_well_and_the_dead_are_not_asked_for():
    health.note("wk_1")
    with other_process("wk_2", "") as other:
        code, words = asked()
        assert (code, "wk_1" in words, f"process {other.pid}" in words) == (1, True, True)
        other.kill()
    assert asked()[0] == 0


def test_a_stranger_with_a_dead_workers_number_is_no_worker(folder):
    health.note("wk_1")
    file = folder / f"{os.getpid()}.json"
    left = health.Note(os.getpid(), health._born(os.getpid()) - 1, "wk_0", time.monotonic())
    file.write_text(str(left.__dict__).replace("'", '"'))
    assert asked()[0] == 1
    assert not file.exists()


def test_a_folder_that_others_may_write_is_not_used(folder, tmp_path, caplog):
    folder.mkdir()
    folder.chmod(0o777)
    for _ in range(3):
        health.note("wk_1")
    assert list(folder.iterdir()) == []
    assert len(caplog.records) == 1  # said once, not once a second
    code, words = asked()
    assert code == 1
    assert "not a folder that this user alone may write; name another in TIDEMILL_HEALTH_DIR" in words
    folder.rmdir()
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    health.note("wk_1")
    assert asked()[0] == 1
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_link_laid_where_a_note_is_written_is_not_followed(folder, tmp_path):
    health.note("wk_1")
    aim = tmp_path / "aim"
    aim.write_text("precious")
    (folder / f".{os.getpid()}.partial").symlink_to(aim)
    health.note("wk_1")
    assert aim.read_text() == "precious"


def test_nothing_that_goes_wrong_with_it_reaches_the_worker(monkeypatch):
    monkeypatch.setenv("TIDEMILL_HEALTH_DIR", "/dev/null/nowhere")
    health.begin()
    health.note("wk_1")
    assert asked()[0] == 1
