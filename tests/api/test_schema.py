"""The OpenAPI document: valid, complete, and true: its examples run, and schemathesis finds no answer that it does not tell of."""

import re

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from openapi_spec_validator import OpenAPIV31SpecValidator
from schemathesis import checks

from app.jobs import examples
from app.main import create_app
from app.settings import Settings
from tests.api.asking import CSV, JSON, profile, table
from tests.sources.packing import packed
from workers.contract import TrainingParams
from workers.operations import OPERATIONS

LATER = (
    "/motifs",
    "/discords",
    "/regimes",
    "/chains",
    "/append",
    "/metrics",
    "/deliveries",
)
"""What the contract marks as to come, and what later releases bring."""


@pytest.fixture(scope="module")
def schema(api):
    return api.get("/openapi.json").json()


def operations(schema):
    return [
        (method, path, operation)
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
        if isinstance(operation, dict)
    ]


def test_it_is_a_valid_3_1_document(schema):
    assert schema["openapi"].startswith("3.1")
    OpenAPIV31SpecValidator(schema).validate()


def test_it_tells_of_what_is_there_and_of_nothing_else(schema):
    assert {
        *("/jobs", "/jobs/plan", "/jobs/batch", "/jobs/{job_id}", "/jobs/{job_id}/explain", "/jobs/{job_id}/events"),
        *("/jobs/{job_id}/logs", "/jobs/{job_id}/cancel", "/jobs/{job_id}/retry", "/jobs/{job_id}/artifacts"),
        *("/jobs/{job_id}/artifacts/{name}", "/jobs/{job_id}/result", "/jobs/{job_id}/plot"),
        *("/datasets", "/datasets/{dataset_id}", "/datasets/{dataset_id}/content", "/datasets/{dataset_id}/series"),
        *("/sources", "/sources/{source_id}"),
        *("/keys", "/keys/{key_id}"),
        *("/capabilities", "/capabilities/probes", "/health/live", "/health/ready", "/problems", "/problems/{slug}"),
    } == set(schema["paths"])
    assert not [path for path in schema["paths"] if path.endswith(LATER) or path.startswith("/internal")]
    text = str(schema)
    assert "webhook" not in text
    assert "HTTPValidationError" not in text


def test_a_job_is_one_of_the_kinds_told_apart_by_its_kind(schema):
    body = schema["paths"]["/jobs"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["discriminator"]["propertyName"] == "kind"
    kinds = {**{kind: operation.params for kind, operation in OPERATIONS.items()}, "training": TrainingParams}
    assert set(body["discriminator"]["mapping"]) == set(kinds)
    told = {
        name: schema["components"]["schemas"][at.rpartition("/")[2]]
        for name, at in body["discriminator"]["mapping"].items()
    }
    assert [{"$ref": at} for at in body["discriminator"]["mapping"].values()] == body["oneOf"]
    for kind, request in told.items():
        params = schema["components"]["schemas"][request["properties"]["params"]["$ref"].rpartition("/")[2]]
        assert set(params["properties"]) == set(kinds[kind].model_fields)
    shown = {example["value"]["kind"] for example in examples.JOBS.values()}
    assert shown == set(kinds)


def test_every_operation_has_a_name_and_a_summary(schema):
    names = [operation["operationId"] for _, _, operation in operations(schema)]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)+", name) for name in names), names
    assert {"submit_job", "plan_job", "submit_batch", "list_jobs", "get_job", "cancel_job", "upload_dataset"} <= set(
        names
    )
    for _, _, operation in operations(schema):
        assert operation["summary"]
        assert operation["description"]
        assert len(operation["tags"]) == 1
    assert {operation["tags"][0] for _, _, operation in operations(schema)} == {tag["name"] for tag in schema["tags"]}


def test_every_error_is_a_problem_with_examples(schema):
    for method, path, operation in operations(schema):
        answers = {status: answer for status, answer in operation["responses"].items() if status >= "400"}
        assert "500" in answers, path
        for status, answer in answers.items():
            (media_type,) = answer["content"]
            assert media_type == "application/problem+json", (method, path, status)
            assert answer["content"][media_type]["schema"] == {"$ref": "#/components/schemas/ProblemDocument"}
            assert answer["content"][media_type]["examples"]
        if "{" in path:
            assert "404" in answers, path
        if operation.get("parameters") or "requestBody" in operation:
            assert "422" in answers, path
        if "requestBody" in operation:
            assert {"400", "413", "415"} <= set(answers), path
        if method in ("post", "delete") and path != "/jobs/plan":
            assert "503" in answers, path


OPEN_TO_ALL = {"/health/live", "/health/ready", "/problems", "/problems/{slug}"}


def test_every_operation_says_which_scope_its_key_must_have(schema):
    assert schema["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    for method, path, operation in operations(schema):
        if path in OPEN_TO_ALL:
            assert "security" not in operation
            continue
        changes = "source" if path.startswith("/sources") else "submit"
        scope = "admin" if path.startswith("/keys") else "read" if method == "get" else changes
        assert operation["security"] == [{"key": [scope]}, {}], (method, path)  # nobody is asked for one here
        examples = {
            status: set(operation["responses"][status]["content"]["application/problem+json"]["examples"])
            for status in ("401", "403")
        }
        assert "unauthorized" in examples["401"]
        assert "forbidden" in examples["403"]


def test_a_server_that_asks_for_keys_says_that_there_is_no_way_without():
    schema = create_app(Settings(auth="keys")).openapi()
    assert {len(operation["security"]) for _, path, operation in operations(schema) if path not in OPEN_TO_ALL} == {1}


def test_parameters_are_explained(schema):
    for _, path, operation in operations(schema):
        for parameter in operation.get("parameters", ()):
            assert parameter.get("description"), (path, parameter["name"])


def test_headers_are_told(schema):
    answers = schema["paths"]["/jobs"]["post"]["responses"]
    assert {"Location", "Retry-After", "ETag", "Preference-Applied", "Idempotency-Replayed"} <= set(
        answers["202"]["headers"]
    )
    assert "Retry-After" in answers["429"]["headers"]
    assert "Link" in schema["paths"]["/jobs"]["get"]["responses"]["200"]["headers"]
    assert {"ETag", "Retry-After"} <= set(schema["paths"]["/jobs/{job_id}"]["get"]["responses"]["200"]["headers"])
    names = {parameter["name"] for parameter in schema["paths"]["/jobs/{job_id}"]["get"]["parameters"]}
    assert {"If-None-Match", "Prefer"} <= names


# ---- the examples ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/jobs", "/jobs/plan"])
def test_the_examples_are_in_the_document(schema, path):
    assert schema["paths"][path]["post"]["requestBody"]["content"]["application/json"]["examples"] == examples.JOBS


@pytest.mark.parametrize("name", examples.JOBS)
def test_every_example_runs(api, name):
    body = examples.JOBS[name]["value"]
    assert api.post("/jobs/plan", json=body).status_code == 200
    answer = api.post("/jobs", json=body, headers={"Prefer": "wait=60"})
    assert (answer.status_code, answer.json()["state"]) == (200, "succeeded")
    assert api.get(answer.json()["links"]["result"]).status_code == 200


def test_other_examples_run(api, schema):
    batch = schema["paths"]["/jobs/batch"]["post"]["requestBody"]["content"]["application/json"]["examples"]
    assert batch
    for example in batch.values():
        answer = api.post("/jobs/batch", json=example["value"])
        assert answer.status_code == 202
        assert len(answer.json()["jobs"]) == len(example["value"]["jobs"])
    upload = schema["paths"]["/datasets"]["post"]["requestBody"]["content"]
    told = {media_type: body["examples"] for media_type, body in upload.items() if "examples" in body}
    assert told
    for media_type, named in told.items():
        for example in named.values():
            answer = api.post("/datasets", content=example["value"], headers={"content-type": media_type})
            assert answer.status_code in (200, 201), answer.text


def test_what_a_job_looks_like_is_what_comes(api, schema, finished):
    """The named members of the schema are those of the answer, neither fewer nor more."""
    assert set(schema["components"]["schemas"]["JobView"]["properties"]) == set(finished)
    assert set(schema["components"]["schemas"]["Plan"]["properties"]) == set(finished["plan"])
    assert api.post("/jobs", content=b"{}", headers=JSON).json()["type"] == "/problems/invalid-input"


# ---- schemathesis ------------------------------------------------------------------------------------------------

CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
    checks.negative_data_rejection,
    checks.unsupported_method,
    checks.allow_header_conformance,
]


@schemathesis.serializer("application/vnd.apache.parquet", "application/x-npy", "application/x-npz", "application/zip")
def as_it_is(context, value):
    return value if isinstance(value, bytes) else str(value).encode()


def described(coverage):
    schema = schemathesis.openapi.from_dict(create_app(Settings()).openapi())
    schema.config.phases.coverage.enabled = coverage
    return schema


SLOW = ["upload_dataset", "upload_source", "get_plot"]
"""Each answer of these takes a process of its own: they get the examples and what is made up, not every boundary."""

quick = described(coverage=True).exclude(operation_id=SLOW)
slow = described(coverage=False).include(operation_id=SLOW)
phases = [Phase.explicit, Phase.generate]


@pytest.fixture(scope="module")
def known(api):
    """What a path may name: a job and a dataset that exist, and what is there of any."""
    dataset = api.post("/datasets", content=table(extra=" schema"), headers={"content-type": CSV}).json()
    source = api.post("/sources", files={"file": ("kiln.zip", packed({"kiln.py": ""}))}).json()
    job = api.submit(profile(), Prefer="wait=60")
    ids = {"job_id": job["id"], "dataset_id": dataset["id"], "source_id": source["id"]}
    return {**ids, "name": "result.csv", "slug": "not-found", "key_id": "key_x"}


@pytest.fixture(scope="module")
def session():
    """One connection for thousands of calls: opening one, and asking the environment for proxies, takes as long as many an answer."""
    with requests.Session() as session:
        session.trust_env = False
        yield session


def ask(case, house, known, session):
    """Half of the made-up ids give way to known ones, so that schemathesis meets more than 404."""
    for name, value in case.path_parameters.items():
        if case.method != "DELETE" and len(str(value)) % 2:
            case.path_parameters[name] = known[name]
    case.call_and_validate(base_url=house.url, session=session, checks=CHECKS, timeout=70)


@quick.parametrize()
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), phases=phases)
def test_every_answer_is_one_that_the_document_tells_of(case, house, known, session):
    ask(case, house, known, session)


@slow.parametrize()
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), phases=phases)
def test_every_slow_answer_too(case, house, known, session):
    ask(case, house, known, session)
