from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from app.kit.pointers import LONGEST_SENTENCE, field_errors


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Where(Strict):
    model_config = ConfigDict(json_schema_extra={"examples": [{"shelf": 3}]})
    shelf: Annotated[int, Field(le=9, strict=True)] = 0


class Wish(Strict):
    colour: Literal["red", "blue"] = "red"
    where: Where | None = None
    notes: Annotated[list[str], Field(min_length=1, max_length=2)] = ["-"]


class Wishes(Strict):
    wishes: list[Wish]


@pytest.mark.parametrize(
    ("wish", "pointer", "detail"),
    [
        ({"coluor": "red"}, "/wishes/0/coluor", "`coluor` is not known here; did you mean `colour`? Known are `colour`, `where`, `notes`."),
        ({"shelf": 1}, "/wishes/0/shelf", "`shelf` belongs in `wishes.where`."),
        ({"where": {"colour": "red"}}, "/wishes/0/where/colour", "`colour` belongs in `wishes`."),
        ({"wishes": []}, "/wishes/0/wishes", "`wishes` belongs at the top of the body."),
        ({"where": 3}, "/wishes/0/where", 'must be an object, such as {"shelf": 3}, not 3'),
        ({"where": {"shelf": 12}}, "/wishes/0/where/shelf", "must be at most 9, not 12"),
        ({"where": {"shelf": "x"}}, "/wishes/0/where/shelf", 'must be a whole number, not "x"'),
        ({"colour": "green"}, "/wishes/0/colour", "must be 'red' or 'blue', not \"green\""),
        ({"notes": []}, "/wishes/0/notes", "must have at least 1 item, but has none"),
        ({"notes": ["a", "b", "c"]}, "/wishes/0/notes", "must have at most 2 items"),
    ],
)  # fmt: skip
def test_faults_are_told_in_plain_words(wish, pointer, detail):
    [fault] = faults({"wishes": [wish]}, Wishes)
    assert (fault.pointer, fault.detail) == (pointer, detail)


def test_no_sentence_is_longer_than_people_read():
    [fault] = faults({"wishes": [], "x" * 10_000: 1}, Wishes)
    assert len(fault.detail) <= LONGEST_SENTENCE


def faults(body, kind):
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(kind).validate_python(body)
    return field_errors([{**error, "loc": ("body", *error["loc"])} for error in caught.value.errors()], body, kind)
