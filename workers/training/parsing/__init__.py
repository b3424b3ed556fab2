"""A training configuration, read with jsonargparse as Lightning's command line reads it, but locked down. Imports torch and Lightning.

Shared by the check before a job is queued and by the ranks. Only for a process of its own: the settings it makes are of the whole process.
"""

from collections.abc import Sequence

from workers.contract import TrainingParams
from workers.training.parsing.fabric import FabricConfiguration, read_fabric
from workers.training.parsing.faults import ConfigFaults
from workers.training.parsing.naming import lock_down
from workers.training.parsing.sections import read_trainer
from workers.training.parsing.trainer import TrainerConfiguration

__all__ = ["ConfigFaults", "FabricConfiguration", "Parsed", "TrainerConfiguration", "parse"]

Parsed = TrainerConfiguration | FabricConfiguration


def parse(params: TrainingParams, allow: Sequence[str], source: str | None) -> Parsed:
    """The configuration with its classes imported and every argument checked, nothing built. Raises ConfigFaults.

    params: of a shape that `rules.check` has nothing against, with paths in the places of references.
    allow: what may be named, beside the modules of the package in the folder `source`.
    """
    allowed = lock_down(allow, source)
    return read_trainer(params, allowed) if params.mode == "trainer" else read_fabric(params, allowed)
