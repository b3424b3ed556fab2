"""The full check of a training configuration, which needs the field's packages: asked of a worker (decision 13)."""

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from sqlmodel import Session

from app.capabilities.queries import workers_up
from app.control.queries import open_attempts
from app.db.reader import Reader
from app.db.tables import WorkerRow
from app.engines.all import Engines
from app.engines.base import AskFailed, EngineDown
from app.files import Files
from app.jobs.admission import Planned, below
from app.jobs.requests import TrainingJob
from app.kit.pointers import MOST_ERRORS
from app.kit.problems import FieldError, InvalidInput

log = logging.getLogger(__name__)

FUNCTION: Final = "workers.training.check:on_worker"
ASK_SECONDS: Final = 60.0
"""A worker that has just started may still load torch."""
AT_ONCE: Final = 4

Answer = dict[str, Any]


class Asking:
    def __init__(self, reader: Reader, engines: Engines, files: Files, allow: Sequence[str]) -> None:
        self._reader, self._engines, self._files, self._allow = reader, engines, files, list(allow)

    async def confirmed(self, planned: list[Planned], batch: bool) -> list[Planned]:
        """The same, with what a worker says of every training job among them. Raises InvalidInput with the faults of all."""
        asked = {_key(each.request): each.request for each in planned if isinstance(each.request, TrainingJob)}
        if not asked:
            return planned
        room = asyncio.Semaphore(AT_ONCE)

        async def one(request: TrainingJob) -> Answer:
            async with room:
                return await self._ask(request)

        answers = dict(zip(asked, await asyncio.gather(*map(one, asked.values())), strict=True))
        confirmed: list[Planned] = []
        faults: list[FieldError] = []
        for i, each in enumerate(planned):
            if not isinstance(each.request, TrainingJob):
                confirmed.append(each)
                continue
            answer = answers[_key(each.request)]
            errors = [FieldError(fault["pointer"], fault["detail"]) for fault in answer["faults"]]
            faults += below(f"/jobs/{i}", errors) if batch else errors
            told = {
                "reasons": [*each.plan.reasons, answer["said"]],
                "warnings": [*each.plan.warnings, *answer["warnings"]],
            }
            confirmed.append(replace(each, plan=each.plan.model_copy(update=told)))
        if faults:
            raise InvalidInput(" ".join(fault.detail for fault in faults[:3]), errors=faults[:MOST_ERRORS])
        return confirmed

    async def _ask(self, request: TrainingJob) -> Answer:
        """{"faults", "warnings", "said"}: where no worker answers, that only the table was checked."""
        source = request.params.source
        package = str(Path(self._files.source(source) / "package").resolve()) if source else None
        arguments = [request.params.model_dump(mode="json"), self._allow, package]
        why = "no worker has joined yet"
        for worker in await self._reader.run(_idle_first):
            if worker.engine not in self._engines:
                continue
            try:
                answer = await self._engines[worker.engine].ask(FUNCTION, arguments, worker.address, ASK_SECONDS)
                return {**answer, "said": f"Worker {worker.id} parsed the whole configuration."}
            except TimeoutError:
                why = f"worker {worker.id} did not answer within {ASK_SECONDS:.0f} s"
                break  # another one would take as long, and somebody waits for the answer
            except (EngineDown, AskFailed) as fault:
                why = f"worker {worker.id} could not be asked: {fault}"
                log.warning("a training configuration could not be checked on worker %s: %s", worker.id, fault)
        said = f"Only the rules of the table were checked, not the configuration's classes and arguments: {why}."
        return {"faults": [], "warnings": [said], "said": said}


def _idle_first(db: Session) -> list[WorkerRow]:
    busy = {attempt.worker_id for attempt in open_attempts(db)}
    return sorted(workers_up(db), key=lambda worker: worker.id in busy)


def _key(request: Any) -> str:
    """Equal for equal parameters: of a thousand jobs of one sweep, the same ones are asked once."""
    return json.dumps(request.params.model_dump(mode="json"), sort_keys=True)
