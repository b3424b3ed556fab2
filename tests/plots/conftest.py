"""Pictures of real jobs: the jobs run here, each picture in a child as the server draws it."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.matrix_profile.conftest import compute, task, warm  # noqa: F401
from workers.operations import OPERATIONS

ROOT = Path(__file__).parents[2]


@dataclass
class Drawn:
    """What a child answered, and the picture it wrote."""

    answer: dict[str, Any]
    picture: bytes | None

    @property
    def size(self) -> tuple[int, int]:
        """Of a PNG or an SVG, in pixels."""
        assert self.picture is not None, self.answer
        if self.picture.startswith(b"\x89PNG"):
            return int.from_bytes(self.picture[16:20]), int.from_bytes(self.picture[20:24])
        root = ElementTree.fromstring(self.picture)
        width, height = (round(float(root.attrib[side].removesuffix("pt")) * 96 / 72) for side in ("width", "height"))
        return width, height

    @property
    def ids(self) -> set[str]:
        """What an SVG calls its parts."""
        assert self.picture is not None, self.answer
        return set(re.findall(r'id="([^"]+)"', self.picture.decode()))

    def strokes(self, gid: str) -> int:
        """How many strokes a line of an SVG is drawn with: one more than it has gaps."""
        assert self.picture is not None, self.answer
        group = re.search(rf'<g id="{gid}">\s*<path d="([^"]*)"', self.picture.decode())
        assert group, f"there is no {gid}"
        return group.group(1).count("M ")


@pytest.fixture
def ready(task, tmp_path):  # noqa: F811
    """What to draw, of any result: `ready(kind, {name: [values, …]}, arrays, summary, **params)`."""

    def make(
        kind: str, series: dict[str, list], arrays: dict[str, Any], summary: dict[str, Any], **params
    ) -> dict[str, Any]:
        np.savez(tmp_path / "result.npz", **arrays)
        told = task(kind, series, **params)
        request = {name: told[name] for name in ("kind", "params", "sources")}
        return request | {"result": str(tmp_path / "result.npz"), "summary": summary}

    return make


@pytest.fixture
def finished(compute, task):  # noqa: F811
    """Run a job; what to draw of it: `finished(kind, {name: [values, …]}, **params)`."""

    def run(kind: str, series: dict[str, list], **told) -> dict[str, Any]:
        done, again = compute(kind, series, **told), task(kind, series, **told)
        assert set(series) <= set(OPERATIONS[kind].series)
        request = {name: again[name] for name in ("kind", "params", "sources")}
        return request | {"result": str(done.folder / "result.npz"), "summary": done.answer["summary"]}

    return run


@pytest.fixture
def draw(tmp_path):
    """Draw a request in a child, as the server does: `draw(request, format=…, width=…, …)`."""

    def start(request: dict[str, Any], **changed) -> Drawn:
        output = tmp_path / "picture"
        usual = {"format": "png", "width": 1200, "height": 700, "output": str(output), "max_memory_bytes": 4 << 30}
        child = subprocess.run(
            [sys.executable, "-m", "workers.plot"],
            input=json.dumps(usual | request | changed),
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        )
        answer = json.loads(child.stdout)
        return Drawn(answer, output.read_bytes() if "ok" in answer else None)

    return start
