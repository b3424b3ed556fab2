"""What a job request must satisfy before it is accepted. Pure: what is known of the series comes in, findings go out."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from app.jobs.checks import consensus, matrix_profile, mpdist, multidimensional, pan
from app.jobs.checks.facts import Findings, SeriesFacts

CHECKS: Final[Mapping[str, Callable[[Any, Sequence[SeriesFacts]], Findings]]] = {
    "matrix_profile": matrix_profile.check,
    "multidimensional_profile": multidimensional.check,
    "mpdist": mpdist.check,
    "consensus_motif": consensus.check,
    "pan_profile": pan.check,
}
"""kind → its rules. They get the series in the order of `Operation.series`."""
