"""What a job was before: the folders in which its earlier attempts, and the jobs that it is a retry of, left what they had done."""

from collections.abc import Iterator
from pathlib import Path

from sqlmodel import Session

from app.db.tables import Attempt, Job
from app.files import Files


def earlier(db: Session, files: Files, attempt: Attempt, job: Job) -> list[str]:
    """Those folders, the newest first."""
    return [str(folder.resolve()) for folder in _folders(db, files, attempt, job)]


def _folders(db: Session, files: Files, attempt: Attempt, job: Job) -> Iterator[Path]:
    for number in range(attempt.number - 1, 0, -1):
        yield files.attempt(job.id, number)
    seen = {job.id}
    while job.retry_of and job.retry_of not in seen and (before := db.get(Job, job.retry_of)):
        seen.add(before.id)
        job = before
        for number in range(job.attempt, 0, -1):
            yield files.attempt(job.id, number)
