"""What a parser objects to, told as faults: where in the request, and in words for people."""

import ast
import difflib
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from workers.training.rules import Fault
from workers.training.rules.pointers import joined

NO_ARGUMENT: Final = "is no argument here"
JSON_NAMES: Final = {
    "NoneType": "null",
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "list": "a list",
    "dict": "an object",
    "Iterable": "a list",
}
EXPECTED: Final = re.compile(r"Expected an? (?P<type>(?:<class|<enum|typing|member of).+?)(?:\. Got value: .*)?$")
OBJECT: Final = re.compile(r"^Not a valid subclass of (?P<type>\w+)")
FORM: Final = re.compile(r"Expected a string with form (?P<form>.+?)(?: but got .*)?$")
CLASS: Final = re.compile(r"<(?:class|enum) '(?:[\w.]*\.)?(\w+)'>")
LITERAL: Final = re.compile(r"typing\.Literal\[(.+)\]")
NOT_ALLOWED: Final = re.compile(r"Importing '(?P<path>[\w.]+)' is not allowed")
SUBCLASS: Final = re.compile(r"Import path (?P<path>[\w.]+) does not correspond to a subclass of (?P<base>\w+)")
RETURNS: Final = re.compile(r"Expected '(?P<path>[\w.]+)' to be a function that returns <class '(?P<type>\w+)'>")
NO_SUCH: Final = re.compile(
    r"module '(?P<module>[\w.]+)' has no attribute '(?P<name>\w+)'|No module named '(?P<missing>[\w.]+)'"
)


IN_VALUE: Final = re.compile(
    r"""^(?P<indent>\s+)(?:Parser key "(?P<key>\w+)":|Option '(?P<option>\w+)' is not accepted)""", re.MULTILINE
)
"""Within one value: a dataclass, as a rule."""


class ConfigFaults(Exception):
    """A configuration that cannot run; `faults` says why, each with its pointer."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("; ".join(f"{fault.pointer}: {fault.detail}" for fault in faults))
        self.faults = list(faults)


def in_words(message: str, value: Any) -> str:
    """What jsonargparse says of one value, without its trees of types."""
    if found := NOT_ALLOWED.search(message):
        return f"{found['path']!r} is not on the list of what a configuration may name, and nothing of it was imported"
    if found := SUBCLASS.search(message):
        return f"{found['path']!r} is no {found['base']}"
    if found := RETURNS.search(message):
        return f"{found['path']!r} must be a function whose annotation says that it returns a {found['type']}"
    if found := NO_SUCH.search(message):
        return f"there is no {found['missing'] or found['module'] + '.' + found['name']}"
    wanted = list(dict.fromkeys(_wanted(message)))
    if wanted:
        return f"must be {' or '.join(wanted)}, not {_short(value)}"
    return f"{_short(value)} cannot be used here: {' '.join(message.split())[:500]}"


def of_value(message: str, value: Any, pointer: str, keys: Sequence[str]) -> Fault:
    """What is wrong with the argument at `keys`, as deep in it as the message tells. `value` is that of the first key."""
    for name in keys[1:]:
        value = value.get(name) if isinstance(value, dict) else value
    nested = IN_VALUE.search(message)
    key = str(nested["key"] or nested["option"]) if nested else ""
    if nested is None or not isinstance(value, dict) or key not in value:
        return Fault(joined(pointer, *keys), in_words(message, value))
    words = (
        in_words(_indented(message[nested.end() :], len(nested["indent"])), value[key])
        if nested["key"]
        else NO_ARGUMENT
    )
    return Fault(joined(pointer, *keys, key), words)


def _indented(text: str, depth: int) -> str:
    """The first lines that are further in than `depth`."""
    lines = text.lstrip("\n").splitlines()
    return "\n".join(itertools.takewhile(lambda line: line.startswith(" " * (depth + 1)), lines))


def instead_of(key: str, names: Iterable[str]) -> str:
    """What was meant, perhaps."""
    near = difflib.get_close_matches(key, list(names), n=1)
    return f"; perhaps {near[0]!r} is meant" if near else ""


def _wanted(message: str) -> Iterator[str]:
    for line in message.splitlines():
        line = line.strip().removeprefix("- ")
        if found := EXPECTED.search(line):
            yield from _type(found["type"])
        elif found := OBJECT.search(line):
            yield f"a {found['type']} (an object)"
        elif found := FORM.search(line):
            yield f"text of the form {found['form']}"


def _type(text: str) -> Iterator[str]:
    if literal := LITERAL.search(text):
        yield "one of " + ", ".join(repr(each) for each in ast.literal_eval(f"[{literal[1]}]"))
    elif found := CLASS.search(text):
        yield JSON_NAMES.get(found[1], f"a {found[1]}")
    else:
        yield text


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else text[:119] + "…"
