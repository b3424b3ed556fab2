"""The README is true: its tour runs as it stands, and its diagram is the state machine's."""

import re
import subprocess
from pathlib import Path

from app.jobs.states import diagram
from workers.training.rules.__main__ import markdown

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_the_tour_runs_as_it_stands(house, tmp_path):
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    tour = "\n".join(blocks("bash")).replace("http://127.0.0.1:8000", house.url)
    done = subprocess.run(
        ["bash", "-eu", "-c", tour], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1972-08-12" in done.stdout
    assert "1965-01-30" in done.stdout
    assert "event: end" in done.stdout
    assert "the longest whole stretch" in done.stdout
    assert (tmp_path / "profile.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "profile.parquet").read_bytes().startswith(b"PAR1")


def test_the_diagram_is_the_state_machines():
    assert blocks("mermaid") == [diagram() + "\n"]


def test_the_strategies_are_those_of_the_table():
    (shown,) = re.findall(r"<!-- strategies -->\n(.*?)<!-- /strategies -->", README, re.DOTALL)
    assert shown.strip() == markdown().strip()
