"""A server that trains, for each module that names its `ENGINE`."""

from tests.training.yard import trainers

__all__ = ["trainers"]
