"""Rules of the house that no linter's configuration can say."""

import graphlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp

ROOT = Path(__file__).parent.parent


def test_no_module_imports_itself_by_any_way_round():
    graph = grimp.build_graph("app", "workers")
    sorter = graphlib.TopologicalSorter({name: graph.find_modules_directly_imported_by(name) for name in graph.modules})
    sorter.prepare()  # raises CycleError, naming the cycle


def test_the_server_loads_nothing_that_computes():
    """By any way round: what is loaded counts, not only what we import. (Dask's client itself loads numpy.)"""
    packages = ["pyarrow", "stumpy", "numba", "torch", "matplotlib", "pandas", "lightning", "ray"]
    script = f"import app.main, sys; print(*(set(sys.modules) & set({packages!r})))"
    assert (
        subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split() == []
    )


def test_the_lock_is_exact_and_portable():
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][A-Za-z0-9.]*", line) for line in lines), (
        "no ranges, hashes or local versions"
    )
    pinned = dict(line.lower().replace("_", "-").split("==") for line in lines)
    assert pinned["torch"] == "2.13.0"
    assert pinned["lightning"] not in ("2.6.2", "2.6.3")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [
        *project["dependencies"],
        *(name for extra in project["optional-dependencies"].values() for name in extra),
    ]
    names = {re.split(r"[<>=!\[ ]", name)[0].lower() for name in needed}
    assert names <= set(pinned), names - set(pinned)


def test_an_api_image_needs_neither_torch_nor_stumpy():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras) >= {"server", "worker", "ray", "gpu", "demo"}
    assert not any(name.startswith(("torch", "stumpy", "numba", "lightning", "ray")) for name in extras["server"])
