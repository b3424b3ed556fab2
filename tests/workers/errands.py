"""What the nursery's tests have children do. Each takes its arguments and a reporter, as every job does."""

import os
import signal
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


def stay_with_a_daemon(reporter):
    """Start a process whose parent ends at once, so that it is nobody's child, and tell its pid."""
    told = subprocess.run(
        ["sh", "-c", "setsid sleep 600 >/dev/null 2>&1 & echo $!"], capture_output=True, text=True, check=True
    )
    reporter.log(told.stdout.strip())
    time.sleep(600)


def wait_for_a_signal(reporter):
    heard = []
    signal.signal(signal.SIGUSR1, lambda *_: heard.append("heard"))
    reporter.log("ready")
    while not heard:
        time.sleep(0.01)
    return heard[0]


def variables(reporter):
    return dict(os.environ)


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


def spread_stumped(values, window, pieces, reporter):
    """`stumped` over whatever is behind this child's door."""
    import numpy as np
    import stumpy

    from workers.spread import client

    found = stumpy.stumped(client.ClientSpread(pieces, reporter), np.array(values), window)
    return {
        "distances": found.P_.astype(float).tolist(),
        "indices": found.I_.tolist(),
        "computed": dict(client.computed),
    }


def spread_mpdisted(a, b, window, pieces, reporter):
    import numpy as np
    import stumpy

    from workers.spread.client import ClientSpread

    return float(stumpy.mpdisted(ClientSpread(pieces, reporter), np.array(a), np.array(b), window))


def use_up_memory(share):
    raise MemoryError


def spread_out_of_memory(reporter):
    from workers.spread.client import ClientSpread

    client = ClientSpread(2, reporter)
    return client.gather([client.submit(use_up_memory, share) for share in range(2)])[0]


def plain_stump(values, window, reporter):
    import numpy as np
    import stumpy

    found = stumpy.stump(np.array(values), window)
    return {"distances": found.P_.astype(float).tolist(), "indices": found.I_.tolist()}


def plain_mpdist(a, b, window, reporter):
    import numpy as np
    import stumpy

    return float(stumpy.mpdist(np.array(a), np.array(b), window))


def warm_slowly():
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        sum(range(1000))
