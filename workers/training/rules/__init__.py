"""What a training job may ask for: tables of what Lightning knows, and the rules that read them. Light: no torch.

One set of tables drives the check before a job is queued, the capabilities and the README.
"""

from collections.abc import Sequence

from workers.contract import TrainingParams
from workers.training.rules.allow import DEFAULT_ALLOW, is_allowed, modules_of, off_the_list
from workers.training.rules.arguments import arguments_of
from workers.training.rules.backends import backend
from workers.training.rules.box import fitting
from workers.training.rules.choices import Choices
from workers.training.rules.crossing import RULES
from workers.training.rules.files import files
from workers.training.rules.layout import layout
from workers.training.rules.names import with_full_names
from workers.training.rules.pointers import CONFIG
from workers.training.rules.references import is_reference, references, with_replaced
from workers.training.rules.resolving import resolve
from workers.training.rules.words import Checked, Fault, Machine, Resolved

__all__ = [
    "DEFAULT_ALLOW",
    "Checked",
    "Fault",
    "Machine",
    "Resolved",
    "arguments_of",
    "check",
    "decide",
    "is_allowed",
    "is_reference",
    "modules_of",
    "references",
    "with_full_names",
    "with_replaced",
]


def check(params: TrainingParams, machine: Machine, allow: Sequence[str], inherits: tuple[str, ...] = ()) -> Checked:
    """All that can be said about a configuration without importing anything that it names.

    allow: what it may name, with the modules of the job's own source among them.
    inherits: the names of the classes that a strategy of the user's own inherits from, where they are known.
    """
    params = with_full_names(params)
    shape = [*layout(params), *off_the_list(params.config, CONFIG, allow), *files(params), *fitting(params)]
    return decide(params, machine, inherits, shape)


def decide(
    params: TrainingParams, machine: Machine, inherits: tuple[str, ...] = (), shape: Sequence[Fault] = ()
) -> Checked:
    """Accelerator, devices, nodes, strategy and precision alone. `shape`: what is wrong with the rest."""
    choices = Choices(with_full_names(params), machine, inherits, [*shape])
    resolved, row = resolve(choices)
    for rule in (*RULES, backend):
        resolved = rule(choices, resolved, row) or resolved
    faults = list(dict.fromkeys(choices.faults))
    return Checked(faults, choices.warnings, choices.reasons, None if faults else resolved)
