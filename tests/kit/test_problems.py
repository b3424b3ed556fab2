import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kit import problems
from app.kit.problems import FieldError, Problem


def test_a_document_has_the_members_of_rfc_9457():
    problem = problems.Conflict("Two at once.", pointer="/a", left=3, status="mine")
    assert problem.document("/x") == {
        "type": "/problems/conflict",
        "title": "Conflict",
        "status": 409,
        "detail": "Two at once.",
        "instance": "/x",
        "errors": [{"pointer": "/a", "detail": "Two at once."}],
        "left": 3,
    }


def test_without_a_detail_the_first_paragraph_of_the_docstring_speaks():
    assert problems.BadRequest().document("/")["detail"] == "The request could not be read."
    assert "errors" not in problems.BadRequest().document("/")


def test_pointer_adds_to_errors():
    problem = problems.InvalidInput("b", errors=[FieldError("/a", "a")], pointer="/b")
    assert problem.errors == (FieldError("/a", "a"), FieldError("/b", "b"))


def test_slugs_and_titles_follow_from_the_name():
    assert {kind.slug: kind.title for kind in (problems.NotFound, problems.IdempotencyKeyReused)} == {
        "not-found": "Not found",
        "idempotency-key-reused": "Idempotency key reused",
    }

    class HTTPTeapot2Cold(problems.Conflict):
        """Cold."""

    assert (HTTPTeapot2Cold.slug, HTTPTeapot2Cold.title, HTTPTeapot2Cold.status) == (
        "http-teapot2-cold",
        "Http teapot2 cold",
        409,
    )
    del Problem._by_slug["http-teapot2-cold"]


def test_two_kinds_cannot_share_a_slug():
    with pytest.raises(TypeError, match="both claim /problems/not-found"):
        type("NotFound", (Problem,), {"__doc__": "Another.", "__module__": "elsewhere"})


def test_a_kind_without_a_page_is_refused():
    with pytest.raises(AssertionError, match="docstring"):
        type("Undocumented", (Problem,), {})


def test_busy_answers_say_when_to_come_back():
    assert problems.Unavailable().headers == {"Retry-After": "5"}
    assert problems.TooManyRequests(headers={"retry-after": "60"}).headers == {"retry-after": "60"}


def test_the_catalogue_knows_every_kind_by_its_slug():
    known = problems.catalogue()
    assert known["invalid-input"] is problems.InvalidInput
    assert all(kind.slug == slug for slug, kind in known.items())
    assert "problem" not in known


@given(st.text(), st.text())
def test_any_text_makes_a_document(detail, path):
    assert problems.NotFound(detail).response(path).body.decode("utf-8")
    assert problems.NotFound("\ud800").response("/\ud800").body
