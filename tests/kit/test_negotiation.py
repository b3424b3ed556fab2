import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kit.negotiation import best_match

OFFERS = ("application/json", "text/csv", "application/x-npz")


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        (None, "application/json"),
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/csv", "text/csv"),
        ("TEXT/CSV", "text/csv"),
        ("text/*", "text/csv"),
        ("text/csv;q=0.5, application/x-npz", "application/x-npz"),
        ("text/csv, */*", "text/csv"),
        ("application/json;q=0, */*", "text/csv"),
        ("application/*;q=0.2, application/x-npz;q=0.1, text/csv;q=0.1", "application/json"),
        ("*/*;q=0", None),
        ("image/png", None),
        ("text/csv;q=0", None),
        ("application/json; charset=utf-8", "application/json"),
        ("application/json; version=2", None),
        ('text/csv; a="x,y", application/x-npz;q=0.9', "application/x-npz"),
        ("text/csv;q=2", "application/json"),
        ("nonsense", "application/json"),
        ("*/json", "application/json"),
        ("text/csv;q=0.5;q=0.9, application/json;q=0.6", "application/json"),
        ("text/html, application/xhtml+xml, application/xml;q=0.9, image/avif, */*;q=0.8", "application/json"),
    ],
)
def test_the_best_offer_wins(accept, chosen):
    assert best_match(accept, OFFERS) == chosen


def test_parameters_of_an_offer_make_it_closer():
    offers = ("text/plain", "text/plain;format=flowed")
    assert best_match("text/plain;format=flowed, text/plain;q=0.5", offers) == "text/plain;format=flowed"
    assert best_match("text/*", offers) == "text/plain"


def test_nothing_acceptable_names_what_there_is(api, problem):
    document = problem(406, "GET", "/shop/picture", headers={"accept": "text/html"})
    assert document["available"] == ["image/png", "image/svg+xml"]
    assert "image/png, image/svg+xml" in document["detail"]
    assert api("GET", "/shop/picture", headers={"accept": "image/svg+xml"}).headers["content-type"] == "image/svg+xml"


ranges = st.tuples(
    st.sampled_from(["*/*", "text/*", "application/*", *OFFERS, "image/png"]),
    st.sampled_from(["", ";q=0", ";q=0.1", ";q=0.9", ";q=1.000"]),
)


@given(st.lists(ranges, min_size=1, unique_by=lambda pair: pair[0]))
def test_what_is_chosen_has_the_highest_quality(pairs):
    def quality(offer):
        for pattern in (offer, offer.split("/")[0] + "/*", "*/*"):
            for name, q in pairs:
                if name == pattern:
                    return float(q[3:] or 1)
        return 0.0

    chosen = best_match(", ".join(name + q for name, q in pairs), OFFERS)
    best = max(map(quality, OFFERS))
    assert (chosen is None) == (best == 0)
    assert chosen is None or quality(chosen) == best


@given(st.text() | st.text('text/csv*;q=0. ,"\\'))
def test_no_accept_header_is_an_error(accept):
    assert best_match(accept, OFFERS) in (None, *OFFERS)


@pytest.mark.parametrize(
    "text", ['"\\' * 32_000, "a/b" + ";  " * 20_000 + "(", "a/b;q=1," * 8000, "a/b;" + "q=" * 30_000]
)
def test_no_header_takes_long(text):
    start = time.thread_time()  # of this thread alone: others of the process may be at work
    best_match(text, OFFERS)
    assert time.thread_time() - start < 0.5
