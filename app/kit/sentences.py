"""What pydantic says, in words for people who have never heard of pydantic."""

import difflib
import json
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel

SENTENCES: Final = {
    "missing": "is required and is not there",
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
    "multiple_of": "must be a multiple of {multiple_of}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match `{pattern}`",
    "too_short": "must have at least {min_length} {items}, but has {actual_length}",
    "too_long": "must have at most {max_length} {items}",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "union_tag_invalid": "`{tag}` is not known here; known are {expected_tags}",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be text",
    "list_type": "must be a list",
    "dict_type": "must be an object",
}
"""From the type of pydantic's error to a sentence with the names of its context."""


def sentence(error: Mapping[str, Any], body_type: Any) -> str:
    """What is wrong with a value; `body_type` is what the body should have been, where the error is in the body."""
    kind, location = str(error.get("type")), list(error.get("loc") or ())[1:]
    if kind == "extra_forbidden":
        return _extra(location, body_type)
    if kind in ("model_type", "model_attributes_type"):
        return "must be an object" + _such_as(_reached(body_type, location))
    if kind == "missing" and not location:
        return "The body is empty; send " + _object(body_type) if body_type else "is required and is not there"
    context = {
        name: f"{value:g}" if isinstance(value, float) else value for name, value in (error.get("ctx") or {}).items()
    }
    context["actual_length"] = context.get("actual_length") or "none"
    context["items"] = "item" if 1 in (context.get("min_length"), context.get("max_length")) else "items"
    try:
        return SENTENCES[kind].format(**context)
    except (KeyError, ValueError):
        return str(error.get("msg", "Invalid"))


def not_known(name: str, names: Iterable[str]) -> str:
    """`windw` is not known here, which name was meant perhaps, and which there are."""
    names = list(names)
    near = difflib.get_close_matches(name[:100], names, 1)
    meant = f"; did you mean `{near[0]}`?" if near else "."
    there_are = f" Known are {', '.join(f'`{each}`' for each in names)}." if names else " Nothing is."
    return f"`{name[:100]}` is not known here{meant}{there_are}"


def _extra(location: Sequence[str | int], body_type: Any) -> str:
    *path, name = location
    # Where a tag has told which of several bodies it is, the others' members are no help.
    for at, step in enumerate(path):
        if branches := _tagged(_reached(body_type, path[:at]), step):
            return _extra([*path[at + 1 :], name], _any_of(branches))
    known = list(dict.fromkeys(field for model in _reached(body_type, path) for field in model.model_fields))
    homes = list(dict.fromkeys(_homes(body_type, str(name)))) if name not in known else []
    if homes:
        return f"`{name}` belongs " + (f"in `{homes[0]}`." if homes[0] else "at the top of the body.")
    return not_known(str(name), known)


def _such_as(models: Sequence[type[BaseModel]]) -> str:
    extra = [model.model_config.get("json_schema_extra") for model in models]
    examples = [each for told in extra if isinstance(told, dict) for each in _list(told.get("examples"))]
    shown = dict.fromkeys(json.dumps(each, ensure_ascii=False) for each in examples)
    return f", such as {' or '.join(shown)}" if shown else ""


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _object(body_type: Any) -> str:
    needed = [name for model in _models(body_type) for name, field in model.model_fields.items() if field.is_required()]
    return "a JSON object" + (f" with {', '.join(f'`{name}`' for name in dict.fromkeys(needed))}." if needed else ".")


def _reached(annotation: Any, path: Sequence[str | int]) -> list[type[BaseModel]]:
    """The models that may stand at the end of `path`. Steps that are no members are names of union branches."""
    for step in path:
        models = list(_models(annotation))
        inner = [model.model_fields[step].annotation for model in models if step in model.model_fields]
        if isinstance(step, int):
            inner = list(_items(annotation))
        if narrower := inner or _tagged(models, step):
            annotation = _any_of(narrower)
    return list(_models(annotation))


def _tagged(models: Iterable[type[BaseModel]], tag: str | int) -> list[type[BaseModel]]:
    """Those models that a member with this one value tells from the others."""
    return [
        model
        for model in models
        if any(get_origin(each.annotation) is Literal and tag in get_args(each.annotation) for each in _fields(model))
    ]


def _fields(model: type[BaseModel]) -> Iterable[Any]:
    return model.model_fields.values()


def _any_of(annotations: Iterable[Any]) -> Any:
    return Union[tuple(annotations)]  # noqa: UP007 - of as many as there are


def _items(annotation: Any) -> Iterator[Any]:
    """What the lists that an annotation names hold."""
    if get_origin(annotation) is list:
        yield from get_args(annotation)
    elif get_origin(annotation) in (Annotated, Union, types.UnionType):
        for part in get_args(annotation):
            yield from _items(part)


def _homes(annotation: Any, name: str, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Where else in a body `name` is a member."""
    for model in _models(annotation):
        if name in model.model_fields:
            yield ".".join(path)
        for member, field in model.model_fields.items():
            if len(path) < 4:
                yield from _homes(field.annotation, name, (*path, member))


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models which an annotation names: itself, of a union, of a list's items."""
    if get_origin(annotation) in (Annotated, Union, types.UnionType, list):
        for part in get_args(annotation):
            yield from _models(part)
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
