"""References to datasets inside a configuration: found, and replaced by the paths of files."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from workers.contract import SeriesReference, TrainingParams
from workers.training.rules.pointers import joined, keys_of, with_value

KEYS: Final = frozenset(SeriesReference.model_fields)
ARGUMENTS: Final = frozenset({"init_args", "dict_kwargs", "kwargs"})
"""What is below these keys is meant for the user's classes and functions; references count only there."""
ROOTS: Final[Mapping[str, tuple[str, ...]]] = {
    "trainer": ("model", "data", "optimizer", "lr_scheduler"),
    "fabric": ("function",),
}
"""Trainer and Fabric themselves take no data."""


def is_reference(value: object) -> bool:
    """Whether `value` stands for data: an object with `dataset` or `values`, and only keys that a series reference has."""
    return isinstance(value, dict) and bool(value.keys() & {"dataset", "values"}) and value.keys() <= KEYS


def found(params: TrainingParams) -> Iterator[tuple[str, dict[str, Any]]]:
    """The references as they were sent, each with its JSON Pointer into `params` (`/config/data/init_args/series`)."""
    for root in ROOTS[params.mode]:
        yield from _below(params.config.get(root), joined("/config", root), inside=False)


def references(params: TrainingParams) -> Iterator[tuple[str, SeriesReference | str]]:
    """Every reference with its JSON Pointer into `params`: of a series, or, as a bare dataset's id, of a whole table.

    Raises pydantic's ValidationError for one that is wrong; `check` says so first.
    """
    for pointer, sent in found(params):
        reference = SeriesReference.model_validate(sent)
        table = reference.dataset is not None and sent.keys() == {"dataset"}
        yield pointer, reference.dataset if table and reference.dataset else reference


def with_replaced(config: dict[str, Any], paths: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of `config` with what each JSON Pointer into `params` names replaced; `config` itself stays as it is."""
    for pointer, path in paths.items():
        config = with_value(config, keys_of(pointer)[1:], path)
    return config


def _below(value: object, pointer: str, inside: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        if inside and is_reference(value):
            yield pointer, value
            return
        for key, each in value.items():
            yield from _below(each, joined(pointer, key), inside or key in ARGUMENTS)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _below(each, joined(pointer, index), inside)
