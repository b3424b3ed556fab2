"""How an attempt's failure is told: one problem object, which says whose fault it was and what to do."""

import errno
from typing import Any


class CannotJoin(Exception):
    """This worker has no place as it was started, and waiting would not give it one: its command says why, and exits 2."""


class JobFailure(Exception):
    """A failure with a name. `slug` and `title` are those of the problem that users read."""

    slug = "internal"
    title = "Internal error"
    status = 500

    def problem(self) -> dict[str, Any]:
        return {"type": f"/problems/{self.slug}", "title": self.title, "status": self.status, "detail": str(self)}


class InvalidInput(JobFailure):
    """The job's input cannot be computed; the message says which value and what to send instead."""

    slug, title, status = "invalid-input", "Invalid input", 422


class OutOfMemory(JobFailure):
    """The job needed more memory than its worker has."""

    slug, title, status = "out-of-memory", "Out of memory", 500


def as_problem(fault: BaseException) -> dict[str, Any]:
    """The problem of any exception. What is not ours to name is a fault of ours: its text stays in the worker's log."""
    match fault:
        case JobFailure():
            return fault.problem()
        case MemoryError():
            return OutOfMemory(
                "The worker ran out of memory. Use a shorter series, or a worker with more memory."
            ).problem()
        case OSError(errno=errno.ENOSPC | errno.EDQUOT):
            return JobFailure(storage_words(fault)).problem()
        case _:
            return JobFailure(
                f"Computing failed with {type(fault).__name__}; the worker's log has the details. This is a fault of Tidemill's."
            ).problem()


def storage_words(fault: OSError) -> str:
    return (
        f"The worker could not use the job's folder ({fault.strerror}); make room on its disk, then try the job again."
    )
