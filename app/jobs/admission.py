"""From a request to a job that may be accepted: what it names is looked up, every check runs, and where it will run is decided."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sqlmodel import Session

from app.capabilities import queries as capabilities
from app.control import queries as running
from app.control.demand import Demand
from app.control.never import NEVER, never
from app.control.placing import Candidate
from app.files import Files
from app.jobs import memory
from app.jobs.checks import CHECKS
from app.jobs.choices import tiles_obstacle
from app.jobs.planning import WorkerFacts
from app.jobs.planning import plan as plan_for
from app.jobs.problems import BackendUnavailable
from app.jobs.requests import JobRequest, TrainingJob
from app.jobs.schemas import Plan
from app.jobs.series import facts_in
from app.kit.pointers import MOST_ERRORS
from app.kit.problems import FieldError, InvalidInput, NotFound
from app.sources import queries as sources
from app.training import planning as training
from app.training import references
from workers.operations import OPERATIONS
from workers.training.rules import DEFAULT_ALLOW


@dataclass(frozen=True)
class Planned:
    """A request that passed every check, with what it was decided to become."""

    request: JobRequest
    plan: Plan
    retry_of: str | None = None


@dataclass(frozen=True)
class Crew:
    """The workers that are up, as planning sees them and as placing does."""

    workers: Sequence[WorkerFacts]
    candidates: Sequence[Candidate]

    def accepted(self, request: JobRequest, plan: Plan) -> Plan:
        """The plan of a job that some worker could run, were it free; else it says that it waits for another worker, or is refused
        where nothing but what was asked for will do. Raises BackendUnavailable."""
        reason = never(Demand.of(request.kind, plan.model_dump(mode="json")), self.candidates)
        if reason is None:
            return plan
        if request.execution.fallback == "forbid":
            raise BackendUnavailable(f"{NEVER.capitalize()}: {reason}.", pointer="/execution/backend")
        return plan.model_copy(update={"warnings": [*plan.warnings, f"It will wait, for {NEVER}: {reason}."]})


@dataclass(frozen=True)
class Admission:
    """Decides on requests. The other members are settings."""

    files: Files
    max_job_bytes: int | None = None
    evidence_seconds: float = capabilities.EVIDENCE_SECONDS
    training_allow: Sequence[str] = DEFAULT_ALLOW
    sources_allowed: bool = False

    def planned(self, db: Session, request: JobRequest, owner: str) -> Planned:
        """Run every check and decide where the job will run. Raises InvalidInput with every fault's pointer, or BackendUnavailable."""
        return self._planned(db, request, owner, self._crew(db), "")

    def _crew(self, db: Session) -> Crew:
        return Crew(capabilities.worker_facts(db, self.evidence_seconds), running.candidates(db))

    def _planned(self, db: Session, request: JobRequest, owner: str, crew: Crew, at: str) -> Planned:
        """The same of a request that stands at `at`."""
        try:
            return Planned(request, crew.accepted(request, self._plan(db, request, owner, crew.workers)))
        except (InvalidInput, BackendUnavailable) as refusal:
            raise type(refusal)(refusal.detail, errors=below(at, refusal.errors)) from None

    def _plan(self, db: Session, request: JobRequest, owner: str, workers: Sequence[WorkerFacts]) -> Plan:
        if isinstance(request, TrainingJob):
            return self._training_plan(db, request, owner, workers)
        operation, params = OPERATIONS[request.kind], request.params
        given = facts_in(db, self.files, owner, operation, params)
        found = CHECKS[request.kind](params, given)
        if not found.errors:
            limit = memory.limit_of(self.max_job_bytes, workers)
            unable = tiles_obstacle(operation, params, request.execution) or request.execution.backend == "cuda"
            computation = operation if unable else operation.tiles or operation
            too_large = memory.refusal(computation, params, given, workers, limit)
            found.errors += [too_large] if too_large else []
        if found.errors:
            raise InvalidInput(" ".join(error.detail for error in found.errors[:3]), errors=found.errors[:MOST_ERRORS])
        plan = plan_for(operation, params, request.execution, [each.length for each in given], workers)
        return plan.model_copy(update={"warnings": [*plan.warnings, *found.warnings]})

    def _training_plan(self, db: Session, request: TrainingJob, owner: str, workers: Sequence[WorkerFacts]) -> Plan:
        params = request.params
        # What a package that is not there would have held is not known, so nothing is said of what it would allow.
        modules = self._modules_of_source(db, params.source, owner)
        errors = references.faults(db, self.files, owner, params)
        found = training.plan(params, request.execution, workers, [*self.training_allow, *modules])
        errors += found.errors
        if errors or found.plan is None:
            raise InvalidInput(" ".join(error.detail for error in errors[:3]), errors=errors[:MOST_ERRORS])
        return found.plan

    def _modules_of_source(self, db: Session, source: str | None, owner: str) -> list[str]:
        if source is None:
            return []
        if not self.sources_allowed:
            raise InvalidInput(
                "This server runs no uploaded code; TIDEMILL_ALLOW_SOURCE_UPLOAD=true lets it.",
                pointer="/params/source",
            )
        try:
            return sources.source_of(db, source, owner).modules
        except NotFound as missing:
            raise InvalidInput(missing.detail, pointer="/params/source") from None

    def all_planned(self, db: Session, requests: list[JobRequest], owner: str) -> list[Planned]:
        """Every request of a batch, or InvalidInput with the faults of all of them."""
        crew = self._crew(db)  # once: a thousand requests need not ask a thousand times
        planned: list[Planned] = []
        faults: list[FieldError] = []
        for i, request in enumerate(requests):
            try:
                planned.append(self._planned(db, request, owner, crew, f"/jobs/{i}"))
            except InvalidInput as fault:
                faults += fault.errors
        if faults:
            raise InvalidInput(" ".join(fault.detail for fault in faults[:3]), errors=faults[:MOST_ERRORS])
        return planned


def below(at: str, errors: Iterable[FieldError]) -> list[FieldError]:
    """The same faults, of a request that stands at `at`."""
    return [replace(error, pointer=at + error.pointer) for error in errors]
