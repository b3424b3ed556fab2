import base64
import json
import re
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.kit.pages import Cursor, page_of
from app.kit.problems import CursorInvalid

scalars = st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text()


def test_following_next_visits_everything_once(api):
    seen, cursor = [], None
    while True:
        page = api("GET", "/shop/orders", params={"limit": 50} | ({"cursor": cursor} if cursor else {})).json()
        seen += page["items"]
        if (cursor := page["next"]) is None:
            break
    assert seen == list(range(120))


def test_the_link_header_is_the_same_list_further_on(api):
    response = api("GET", "/shop/orders?colour=r%C3%A9d%20%26%20blue&limit=7&also=&also=%FF")
    target = re.fullmatch(r'<(/shop/orders\?.*)>; rel="next"', response.headers["link"])[1]
    assert parse_qs(urlsplit(target).query, keep_blank_values=True, encoding="latin-1") == {
        "colour": ["rÃ©d & blue"],
        "limit": ["7"],
        "also": ["", "\xff"],
        "cursor": [response.json()["next"]],
    }
    second = api("GET", target)
    assert second.json()["items"] == list(range(7, 14))
    assert second.headers["link"].count("cursor=") == 1
    assert "link" not in api("GET", "/shop/orders?limit=200").headers


@pytest.mark.parametrize("limit", ["0", "201", "x", "-1", "1e9", "9" * 5000, ""])
def test_limits_out_of_range_are_invalid(problem, limit):
    assert problem(422, "GET", "/shop/orders", params={"limit": limit})["errors"][0]["pointer"] == "/query/limit"


def test_a_cursor_belongs_to_its_filters_but_not_to_its_limit(api, problem):
    cursor = api("GET", "/shop/orders?colour=red").json()["next"]
    assert api("GET", f"/shop/orders?colour=red&limit=3&cursor={cursor}").json()["items"] == [50, 51, 52]
    document = problem(422, "GET", f"/shop/orders?colour=blue&cursor={cursor}")
    assert document["type"] == "/problems/cursor-invalid"
    assert document["errors"][0]["pointer"] == "/query/cursor"


def forged(*parts):
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "text",
    ["", "x", "%00", "%ff", "é", "a" * 60_000, "W10", "bnVsbA", forged(), forged(1, 2)]
    + [forged("44136fa355b3678a", part) for part in (True, "x", 2**63, 1.5, None, [1], {"a": 1}, float("nan"), 10**400)]
    + [forged("44136fa355b3678a"), forged("44136fa355b3678a", 1, 2), "W" * 1999],
)
def test_cursors_not_made_here_are_refused(problem, text):
    assert problem(422, "GET", f"/shop/orders?cursor={text}")["type"] == "/problems/cursor-invalid"


@given(st.lists(scalars).map(tuple), st.dictionaries(st.text(), scalars))
def test_a_cursor_survives_the_journey(key, filters):
    text = Cursor(key).encode(filters)
    assert re.fullmatch(r"[\w-]+", text, re.ASCII)
    if len(text) <= 2000 and not any(isinstance(part, str) and re.search("[\ud800-\udfff]", part) for part in key):
        assert Cursor.decode(text, {**filters, "absent": filters.get("absent")}).key == key


@given(st.text() | st.binary().map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
@example(forged("44136fa355b3678a", "\ud800"))
@example(base64.urlsafe_b64encode(b"[" * 1400).decode())
def test_any_text_is_a_cursor_or_a_problem(text):
    with pytest.raises(CursorInvalid):
        Cursor.decode(text)


def test_a_page_knows_whether_there_is_more():
    assert page_of([], 2, lambda row: (row,)) == ([], None)
    assert page_of([1, 2], 2, lambda row: (row,)) == ([1, 2], None)
    rows, more = page_of([1, 2, 3], 2, lambda row: (row,))
    assert rows == [1, 2]
    assert Cursor.decode(more, types=(int,)).key == (2,)
