"""Every failure a worker can report has a page that explains it."""

import importlib
import pkgutil

import workers
from app.kit import problems
from app.main import create_app as create_app  # imports every feature, and with it every problem
from workers.failures import JobFailure


def kinds(of: type[JobFailure]) -> set[type[JobFailure]]:
    return {of} | {each for child in of.__subclasses__() for each in kinds(child)}


def test_every_failure_of_a_job_has_a_page():
    for module in pkgutil.walk_packages(workers.__path__, "workers."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    pages = problems.catalogue()
    for kind in kinds(JobFailure):
        assert kind.slug in pages, kind
        assert pages[kind.slug].status == kind.status, kind
        assert pages[kind.slug].title == kind.title, kind
