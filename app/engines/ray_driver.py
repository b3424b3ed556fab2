"""The server's hand on a Ray cluster: `python -m app.engines.ray_driver --address …`, a child of the server, spoken to by `line.py`.

Ray's core ends the process that it lives in with exit code 1 once its cluster has been away for a minute; it takes over
signals, and keeps some thirty threads. So it does not live in the server's.
"""

import argparse
import json
import logging
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, TextIO

import ray

NAMESPACE: Final = "tidemill"
SCHEME: Final = "ray://"
"""A worker's address is this and the name of its actor."""
NAME_PREFIX: Final = "wk_"


class Driver:
    """Carries out the server's questions, each in a thread of its own: any of them may wait for a cluster that does not answer."""

    def __init__(self, answers: TextIO) -> None:
        self._answers = answers
        self._lock = threading.Lock()
        self._actors: dict[str, Any] = {}

    def serve(self, question: dict[str, Any]) -> None:
        try:
            value = QUESTIONS[question["op"]](self, question)
            self.say({"id": question["id"], "value": value})
        except Exception as fault:
            words = str(fault).partition("\n")[0]
            self.say({"id": question["id"], "error": f"{type(fault).__name__}: {words}"})

    def say(self, answer: Mapping[str, Any]) -> None:
        text = json.dumps(answer)
        with self._lock:
            self._answers.write(text + "\n")

    def workers(self, question: Mapping[str, Any]) -> list[str]:
        names = {name for name in ray.util.list_named_actors() if name.startswith(NAME_PREFIX)}
        self._actors = {name: actor for name, actor in self._actors.items() if name in names}
        return [SCHEME + name for name in names]

    def execute(self, question: Mapping[str, Any]) -> None:
        """Returns once the worker has begun, or had begun already."""
        ray.get(self._actor(question["worker"]).execute.remote(question["attempt"]))

    def ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        call = self._actor(question["worker"]).call.remote(
            "workers.joining:answer", [question["function"], question["arguments"]]
        )
        answer: dict[str, Any] = ray.get(call)
        return answer

    def _actor(self, address: str) -> Any:
        name = address.removeprefix(SCHEME)
        if name not in self._actors:
            self._actors[name] = ray.get_actor(name)
        return self._actors[name]


QUESTIONS: Final[Mapping[str, Callable[[Driver, Mapping[str, Any]], Any]]] = {
    "workers": Driver.workers,
    "execute": Driver.execute,
    "ask": Driver.ask,
}


def listen(questions: queue.SimpleQueue[str]) -> None:
    """Take questions from the beginning, so that the end of the server is noticed while Ray still looks for its cluster."""
    for text in sys.stdin:
        questions.put(text)
    os._exit(0)  # the server is gone; Ray needs no goodbye from a driver that owns nothing


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m app.engines.ray_driver", description=__doc__)
    parser.add_argument("--address", required=True)
    address = parser.parse_args().address
    # What Ray prints is for the server's standard error; the pipe is for answers alone.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    logging.getLogger("ray").setLevel(logging.ERROR)
    driver = Driver(answers)
    questions: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=listen, args=(questions,), daemon=True).start()
    try:
        ray.init(address, namespace=NAMESPACE, log_to_driver=False, configure_logging=False)
    except Exception as fault:
        driver.say({"failed": f"{type(fault).__name__}: {str(fault).partition(chr(10))[0]}"})
        os._exit(1)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    driver.say({"ready": ray.get_runtime_context().gcs_address})
    while True:
        threading.Thread(target=driver.serve, args=(json.loads(questions.get()),), daemon=True).start()


if __name__ == "__main__":
    main()
