"""The SQL of workers, and what planning needs to know of them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlmodel import Session, col, select

from app.db.tables import WorkerRow
from app.jobs.planning import WorkerFacts
from app.kit.clock import now
from workers.contract import Probe

EVIDENCE_SECONDS = 86_400.0
"""How long a probe counts where no setting says otherwise."""


def workers_up(db: Session) -> Sequence[WorkerRow]:
    return db.exec(select(WorkerRow).where(WorkerRow.state == "up").order_by(col(WorkerRow.joined_at))).all()


def gpus(worker: WorkerRow) -> dict[int, str]:
    """The CUDA devices of a worker that can be leased: index → the device's own id."""
    known = worker.facts.get("gpus", [])[: worker.resources.get("GPU", 0)]
    return {int(gpu["index"]): str(gpu.get("uuid") or f"{worker.id}/{gpu['index']}") for gpu in known}


def age_seconds(probe: Mapping[str, Any]) -> float:
    return (now() - datetime.fromisoformat(probe["at"])).total_seconds()


def worker_facts(db: Session, evidence_seconds: float = EVIDENCE_SECONDS) -> list[WorkerFacts]:
    """The workers as planning sees them. A probe older than `evidence_seconds` proves nothing any more, and says so."""
    return [
        WorkerFacts(
            id=worker.id,
            engine=worker.engine,
            threads=worker.facts["threads"],
            speeds=worker.facts["speed"],
            memory_bytes=worker.facts.get("memory_bytes", 0),
            gpus=len(gpus(worker)),
            packages=frozenset(worker.facts.get("versions", ())),
            evidence={probe["name"]: _proof(worker, probe, evidence_seconds) for probe in worker.facts["probes"]},
        )
        for worker in workers_up(db)
    ]


def _proof(worker: WorkerRow, probe: Mapping[str, Any], evidence_seconds: float) -> tuple[str, str]:
    age = age_seconds(probe)
    if age <= evidence_seconds:
        return probe["evidence"], probe["detail"]
    return "absent", (
        f"the {probe['name']} probe of worker {worker.id} is {timedelta(seconds=round(age))} old and counts for "
        f"{timedelta(seconds=round(evidence_seconds))}; POST /capabilities/probes runs it again"
    )


def keep_probes(db: Session, worker_id: str, probes: Iterable[Probe]) -> None:
    """New probes take the place of older ones of the same name."""
    worker = db.get(WorkerRow, worker_id)
    if worker is None:
        return
    fresh = {probe.name: probe.model_dump(mode="json") for probe in probes}
    known = {probe["name"]: probe for probe in worker.facts["probes"]}
    worker.facts = {**worker.facts, "probes": list({**known, **fresh}.values())}
    db.add(worker)
