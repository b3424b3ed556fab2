"""A process in which STUMPY's GPU functions run on Numba's CUDA simulator: one thread of Python for each simulated one, so
for series of up to 64 points. It shows that the code is right, never that a GPU is there or fast."""

import os

from workers.failures import JobFailure


class NoSimulator(JobFailure):
    """Numba does not simulate here: NUMBA_ENABLE_CUDASIM counts only when it is set before Numba is imported."""


def warm() -> None:
    """Load what GPU functions need on the simulator, and see that they compute the known answer."""
    import numba

    if not numba.config.ENABLE_CUDASIM:
        raise NoSimulator(f"Numba was imported with NUMBA_ENABLE_CUDASIM={os.environ.get('NUMBA_ENABLE_CUDASIM')!r}")
    from workers.cuda import known

    known.answer(None)
