"""What can go wrong with sources."""

from app.kit.problems import Conflict, InvalidInput, Problem


class SourceUploadOff(Problem):
    """This server takes no code.

    Whoever may upload a package may run what is in it on the workers, so this is off unless the server's operator sets
    `TIDEMILL_ALLOW_SOURCE_UPLOAD=true` and starts the server anew. Without it, jobs use what is installed on the workers.
    """

    status, title = 403, "Source upload is off"


class UnfitSource(InvalidInput):
    """The archive cannot be taken as a package, and nothing of it was kept.

    The detail names the entry and what is wrong with it. Send a zip whose top level holds the modules and packages that jobs
    shall import, or a wheel; pure Python, without links, and without a module that hides an installed one.
    """


class SourceInUse(Conflict):
    """A job that has not ended needs this source.

    Cancel the job or wait for its end, then delete the source.
    """

    title = "Source in use"
