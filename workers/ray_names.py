"""How Tidemill's workers are known on a Ray cluster. (`app.engines.ray_driver` says the same.)"""

from typing import Final

import ray

NAMESPACE: Final = "tidemill"
SCHEME: Final = "ray://"
"""A worker's address is this and its actor's name."""
NAME_PREFIX: Final = "wk_"


def named_workers() -> list[str]:
    """The names of the cluster's workers that live, or are about to."""
    return [name for name in ray.util.list_named_actors() if name.startswith(NAME_PREFIX)]
