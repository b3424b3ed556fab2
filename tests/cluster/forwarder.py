"""A way into a network namespace: `python forwarder.py SOCKET HOST PORT` passes what comes to a Unix socket on to a TCP address.

A test's own process is not on the hosts' network, and is allowed no socket but of the loopback and of Unix.
"""

import asyncio
import contextlib
import os
import sys


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while some := await reader.read(1 << 16):
            writer.write(some)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()


async def main(path: str, host: str, port: int) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection(host, port)
        except OSError:  # nobody listens now
            writer.close()
            return
        await asyncio.gather(pump(reader, back), pump(there, writer))

    await asyncio.start_unix_server(serve, path)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    os._exit(0)  # whatever is being passed on


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
