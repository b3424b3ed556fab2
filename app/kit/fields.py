"""The grammar which header fields share, RFC 9110 section 5.6: lists, parameters, tokens, quoted strings."""

import re
from typing import Final

# An unclosed quote runs to the end, so that no input makes these go back and try again.
_PARTS: Final = {
    separator: re.compile(rf'(?:"(?:[^"\\]|\\.)*\\?(?:"|$)|[^{separator}"])+', re.DOTALL) for separator in (",", ";")
}
_WORD: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)


def elements(field: str) -> list[str]:
    """The elements of a comma-separated list; empty ones do not count."""
    return _split(field, ",")


def parameters(element: str) -> tuple[str, dict[str, str]]:
    """`a/b; Q="1"` → `("a/b", {"q": "1"})`. The first of a name counts, what is malformed is left out."""
    head, *rest = _split(element, ";") or [""]
    named: dict[str, str] = {}
    for part in rest:
        if pair := name_and_value(part):
            named.setdefault(*pair)
    return head, named


def name_and_value(text: str) -> tuple[str, str] | None:
    """`Name = value` or `Name`, the value a token or a quoted string; None when it is neither."""
    name, _, value = (part.strip() for part in text.partition("="))
    quoted = _QUOTED.fullmatch(value)
    if not _WORD.fullmatch(name) or (value and not quoted and not _WORD.fullmatch(value)):
        return None
    return name.lower(), re.sub(r"\\(.)", r"\1", quoted[1], flags=re.DOTALL) if quoted else value


def is_token(text: str) -> bool:
    """Whether `text` is a token: a word that needs no quotes."""
    return _WORD.fullmatch(text) is not None


def _split(text: str, separator: str) -> list[str]:
    return [stripped for part in _PARTS[separator].findall(text) if (stripped := part.strip(" \t"))]
