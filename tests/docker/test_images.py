"""The Dockerfiles by themselves: every rule of their linter, and what ends up in an image. Images are not built here."""

import re
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from tests.docker.compose import ROOT, Dockerfile
from tests.docker.packages import of_extras

FILES = {path.name.removesuffix(".Dockerfile"): path for path in sorted((ROOT / "docker").glob("*.Dockerfile"))}
each_file = pytest.mark.parametrize("path", FILES.values(), ids=FILES)


def read(name: str) -> Dockerfile:
    return Dockerfile(FILES[name].read_text())


def extras(name: str) -> list[str]:
    return read(name).arguments["EXTRAS"].split(",")


def lint(path: Path) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).parent / "hadolint", "--no-color", "--failure-threshold", "style", path]
    # Outside the repository, so that no configuration file can switch a rule off.
    return subprocess.run(command, capture_output=True, text=True, cwd=path.parent)


@each_file
def test_the_linter_has_nothing_to_say(path, tmp_path):
    copy = shutil.copy(path, tmp_path / "Dockerfile")
    assert lint(copy).stdout == ""
    copy.write_text(path.read_text() + "ADD app /app\n")
    assert "DL3020" in lint(copy).stdout


@each_file
def test_a_rule_is_passed_over_with_a_reason_or_not_at_all(path):
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines):
        if "hadolint" in line:
            assert re.fullmatch(r"# hadolint ignore=DL\d+", line)
            assert lines[number - 1].startswith("# ")


@each_file
def test_an_image_is_pinned_and_leaves_what_it_was_built_with(path):
    file = Dockerfile(path.read_text())
    stages = [line for line in file.lines if line.startswith("FROM ")]
    assert len(stages) == 2
    assert all(re.fullmatch(r"FROM [\w/]+:[\w.-]*\d[\w.-]*( AS build)?", line) for line in stages)
    assert stages[0] == stages[1] + " AS build"
    assert file.last_stage.count("COPY --from=build /opt/tidemill /opt/tidemill") == 1
    assert not any("pip" in line for line in file.last_stage)
    installs = [line for line in file.lines if "pip install" in line]
    assert "-c constraints.txt" in installs[0]
    assert all("-c constraints.txt" in line or "--no-deps" in line for line in installs)


@each_file
def test_an_image_runs_what_compose_says_as_nobody_in_particular(path):
    file = Dockerfile(path.read_text())
    assert "USER 10001:10001" in file.last_stage
    assert not any(line.startswith("ENTRYPOINT") for line in file.lines)
    assert "/cache/numba" in file.owned
    # A root that is read-only: nothing may want to write beside the volumes.
    assert (file.environment["HOME"], file.environment["PYTHONDONTWRITEBYTECODE"]) == ("/tmp", "1")


def test_the_images_install_what_they_are_for():
    assert (extras("api"), extras("worker"), extras("worker-gpu")) == (
        ["server", "profiles"],
        ["worker"],
        ["worker", "gpu"],
    )
    heavy = {"torch", "lightning", "stumpy", "ray", "numba-cuda", "jsonargparse"}
    assert not heavy & of_extras(extras("api"))
    assert not any(name.startswith(("nvidia-", "cuda-")) for name in of_extras(extras("api")))
    assert heavy - of_extras(extras("worker")) == {"ray", "numba-cuda"}
    assert heavy - of_extras(extras("worker-gpu")) == {"ray"}
    # Workers and scheduler speak the same Dask.
    assert {"dask", "distributed"} <= of_extras(extras("api")) & of_extras(extras("worker"))


@pytest.mark.parametrize("name", FILES)
def test_every_package_of_an_image_that_is_known_here_is_pinned(name):
    pinned = {line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line}
    here = {canonicalize_name(each.name) for each in metadata.distributions()} - {
        "setuptools"
    }  # which comes with Python
    assert of_extras(extras(name)) & here <= {canonicalize_name(each) for each in pinned}


def test_the_context_is_what_the_dockerfiles_copy():
    let_through = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for name in FILES:
        assert sorted(read(name).copied) == sorted(let_through)


def test_what_is_copied_is_enough_to_install_all_of_it(tmp_path):
    """First the packages it needs, from the files that say which; then the whole."""
    file = read("api")
    context = tmp_path / "context"
    context.mkdir()
    for name in file.copied:
        if (ROOT / name).is_file():
            shutil.copy(ROOT / name, context / name)
    assert not any(each.endswith(".py") for each in wheel(context, tmp_path / "first"))
    for name in file.copied:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, context / name, ignore=shutil.ignore_patterns("__pycache__"))
    code = {
        str(each.relative_to(context))
        for name in ("app", "workers", "migrations")
        for each in (context / name).rglob("*.py")
    }
    assert code <= wheel(context, tmp_path / "whole")


def wheel(context: Path, folder: Path) -> set[str]:
    """The files of the wheel that pip builds there."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run(
        [*command, "--disable-pip-version-check", "--wheel-dir", folder, context], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return set(zipfile.ZipFile(built).namelist())
