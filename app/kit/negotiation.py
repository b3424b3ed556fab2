"""Content negotiation, RFC 9110 section 12: which of our media types a caller would rather have."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fastapi import Request

from app.kit.fields import elements, is_token, parameters
from app.kit.problems import NotAcceptable

_QUALITY = re.compile(r"0(\.[0-9]{0,3})?|1(\.0{0,3})?")


class _Range(NamedTuple):
    main: str
    sub: str
    parameters: frozenset[tuple[str, str]]
    quality: float = 1.0

    def covers(self, offer: "_Range") -> bool:
        return self.main in ("*", offer.main) and self.sub in ("*", offer.sub) and self.parameters <= offer.parameters

    @property
    def specificity(self) -> tuple[bool, bool, int]:
        return self.main != "*", self.sub != "*", len(self.parameters)


def best_match(accept: str | None, offers: Sequence[str]) -> str | None:
    """The offer to send: highest q first, then the closest range, then our own order. None when none will do.

    Without a usable `Accept` the first offer wins. `charset` in a range is passed over: what we send is UTF-8.
    """
    ranges = list(_ranges(accept or ""))
    if not ranges:
        return offers[0] if offers else None
    best, best_rank = None, (0.0, (False, False, 0))
    for text in offers:
        offer = next(_ranges(text))
        closest = max((r for r in ranges if r.covers(offer)), key=lambda r: r.specificity, default=None)
        if closest and closest.quality > 0 and (best is None or (closest.quality, closest.specificity) > best_rank):
            best, best_rank = text, (closest.quality, closest.specificity)
    return best


def negotiated(request: Request, offers: Sequence[str]) -> str:
    """The offer to send, or NotAcceptable naming what there is. The answer should say `Vary: Accept`."""
    lines = request.headers.getlist("accept")
    chosen = best_match(", ".join(lines) if lines else None, offers)
    if chosen is None:
        raise NotAcceptable(
            f"Accept asks for {', '.join(lines)[:200]!r}, and there is: {', '.join(offers)}.", available=list(offers)
        )
    return chosen


def _ranges(field: str) -> Iterator[_Range]:
    for element in elements(field):
        head, named = parameters(element)
        main, _, sub = head.lower().partition("/")
        quality = named.pop("q", "1")
        named.pop("charset", None)
        if is_token(main) and is_token(sub) and (main != "*" or sub == "*") and _QUALITY.fullmatch(quality):
            yield _Range(main, sub, frozenset(named.items()), float(quality))
