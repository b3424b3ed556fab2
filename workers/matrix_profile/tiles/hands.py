"""Who computes the tiles of a join: threads of this process, or, behind the same port, a cluster."""

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from queue import SimpleQueue
from typing import Protocol, TypeAlias

import numpy as np

from workers.matrix_profile.tiles.compute import compute
from workers.matrix_profile.tiles.tile import Found, Tile, Work

Arriving: TypeAlias = Generator[tuple[Tile, Found], None, None]
_Computing: TypeAlias = Future[Found | None]


class Hands(Protocol):
    """Computes tiles, several at a time."""

    def each(self, tiles: Sequence[Tile], work: Callable[[Tile], Work]) -> Arriving:
        """Each tile with what was found in it, as they are done; a bounded number is under way.

        work: asked, in the caller's thread, when a tile is handed over, and not before. Closing the generator stops what
        runs. What goes wrong with a tile is raised here.
        """


class ThreadHands:
    """Threads of this process. The kernel holds no lock, and looks at a flag every few milliseconds."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def each(self, tiles: Sequence[Tile], work: Callable[[Tile], Work]) -> Arriving:
        """See `Hands`. One tile more than there are threads is ready, so that none waits for the caller."""
        stop = np.zeros(1, dtype=np.bool_)
        waiting, out, done = iter(tiles), dict[_Computing, Tile](), SimpleQueue[_Computing]()
        pool = ThreadPoolExecutor(self.threads, thread_name_prefix="tile")
        try:
            while True:
                for tile in islice(waiting, self.threads + 1 - len(out)):
                    computing = pool.submit(compute, work(tile), stop)
                    out[computing] = tile
                    computing.add_done_callback(done.put)
                if not out:
                    return
                computing = done.get()
                tile, found = out.pop(computing), computing.result()
                if found is not None:  # which it is only once told to stop
                    yield tile, found
        finally:
            stop[0] = True
            pool.shutdown(cancel_futures=True)
