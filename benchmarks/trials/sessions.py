# SPDX-License-Identifier: Apache-2.0
"""Hostile sessions at a receiver, drawn by a seed: wrong plans, changed bytes, blocks that belong to nobody, clients that leave.

    PYTHONPATH=benchmarks python -m trials.sessions [--program wiretale-traffic] [--count 100000] [--seed 1]

With a program that has sanitizers (`make trials`), their reports end it; the sandbox is off, because it forbids what
LeakSanitizer needs. The exit status is 1 if the receiver ends
before it is asked to, does so with an error, or leaves a file.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

NONCE = "ab" * 32
HELLO = f"wiretale/1 nonce={NONCE}\n".encode()
AT_ONCE = 48
FIELDS = (
    "protocol=tcp protocol=udp direction=forward direction=reverse direction=both streams=1 streams=2 streams=1025 "
    "sizes_text=64 sizes_text=1000 sizes_text=33-1400:5 sizes_text=99999999 count=0 count=3 count=50 bytes=1000 "
    "time_ns=20000000 pacing=none pacing=constant pacing=poisson pacing=burst pacing=pattern rate_bps=10000000 rate_pps=500 "
    "burst=4 burst_cap=2 line_count=2 longest_gap_ns=1000 draws_lines=1 turns=1 no_real_time=1 kernel_pacing=1 write_each=1 "
    "start_offset_ns=1000 stagger_ns=1000 idle_ns=100000000 interval_ns=1000000 unchecked=1 offload=1 offload=2 authentic=1 "
    "content=1 stop_receiver=1 file_name=a file_name=-rf file_name=%E2%80%AEx file_name=..%2Fx dscp_plus_1=47 ttl=3 "
    "path_mtu=do buffer=4096 no_delay=1 mss=500 fq_rate_bps=1000000 congestion=cubic congestion=%00"
)
USUAL = "protocol=tcp streams=1 sizes_text=64 idle_ns=50000000 count=3"
LINES = (
    "start",
    "progress",
    "ready",
    "end way=forward",
    "end way=reverse",
    "done way=forward",
    "done way=reverse checksum=00",
    "stop reason=error text=%1B%5B2J",
    "stop reason=signal",
    "sent way=forward stream=0 blocks_sent=3 bytes_sent=3000",
    "received way=reverse stream=0 blocks_received=3",
    "port way=reverse stream=0 port=9",
    "clock sent_ns=5",
    "offset ahead_ns=1 behind_ns=2 error_ns=3 is_same=1 is_known=1",
    "lines list=1%202%203",
    "refused busy=1 text=x",
    "",
    HELLO.decode().strip(),
    "data run=7 stream=0",
)
NUMBERS = (0, -1, 2**31, 2**63, 2**64, 10**30)


def changed(chance: random.Random, original: bytes) -> bytes:
    """Returns bytes with up to five changes: another byte, more, fewer, or a number at a limit."""
    out = bytearray(original)
    for _ in range(chance.choice((0, 0, 1, 1, 2, 5))):
        at = chance.randrange(len(out) + 1)
        kind = chance.randrange(4)
        if kind == 0 and out:
            out[at % len(out)] = chance.randrange(256)
        elif kind == 1:
            out[at:at] = chance.randbytes(chance.choice((1, 4, 300)))
        elif kind == 2:
            del out[at : at + chance.choice((1, 5, 50))]
        else:
            out[at:at] = str(chance.choice(NUMBERS)).encode()
    return bytes(out)


def block(run: int, chance: random.Random) -> bytes:
    length = chance.choice((32, 33, 64, 1000, 2**30, 0))
    flags = chance.choice((0, 1, 2, 3, 16, 0xFFFF))
    places = (chance.choice((0, 1, 9)), flags, length, chance.choice((0, 1, 2**62)), 5)
    return struct.pack(">IIHHIQQ", 0x57544231, run, *places) + chance.randbytes(max(min(length, 1000) - 32, 0))


class Session:
    """One client: what it draws depends on its number alone."""

    def __init__(self, port: int, seed: int, number: int) -> None:
        self.port, self.chance = port, random.Random(seed * 2**32 + number)
        self.run = self.chance.randrange(2**32)
        self.is_accepted = False
        self.writers: list[asyncio.StreamWriter] = []

    def maybe_changed(self, line: bytes, share: float) -> bytes:
        return changed(self.chance, line) if self.chance.random() < share else line

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", self.port), 5)
        self.writers.append(writer)
        return reader, writer

    async def propose(self) -> asyncio.StreamWriter:
        """Sends a plan, and waits for the answer."""
        reader, writer = await self.connect()
        drawn = " ".join(self.chance.sample(FIELDS.split(), self.chance.randrange(1, 14)))
        plan = f"test run={self.run} {USUAL if self.chance.random() < 0.5 else drawn}\n"
        writer.write(self.maybe_changed(HELLO, 0.1) + self.maybe_changed(plan.encode(), 0.4))
        answer = b""
        while b"\n" not in answer[70:] and len(answer) < 9000:
            piece = await asyncio.wait_for(reader.read(4096), 0.5)
            if not piece:
                break
            answer += piece
        self.is_accepted = b"ready" in answer
        return writer

    async def disturb(self, writer: asyncio.StreamWriter) -> None:
        """Sends blocks and lines that fit the accepted test, or do not."""
        chance = self.chance
        if chance.random() < 0.9:
            writer.write(b"start\n")
        if chance.random() < 0.7:
            _, stream = await self.connect()
            for _ in range(chance.randrange(1, 6)):
                stream.write(changed(chance, block(self.run, chance)))
        for _ in range(chance.randrange(0, 8)):
            writer.write(self.maybe_changed(f"{chance.choice(LINES)}\n".encode(), 0.5))
        if chance.random() < 0.2:
            await asyncio.sleep(chance.random() / 20)

    async def act(self) -> bool:
        """Returns whether the receiver accepted its test."""
        try:
            writer = await self.propose()
            if self.is_accepted:
                await self.disturb(writer)
        except OSError:  # a TimeoutError, too
            pass
        for writer in self.writers:
            if self.chance.random() < 0.5:
                writer.transport.abort()
            else:
                writer.close()
        return self.is_accepted


async def run_sessions(port: int, count: int, seed: int) -> int:
    """Returns how many tests were accepted."""
    numbers = iter(range(count))

    async def take_turns() -> int:
        return sum([await Session(port, seed, number).act() for number in numbers])

    return sum(await asyncio.gather(*(take_turns() for _ in range(AT_ONCE))))


def main() -> int:
    parser = argparse.ArgumentParser(description="Hostile sessions at a receiver on this host.")
    parser.add_argument("--program", default="wiretale-traffic")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=5988)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o777)
        limits = ("--parallel", "32", "--per-address", "32", "-o", place, "--quiet", "--no-sandbox")
        command = (options.program, "receive", "--bind", "127.0.0.1", "-p", str(options.port), *limits)
        receiver = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        accepted = asyncio.run(run_sessions(options.port, options.count, options.seed))
        ended_early = receiver.poll() is not None
        receiver.send_signal(signal.SIGTERM)
        code = receiver.wait(60)
        files = sorted(path.name for path in Path(place).rglob("*"))
    print(f"{options.count:,} sessions, {accepted:,} tests accepted; exit code {code}, files {files}")
    return int(ended_early or code not in (0, 3) or bool(files) or not accepted)


if __name__ == "__main__":
    sys.exit(main())
