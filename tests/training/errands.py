"""Stand-ins for ranks: what a supervisor must cope with, without torch. Each takes a rank's spec and a reporter."""

import faulthandler
import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def warm_nothing():
    pass


def finish(spec, reporter):
    step(reporter, spec)
    if spec["rank"] == 0:
        Path(spec["folder"], "result.json").write_text('{"metrics": {}}')
    return {"end": "finished", "summary": {"metrics": {}}, "provenance": {"implementation": "errand"}}


def finish_without_evidence(spec, reporter):
    step(reporter, spec)
    return {"end": "finished", "summary": {}, "provenance": {}}


def step(reporter, spec, number=1):
    reporter._send("beat", {"rank": spec["rank"], "step": number, "stage": "fit"})


def train(spec, reporter):
    """Steps until it is told to stop, as ranks do that are asked at the same step; leaves a checkpoint then."""
    number = 0
    while not os.path.exists(spec["stop_file"]):
        number += 1
        step(reporter, spec, number)
        time.sleep(0.02)
    if spec["rank"] == 0:
        Path(spec["folder"], "last.ckpt").write_text("whole")
    return {"end": "stopped"}


def is_chosen(spec):
    return spec["rank"] == int(spec.get("chosen", 1))


def connection_closed():
    problem = {"type": "/problems/training-failed", "title": "Training failed", "status": 500}
    return {
        **problem,
        "detail": "RuntimeError: [gloo/transport/tcp/pair.cc] Connection closed by peer [127.0.0.1]:1",
        "at": time.time(),
    }


def raise_on_one(spec, reporter):
    """The chosen rank fails; the others notice, are quicker to say so, and hide the cause."""
    step(reporter, spec)
    if not is_chosen(spec):
        time.sleep(0.3)
        reporter.raised(connection_closed())
        os._exit(1)
    problem = {**connection_closed(), "detail": "ValueError: the loss is a banana", "traceback": "train.py, line 3"}
    time.sleep(0.6)
    reporter.raised(problem)
    os._exit(1)


def die_on_one(spec, reporter):
    """The chosen rank is ended by a signal."""
    step(reporter, spec)
    if is_chosen(spec):
        os.kill(os.getpid(), spec.get("signal", signal.SIGKILL))
    time.sleep(600)


def leave_without_a_word(spec, reporter):
    if is_chosen(spec):
        os._exit(7)
    time.sleep(600)


def hang(spec, reporter):
    """Never makes a step, and says where it is when asked."""
    faulthandler.register(signal.SIGUSR1, file=sys.stderr)
    wait_for_godot()


def wait_for_godot():
    time.sleep(600)


def leave_temporary_files(spec, reporter):
    """And say where, before a signal ends the chosen one."""
    Path(spec["temporary"], f"pymp-{spec['rank']}").mkdir()
    reporter.log(spec["temporary"])
    return die_on_one(spec, reporter)


def stall(spec, reporter):
    faulthandler.register(signal.SIGUSR1, file=sys.stderr)
    for number in range(3):
        step(reporter, spec, number)
        time.sleep(0.05)
    if is_chosen(spec):
        wait_for_godot()
    for number in itertools.count(3):
        step(reporter, spec, number)
        time.sleep(0.05)


def wait_for_the_other(spec, reporter):
    """Both stand still after a step, for one waits for the other. Which one comes to it later says nothing of who that is."""
    faulthandler.register(signal.SIGUSR1, file=sys.stderr)
    step(reporter, spec, spec["steps"][spec["rank"]])
    if is_chosen(spec):
        time.sleep(0.2)
        step(reporter, spec, spec["steps"][spec["rank"]])
    wait_for_godot()


def ignore_term(spec, reporter):
    """Nothing but SIGKILL ends it, and it has started a helper in a session of its own, which started another."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    helper = "import subprocess, time; subprocess.Popen(['sleep', '600'], start_new_session=True); time.sleep(600)"
    subprocess.Popen([sys.executable, "-c", helper], start_new_session=True)
    reporter.log(f"{os.getpid()}")
    while True:
        step(reporter, spec)
        time.sleep(0.05)


def leave_a_daemon_while_others_go_on(spec, reporter):
    """Rank 1 ends and leaves a process; rank 0 has one too, and needs it."""
    daemon = "import os, time\nif os.fork() == 0:\n os.setsid()\n print(os.getpid(), flush=True)\n time.sleep(600)"
    told = subprocess.Popen([sys.executable, "-c", daemon], stdout=subprocess.PIPE, text=True)
    assert told.stdout is not None
    pid = int(told.stdout.readline())
    told.wait()
    if spec["rank"] == 1:
        return {"end": "finished", "pid": pid}
    time.sleep(1)
    os.kill(pid, 0)  # raises where it has ended
    return {"end": "finished", "pid": pid}


def prepare(task, reporter):
    reporter.log("Nothing was to prepare.")
    return {"paths": {}}


def keep(address, port, reporter):
    time.sleep(600)


def keep_for_a_second(address, port, reporter):
    time.sleep(1)
    raise OSError("no store today")


def talk(spec, reporter):
    reporter.log(f"this is rank {spec['rank']}")
    return finish(spec, reporter)


SCRIBBLES = [
    b'{"kind":1}',
    b"{bad",
    b"",
    b"7",
    b'["returned"]',
    b"\xff\xfe",
    b'{"type":["log"],"data":{}}',
    b'{"type":"log"}',
    b'{"type":"log","data":7}',
    b'{"type":"log","data":{"message":7}}',
    b'{"type":"log","data":{"message":"\\ud800"}}',
    b'{"type":"metric","data":{"name":"x","value":NaN,"step":1}}',
    b'{"type":"metric","data":{"name":"x","value":1e999,"step":1}}',
    b'{"type":"metric","data":{"value":1,"step":"now"}}',
    b'{"type":"progress","data":{}}',
    b'{"type":"state","data":{"to":"succeeded"}}',
    b'{"type":"banana","data":{}}',
    b'{"type":"beat","data":{"step":[]}}',
    b'{"type":"log","data":{"message":' + b"[" * 90 + b"]" * 90 + b"}}",
    b"[" * 200_000,
    b"9" * 10_000,
    b'{"type":"log","data":{"message":"' + b"x" * (1 << 21) + b'"}}',
    b'{"type":"returned"}',
    b'{"type":"raised"}',
    b'{"type":"raised","problem":"all"}',
    b'{"type":"raised","problem":{"type":7}}',
    b'{"type":"raised","problem":{"type":"/problems/internal","title":"x","status":500,"detail":7}}',
]


def scribble(spec, reporter):
    """As user code that writes to every descriptor it finds."""
    data = memoryview(b"\n".join(SCRIBBLES) + b"\n")
    while data:
        data = data[os.write(reporter._descriptor, data) :]
    return finish(spec, reporter)


def never_end_a_line(spec, reporter):
    for _ in range(66):
        data = memoryview(b"x" * (1 << 20))
        while data:
            data = data[os.write(reporter._descriptor, data) :]
    os.write(reporter._descriptor, b"\n")
    reporter.log("still here")
    return "done"


def kill_the_nursery(params, allow, source, reporter):
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)


def sleep_for_long(params, allow, source, reporter):
    time.sleep(600)


def answer_wrongly(params, allow, source, reporter):
    return {"faults": "none"}


def tell_place(spec, reporter):
    names = "rank local_rank node_rank local_world_size threads master_address interface master_port seed".split()  # noqa: SIM905
    Path(spec["folder"], f"place-{spec['rank']}").write_text(" ".join(str(spec[name]) for name in names))
    return finish(spec, reporter)
