"""The arguments of one class or function: parsed by its signature, each objection with its pointer."""

import copy
import inspect
import json
import re
from argparse import ArgumentError
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from jsonargparse import ArgumentParser, Namespace

from workers.training.parsing.faults import NO_ARGUMENT, ConfigFaults, in_words, instead_of, of_value
from workers.training.parsing.naming import imported
from workers.training.rules import Fault
from workers.training.rules.pointers import joined

KEY: Final = "it"
"""The parser's name for the class; it appears in no message that people see."""
AT_KEY: Final = re.compile(rf'^Parser key "{KEY}\.(?P<key>[^"]+)"')
UNKNOWN: Final = re.compile(
    r"^Group .* does not accept option '(?P<key>[^']+)'|^Option '(?P<option>[^']+)' is not accepted"
)
MISSING: Final = re.compile(r"arguments are required: (?P<keys>.+)$")
MOST_FAULTS: Final = 20
GIVEN_LATER: Final = frozenset({"params", "optimizer"})
"""What Lightning gives optimizers and schedulers."""


@dataclass(frozen=True)
class Arguments:
    """Parsed arguments of one callable, with those that its `**kwargs` takes unseen."""

    parser: ArgumentParser
    values: Namespace
    unseen: dict[str, Any] = field(default_factory=dict)
    given: tuple[str, ...] = ()
    """Names of the arguments that the configuration gives."""

    def instantiated(self) -> dict[str, Any]:
        """Keyword arguments for the call: each class among them is an object now."""
        made = self.parser.instantiate(self.values)
        return {**dict(vars(made[KEY]) if KEY in made else {}), **self.unseen}

    def plain(self) -> dict[str, Any]:
        """The same as plain data, defaults included."""
        dumped = self.parser.dump(self.values, format="json", skip_validation=True)
        told: dict[str, Any] = json.loads(dumped).get(KEY, {})
        return {**told, **self.unseen}


def parsed(
    called: Callable[..., Any],
    sent: dict[str, Any] | None,
    pointer: str,
    allowed: Sequence[str],
    skip: Collection[str] = (),
    unseen: dict[str, Any] | None = None,
) -> Arguments:
    """Arguments of `called`, of which the object `sent` is at `pointer`. Raises ConfigFaults with everything that is wrong.

    allowed: what may be named.
    skip: parameters that are given in another way.
    unseen: `dict_kwargs`: arguments beyond the signature.
    """
    sent = sent or {}
    try:
        parser = _parser(called, frozenset(skip))
        known = vars(parser.get_defaults().get(KEY) or Namespace())
    except Exception as fault:  # a signature that jsonargparse cannot make sense of
        raise ConfigFaults([Fault(pointer, f"cannot be read: {type(fault).__name__}: {fault}")]) from fault
    # Looked for here, because jsonargparse overlooks one whose value is an empty object.
    unknown = [key for key in sent if key not in known]
    faults = [Fault(joined(pointer, key), f"{NO_ARGUMENT}{instead_of(key, known)}") for key in unknown]
    left = {key: value for key, value in sent.items() if key in known}
    while len(faults) < MOST_FAULTS:
        try:
            # A copy: jsonargparse writes into what it is given.
            values = parser.parse_object({KEY: copy.deepcopy(left)} if left else {})
        except ArgumentError as objection:
            key, found = _objection(str(objection.message), sent, pointer, allowed)
            faults += found
            if key is None or key not in left:
                break
            del left[key]  # to hear what else is wrong
            continue
        except Exception as fault:  # what user code does to a parser is anybody's guess
            faults.append(Fault(pointer, f"cannot be read: {type(fault).__name__}: {fault}"))
            break
        if not faults:
            return Arguments(parser, values, dict(unseen or {}), tuple(left))
        break
    raise ConfigFaults(faults)


def _parser(called: Callable[..., Any], skip: frozenset[str]) -> ArgumentParser:
    parser = ArgumentParser(exit_on_error=False, default_env=False)
    # Without sub_configs, text where a class is expected is never taken for the name of a file.
    add = parser.add_class_arguments if inspect.isclass(called) else parser.add_function_arguments
    add(
        called,
        KEY,
        skip=set(skip),
        fail_untyped=False,
        sub_configs=False,
        **({"instantiate": False} if inspect.isclass(called) else {}),
    )
    return parser


def _objection(
    message: str, sent: dict[str, Any], pointer: str, allowed: Sequence[str]
) -> tuple[str | None, list[Fault]]:
    """The argument that one message is about, and what to say of it."""
    if found := AT_KEY.match(message):
        keys = found["key"].split(".")
        value = sent.get(keys[0])
        inside = list(_inside(value, joined(pointer, keys[0]), allowed))
        return keys[0], inside or [of_value(message, value, pointer, keys)]
    if found := UNKNOWN.match(message):
        keys = (found["key"] or found["option"].removeprefix(f"{KEY}.")).split(".")
        return keys[0], [Fault(joined(pointer, *keys), NO_ARGUMENT)]
    if found := MISSING.search(message):
        names = (name.removeprefix(f"{KEY}.") for name in found["keys"].split(", "))
        # One that was sent was taken out, for it is wrong in another way.
        return None, [Fault(pointer, f"`{name}` is missing") for name in names if name not in sent]
    return None, [Fault(pointer, in_words(message, sent))]


def _inside(value: Any, pointer: str, allowed: Sequence[str]) -> Iterator[Fault]:
    """The faults within a class, or a list of them, that is one argument: jsonargparse tells only of the argument as a whole."""
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from _inside(each, joined(pointer, index), allowed)
    if not isinstance(value, dict) or not isinstance(path := value.get("class_path"), str):
        return
    try:
        found = imported(path, joined(pointer, "class_path"), allowed)
        if callable(found):
            arguments = value.get("init_args") or {}
            parsed(found, arguments, joined(pointer, "init_args"), allowed, GIVEN_LATER - arguments.keys())
    except ConfigFaults as wrong:
        yield from wrong.faults
