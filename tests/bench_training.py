"""The part of `make bench` about training: a two-rank job over HTTP beside the same file under plain `torchrun`, in turns."""

import io
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

from tests import bench_parts as parts
from tests.house import Api, House, running

STEPS, SETTLING, ROUNDS = 400, 20, 5
PARTS = Path(parts.__file__)
ENVIRONMENT = {
    "TIDEMILL_ENGINE": "dask",
    "TIDEMILL_WORKERS": "1",
    "TIDEMILL_WORKER_THREADS": "2",
    "TIDEMILL_ALLOW_SOURCE_UPLOAD": "true",
    "TIDEMILL_TRAINING_WARM": "true",
}


@dataclass(frozen=True)
class Run:
    """What one run took. All but `first` once it had settled."""

    first: float
    """When the first optimizer step was done, in seconds after the start."""
    rate: float
    """Steps a second, of all steps together."""
    typical: float
    """The same by the median step, which a busy machine disturbs less."""
    work: float
    """Processor time of a step in rank 0, in milliseconds, all its threads together."""

    @classmethod
    def of(cls, begun: float, stamps: list[tuple[float, float]]) -> "Run":
        assert len(stamps) == STEPS, f"{len(stamps)} steps instead of {STEPS}"
        settled = stamps[SETTLING:]
        steps = [after[0] - before[0] for before, after in itertools.pairwise(settled)]
        work = (settled[-1][1] - settled[0][1]) / len(steps) * 1000
        return cls(stamps[0][0] - begun, len(steps) / sum(steps), 1 / statistics.median(steps), work)


def upload(api: Api) -> str:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.write(PARTS, PARTS.name)
    answer = api.post("/sources", files={"file": ("bench.zip", out.getvalue())})
    assert answer.is_success, answer.text
    return str(answer.json()["id"])


def body(source: str) -> dict[str, object]:
    module = PARTS.stem
    config = {
        "seed_everything": 1,
        "trainer": {
            "accelerator": "cpu",
            "devices": 2,
            "strategy": "ddp",
            "max_steps": STEPS,
            "max_epochs": 1,
            "enable_model_summary": False,
            "callbacks": [{"class_path": f"{module}.Stamps"}],
        },
        "model": {"class_path": f"{module}.Net"},
        "data": {"class_path": f"{module}.Noise", "init_args": {"steps": STEPS}},
    }
    return {"kind": "training", "params": {"config": config, "source": source}}


def as_a_job(api: Api, source: str) -> Run:
    begun = time.time()
    job = api.until(api.submit(body(source))["id"], "succeeded", "failed", seconds=180)
    assert job["state"] == "succeeded", job["error"]
    stamps = api.get(f"/jobs/{job['id']}/artifacts/{parts.STAMPS}")
    assert stamps.status_code == 200, stamps.text
    return Run.of(begun, stamps.json())


def under_torchrun(folder: Path) -> Run:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(PARTS)]
    begun = time.time()
    # torchrun's own choice of threads for several ranks, without its warning
    done = subprocess.run(
        [*command, str(STEPS)],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return Run.of(begun, json.loads((folder / parts.STAMPS).read_text()))


def rounds() -> tuple[Run, list[tuple[Run, Run]]]:
    """The first job of a server, which may still load torch, and then ours and torchrun's in turns."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running(House(folder / "home", ENVIRONMENT)) as house, house.api() as api:
            source = upload(api)
            return as_a_job(api, source), [(as_a_job(api, source), under_torchrun(folder)) for _ in range(ROUNDS)]


def training() -> None:
    cold, pairs = rounds()

    def medians(what: str) -> tuple[float, float]:
        """Ours and torchrun's."""
        ours, plain = ([getattr(pair[side], what) for pair in pairs] for side in (0, 1))
        return statistics.median(ours), statistics.median(plain)

    ours, plain = medians("first")
    print(f"two CPU ranks under ddp, {STEPS} steps, medians of {ROUNDS}, in turns:")
    line("first optimizer step, after the submission", f"{ours:8.2f} s  (of the server's first job {cold.first:.2f} s)")
    line("first optimizer step, after the start of torchrun", f"{plain:8.2f} s  = {plain / ours:.1f} times as long")
    for what, words in (
        ("rate", f"steps a second after the first {SETTLING}"),
        ("typical", "the same by the median step"),
    ):
        ours, plain = medians(what)
        line(words, f"{ours:8.1f}    as a job, {plain:.1f} under torchrun: {ours / plain:.3f} of it")
    ours, plain = medians("work")
    line(
        "processor time of a step in rank 0",
        f"{ours:8.2f} ms  as a job, {plain:.2f} under torchrun: {ours / plain:.3f} of it",
    )
    line(
        "(steps a second, job to torchrun, in each round",
        ", ".join(f"{one.rate / other.rate:.3f}" for one, other in pairs) + ")",
    )


def line(words: str, figures: str) -> None:
    print(f"{'  ' + words:<60} {figures}")
