"""CUDA jobs of every kind with truths from the brute force."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import oracle
from workers.operations import OPERATIONS

WINDOW, PAN_WINDOWS = 8, (8, 9, 10)
KINDS = tuple(kind for kind, operation in OPERATIONS.items() if "cuda" in operation.functions)


@dataclass(frozen=True)
class Case:
    """A job of `kind` on `series`, as many as the kind takes."""

    kind: str
    normalize: bool
    series: Sequence[np.ndarray]
    function: str

    @classmethod
    def of(cls, kind: str, normalize: bool, series: Sequence[np.ndarray]) -> "Case":
        wanted = {"mpdist": 2, "consensus_motif": 3}.get(kind, 1)
        return cls(kind, normalize, series[:wanted], OPERATIONS[kind].functions["cuda"].pick(normalize))

    def task(self, folder: Path, device: str, devices: Sequence[int] = ()) -> dict[str, Any]:
        """As the driver hands it to the child."""
        sources = [{"name": f"s{i}", "values": values.tolist()} for i, values in enumerate(self.series)]
        windows = {"min_window": PAN_WINDOWS[0], "max_window": PAN_WINDOWS[-1]}
        names = {"mpdist": {"a": sources[:1], "b": sources[1:]}}.get(self.kind, {"series": sources})
        return {
            "attempt": "at_1",
            "job": "job_1",
            "kind": self.kind,
            "params": {"normalize": self.normalize} | (windows if self.kind == "pan_profile" else {"window": WINDOW}),
            "sources": names,
            "plan": {"backend": "cuda", "device": device},
            "devices": list(devices),
            "folder": str(folder),
        }

    def check(self, answer: dict[str, Any], folder: Path) -> None:
        """Compare what a job answered and wrote with the oracle."""
        assert answer["provenance"]["function"] == f"stumpy.{self.function}"
        assert answer["provenance"]["backend"] == "cuda"
        getattr(self, f"_check_{self.kind}")(answer["summary"], folder)

    def _check_matrix_profile(self, summary: dict[str, Any], folder: Path) -> None:
        truth = oracle.matrix_profile(self.series[0], WINDOW, normalize=self.normalize)
        found = np.load(folder / "result.npz")
        np.testing.assert_allclose(found["distances"], truth.distances[:, 0], atol=1e-6)
        np.testing.assert_allclose(truth.at(found["indices"]), truth.distances[:, 0], atol=1e-6)

    def _check_mpdist(self, summary: dict[str, Any], folder: Path) -> None:
        truth = oracle.mpdist(*self.series, WINDOW, normalize=self.normalize)
        assert summary["distance"] == pytest.approx(truth, abs=1e-6)

    def _check_consensus_motif(self, summary: dict[str, Any], folder: Path) -> None:
        truth = oracle.radii(self.series, WINDOW, normalize=self.normalize)
        assert summary["radius"] == pytest.approx(min(map(min, truth)), abs=1e-6)
        assert truth[summary["series"]][summary["index"]] == pytest.approx(summary["radius"], abs=1e-6)

    def _check_pan_profile(self, summary: dict[str, Any], folder: Path) -> None:
        found = np.load(folder / "result.npz")
        assert tuple(found["windows"]) == PAN_WINDOWS
        for window, row in zip(PAN_WINDOWS, found["distances"], strict=True):
            truth = oracle.matrix_profile(self.series[0], window, normalize=self.normalize).distances[:, 0]
            np.testing.assert_allclose(row[: len(truth)], truth, atol=1e-6)


def all_cases(series: Sequence[np.ndarray]) -> list[Case]:
    """The eight functions, each as a job."""
    return [Case.of(kind, normalize, series) for kind in KINDS for normalize in (True, False)]
