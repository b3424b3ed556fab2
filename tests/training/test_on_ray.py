"""Training jobs on Ray."""

from tests.training.cases import Cases

ENGINE = "ray"


class TestOnRay(Cases): ...
