"""Where things lie under HOME."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Files:
    """The folders of one HOME. Names in paths are ids of ours, never what a user sent."""

    home: Path

    @property
    def database(self) -> Path:
        return self.home / "tidemill.db"

    @property
    def incoming(self) -> Path:
        """Uploads on their way; emptied at start-up."""
        return self.home / "incoming"

    def dataset(self, dataset_id: str) -> Path:
        return self.home / "datasets" / dataset_id

    def column(self, dataset_id: str, index: int) -> Path:
        return self.dataset(dataset_id) / "columns" / f"{index}.npy"

    def gaps(self, dataset_id: str, index: int) -> Path:
        return self.dataset(dataset_id) / "columns" / f"{index}.gaps"

    def times(self, dataset_id: str) -> Path:
        return self.dataset(dataset_id) / "time.npy"

    def source(self, source_id: str) -> Path:
        return self.home / "sources" / source_id

    def job(self, job_id: str) -> Path:
        return self.home / "jobs" / job_id

    def attempt(self, job_id: str, number: int) -> Path:
        return self.job(job_id) / str(number)

    def prepare(self) -> None:
        """Make the folders, and clear what a crash left of unfinished uploads."""
        shutil.rmtree(self.incoming, ignore_errors=True)
        for folder in (self.incoming, self.home / "datasets", self.home / "sources", self.home / "jobs"):
            folder.mkdir(parents=True, exist_ok=True)


def sync(folder: Path) -> None:
    """Every file on the disk before the row that names them."""
    for path in [*folder.rglob("*"), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
