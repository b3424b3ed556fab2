"""What a training configuration refers to, looked up: series and tables among the datasets, a checkpoint among the artifacts."""

from collections.abc import Iterator, Mapping
from typing import Any

from sqlmodel import Session

from app.datasets import queries as datasets
from app.db.tables import ArtifactRow, Dataset, Job
from app.files import Files
from app.jobs.series import Named, facts_of, source_of
from app.kit.problems import FieldError, InvalidInput, NotFound
from workers.contract import SeriesReference, Source, TableSource, TrainingParams
from workers.training.rules import references

CKPT = "/params/config/ckpt_path"


def series_and_tables(params: TrainingParams) -> tuple[dict[str, SeriesReference], dict[str, str]]:
    """Pointer into `params` → series reference, and pointer → dataset of the table that is meant, of all references there are."""
    series: dict[str, SeriesReference] = {}
    tables: dict[str, str] = {}
    for pointer, named in references(params):
        if isinstance(named, SeriesReference):
            series[pointer] = named
        else:
            tables[pointer] = named
    return series, tables


def datasets_in(params: TrainingParams) -> set[str]:
    """Every dataset that the configuration reads."""
    series, tables = series_and_tables(params)
    return {each.dataset for each in series.values() if each.dataset} | set(tables.values())


def faults(db: Session, files: Files, owner: str, params: TrainingParams) -> list[FieldError]:
    """What is referred to and is not there."""
    return [*_missing_data(db, files, owner, params), *_missing_checkpoint(db, owner, params)]


def _missing_data(db: Session, files: Files, owner: str, params: TrainingParams) -> Iterator[FieldError]:
    series, tables = series_and_tables(params)
    for pointer, reference in series.items():
        try:
            facts_of(db, files, owner, Named(reference, f"/params{pointer}", "the series sent along"))
        except InvalidInput as fault:
            yield from fault.errors
    for pointer, dataset_id in tables.items():
        try:
            datasets.dataset_of(db, dataset_id, owner)
        except NotFound as missing:
            yield FieldError(f"/params{pointer}/dataset", missing.detail)


def _missing_checkpoint(db: Session, owner: str, params: TrainingParams) -> Iterator[FieldError]:
    named = params.config.get("ckpt_path")
    if not isinstance(named, dict):
        return
    job_id, name = str(named.get("job")), str(named.get("artifact"))
    job = db.get(Job, job_id)
    if job is None or job.owner != owner:
        yield FieldError(f"{CKPT}/job", f"There is no job {job_id!r}.")
    elif db.get(ArtifactRow, (job_id, name)) is None:
        detail = f"The job has no artifact {name!r}; `GET /jobs/{job_id}/artifacts` lists those it has."
        yield FieldError(f"{CKPT}/artifact", detail)


# ---- what a worker is told -------------------------------------------------------------------------------------------


def sources(db: Session, files: Files, params: TrainingParams) -> dict[str, list[Source]]:
    series, _ = series_and_tables(params)
    return {pointer: [source_of(db, files, reference)] for pointer, reference in series.items()}


def tables(db: Session, files: Files, params: TrainingParams) -> dict[str, TableSource]:
    _, named = series_and_tables(params)
    return {pointer: _table(db, files, dataset_id) for pointer, dataset_id in named.items()}


def _table(db: Session, files: Files, dataset_id: str) -> TableSource:
    dataset = db.get(Dataset, dataset_id)
    if dataset is None:
        raise NotFound(f"The dataset {dataset_id!r} is gone.")
    numeric = {i: column for i, column in enumerate(dataset.columns) if column["type"] == "float64"}
    return TableSource(
        name=dataset.name,
        format=dataset.format,
        content=str(files.dataset(dataset.id) / "content"),
        reading=dataset.reading,
        columns={str(column["name"]): str(files.column(dataset.id, i)) for i, column in numeric.items()},
        text_columns=[str(column["name"]) for i, column in enumerate(dataset.columns) if i not in numeric],
        time_column=dataset.time_column,
        time_path=str(files.times(dataset.id)) if dataset.time_column is not None else None,
        rows=dataset.rows,
    )


def checkpoint(db: Session, files: Files, config: Mapping[str, Any]) -> str | None:
    """The path of the file that `ckpt_path` names."""
    named = config.get("ckpt_path")
    if not isinstance(named, dict):
        return None
    row = db.get(ArtifactRow, (str(named["job"]), str(named["artifact"])))
    if row is None:
        raise NotFound(f"The checkpoint {named['artifact']!r} of job {named['job']!r} is gone.")
    return str((files.job(row.job_id) / row.path).resolve())
