"""`make capabilities`: every kind of job on every backend, with the evidence that this machine's workers gave.

    python -m app.capabilities.table [--server http://…] [--home DIR]

Without `--server` it starts one of its own on a free port, with a Dask and a Ray cluster unless `TIDEMILL_ENGINE` says otherwise. A server
that asks for keys is shown the one in `TIDEMILL_KEY`.
"""

import argparse
import os
import signal
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from app.demo import start_server

BACKENDS = ("cpu", "dask", "ray", "cuda")
KEY = "TIDEMILL_KEY"


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """A Markdown table of what `GET /capabilities` answered, and below it each reason why something is not available."""
    reasons: list[str] = []
    yield from _row(["kind", *BACKENDS])
    yield from _row(["---"] * (len(BACKENDS) + 1))
    for operation in found["operations"]:
        cells = [_cell(operation["backends"][backend], reasons) for backend in BACKENDS]
        yield from _row([f"`{operation['kind']}`", *cells])
    yield ""
    yield from _training(found["training"], reasons)
    for number, reason in enumerate(reasons, 1):
        yield from textwrap.wrap(f"[{number}] {reason}", 120, subsequent_indent="    ")
    for engine in found["engines"]:
        for worker in engine["workers"]:
            yield from ("", f"{worker['id']} on {worker['host']}, {engine['name']} ({engine['mode']}): {_what(worker)}")
            for probe in worker["probes"]:
                yield f"    {probe['name']:<34} {probe['evidence']:<10} {probe['seconds']:7.2f} s  {probe['detail']}"


def _training(found: Mapping[str, Any], reasons: list[str]) -> Iterator[str]:
    """Strategies under Trainer and Fabric, and precisions on each accelerator."""
    for title, columns, rows in (
        ("strategy", ("trainer", "fabric"), found["strategies"]),
        ("precision", ("cpu", "cuda"), found["precisions"]),
        ("accelerator", ("available",), {name: {"available": proof} for name, proof in found["accelerators"].items()}),
    ):
        yield from _row([title, *columns])
        yield from _row(["---"] * (len(columns) + 1))
        for name, proofs in rows.items():
            yield from _row([f"`{name}`", *(_cell({"functions": (), **proofs[column]}, reasons) for column in columns)])
        yield ""


def _row(cells: Iterable[str]) -> Iterator[str]:
    yield f"| {' | '.join(cells)} |"


def _cell(backend: Mapping[str, Any], reasons: list[str]) -> str:
    """The functions with the evidence; where they are not available, the number of the reason why not."""
    reason = backend["reason"]
    if reason is not None and reason not in reasons:
        reasons.append(reason)
    note = "" if reason is None else f" [{reasons.index(reason) + 1}]"
    functions = " ".join(f"`{name}`" for name in backend["functions"])
    return f"{functions + ' ' if functions else ''}{backend['evidence']}{note}"


def _what(worker: Mapping[str, Any]) -> str:
    gpus = ", ".join(gpu["name"] for gpu in worker["gpus"]) or "no GPU"
    return f"{worker['threads']} computing thread(s) of {worker['cpu']['model']}, {gpus}"


def show(url: str) -> int:
    """Returns what the command ends with."""
    key = os.environ.get(KEY)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        answer = httpx.get(f"{url.rstrip('/')}/capabilities", headers=headers, timeout=60, trust_env=False)
    except (httpx.HTTPError, httpx.InvalidURL) as fault:
        return _unable(f"{url} cannot be asked: {fault}")
    if answer.status_code in (401, 403):
        return _unable(f"{url} wants a key with the scope `read`: put it into {KEY}")
    if answer.status_code != 200:
        return _unable(f"{url} answered with status {answer.status_code}: {answer.text[:300] or 'nothing more'}")
    sys.stdout.writelines(f"{line}\n" for line in lines(answer.json()))
    return 0


def _unable(why: str) -> int:
    sys.stderr.write(f"capabilities: {why}.\n")
    return 1


def prove_training(url: str) -> None:
    """Have the training probes run now: workers that have just joined run them when they have loaded torch."""
    with httpx.Client(base_url=url, timeout=120, trust_env=False) as api:
        answer = api.post("/capabilities/probes", json={"check": "training"}, headers={"Prefer": "wait=60"})
        answer.raise_for_status()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m app.capabilities.table", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--server", help="its address; without it, a server is started for the purpose")
    parser.add_argument("--home", type=Path, default=Path("var/capabilities"), help="HOME of a server that is started")
    options = parser.parse_args(arguments)
    if options.server:
        return show(options.server)
    os.environ.setdefault("TIDEMILL_ENGINE", "dask,ray")
    server, url = start_server(options.home)
    try:
        prove_training(url)
        shown = show(url)
    finally:
        server.send_signal(signal.SIGTERM)
        code = server.wait(timeout=60)
    return shown or code


if __name__ == "__main__":
    sys.exit(main())
