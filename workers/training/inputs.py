"""What a training configuration refers to, as files that its ranks can open: a series as `.npy`, a table as Parquet."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from workers.contract import Source, TableSource, Task
from workers.failures import InvalidInput

FOLDER = "inputs"
"""Below the attempt's folder."""


def materialise(
    task: Task, folder: Path, say: Callable[[str], None] = lambda message: None
) -> dict[str, str | list[str]]:
    """JSON Pointer into `params` → the file that the reference there became, or the files, where it names several series.

    A series whose whole column is meant is the stored column itself; it is opened for reading only. Other files are made
    below `folder`, one for each thing that is referred to, however often. say: for the job's log.
    """
    maker = _Maker(Path(folder) / FOLDER, say)
    paths: dict[str, str | list[str]] = {}
    for pointer, sources in task.sources.items():
        files = [maker.series(source) for source in sources]
        paths[pointer] = files[0] if len(files) == 1 else files
    for pointer, table in (task.training.tables if task.training else {}).items():
        paths[pointer] = maker.once(f"table:{table.content}", "table", ".parquet", partial(maker.table, table))
    return paths


class _Maker:
    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self.folder, self.say = folder, say
        self.made: dict[str, str] = {}

    def once(self, key: str, kind: str, suffix: str, make: Callable[[Path], None]) -> str:
        """The file of that key, made if it is not there yet."""
        if key not in self.made:
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / f"{kind}-{len(self.made)}{suffix}"
            make(path)
            self.made[key] = str(path)
        return self.made[key]

    def series(self, source: Source) -> str:
        if source.path is None:
            return self.once(f"values:{id(source)}", "series", ".npy", lambda path: _save(path, source, None))
        try:
            column = np.load(source.path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as fault:
            raise InvalidInput(
                f"The series {source.name!r} cannot be read ({fault}); upload its dataset again."
            ) from fault
        if source.start == 0 and source.stop in (None, len(column)):
            return source.path
        key = f"stretch:{source.path}:{source.start}:{source.stop}"
        return self.once(key, "series", ".npy", lambda path: _save(path, source, column))

    def table(self, source: TableSource, path: Path) -> None:
        # Only here: what reads files starts threads, and not every training needs it.
        from workers.training.inputs_table import write

        write(source, path, self.say)


def _save(path: Path, source: Source, column: npt.NDArray[np.float64] | None) -> None:
    values = [np.nan if value is None else value for value in source.values or []] if column is None else column
    np.save(path, np.asarray(values, dtype=np.float64)[source.start : source.stop])
