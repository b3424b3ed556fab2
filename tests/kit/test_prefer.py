import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kit.prefer import applied, preferences, wait_seconds


@pytest.mark.parametrize(
    ("lines", "seconds"),
    [
        ([], None),
        (["wait=10"], 10),
        (["WAIT = 10"], 10),
        (['wait="10"'], 10),
        (["respond-async, wait=10"], 10),
        (["respond-async", "wait=10"], 10),
        (["wait=10; foo=bar; baz"], 10),
        (['foo="a, wait=3", wait=10'], 10),
        (["wait=10, wait=20"], 10),
        (["wait=0"], 0),
        (["wait=000" + "0" * 5000 + "7"], 7),
        (["wait=61"], 60),
        (["wait=" + "9" * 5000], 60),
        (["wait=-1"], None),
        (["wait=1.5"], None),
        (["wait=٣"], None),
        (["wait"], None),
        (["wait="], None),
        (["wait=x, wait=5"], None),
        (["wait 5"], None),
        (["junk junk, wait=5"], 5),
    ],
)
def test_wait_is_read_as_rfc_7240_has_it(lines, seconds):
    assert wait_seconds(lines) == seconds


def test_preferences_have_names_and_values():
    assert preferences(['a, B="x\\"y" , c=d;e=f', "c=2"]) == {"a": "", "b": 'x"y', "c": "d"}


def test_the_wait_that_was_applied_is_told(api):
    response = api("GET", "/shop/orders/1", headers=[("prefer", "respond-async"), ("prefer", "wait=90")])
    assert response.json()["wait"] == 60.0
    assert response.headers["preference-applied"] == "wait=60"
    assert applied(0.0) == "wait=0"
    assert "preference-applied" not in api("GET", "/shop/orders/1").headers


@given(st.lists(st.text() | st.text('wait=0 ,;"\\')))
def test_no_preference_is_an_error(lines):
    seconds = wait_seconds(lines)
    assert seconds is None or 0 <= seconds <= 60


@pytest.mark.parametrize("text", ['"\\' * 32_000, ";  " * 20_000 + "(", "a" + " " * 60_000 + "(", '"' * 60_001])
def test_no_header_takes_long(text):
    start = time.thread_time()
    wait_seconds([text])
    assert time.thread_time() - start < 0.5
