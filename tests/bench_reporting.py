"""What our callbacks cost a step: one process trains with and without them in turns, on steps so small that it shows.

A process of its own, for the sake of its peace.
"""

import logging
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import torch

from tests.bench_parts import Net, Noise, Stamps, trainer
from workers.contract import TrainingParams
from workers.pipe import PipeReporter
from workers.training.rank import Rank
from workers.training.reporting import RankReporter
from workers.training.rules import Resolved
from workers.training.spec import RankSpec
from workers.training.stages import join

STEPS, SETTLING, ROUNDS = 1000, 20, 7
WIDTH, BATCH = 8, 4
RESOLVED = Resolved(
    accelerator="cpu", devices=1, num_nodes=1, strategy="single_device", precision="32-true", world_size=1
)


def spec(folder: Path) -> RankSpec:
    return RankSpec(
        attempt="at_bench",
        job="job_bench",
        params=TrainingParams(config={"trainer": {}}),
        resolved=RESOLVED,
        folder=str(folder),
        stop_file=str(folder / "stop"),
        seed=1,
        threads=1,
        rank=0,
        local_rank=0,
        node_rank=0,
        local_world_size=1,
        master_address="",
        master_port=0,
    )


def step(folder: Path, pipe: PipeReporter | None) -> tuple[float, float]:
    """Milliseconds of a settled step, by the clock and of the processor; with our callbacks where there is a pipe to report on."""
    stamps = Stamps()
    fitting = trainer(STEPS, [stamps], devices=1)
    reporter = RankReporter(pipe, 0) if pipe else None
    rank = Rank(spec(folder), reporter) if reporter else None
    if rank:
        join(fitting, rank.post)
    fitting.fit(Net(WIDTH), datamodule=Noise(STEPS, 1, WIDTH, BATCH))
    if rank and rank.post.table and reporter:
        rank.post.table.close()
        reporter.close()
    (begun, before), (ended, after) = stamps.times[SETTLING], stamps.times[-1]
    steps = len(stamps.times) - SETTLING - 1
    return (ended - begun) / steps * 1000, (after - before) / steps * 1000


def main() -> int:
    warnings.simplefilter("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    torch.set_num_threads(1)
    # Another process reads, as the worker does.
    reader = subprocess.Popen([sys.executable, "-c", "import sys\nfor line in sys.stdin: pass"], stdin=subprocess.PIPE)
    assert reader.stdin is not None
    with tempfile.TemporaryDirectory() as folder, reader.stdin as end:
        os.chdir(folder)
        pipe = PipeReporter(end.fileno())
        step(Path(folder), None)
        rounds = [(step(Path(folder), None), step(Path(folder), pipe)) for _ in range(ROUNDS)]
    reader.wait()
    # The least of all rounds: what a busy machine adds is never negative.
    for measure, words in enumerate(("by the clock", "of the processor")):
        bare, ours = (min(pair[side][measure] for pair in rounds) for side in (0, 1))
        what, more = f"  a very small step of one process, {words}", (ours - bare) * 1000
        told = f"{ours:.3f} ms with our callbacks: {more:+.0f} µs, {more / 100:+.2f} % of a step of 10 ms"
        print(f"{what:<60} {bare:8.3f} ms  {told}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
