"""Answers that are kept for a moment."""

import asyncio

import pytest

from app.kit.briefly import Briefly


def test_however_many_ask_it_is_found_out_once_and_again_when_it_is_old():
    found = []

    async def find_out():
        found.append(len(found))
        await asyncio.sleep(0.05)
        return found[-1]

    async def ask():
        kept = Briefly(0.3)
        assert await asyncio.gather(*(kept.get(find_out) for _ in range(20))) == [0] * 20
        await asyncio.sleep(0.4)
        assert await kept.get(find_out) == 1
        kept.keep(7)
        assert await kept.get(find_out) == 7

    asyncio.run(ask())
    assert found == [0, 1]


def test_a_fault_is_kept_for_nobody():
    async def fail():
        raise OSError("gone")

    async def succeed():
        return 1

    async def ask():
        kept = Briefly(60)
        with pytest.raises(OSError, match="gone"):
            await kept.get(fail)
        assert await kept.get(succeed) == 1

    asyncio.run(ask())
