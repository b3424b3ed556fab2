"""What the training probes of all workers together prove."""

from collections.abc import Iterable
from typing import Final

from pydantic import BaseModel

from app.capabilities.queries import age_seconds
from app.db.tables import WorkerRow
from app.jobs.evidence import EVIDENCE_ORDER
from workers.contract import Probe
from workers.training.rules.evidence import capabilities

PREFIX: Final = "training"


class ProofView(BaseModel):
    available: bool
    evidence: str
    reason: str | None


class TrainingView(BaseModel):
    """What training jobs can use: each accelerator; each strategy, under Trainer and under Fabric; each precision on each accelerator."""

    accelerators: dict[str, ProofView]
    strategies: dict[str, dict[str, ProofView]]
    precisions: dict[str, dict[str, ProofView]]


def training_view(workers: Iterable[WorkerRow], evidence_seconds: float) -> TrainingView:
    """Of each probe the best that any worker found, unless it is too old to count."""
    best: dict[str, Probe] = {}
    for worker in workers:
        for told in worker.facts["probes"]:
            if not told["name"].startswith(PREFIX) or age_seconds(told) > evidence_seconds:
                continue
            probe = Probe.model_validate(told)
            if probe.name not in best or _rank(probe) > _rank(best[probe.name]):
                best[probe.name] = probe
    return TrainingView.model_validate(capabilities(best))


def _rank(probe: Probe) -> int:
    return EVIDENCE_ORDER.index(probe.evidence)
