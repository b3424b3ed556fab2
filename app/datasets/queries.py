"""The SQL of datasets."""

from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session, and_, col, func, or_, select

from app.db.tables import Dataset, Job, JobDataset
from app.jobs.states import FINAL
from app.kit.problems import NotFound


def dataset_of(db: Session, dataset_id: str, owner: str) -> Dataset:
    dataset = db.get(Dataset, dataset_id)
    if dataset is None or dataset.owner != owner:
        raise NotFound(f"There is no dataset {dataset_id!r}.")
    return dataset


def same_content(db: Session, owner: str, sha256: str, options: str) -> Dataset | None:
    query = select(Dataset).where(Dataset.owner == owner, Dataset.sha256 == sha256, Dataset.options == options)
    return db.exec(query).first()


def newest_datasets(db: Session, owner: str, limit: int, after: tuple[datetime, str] | None) -> Sequence[Dataset]:
    """Newest first, one more than `limit`, beginning below `after` (created_at, id)."""
    query = select(Dataset).where(Dataset.owner == owner)
    if after:
        at, key = after
        query = query.where(
            or_(col(Dataset.created_at) < at, and_(col(Dataset.created_at) == at, col(Dataset.id) < key))
        )
    return db.exec(query.order_by(col(Dataset.created_at).desc(), col(Dataset.id).desc()).limit(limit + 1)).all()


def jobs_that_need(db: Session, dataset_id: str) -> int:
    """How many jobs that have not ended read this dataset."""
    query = (
        select(func.count())
        .select_from(JobDataset)
        .join(Job, col(Job.id) == col(JobDataset.job_id))
        .where(JobDataset.dataset_id == dataset_id, col(Job.state).not_in(FINAL))
    )
    return db.exec(query).one()


def ids(db: Session) -> set[str]:
    return set(db.exec(select(Dataset.id)).all())
