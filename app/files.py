"""Where things lie under HOME."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from app.kit.ids import new_id
from app.settings import Settings
from workers.contract import STORAGE_MARK


@dataclass(frozen=True)
class Files:
    """The folders of one HOME. Names in paths are ids of ours, never what a user sent."""

    home: Path
    """Of the database and of what else is the server's alone."""
    storage: Path
    """Of datasets, sources and what jobs leave; workers may have it too."""

    @classmethod
    def of(cls, settings: Settings) -> "Files":
        home = settings.home.resolve()
        return cls(home, settings.storage.resolve() if settings.storage else home)

    @property
    def database(self) -> Path:
        return self.home / "tidemill.db"

    @property
    def incoming(self) -> Path:
        """Uploads on their way; emptied at start-up."""
        return self.storage / "incoming"

    @property
    def datasets(self) -> Path:
        return self.storage / "datasets"

    @property
    def sources(self) -> Path:
        return self.storage / "sources"

    @property
    def jobs(self) -> Path:
        return self.storage / "jobs"

    @property
    def storage_id(self) -> str:
        return (self.storage / STORAGE_MARK).read_text(encoding="ascii").strip()

    def dataset(self, dataset_id: str) -> Path:
        return self.datasets / dataset_id

    def column(self, dataset_id: str, index: int) -> Path:
        return self.dataset(dataset_id) / "columns" / f"{index}.npy"

    def gaps(self, dataset_id: str, index: int) -> Path:
        return self.dataset(dataset_id) / "columns" / f"{index}.gaps"

    def times(self, dataset_id: str) -> Path:
        return self.dataset(dataset_id) / "time.npy"

    def source(self, source_id: str) -> Path:
        return self.sources / source_id

    def job(self, job_id: str) -> Path:
        return self.jobs / job_id

    def attempt(self, job_id: str, number: int) -> Path:
        return self.job(job_id) / str(number)

    def prepare(self) -> None:
        """Make the folders, and clear what a crash left of unfinished uploads."""
        shutil.rmtree(self.incoming, ignore_errors=True)
        for folder in (self.home, self.incoming, self.datasets, self.sources, self.jobs):
            folder.mkdir(parents=True, exist_ok=True)
        if not (self.storage / STORAGE_MARK).exists():
            (self.storage / STORAGE_MARK).write_text(new_id("storage"), encoding="ascii")


def sync(folder: Path) -> None:
    """Every file on the disk before the row that names them."""
    for path in [*folder.rglob("*"), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
