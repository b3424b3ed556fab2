"""The answer as it comes together: what was asked for, against which machine, and what was found so far."""

from dataclasses import dataclass, field

from workers.contract import TrainingParams
from workers.training.rules.layout import section_of
from workers.training.rules.pointers import CONFIG, joined
from workers.training.rules.words import NAMES, Fault, Machine


@dataclass
class Choices:
    """One configuration on its way through the rules."""

    params: TrainingParams
    machine: Machine
    inherits: tuple[str, ...] = ()
    """The names of the classes that a strategy of the user's own inherits from, nearest first, where they are known."""
    faults: list[Fault] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.mode = self.params.mode
        self.title = NAMES[self.mode]
        self.section = section_of(self.params)

    def wrong(self, key: str, detail: str, *below: str) -> None:
        """A fault of an argument of Trainer or Fabric, or of what lies `below` it."""
        self.faults.append(Fault(joined(CONFIG, self.mode, key, *below), detail))
