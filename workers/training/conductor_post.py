"""What the parts of one rank share: who it is, whom it tells, what it watches, and how far it is."""

from dataclasses import dataclass, field

from workers.training.conductor import Conductor, EvaluationStop
from workers.training.losses import LossWatch
from workers.training.metrics import MetricsTable
from workers.training.predictions import Predictions
from workers.training.reporting import RankReporter
from workers.training.spec import RankSpec
from workers.training.uneven import EpochEnds


@dataclass
class Post:
    """What the callbacks of one rank share."""

    spec: RankSpec
    reporter: RankReporter
    table: MetricsTable | None
    """Of rank 0."""
    losses: LossWatch
    ends: EpochEnds
    conductor: Conductor
    predictions: Predictions | None = None
    """Of a job that predicts."""
    evaluation: EvaluationStop = field(init=False)
    accumulates: bool = False
    """Whether the newest batch's gradients wait for those of the next ones."""
    steps: int = 0
    """Whose metrics are complete once what is due is logged: rows of less than this are a checkpoint's."""

    def __post_init__(self) -> None:
        self.evaluation = EvaluationStop(self.conductor, self.spec.rank)
