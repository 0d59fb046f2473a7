"""A proxy between a client and an S3 server that does to requests what networks and servers do.

    proxy.py PORT UPSTREAM_PORT --rate 0.1 --seed 1 --delay 0.05

It takes whole requests, and lets `rate` of them go wrong: no answer, an answer that is lost after the request was done,
half an answer, 500, 503, or a long wait. All are delayed by `delay` seconds. The number of
requests that went each way is printed at the end (SIGTERM).
"""
import argparse
import asyncio
import collections
import random
import re
import signal

FATES = "closed", "lost", "cut", "500", "503", "slow"


async def read_message(reader: asyncio.StreamReader, is_head: bool = False) -> tuple[bytes, bytes] | None:
    """Reads a request or an answer: its head and its body."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    if re.match(rb"HTTP/1\.1 (1\d\d|204|304)", head) or is_head:
        return head, b""
    length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.I)
    if length:
        return head, await reader.readexactly(int(length[1]))
    if re.search(rb"\r\ntransfer-encoding: *chunked", head, re.I):
        body = b""
        while True:
            line = await reader.readline()
            size = int(line.split(b";")[0], 16)
            body += line + await reader.readexactly(size + 2)
            if size == 0:
                return head, body
    return head, b""


class Proxy:
    def __init__(self, upstream: int, rate: float, seed: int, delay: float) -> None:
        self.upstream, self.rate, self.delay = upstream, rate, delay
        self.random, self.counts = random.Random(seed), collections.Counter[str]()

    async def ask(self, head: bytes, body: bytes) -> tuple[bytes, bytes]:
        """Sends a request on, and returns the answer. "Expect" was met already."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.upstream)
        writer.write(re.sub(rb"\r\nexpect: [^\r]*", b"", head, flags=re.I) + body)
        answer = await read_message(reader)
        writer.close()
        if answer is None:
            raise ConnectionError
        return answer

    async def answer(self, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> bool:
        """Answers one request. Returns whether the connection goes on."""
        fate = self.random.choice(FATES) if self.random.random() < self.rate else "fine"
        self.counts[fate] += 1
        await asyncio.sleep(3 if fate == "slow" else self.delay)
        if fate in ("500", "503"):
            text = b"<Error><Code>SlowDown</Code></Error>"
            writer.write(b"HTTP/1.1 %s no\r\nContent-Length: %d\r\n\r\n%s" % (fate.encode(), len(text), text))
            return True
        if fate == "closed":
            return False
        head, body = await self.ask(head, body)
        if fate == "lost":
            return False
        if fate == "cut":
            writer.write((head + body)[:(len(head) + len(body)) // 2])
            return False
        writer.write(head + body)
        return not re.search(rb"\r\nconnection: close", head, re.I)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                if re.search(rb"\r\nexpect: 100", head, re.I):
                    writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.I)
                body = await reader.readexactly(int(length[1])) if length else b""
                goes_on = await self.answer(head, body, writer)
                await writer.drain()
                if not goes_on:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()


async def main() -> None:
    args = argparse.ArgumentParser()
    args.add_argument("port", type=int)
    args.add_argument("upstream", type=int)
    args.add_argument("--rate", type=float, default=0.0)
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--delay", type=float, default=0.0)
    given = args.parse_args()
    proxy, end = Proxy(given.upstream, given.rate, given.seed, given.delay), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end.set)
    await asyncio.start_server(proxy.serve, "127.0.0.1", given.port)
    await end.wait()
    print("proxy:", ", ".join(f"{n} {fate}" for fate, n in sorted(proxy.counts.items())), flush=True)


asyncio.run(main())
