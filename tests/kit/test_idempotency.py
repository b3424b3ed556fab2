import pytest
from fastapi import Response
from hypothesis import given
from hypothesis import strategies as st

from app.kit.idempotency import StoredAnswer, fingerprint, key_of, replay
from app.kit.problems import InvalidInput

values = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda v: st.dictionaries(st.text(), v))


def test_key_order_and_spaces_do_not_matter():
    assert fingerprint("POST", "/x", b'{"a": 1, "b": [1, 2]}') == fingerprint("post", "/x", {"b": [1, 2], "a": 1})


def test_all_else_does():
    same = fingerprint("POST", "/x", {"a": 1})
    others = [("PUT", "/x", {"a": 1}), ("POST", "/y", {"a": 1}), ("POST", "/x", {"a": 2}), ("POST", "/x", b"{a:1}")]
    assert same not in {fingerprint(*other) for other in others}
    assert fingerprint("POST", "/x", b"") != fingerprint("POST", "/x", None)
    assert fingerprint("POST", "/x", b"[1, 2]") != fingerprint("POST", "/x", b"[2, 1]")


@given(st.binary() | values)
def test_any_body_has_a_fingerprint(body):
    assert fingerprint("POST", "/x", body) == fingerprint("POST", "/x", body)


@pytest.mark.parametrize("body", [b"[" * 100_000, b"1" * 10_000, b'"\\ud800"', b"NaN"])
def test_hostile_bodies_have_one_too(body):
    assert len(fingerprint("POST", "/\ud800", body)) == 64


@pytest.mark.parametrize(
    ("text", "key"),
    [("abc", "abc"), ('"abc"', "abc"), (' "a\\"b\\\\" ', 'a"b\\'), ("x" * 255, "x" * 255), ('a"b', 'a"b')],
)
def test_keys_are_bare_or_quoted(text, key):
    assert key_of(text) == key


@pytest.mark.parametrize("text", ["", '""', "x" * 256, "a b", '"a', '"a"b"', "é", "a\x00", '"a\\x"', '"a";p=1'])
def test_other_keys_are_invalid(text):
    with pytest.raises(InvalidInput) as caught:
        key_of(text)
    assert caught.value.errors[0].pointer == "/header/idempotency-key"


def test_the_key_is_optional_and_checked(api, problem):
    order = {"item": {"kind": "stone", "weight": 2}}
    assert api("POST", "/shop/orders", json=order).json()["key"] is None
    assert api("POST", "/shop/orders", json=order, headers={"idempotency-key": '"k1"'}).json()["key"] == "k1"
    for bad in ("", "a b", [("idempotency-key", "a"), ("idempotency-key", "b")]):
        headers = bad if isinstance(bad, list) else {"idempotency-key": bad}
        document = problem(422, "POST", "/shop/orders", json=order, headers=headers)
        assert document["errors"][0]["pointer"] == "/header/idempotency-key"


def test_an_answer_can_be_kept_and_given_again():
    first = Response(b"\xff\x00", 202, {"Location": "/x", "Retry-After": "1", "X-Request-ID": "r"}, "application/json")
    kept = StoredAnswer.model_validate_json(StoredAnswer.of(first).model_dump_json())
    again = replay(kept)
    assert (again.status_code, again.body) == (202, b"\xff\x00")
    assert dict(again.headers) == {
        "location": "/x",
        "retry-after": "1",
        "content-type": "application/json",
        "idempotency-replayed": "true",
        "content-length": "2",
    }
