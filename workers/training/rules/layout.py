"""The shape of a configuration: its keys, its objects, and what may not be said with them."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from workers.contract import TrainingParams
from workers.training.rules.pointers import CONFIG, joined
from workers.training.rules.words import FABRIC, NAMES, TRAINER, Fault

STAGE_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "fit": (),
    "validate": ("verbose",),
    "test": ("verbose",),
    "predict": ("return_predictions",),
}
TRAINER_KEYS: Final = (
    "seed_everything",
    "trainer",
    "model",
    "data",
    "optimizer",
    "lr_scheduler",
    "ckpt_path",
    "weights_only",
)
FABRIC_KEYS: Final = ("seed_everything", "fabric", "function")

CLASSES: Final = ("model", "data", "optimizer", "lr_scheduler")
"""Sections that are one class each."""
OBJECTS: Final[Mapping[str, tuple[str, ...]]] = {
    TRAINER: ("logger", "callbacks", "plugins"),
    FABRIC: ("loggers", "plugins"),
}
"""Arguments of Trainer and Fabric that are classes; a string there could be read as the name of a file."""
NO_FILES: Final = "a string would be read as the name of a file, which a configuration may not do"
AS_CLASS: Final = 'must be an object such as {"class_path": "…", "init_args": {…}}'
SEED_END: Final = 2**32


def layout(params: TrainingParams) -> Iterator[Fault]:
    """Everything that is wrong with the shape alone."""
    config = params.config
    keys = (*TRAINER_KEYS, *STAGE_KEYS[params.stage]) if params.mode == TRAINER else FABRIC_KEYS
    for key in config:
        if key not in keys:
            yield Fault(joined(CONFIG, key), f"is no key of such a configuration, which has {', '.join(keys)}")
    yield from _seed(config)
    if params.mode == FABRIC and params.stage != "fit":
        yield Fault(
            "/params/stage", f"a function under Fabric has no stages: leave `stage` out, instead of {params.stage!r}"
        )
    section = config.get(params.mode)
    if section is not None and not isinstance(section, dict):
        yield Fault(
            joined(CONFIG, params.mode), f"must be an object with the arguments of {NAMES[params.mode]}; {NO_FILES}"
        )
        section = None
    if params.mode == FABRIC and (section or {}).get("callbacks") is not None:
        yield Fault(
            joined(CONFIG, FABRIC, "callbacks"),
            "a function under Fabric calls what it needs itself; pass it in `kwargs`",
        )
    for key in OBJECTS[params.mode]:
        yield from _objects((section or {}).get(key), joined(CONFIG, params.mode, key))
    yield from _classes(config) if params.mode == TRAINER else _function(config)


def section_of(params: TrainingParams) -> dict[str, Any]:
    """The arguments of Trainer or Fabric; none, where they are no object."""
    section = params.config.get(params.mode)
    return section if isinstance(section, dict) else {}


def _seed(config: dict[str, Any]) -> Iterator[Fault]:
    seed = config.get("seed_everything", True)
    if not isinstance(seed, bool) and not (isinstance(seed, int) and 0 <= seed < SEED_END):
        yield Fault(
            joined(CONFIG, "seed_everything"),
            f"must be true, false or a whole number from 0 to {SEED_END - 1}, not {seed!r}",
        )


def _classes(config: dict[str, Any]) -> Iterator[Fault]:
    for key in CLASSES:
        if config.get(key) is not None:
            yield from _class(config[key], joined(CONFIG, key))
    if config.get("model") is None:
        at = joined(CONFIG, "model") if "model" in config else CONFIG
        yield Fault(at, '`model` is missing: the LightningModule, as {"class_path": "…", "init_args": {…}}')
    if config.get("lr_scheduler") is not None and config.get("optimizer") is None:
        yield Fault(joined(CONFIG, "lr_scheduler"), "needs an `optimizer` beside it")


def _function(config: dict[str, Any]) -> Iterator[Fault]:
    function, pointer = config.get("function"), joined(CONFIG, "function")
    if function is None:
        yield Fault(CONFIG, '`function` is missing: {"call_path": "package.module.train", "kwargs": {…}}')
        return
    if not isinstance(function, dict):
        yield Fault(pointer, f'must be an object {{"call_path": "…", "kwargs": {{…}}}}; {NO_FILES}')
        return
    for key in function:
        if key not in ("call_path", "kwargs"):
            yield Fault(joined(pointer, key), "is no key of `function`, which has call_path, kwargs")
    if "call_path" not in function:
        yield Fault(
            pointer, "`call_path` is missing: the dotted path of a function that is called as f(fabric, **kwargs)"
        )
    if not isinstance(function.get("kwargs", {}), dict):
        yield Fault(joined(pointer, "kwargs"), "must be an object: the function's arguments by name")


def _objects(value: Any, pointer: str) -> Iterator[Fault]:
    """One class, a list of them, or null, true and false where Lightning takes those."""
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from _class(each, joined(pointer, index))
    elif value is not None and not isinstance(value, bool):
        yield from _class(value, pointer)


def _class(value: Any, pointer: str) -> Iterator[Fault]:
    if isinstance(value, str):
        yield Fault(pointer, f"{AS_CLASS}; {NO_FILES}")
    elif not isinstance(value, dict):
        yield Fault(pointer, f"{AS_CLASS}, not {value!r}")
    elif "class_path" not in value:
        yield Fault(pointer, f"`class_path` is missing: {AS_CLASS}")
    else:
        for key, each in value.items():
            if key not in ("class_path", "init_args", "dict_kwargs"):
                yield Fault(
                    joined(pointer, key),
                    "is no key of a class, which has class_path, init_args; its arguments go into `init_args`",
                )
            elif key != "class_path" and each is not None and not isinstance(each, dict):
                yield Fault(joined(pointer, key), f"must be an object: the arguments of the class by name; {NO_FILES}")
