import asyncio
import contextlib
import json

import pytest
from fastapi import FastAPI, Request

from app.kit import handlers, sse
from app.kit.sse import Event, resumed


class Log:
    """A log in memory, read in pages of two."""

    def __init__(self, *types, finished=False):
        self.events = [Event(number + 1, kind, {"type": kind}) for number, kind in enumerate(types)]
        self.done, self.news, self.waiting = finished, asyncio.Event(), 0

    def add(self, kind):
        self.events.append(Event(len(self.events) + 1, kind, {"type": kind}))
        self.news.set()

    def finish(self):
        self.done = True
        self.news.set()

    async def read(self, after):
        return [event for event in self.events if event.seq > after][:2]

    async def changed(self):
        self.waiting += 1
        try:
            await self.news.wait()
            self.news.clear()
        finally:
            self.waiting -= 1

    async def finished(self):
        return self.done


class Client:
    """Speaks ASGI, so that it can look at a stream while it flows."""

    def __init__(self, log, query="", headers=(), **options):
        app = FastAPI()
        handlers.install(app)

        @app.get("/log")
        async def events(request: Request, after: sse.After):
            return sse.stream(request, log, after=after, **options)

        self.app, self.gone, self.text, self.status, self.headers = app, asyncio.Event(), "", None, {}
        self.scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": options.pop("spec_version", "2.3")},
            "method": "GET",
            "path": "/log",
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers],
        }

    async def receive(self):
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], dict(message["headers"])
        self.text += message.get("body", b"").decode()

    async def run(self):
        await asyncio.wait_for(self.app(self.scope, self.receive, self.send), 5)

    @contextlib.asynccontextmanager
    async def running(self):
        async with asyncio.timeout(5):
            task = asyncio.create_task(self.run())
            yield task
            await task

    async def until(self, text):
        while text not in self.text:
            await asyncio.sleep(0.001)

    @property
    def events(self):
        blocks = [block for block in self.text.split("\n\n") if block and not block.startswith(":")]
        return [dict(line.split(": ", 1) for line in block.split("\n")) for block in blocks]

    @property
    def seen(self):
        return [(event["event"], event.get("id")) for event in self.events]


def test_a_finished_log_is_told_whole_and_ended():
    async def story():
        client = Client(Log("a", "b", "c", finished=True))
        await client.run()
        assert client.seen == [("a", "1"), ("b", "2"), ("c", "3"), ("end", None)]
        assert json.loads(client.events[0]["data"]) == {"type": "a"}
        assert client.headers[b"content-type"] == b"text/event-stream; charset=utf-8"
        assert client.headers[b"cache-control"] == b"no-cache"

    asyncio.run(story())


@pytest.mark.parametrize(
    ("query", "header", "first"),
    [("", None, "1"), ("after=1", None, "2"), ("", "2", "3"), ("after=1", "2", "3"), ("after=2", "1", "2")]
    + [("after=1", bad, "2") for bad in ("-1", "x", "1.5", "9" * 30, "", "٣")],
)
def test_a_stream_resumes_after_what_was_seen(query, header, first):
    async def story():
        headers = [] if header is None else [("last-event-id", header)]
        client = Client(Log("a", "b", "c", finished=True), query, headers)
        await client.run()
        assert client.seen[0][1] == first

    asyncio.run(story())


@pytest.mark.parametrize("after", ["-1", "x", "9" * 30, "1.5"])
def test_after_must_be_a_number_of_ours(after):
    async def story():
        client = Client(Log(finished=True), f"after={after}")
        await client.run()
        assert client.status == 422
        assert json.loads(client.text)["errors"][0]["pointer"] == "/query/after"

    asyncio.run(story())


def test_the_largest_number_is_still_ours():
    assert resumed(str(2**63 - 1), 0) == 2**63 - 1
    assert resumed(str(2**63), 5) == 5
    assert resumed(None, 5) == 5


def test_news_arrives_as_it_happens():
    async def story():
        log = Log("a")
        client = Client(log)
        async with client.running():
            await client.until("id: 1")
            for number, kind in enumerate("bcd", start=2):
                log.add(kind)
                await client.until(f"id: {number}")
            log.add("last")
            log.finish()
        assert [kind for kind, _ in client.seen] == ["a", "b", "c", "d", "last", "end"]
        assert log.waiting == 0

    asyncio.run(story())


def test_news_while_reading_is_not_missed():
    class Fleeting(Log):
        """Tells only those who listen at that very moment."""

        listeners: set[asyncio.Event] = set()  # noqa: RUF012

        async def changed(self):
            event = asyncio.Event()
            self.listeners.add(event)
            await event.wait()

        async def read(self, after):
            found = await super().read(after)
            if not found and len(self.events) < 3:
                self.add("late")
                self.done = len(self.events) == 3
                for event in self.listeners:
                    event.set()
            return found

    async def story():
        client = Client(Fleeting("a"))
        await client.run()
        assert client.seen == [("a", "1"), ("late", "2"), ("late", "3"), ("end", None)]

    asyncio.run(story())


def test_silence_is_filled_with_comments():
    async def story():
        log = Log("a")
        client = Client(log, keep_alive_seconds=0.02)
        async with client.running():
            await client.until(": ping\n\n: ping\n\n")
            log.finish()
        assert client.seen == [("a", "1"), ("end", None)]

    asyncio.run(story())


@pytest.mark.parametrize("spec_version", ["2.3", "2.4"])
def test_a_client_that_leaves_is_let_go(spec_version):
    async def story():
        log = Log("a")
        client = Client(log)
        client.scope["asgi"]["spec_version"] = spec_version
        async with client.running() as task:
            await client.until("id: 1")
            client.gone.set()
            await asyncio.wait_for(task, 0.5)
        await asyncio.sleep(0)
        assert log.waiting == 0
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(story())


def test_a_connection_that_breaks_is_no_error(caplog):
    async def story():
        log = Log("a")
        client = Client(log)

        async def send(message):
            if message["type"] == "http.response.body":
                raise OSError("broken pipe")

        client.send = send
        async with client.running():
            pass
        assert log.waiting == 0

    asyncio.run(story())
    assert not caplog.records


def test_a_server_that_stops_ends_the_stream_without_an_end():
    async def story():
        log, stopping = Log("a"), asyncio.Event()
        client = Client(log, stopping=stopping)
        async with client.running() as task:
            await client.until("id: 1")
            stopping.set()
            await asyncio.wait_for(task, 0.5)
        assert client.seen == [("a", "1")]

    asyncio.run(story())


def test_a_source_that_fails_breaks_the_stream(caplog):
    class Broken(Log):
        async def changed(self):
            raise RuntimeError("no more")

    async def story():
        client = Client(Broken("a"))
        await client.run()
        assert client.seen == [("a", "1")]

    asyncio.run(story())
    assert [record.levelname for record in caplog.records] == ["ERROR"]
