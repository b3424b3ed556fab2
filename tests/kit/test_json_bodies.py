import json

import pytest

from app.kit.json_bodies import MOST_MEMBERS, loads
from app.kit.problems import InvalidInput


@pytest.mark.parametrize("text", ['{"a": [1, 2.5, null, "NaN", "\\"Infinity"]}', "[]", "3", '"é"', '"\\ud800"'])
def test_what_is_json_is_read_as_ever(text):
    assert loads(text.encode()) == json.loads(text)
    assert loads(text.encode("utf-16")) == json.loads(text)


def test_an_object_of_absurdly_many_members_is_refused_at_once():
    members = {str(number): 0 for number in range(MOST_MEMBERS + 1)}
    with pytest.raises(InvalidInput, match="1001 members"):
        loads(json.dumps([members]).encode())
    members.popitem()
    assert loads(json.dumps(members).encode()) == members


@pytest.mark.parametrize("text", ["1e400", "-1e999"])
def test_a_number_beyond_a_double_is_not_taken_for_infinity(text):
    with pytest.raises(InvalidInput) as refusal:
        loads(f'{{"values": [1.0, {text}]}}'.encode())
    assert refusal.value.errors[0].pointer == "/values/1"
    assert "64-bit" in refusal.value.errors[0].detail
