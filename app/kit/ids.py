"""Ids that sort by the time they were made."""

import secrets
import threading
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's, without i, l, o, u
_RANDOM_BITS = 80

_lock = threading.Lock()
_last = 0


def new_id(prefix: str) -> str:
    """`new_id("job")` → `job_` and 26 characters: 48 bits of milliseconds, 80 random ones, as in a ULID.

    Within a process each id is greater than the one before, even when the clock stands still or goes back.
    """
    global _last
    with _lock:
        fresh = (time.time_ns() // 1_000_000) << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
        same_moment = fresh >> _RANDOM_BITS <= _last >> _RANDOM_BITS
        _last = _last + 1 + secrets.randbits(32) if same_moment else fresh
        number = _last
    return f"{prefix.removesuffix('_')}_{''.join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))}"
