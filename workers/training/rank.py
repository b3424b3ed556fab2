"""One process of a training: takes on its place in the world, builds Trainer or Fabric, runs the stage and tells how it went."""

import faulthandler
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.utilities.seed import seed_everything

from workers.failures import JobFailure
from workers.pipe import PipeReporter
from workers.training import environment, outputs, rank_problems, rank_result, stages
from workers.training import fabric as fabric_part
from workers.training.checkpoint_state import best_of
from workers.training.conductor import Conductor, StopAsked, any_rank
from workers.training.conductor_post import Post
from workers.training.failures_named import DeviceMismatch
from workers.training.losses import LossWatch
from workers.training.metrics import MetricsTable
from workers.training.parsing import FabricConfiguration, TrainerConfiguration, parse
from workers.training.predictions import Predictions
from workers.training.printing import echo
from workers.training.reporting import RankReporter
from workers.training.spec import METRICS, RankSpec
from workers.training.uneven import EpochEnds, failed_together

STOPPED = {"end": "stopped"}


def run(spec: dict[str, Any], pipe: PipeReporter) -> dict[str, Any]:
    """What the nursery calls in the forked process. Returns `{"end": "finished"}`, of rank 0 with `summary` and `provenance`, or
    `{"end": "stopped"}`; a failure is raised with the problem that users read."""
    told = RankSpec.model_validate(spec)
    settle(told)
    reporter = RankReporter(pipe, told.rank)
    echo(told, reporter)
    try:
        return Rank(told, reporter).work()
    finally:
        reporter.close()


def settle(spec: RankSpec) -> None:
    """Make this process the rank: environment, folder, threads, signals."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)  # a supervisor that finds this rank stuck asks where
    environment.take_on(spec)
    os.makedirs(spec.folder, exist_ok=True)
    os.chdir(spec.folder)
    if spec.source:
        sys.path.insert(0, spec.source)
    torch.set_num_threads(spec.threads)


class Rank:
    """The story of one rank."""

    def __init__(self, spec: RankSpec, reporter: RankReporter) -> None:
        self.spec, self.reporter, self.folder = spec, reporter, Path(spec.folder)
        self.seconds: dict[str, float] = {}
        self.building = True
        self.predicted: outputs.Columns | None = None
        table = MetricsTable(self.folder / METRICS, reporter, spec.metrics_seen) if spec.rank == 0 else None
        losses = LossWatch(reporter, spec.params.on_nonfinite_loss == "fail")
        self.predictions = Predictions(reporter) if spec.params.stage == "predict" else None
        self.post = Post(spec, reporter, table, losses, EpochEnds(spec.rank), Conductor(spec), self.predictions)

    def work(self) -> dict[str, Any]:
        try:
            result = self._trainer() if self.spec.params.mode == "trainer" else self._fabric()
            return {"end": "finished"} if self.spec.rank else self._finished(result)
        except StopAsked:
            return STOPPED
        except BaseException as fault:
            if failed_together(fault) and self.post.evaluation.was_asked():
                return STOPPED  # the others stopped while this one waited for them
            explained = self.post.ends.explain() if failed_together(fault) else None
            problem = rank_problems.problem_of(explained or fault, self.spec, self.building)
            if not isinstance(fault, JobFailure):
                print(problem.get("traceback") or problem["detail"], file=sys.stderr)  # noqa: T201 - into the rank's log
            raise rank_problems.RankFailed(problem) from None  # its text may be anything, and is in the log
        finally:
            if self.post.table:
                self.post.table.close()

    def _trainer(self) -> dict[str, Any]:
        spec = self.spec
        with self._phase("building"):
            self._seed()
            # The parser puts its own objects into what it is given.
            parsed = parse(spec.params.model_copy(deep=True), spec.allow, spec.source)
            assert isinstance(parsed, TrainerConfiguration)
            trainer, module, data = parsed.instantiate(stages.overrides(spec))
            stages.join(trainer, self.post)
            self._see_that_it_is_the_plan(trainer.world_size, trainer.strategy)
            self._leave_configuration(parsed)
        self.building = False
        with self._phase("training" if spec.params.stage == "fit" else spec.params.stage):
            metrics = stages.run(trainer, module, data, spec)
        with self._phase("saving"):
            if self.predictions:
                self.predicted = self.predictions.gathered(spec.rank)
            any_rank(False)  # all ranks have come to the end
            if spec.rank:
                return {}
            best = best_of(trainer, self.folder)
            return rank_result.summary_of(
                self.post,
                metrics,
                trainer.global_step,
                epochs=trainer.current_epoch,
                predictions=self.predicted,
                best=best,
            )

    def _fabric(self) -> dict[str, Any]:
        spec = self.spec
        with self._phase("building"):
            self._seed()
            # The parser puts its own objects into what it is given.
            parsed = parse(spec.params.model_copy(deep=True), spec.allow, spec.source)
            assert isinstance(parsed, FabricConfiguration)
            fabric, function, kwargs = parsed.instantiate(fabric_part.overrides(spec), fabric_part.RankFabric)
            fabric_part.join(fabric, self.post)
            self._see_that_it_is_the_plan(fabric.world_size, fabric.strategy)
            self._leave_configuration(parsed)
        self.building = False
        with self._phase("training"):
            metrics = fabric_part.run(fabric, function, kwargs)
            self.post.losses.check()
        with self._phase("saving"):
            any_rank(False)
            if spec.rank:
                return {}
            return rank_result.summary_of(self.post, metrics, self.post.steps)

    def _seed(self) -> None:
        seed_everything(self.spec.seed, workers=True, verbose=False)

    def _leave_configuration(self, parsed: TrainerConfiguration | FabricConfiguration) -> None:
        if self.spec.rank:
            return
        try:
            outputs.write_config(self.spec, parsed.plain())
        except (TypeError, ValueError) as fault:
            self.reporter.warning(f"the configuration could not be written: {type(fault).__name__}: {fault}")

    def _see_that_it_is_the_plan(self, world_size: int, strategy: Any) -> None:
        planned = self.spec.world_size
        if world_size != planned:
            raise DeviceMismatch(
                f"{type(strategy).__name__} makes a world of {world_size} processes, and the job is planned with {planned}: nothing ran."
            )

    def _finished(self, result: dict[str, Any]) -> dict[str, Any]:
        provenance = rank_result.provenance_of(self.spec, self.seconds)
        outputs.write_result(self.folder, result, provenance, self.predicted)
        return {"end": "finished", "summary": outputs.finite(result), "provenance": provenance}

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        if self.spec.rank == 0:
            self.reporter.phase(name)
        begun = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = time.monotonic() - begun
