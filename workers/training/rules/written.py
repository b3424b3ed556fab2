"""Paths in a configuration that something is written to: each stays below the job's own folder, and none is a dataset's."""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from workers.contract import TrainingParams
from workers.training.rules.allow import LIGHTNINGS, NAMING_KEYS
from workers.training.rules.pointers import CONFIG, joined
from workers.training.rules.references import ROOTS, is_reference
from workers.training.rules.words import FABRIC, TRAINER, Fault

WRITTEN: Final = frozenset(
    {
        "default_root_dir",
        "dirpath",
        "save_dir",
        "root_dir",
        "log_dir",
        "dir",
        "sub_dir",
        "filename",
        "name",
        "version",
        "output_dir",
    }
)
"""Arguments of Trainer, and of callbacks, loggers and profilers, a user's own among them, that become paths of files."""
ONLY_WRITTEN: Final = frozenset({"default_root_dir", "dirpath", "save_dir", "log_dir", "output_dir"})
"""Those that nobody would read data from, in classes and functions of any kind."""
NO_PATHS: Final = frozenset({"separator", "metrics_text_delimiter", "text_delimiter"})
"""Arguments of Lightning's classes in which a slash is a slash."""
ELSEWHERE: Final[Mapping[str, str]] = {
    "nvme_path": "is a place of the machine that only those who run this service can know; it cannot be set here",
    "remote_device": "is a place of the machine that only those who run this service can know; use the name deepspeed_stage_3_offload_nvme",
}
OUTSIDE: Final = ("/", "~", "$", "file:", "local:")
"""How a path begins that is not below the folder it is used in; Lightning puts in what `~` and `$HOME` stand for."""
BELONGS: Final = "a reference belongs among the arguments of a model, of data or of a function that reads it"
FIELD: Final = re.compile(r"\{(?P<name>[^{}:!]*)(?::0?\d*(?:\.\d+)?[defg%]?)?\}")
"""A metric in a checkpoint's file name. Of the ways to write a number some could write a slash, so the plain ones alone."""


def written(params: TrainingParams) -> Iterator[Fault]:
    """Every path that leads out of the job's folder, and every reference where no data is meant."""
    for key in (params.mode, *ROOTS[params.mode]):
        yield from _below(params.config.get(key), joined(CONFIG, key), key, key in (TRAINER, FABRIC), False)


def leads_out(path: str) -> bool:
    """Whether a path is anything but one below the folder that it is used in."""
    outside = path.lower().startswith(OUTSIDE) or ".." in PurePosixPath(path).parts
    return outside or any(mark in path for mark in ("\\", "://", "::", "\0"))


def _below(value: Any, pointer: str, key: str, trainer: bool, lightnings: bool) -> Iterator[Fault]:
    """trainer: within the arguments of Trainer or Fabric. lightnings: among the arguments of a class of Lightning's."""
    if isinstance(value, str):
        if reason := _objection(value, key, trainer, lightnings):
            yield Fault(pointer, reason)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _below(each, joined(pointer, index), key, trainer, lightnings)
    elif is_reference(value) and (trainer or lightnings or key in ONLY_WRITTEN):
        yield Fault(pointer, f"`{key}` takes no data: {BELONGS}")
    elif isinstance(value, dict):
        if isinstance(path := value.get("class_path"), str):
            lightnings = path.startswith(LIGHTNINGS)
        for name, each in value.items():
            if (trainer or lightnings) and name in ELSEWHERE and each is not None:
                yield Fault(joined(pointer, name), ELSEWHERE[name])
            elif name not in NAMING_KEYS:
                yield from _below(each, joined(pointer, name), name, trainer, lightnings)


def _objection(text: str, key: str, trainer: bool, lightnings: bool) -> str | None:
    if not (trainer and key in WRITTEN) and not (lightnings and key not in NO_PATHS):
        return None
    if key == "tracking_uri" and text.startswith(("http://", "https://")):
        return None  # a server, not a place of this machine
    if leads_out(text):
        why = "has a NUL byte in it, which no path can have" if "\0" in text else "leads out of the job's folder"
        return f"{text!r} {why}; give a relative path without `..`, such as 'out'"
    if lightnings and key == "filename":
        rest = FIELD.sub("", text)
        if "{" in rest or "}" in rest or any(leads_out(found["name"]) for found in FIELD.finditer(text)):
            return f"{text!r}: write a metric as '{{val_loss:.3f}}' or '{{step:06d}}', with nothing else in the braces"
    return None
