"""What the nursery's tests have children do. Each takes its arguments and a reporter, as every job does."""

import os
import subprocess
import sys
import time


def answer(value, reporter):
    return value


def talk(reporter):
    print("said aloud")
    reporter.phase("computing")
    reporter.progress(1, 2, "pieces", 0.5)
    reporter.log("a line")
    reporter.warning("mind the gap", count=3)
    return "done"


def fail(reporter):
    raise ValueError("secret text that stays in the log")


def run_out_of_memory(reporter):
    raise MemoryError


def die(reporter):
    os.kill(os.getpid(), 9)


def leave(reporter):
    os._exit(7)


def sleep_with_family(reporter):
    """Start a child, a grandchild in a session of its own, and a daemon that forked twice; tell their pids; sleep."""
    plain = subprocess.Popen(["sleep", "600"])
    apart = subprocess.Popen(["sleep", "600"], start_new_session=True)
    daemon = subprocess.run(
        [
            sys.executable,
            "-c",
            "import subprocess as s; print(s.Popen(['sleep', '600'], start_new_session=True, stdout=-3, stderr=-3).pid)",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    reporter.log(f"{os.getpid()} {plain.pid} {apart.pid} {daemon.stdout.strip()}")
    time.sleep(600)


def leave_a_daemon(reporter):
    """End at once, leaving a process behind."""
    return subprocess.Popen(["sleep", "600"], start_new_session=True, stdout=subprocess.DEVNULL).pid


def open_files(reporter):
    names = [name for name in os.listdir("/proc/self/fd") if int(name) > 2]
    # The listing's own descriptor is among the names, and closed by now.
    return {name: os.readlink(f"/proc/self/fd/{name}") for name in names if os.path.lexists(f"/proc/self/fd/{name}")}


def identity(reporter):
    return {"pid": os.getpid(), "session": os.getsid(0), "parent": os.getppid()}


def warm_nothing():
    pass


def fail_to_warm():
    raise SystemExit("cannot warm")


def warm_for_ever():
    time.sleep(600)
