"""Paths and checkpoints in a configuration: a job writes below its own folder, and reads datasets and artifacts."""

from collections.abc import Iterator
from typing import Any, Final

from pydantic import ValidationError

from workers.contract import SeriesReference, TrainingParams
from workers.training.rules.pointers import CONFIG, joined
from workers.training.rules.references import found
from workers.training.rules.words import TRAINER, Fault
from workers.training.rules.written import leads_out, written

IN_THE_BOX: Final = ("workers.training.data.", "workers.training.loops.")
READ: Final = ("series", "table", "covariates")
"""Arguments of what is in the box that are data."""
REFERENCE: Final = 'must be a reference such as {"dataset": "ds_…", "column": "…"}'
CHECKPOINT: Final = (
    'must be null or {"job": "job_…", "artifact": "last.ckpt"}: a checkpoint that an earlier job has left'
)


def files(params: TrainingParams) -> Iterator[Fault]:
    """Every path that leads out of the job's folder, and every reference that is wrong."""
    yield from written(params)
    yield from _data(params.config.get("data"), joined(CONFIG, "data"), "class_path", "init_args")
    yield from _data(params.config.get("function"), joined(CONFIG, "function"), "call_path", "kwargs")
    for pointer, sent in found(params):
        yield from _reference(sent, "/params" + pointer)
    if params.mode == TRAINER:
        yield from _checkpoint(params.config)


def _data(section: Any, pointer: str, named: str, arguments: str) -> Iterator[Fault]:
    """What is in the box opens what it is told to open, so it is told of datasets alone."""
    if not isinstance(section, dict) or not str(section.get(named, "")).startswith(IN_THE_BOX):
        return
    given = section.get(arguments)
    for key in READ:
        if isinstance(given, dict) and key in given:
            yield from _texts(given[key], joined(pointer, arguments, key))


def _texts(sent: Any, pointer: str) -> Iterator[Fault]:
    if isinstance(sent, str):
        yield Fault(pointer, f"{REFERENCE}, not the path {sent!r}")
    for index, each in enumerate(sent) if isinstance(sent, list) else ():
        yield from _texts(each, joined(pointer, index))


def _reference(sent: dict[str, Any], pointer: str) -> Iterator[Fault]:
    try:
        SeriesReference.model_validate(sent)
    except ValidationError as wrong:
        for error in wrong.errors(include_url=False):
            yield Fault(joined(pointer, *error["loc"]), error["msg"].removeprefix("Value error, "))


def _checkpoint(config: dict[str, Any]) -> Iterator[Fault]:
    match config.get("ckpt_path"):
        case None:
            pass
        case {"job": str(), "artifact": str(name), **rest} if not rest:
            if leads_out(name):
                yield Fault(
                    joined(CONFIG, "ckpt_path", "artifact"), f"{name!r} is no name of an artifact, such as 'last.ckpt'"
                )
        case str(path):
            yield Fault(joined(CONFIG, "ckpt_path"), f"{CHECKPOINT}, not the path or URL {path!r}")
        case other:
            yield Fault(joined(CONFIG, "ckpt_path"), f"{CHECKPOINT}, not {other!r}")
    if config.get("weights_only") not in (None, True):
        yield Fault(
            joined(CONFIG, "weights_only"),
            "false would let a checkpoint run any code while it is loaded; leave it out, or say true",
        )
