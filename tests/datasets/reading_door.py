"""The reading room's door for the tests of this folder: bytes in; the answer and the files out."""

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workers.datasets.contract import Answer, ReadRequest
from workers.datasets.reading import read

LIMITS = {
    "max_memory_bytes": 2 << 30,
    "max_unpacked_bytes": 64 << 20,
    "max_cpu_seconds": 30,
    "max_columns": 1000,
}
OF_REQUEST = {"media_type", "content_encoding", "file_name", *LIMITS}


@dataclass
class Outcome:
    """What came of one file: the answer, and everything left in the folder."""

    answer: dict[str, Any]
    files: dict[str, bytes]

    @property
    def ok(self) -> dict[str, Any]:
        assert "ok" in self.answer, self.answer
        return self.answer["ok"]

    @property
    def error(self) -> dict[str, Any]:
        assert "error" in self.answer, self.answer
        assert not self.files, "a refused file leaves nothing"
        return self.answer["error"]

    @property
    def columns(self) -> dict[str, list[float]]:
        """The float64 columns by name."""
        named = enumerate(self.ok["columns"])
        return {c["name"]: self._array(f"columns/{i}.npy").tolist() for i, c in named if c["type"] == "float64"}

    @property
    def types(self) -> dict[str, str]:
        return {column["name"]: column["type"] for column in self.ok["columns"]}

    @property
    def times(self) -> list[str]:
        """The time column as ISO text, to the microsecond."""
        return np.datetime_as_string(self._array("time.npy").astype("datetime64[us]")).tolist()

    def gaps(self, index: int) -> list[int]:
        return np.frombuffer(self.files[f"columns/{index}.gaps"], "<i8").tolist()

    def _array(self, name: str) -> np.ndarray:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.npy"
            path.write_bytes(self.files[name])
            mapped = np.load(path, mmap_mode="r", allow_pickle=False)
            assert mapped.flags.c_contiguous
            return np.array(mapped)


def strict(text: str) -> Any:
    """JSON without NaN and Infinity."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def given(data: bytes | str, **said: Any) -> Outcome:
    """Read `data` in this process. Keywords are fields of the request or options."""
    with tempfile.TemporaryDirectory() as folder:
        request, out = _request(data, Path(folder), said)
        answer: Answer = read(request)
        return Outcome(strict(answer.to_json()), _files(out))


def given_child(data: bytes | str, **said: Any) -> Outcome:
    """Read `data` as the server does: in a child of its own."""
    with tempfile.TemporaryDirectory() as folder:
        request, out = _request(data, Path(folder), said)
        done = subprocess.run(
            [sys.executable, "-m", "workers.datasets"],
            input=request.model_dump_json().encode(),
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return Outcome(strict(done.stdout.decode()), _files(out))


def _request(data: bytes | str, folder: Path, said: dict[str, Any]) -> tuple[ReadRequest, Path]:
    (folder / "upload").write_bytes(data.encode() if isinstance(data, str) else data)
    out = folder / "out"
    out.mkdir()
    about = {name: value for name, value in said.items() if name in OF_REQUEST}
    options = {name: value for name, value in said.items() if name not in OF_REQUEST}
    return (
        ReadRequest.model_validate(
            LIMITS | about | {"path": str(folder / "upload"), "folder": str(out), "options": options}
        ),
        out,
    )


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
