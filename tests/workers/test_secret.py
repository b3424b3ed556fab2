"""Where a worker has its join token from."""

import pytest

from workers.failures import CannotJoin
from workers.secret import join_token


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    monkeypatch.delenv("TIDEMILL_JOIN_TOKEN", raising=False)
    monkeypatch.delenv("TIDEMILL_JOIN_TOKEN_FILE", raising=False)


def test_the_nearest_that_is_told_counts(tmp_path, monkeypatch):
    assert join_token(None) is None
    file = tmp_path / "token"
    file.write_text("from-the-file\n")
    monkeypatch.setenv("TIDEMILL_JOIN_TOKEN_FILE", str(file))
    assert join_token(None) == "from-the-file"
    monkeypatch.setenv("TIDEMILL_JOIN_TOKEN", "from-the-environment")
    assert join_token(None) == "from-the-environment"
    assert join_token("from-the-command") == "from-the-command"


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "cannot be read: No such file"), (b" \n", "is empty"), (b"\xff\xfe", "it is no text of plain letters")],
)
def test_a_file_that_says_no_token_is_told_by_name(tmp_path, monkeypatch, content, words):
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    monkeypatch.setenv("TIDEMILL_JOIN_TOKEN_FILE", str(file))
    with pytest.raises(CannotJoin, match=words) as refused:
        join_token(None)
    assert str(file) in str(refused.value)
