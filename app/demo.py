"""`make demo`: the main job end to end, as a stranger would do it, on a real series: weekly CO₂ at Mauna Loa, 1958 to 2001.

Starts a server of its own on a free port, uploads the file that statsmodels ships, runs a matrix profile with a window of a year,
prints what it found with its dates, saves the plot, and stops the server.
"""

import argparse
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

READY = "Tidemill is ready at "
WINDOW_WEEKS = 52
WORDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "state": lambda d: f"{d['from'] or 'new'} → {d['to']}",
    "phase": lambda d: str(d["phase"]),
    "progress": lambda d: f"{d['fraction']:.0%} of {d['total']} {d['unit']}",
    "artifact": lambda d: f"{d['name']}, {d['bytes']:,} bytes",
}
"""How each type of event is told on one line."""


def message_of(data: dict[str, Any]) -> str:
    return str(data.get("message", ""))


def co2_file() -> Path:
    """The CSV inside the statsmodels package, found without importing it."""
    package = importlib.util.find_spec("statsmodels")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("The demo's series comes with statsmodels: pip install -c constraints.txt '.[demo]'")
    return Path(package.submodule_search_locations[0], "datasets", "co2", "co2.csv")


def start_server(home: Path) -> tuple[subprocess.Popen[str], str]:
    """A server on a free port, and its address once it is ready."""
    server = subprocess.Popen(
        [sys.executable, "-m", "app", "--port", "0", "--home", str(home)],
        stdout=subprocess.PIPE,
        text=True,
        # It is for this process alone, whatever is set for the server that others use.
        env={"TIDEMILL_LOG_LEVEL": "warning", **os.environ, "TIDEMILL_HOST": "127.0.0.1", "TIDEMILL_AUTH": "off"},
    )
    assert server.stdout is not None
    for line in server.stdout:
        if line.startswith(READY):
            return server, line.removeprefix(READY).strip()
    raise SystemExit(f"The server ended with code {server.wait()} before it was ready.")


def upload(api: httpx.Client) -> dict[str, Any]:
    path = co2_file()
    with path.open("rb") as file:
        answer = api.post(
            "/datasets",
            files={"file": (path.name, file, "text/csv")},
            data={"time_column": "date", "time_format": "%Y%m%d"},
        )
    answer.raise_for_status()
    dataset: dict[str, Any] = answer.json()
    return dataset


def submit(api: httpx.Client, dataset: str) -> dict[str, Any]:
    body = {
        "kind": "matrix_profile",
        "params": {"series": {"dataset": dataset, "column": "co2"}, "window": WINDOW_WEEKS},
        "labels": {"made-by": "demo"},
    }
    answer = api.post("/jobs", json=body)
    answer.raise_for_status()
    job: dict[str, Any] = answer.json()
    return job


def watch(api: httpx.Client, job: dict[str, Any]) -> None:
    """Print the job's event stream until it ends."""
    with api.stream("GET", job["links"]["events"], headers={"Accept": "text/event-stream"}) as stream:
        for line in stream.iter_lines():
            if not line.startswith('data: {"seq"'):
                continue
            event = json.loads(line.removeprefix("data: "))
            data = event["data"]
            words = WORDS.get(event["type"], message_of)(data)
            print(f"    {event['at'][11:23]}  {event['type']:<9} {words}", flush=True)


def day(time_text: str) -> str:
    return time_text[:10]


def tell(job: dict[str, Any], dataset: dict[str, Any]) -> None:
    motif, discord = job["result"]["motif"], job["result"]["discord"]
    print(
        f"\n  Motif:   the years from {day(motif['at'])} and from {day(motif['neighbor_at'])} are the most alike "
        f"(distance {motif['distance']:.3f})"
    )
    print(
        f"  Discord: the year from {day(discord['at'])} is the least like any other (distance {discord['distance']:.3f})"
    )
    check = job["result"]["verification"]
    print(
        f"  Checked: {check['rows_checked']} rows straight from the definition, largest difference "
        f"{check['max_abs_difference']:.1e}"
    )
    plan = job["plan"]
    print(f"  Ran:     {plan['implementation']} `{plan['function']}` on {plan['device']}, backend {plan['backend']}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, default=Path("var/demo"))
    options = parser.parse_args()
    began = time.perf_counter()

    def say(words: str) -> None:
        print(f"{time.perf_counter() - began:6.1f} s  {words}", flush=True)

    say("starting the server and its cluster …")
    server, url = start_server(options.home)
    try:
        say(f"ready at {url} (docs at {url}/docs)")
        with httpx.Client(base_url=url, timeout=120, trust_env=False) as api:
            dataset = upload(api)
            column = next(c for c in dataset["columns"] if c["name"] == "co2")
            say(f"uploaded {dataset['name']}: {dataset['rows']:,} weeks, {column['missing']} of them missing")
            sent = time.perf_counter()
            job = submit(api, dataset["id"])
            say(f"submitted {job['id']}; its events:")
            watch(api, job)
            job = api.get(job["links"]["self"], headers={"Prefer": "wait=60"}).json()
            first_job_seconds = time.perf_counter() - sent
            if job["state"] != "succeeded":
                raise SystemExit(f"The job ended as {job['state']}: {json.dumps(job['error'])}")
            say(f"the first job after the start took {first_job_seconds:.2f} s from submission to result")
            tell(job, dataset)
            plot = options.home / "co2.png"
            plot.write_bytes(api.get(job["links"]["plot"]).raise_for_status().content)
            print(f"  Plot:    {plot}\n")
    finally:
        server.send_signal(signal.SIGTERM)
        code = server.wait(timeout=60)
    say(f"stopped; the server's exit code is {code}")
    return code


if __name__ == "__main__":
    sys.exit(main())
