"""Training jobs on Dask."""

from tests.training.cases import Cases

ENGINE = "dask"


class TestOnDask(Cases): ...
