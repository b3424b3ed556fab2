"""Our own exact matrix profile, computed in tiles of the distance matrix: `self_join` and `ab_join` need no server."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workers.matrix_profile.tiles.alone import ab_join, self_join

__all__ = ["ab_join", "self_join"]


def __getattr__(name: str) -> Any:
    """Compilers are loaded by who computes, not by who looks at a checkpoint."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from workers.matrix_profile.tiles import alone

    return getattr(alone, name)
