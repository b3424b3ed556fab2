from app.kit import catalogue, problems
from app.kit.catalogue import document_defaults


def test_every_problem_has_a_page(api):
    for kind in api("GET", "/problems").json():
        page = api("GET", kind["type"])
        assert page.status_code == 200
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert kind["title"] in page.text


def test_browsers_get_a_list_of_links(api):
    listed = api("GET", "/problems", headers={"accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert listed.headers["content-type"].startswith("text/html")
    assert '<a href="/problems/out-of-paint">Out of paint</a>, status 409' in listed.text


def test_a_page_is_the_docstring_rendered(api):
    text = api("GET", "/problems/out-of-paint").text
    assert "<p>The paint has run out.</p>" in text
    assert "<code>stone</code>" in text


def test_machines_get_json(api):
    response = api("GET", "/problems/out-of-paint", headers={"accept": "application/json"})
    assert response.json() == {
        "type": "/problems/out-of-paint",
        "title": "Out of paint",
        "status": 409,
        "description": "The paint has run out.\n\nAsk for `stone` instead.",
    }
    assert response.headers["vary"] == "Accept"


def test_unknown_problems_and_types_are_problems(problem):
    assert problem(404, "GET", "/problems/nothing")["type"] == "/problems/not-found"
    assert problem(406, "GET", "/problems/not-found", headers={"accept": "image/png"})["available"] == [
        "text/html",
        "application/json",
    ]


def test_problems_of_one_status_share_an_entry():
    both = catalogue.responses(problems.Conflict, problems.RequestInFlight)
    assert list(both) == [409]
    assert both[409]["description"] == "Conflict · Request still in flight"
    assert set(both[409]["content"]["application/problem+json"]["examples"]) == {"conflict", "request-in-flight"}


def test_the_openapi_document_knows_only_our_errors(api):
    document = api("GET", "/openapi.json").json()
    assert "HTTPValidationError" not in str(document)
    assert "ValidationError" not in document["components"]["schemas"]
    answers = document["paths"]["/shop/orders"]["post"]["responses"]
    assert list(answers) == ["200", "400", "409", "413", "415", "422", "500"]
    for status in list(answers)[1:]:
        assert list(answers[status]["content"]) == ["application/problem+json"]
        assert answers[status]["content"]["application/problem+json"]["schema"] == {
            "$ref": "#/components/schemas/ProblemDocument"
        }
    assert "415" not in document["paths"]["/form"]["post"]["responses"]
    assert document == document_defaults(document)


def test_the_openapi_document_is_valid(api):
    from openapi_spec_validator import validate

    validate(api("GET", "/openapi.json").json())
