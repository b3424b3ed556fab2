"""What a key is made of: a prefix, a public part by which it is found, and 256 secret bits. Only a digest of it is ever kept."""

import hashlib
import hmac
import re
import secrets
from typing import Final

PREFIX: Final = "tm_"
ID_PREFIX: Final = "key_"
SECRET_BYTES: Final = 32

_KEY: Final = re.compile(rf"{PREFIX}([0-9a-z]{{26}})_[0-9a-f]{{{2 * SECRET_BYTES}}}")


def make(key_id: str) -> str:
    """A fresh key that is found by `key_id`."""
    return f"{PREFIX}{key_id.removeprefix(ID_PREFIX)}_{secrets.token_hex(SECRET_BYTES)}"


def id_in(key: str) -> str | None:
    """The id by which this key would be found; None where it is not made as ours are."""
    made_so = _KEY.fullmatch(key)
    return ID_PREFIX + made_so[1] if made_so else None


def is_id(text: str) -> bool:
    return re.fullmatch(rf"{ID_PREFIX}[0-9a-z]{{26}}", text) is not None


def digest(key: str) -> str:
    """What is kept of a key. Its secret is random and long, so no slow hash is needed to keep it from being guessed."""
    return hashlib.sha256(key.encode()).hexdigest()


def matches(key: str, kept: str | None) -> bool:
    """Whether this is the key of that digest; takes as long where there is none."""
    return hmac.compare_digest(digest(key), kept or "0" * 64) and kept is not None
