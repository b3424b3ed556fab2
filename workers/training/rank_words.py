"""What an exception says, however long, unprintable or broken."""

MAX_DETAIL = 2_000


def text_of(fault: BaseException) -> str:
    """`str(fault)`, which runs code of whoever wrote the exception."""
    try:
        # A lone surrogate has no UTF-8.
        return str(fault).encode("utf-8", "backslashreplace").decode()
    except Exception as another:
        return f"(what it says is not known: its __str__ raised {type(another).__name__})"


def words_of(fault: BaseException) -> str:
    name, text = type(fault).__name__, text_of(fault)
    return f"{name}: {text}" if text else name


def limited(text: str) -> str:
    """As much of `text` as people read."""
    if len(text) <= MAX_DETAIL:
        return text
    return f"{text[:MAX_DETAIL]}… (cut here: it has {len(text):,} characters)"
