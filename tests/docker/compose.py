"""`compose.yaml` as Docker Compose reads it: merged, variables put in, each service with what its image adds. Nothing is decided here."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[2]
COMPOSE: Final = ROOT / "compose.yaml"
RAY: Final = ROOT / "docker" / "ray.yaml"
VARIABLE: Final = re.compile(r"\$(?:\$|\{(\w+):-([^}]*)\})")
UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(duration: str) -> float:
    """`1m30s`, in seconds."""
    return sum(float(count) * UNITS[unit] for count, unit in re.findall(r"(\d+)([smh])", duration))


def load(*files: Path, variables: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The files laid over one another, with `variables` in their places."""
    whole: dict[str, Any] = {}
    for file in files or (COMPOSE,):
        whole = _over(whole, yaml.safe_load(file.read_text()))
    return _filled(whole, variables or {})


def _over(lower: Any, upper: Any) -> Any:
    """Compose's merge, of what these files have: mappings by key, all else replaced."""
    if isinstance(lower, dict) and isinstance(upper, dict):
        return lower | {key: _over(lower[key], value) if key in lower else value for key, value in upper.items()}
    return upper


def _filled(value: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(each, variables) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, variables) for each in value]
    if not isinstance(value, str):
        return value
    filled = VARIABLE.sub(lambda found: (variables.get(found[1]) or found[2]) if found[1] else "\0", value)
    assert "$" not in filled, f"{value!r} has a variable in a form that is not read here"
    return filled.replace("\0", "$")


@dataclass(frozen=True)
class Service:
    """One service."""

    name: str
    asked: Mapping[str, Any]

    @property
    def command(self) -> list[str]:
        command = self.asked["command"]
        assert isinstance(command, list), "a command in one string depends on a shell's quoting"
        return [str(word) for word in command]

    @cached_property
    def dockerfile(self) -> "Dockerfile":
        return Dockerfile((ROOT / self.asked["build"]["dockerfile"]).read_text())

    @property
    def environment(self) -> dict[str, str]:
        """The image's, and over it the service's own."""
        return self.dockerfile.environment | {name: str(value) for name, value in self.asked["environment"].items()}

    @property
    def extras(self) -> list[str]:
        """What the image installs of this project's optional dependencies."""
        told = self.asked["build"].get("args", {}).get("EXTRAS")
        return str(told or self.dockerfile.arguments["EXTRAS"]).split(",")

    @property
    def check(self) -> list[str]:
        """The command of its health check."""
        kind, *words = self.asked["healthcheck"]["test"]
        assert kind == "CMD"
        return [str(word) for word in words]

    @property
    def check_seconds(self) -> float:
        return seconds(self.asked["healthcheck"]["timeout"])

    @property
    def start_seconds(self) -> float:
        """How long it may be unhealthy after its start."""
        told = self.asked["healthcheck"]
        return seconds(told["start_period"]) + told["retries"] * seconds(told["interval"])

    @property
    def grace_seconds(self) -> float:
        return seconds(self.asked["stop_grace_period"])

    @property
    def after(self) -> dict[str, str]:
        """Which services it waits for, and for what."""
        return {name: told["condition"] for name, told in self.asked.get("depends_on", {}).items()}

    @property
    def volumes(self) -> dict[str, str | None]:
        """Folder in the container → name of the volume; None for one of its own."""
        pairs = (each.split(":") for each in self.asked.get("volumes", []))
        return {pair[-1]: pair[0] if len(pair) == 2 else None for pair in pairs}


def services(*files: Path, variables: Mapping[str, str] | None = None) -> dict[str, Service]:
    return {name: Service(name, asked) for name, asked in load(*files, variables=variables)["services"].items()}


@dataclass(frozen=True)
class Dockerfile:
    """What a test asks of one."""

    text: str

    @cached_property
    def lines(self) -> list[str]:
        """Its instructions, one a line."""
        kept = "\n".join(line for line in self.text.splitlines() if not line.startswith("#"))
        return [" ".join(line.split()) for line in kept.replace("\\\n", " ").splitlines() if line.strip()]

    @property
    def last_stage(self) -> list[str]:
        starts = [number for number, line in enumerate(self.lines) if line.startswith("FROM ")]
        return self.lines[starts[-1] :]

    @property
    def environment(self) -> dict[str, str]:
        """Of its last stage, less PATH."""
        pairs = (pair.partition("=") for line in self._of("ENV", self.last_stage) for pair in line.split())
        return {name: value for name, _, value in pairs if name != "PATH"}

    @property
    def arguments(self) -> dict[str, str]:
        pairs = (line.partition("=") for line in self._of("ARG", self.lines))
        return {name: value.strip('"') for name, _, value in pairs}

    @property
    def copied(self) -> list[str]:
        """What its first stage takes of the repository."""
        lines = self._of("COPY", [line for line in self.lines if "--from" not in line])
        return [name for line in lines for name in line.split()[:-1]]

    @property
    def owned(self) -> list[str]:
        """Folders that belong to its user."""
        found = re.search(r"install -d -o tidemill -g tidemill ((?:/\S+ ?)+)", "\n".join(self.last_stage))
        return found[1].split() if found else []

    @staticmethod
    def _of(instruction: str, lines: list[str]) -> list[str]:
        return [line.removeprefix(instruction + " ") for line in lines if line.startswith(instruction + " ")]


def bytes_of(size: str) -> int:
    """`1gb`, in bytes."""
    found = re.fullmatch(r"(\d+)([kmg])b", size)
    assert found, size
    return int(found[1]) * 1024 ** ("kmg".index(found[2]) + 1)
