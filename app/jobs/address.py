"""Where a job is on the web."""

from typing import Annotated

from fastapi import Path
from starlette.convertors import StringConvertor, register_url_convertor

JobId = Annotated[str, Path(description="The job's id, `job_…`.")]


class JobIdConvertor(StringConvertor):
    """Any part of a path but `plan` and `batch`: those are addresses of their own and take no job's methods."""

    regex = "(?!(?:plan|batch)(?:/|$))[^/]+"


register_url_convertor("job", JobIdConvertor())
