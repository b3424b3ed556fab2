"""The documentation pages: served from here, and inviting: one click runs the first job."""

import re
from pathlib import Path
from urllib.parse import urljoin

import pytest

CHROMIUM = Path("/usr/bin/chromium")
QUIET = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@pytest.mark.parametrize("page", ["/docs", "/redoc"])
def test_pages_need_nothing_from_elsewhere(api, page):
    answer = api.get(page)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    named = re.findall(r"""(?:src|href)=["']([^"']+)["']|url: ["']([^"']+)["']""", answer.text)
    assets = [urljoin(str(answer.url), one or other) for one, other in named]
    assert len(assets) >= 2
    for asset in assets:
        assert asset.startswith(str(api.base_url))
        assert api.get(asset).status_code == 200
    assert "http" not in re.sub(r'xmlns="[^"]*"', "", answer.text).replace("http-equiv", "")


def test_the_front_door_leads_there(api):
    answer = api.get("/")
    assert (answer.status_code, answer.headers["location"]) == (307, "/docs")


def test_no_validator_is_asked_about_the_document(api):
    """Swagger UI leaves its maker's badge out by itself only where the server is called localhost."""
    assert '"validatorUrl": null' in api.get("/docs").text


@pytest.fixture(scope="module")
def browser():
    if not CHROMIUM.exists():
        pytest.skip(f"there is no browser at {CHROMIUM}")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def page(browser, house):
    """A page that writes down whom it asked and what it complained of."""
    page = browser.new_page(viewport={"width": 1280, "height": 1400})
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    assert all(url.startswith((house.url, "data:", "blob:")) for url in asked), asked
    assert complaints == []
    page.close()


def test_a_stranger_runs_the_first_job_with_one_click(api, house, page, tmp_path):
    page.goto(f"{house.url}/docs")
    first = page.locator(".opblock").first
    assert (
        first.get_attribute("id") == "operations-jobs-submit_job"
    )  # what a newcomer shall do is the first thing there
    assert "POST /jobs" in page.locator(".info").inner_text()
    first.locator(".opblock-summary-control").click()
    first.locator("button.execute").click()
    status = first.locator(".live-responses-table tbody .response-col_status").first
    status.wait_for()
    assert status.inner_text().split()[0] == "202"
    body = first.locator(".live-responses-table .highlight-code").first.inner_text()
    page.screenshot(path=tmp_path / "docs.png", full_page=True)
    job_id = re.search(r"job_[0-9a-z]{26}", body)
    assert job_id
    assert api.job(job_id[0], wait=30)["state"] == "succeeded"


def test_a_stranger_lists_the_jobs_with_one_click(house, page):
    """Nothing that is filled in beforehand may stand in the way."""
    page.goto(f"{house.url}/docs")
    listing = page.locator("#operations-jobs-list_jobs")
    listing.locator(".opblock-summary-control").click()
    listing.locator("button.execute").click()
    status = listing.locator(".live-responses-table tbody .response-col_status").first
    status.wait_for()
    assert status.inner_text().split()[0] == "200"


def test_redoc_shows_the_document(house, page):
    page.goto(f"{house.url}/redoc")
    page.get_by_role("heading", name="Tidemill").first.wait_for()
    page.get_by_role("heading", name="Submit Job").first.wait_for()
    page.wait_for_load_state("networkidle")


@pytest.fixture
def uploading(house, page):
    """The unfolded operation that uploads a dataset."""
    page.goto(f"{house.url}/docs")
    upload = page.locator("#operations-datasets-upload_dataset")
    upload.locator(".opblock-summary-control").click()
    return upload


def answered(operation):
    """The status of what an operation on the page was answered, and the answer."""
    operation.locator("button.execute").click()
    status = operation.locator(".live-responses-table tbody .response-col_status").first
    status.wait_for()
    return status.inner_text().split()[0], operation.locator(".live-responses-table .highlight-code").first.inner_text()


def test_a_stranger_uploads_a_file_by_choosing_it(uploading, tmp_path):
    """No box is filled in beforehand with what the form would then refuse."""
    (tmp_path / "chosen.csv").write_text("date,chosen\n2024-01-01,1\n2024-01-02,2\n2024-01-03,4\n")
    uploading.locator("input[type=file]").set_input_files(tmp_path / "chosen.csv")
    status, answer = answered(uploading)
    assert status == "201", answer
    assert "chosen.csv" in answer


def test_a_stranger_uploads_the_example_of_a_csv(uploading):
    uploading.locator(".opblock-section-request-body select.content-type").select_option("text/csv")
    uploading.locator(".examples-select select").first.select_option("temperatures")
    assert uploading.locator("textarea").input_value().startswith("date,celsius\n")
    status, answer = answered(uploading)
    assert status in ("200", "201"), answer
    assert "celsius" in answer
