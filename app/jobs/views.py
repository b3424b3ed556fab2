"""From rows to what people see."""

import math
from typing import Any

from app.db.tables import Event, Job
from app.jobs.schemas import EventView, JobView, Links
from app.jobs.states import FINAL

LISTED_VALUES = 20
"""So many of the values sent along are shown in a list of jobs."""

NO_PROGRESS = {"fraction": 0.0, "done": 0, "total": 0, "unit": None, "eta_seconds": None}


def job_view(job: Job) -> JobView:
    here = f"/jobs/{job.id}"
    links = Links(self=here, **{name: f"{here}/{name}" for name in Links.model_fields if name != "self"})
    return JobView.model_validate({**job.model_dump(exclude={"owner"}), "links": links})


def listed(job: Job) -> JobView:
    """A job as a list shows it: of values sent along, the first few."""
    view = job_view(job)
    return view.model_copy(update={"params": _shortened(view.params)})


def _shortened(value: Any) -> Any:
    match value:
        case {"values": [*values], **rest} if len(values) > LISTED_VALUES:
            return {**rest, "values": values[:LISTED_VALUES], "values_total": len(values)}
        case dict():
            return {name: _shortened(member) for name, member in value.items()}
        case [{}, *_]:  # several series
            return [_shortened(member) for member in value]
        case _:
            return value


def event_view(event: Event) -> EventView:
    return EventView(seq=event.seq, at=event.at, type=event.type, data=event.data)


def retry_after(job: Job, accepted: bool = False) -> dict[str, str]:
    """When to ask again, from the job's own estimate; nothing once it is final, unless the answer is a 202."""
    if job.state in FINAL:
        return {"Retry-After": "1"} if accepted else {}
    eta = job.progress.get("eta_seconds") or (job.plan["estimate"]["seconds"] or 0)
    return {"Retry-After": str(max(1, min(60, math.ceil(eta))))}
