# SPDX-License-Identifier: Apache-2.0
"""Two namespaces with a veth pair between them, a sender at one end, and the capture daemon at the other."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import needs
from wiretale.traffic.program import find_program

PROGRAM = Path(find_program("wiretale-capture"))
PACKET = 64  # bytes of each that is sent
COUNTS = ("received", "written", "queued", "dropped_kernel", "dropped_interface", "dropped_queue", "dropped_disk")
SENDER = """
import socket, struct, sys, time
interface, count, rate, size = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
to = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
to.bind((interface, 0))
head = bytes.fromhex("020000000002 020000000001 88b5")
rest = bytes(size - len(head) - 4)
begin = time.monotonic()
for number in range(count):
    if rate and number % 50 == 0:
        while time.monotonic() - begin < number / rate:
            time.sleep(0.0005)
    to.send(head + struct.pack("!I", number) + rest)
"""


def missing() -> str | None:
    """Why there can be no such link here; None when there can."""
    return needs.first(needs.programs("ip", "capinfos", "tshark", "tcpdump"), needs.network_namespaces())


def output(*command: str) -> str:
    """Of a command that has to work."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert not done.returncode, f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}"
    return done.stdout


class Daemon:
    """A running wiretale-capture."""

    def __init__(self, command: list[str], folder: Path, **pipes: Any) -> None:
        self.log = folder / f"said-{time.monotonic_ns()}"
        with self.log.open("w") as errors:
            self.process = subprocess.Popen(command, stderr=errors, **pipes)

    def said(self) -> str:
        return self.log.read_text()

    def wait_said(self, text: str, seconds: float = 120) -> None:
        def is_said() -> bool:
            return text in self.said() or self.process.poll() is not None

        wait_until(is_said, f"{text!r}", seconds)
        assert text in self.said(), self.said()

    def stop(self, how: int = signal.SIGTERM, seconds: float = 120) -> int:
        self.process.send_signal(how)
        return self.process.wait(timeout=seconds)


class CaptureLink:
    """The names of the namespaces; the interfaces are `out` at the sender's end and `in0` at the daemon's."""

    def __init__(self, number: int = 0) -> None:
        self.sender, self.tracer = (f"wtcap{os.getpid()}{number}{end}" for end in "st")

    def make(self) -> None:
        for name in (self.sender, self.tracer):
            output("ip", "netns", "add", name)
            for which in ("all", "default"):  # nothing speaks that was not asked to
                output("ip", "netns", "exec", name, "sysctl", "-qw", f"net.ipv6.conf.{which}.disable_ipv6=1")
            output("ip", "-n", name, "link", "set", "lo", "up")
        self.connect("in0")

    def connect(self, interface: str, there: str | None = None) -> None:
        there = there or interface.replace("in", "out")
        link = ("ip", "-n", self.sender, "link")
        output(*link, "add", there, "type", "veth", "peer", "name", interface, "netns", self.tracer)
        output(*link, "set", there, "up")
        output("ip", "-n", self.tracer, "link", "set", interface, "up")
        self.wait_up(interface, there)

    def wait_up(self, interface: str, there: str) -> None:
        """The kernel notices a carrier with a delay; packets sent before are lost."""
        ends = ((self.sender, there), (self.tracer, interface))
        wait_until(
            lambda: all("state UP" in output("ip", "-n", name, "link", "show", end) for name, end in ends),
            "the link is up",
        )

    def disconnect(self, interface: str) -> None:
        output("ip", "-n", self.tracer, "link", "del", interface)

    def remove(self) -> None:
        for name in (self.sender, self.tracer):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=180)

    def sending(
        self, count: int, rate: float = 0, interface: str = "out0", size: int = PACKET
    ) -> subprocess.Popen[bytes]:
        inside = ["ip", "netns", "exec", self.sender, sys.executable, "-S", "-c", SENDER]
        return subprocess.Popen([*inside, interface, str(count), str(rate), str(size)])

    def send(self, count: int, rate: float = 0, interface: str = "out0", size: int = PACKET) -> None:
        assert not self.sending(count, rate, interface, size).wait(timeout=180)

    @contextlib.contextmanager
    def daemon(self, folder: Path, *options: str, ready: str | None = "capturing\n", **pipes: Any) -> Iterator[Daemon]:
        """With `ready` said; it is gone afterwards, whatever happened. Its log is in `folder`."""
        inside = ["ip", "netns", "exec", self.tracer, str(PROGRAM)]
        daemon = Daemon([*inside, *options], folder, **pipes)
        try:
            if ready:
                daemon.wait_said(ready)
            yield daemon
        finally:
            daemon.process.kill()
            daemon.process.wait(timeout=180)


def wait_until(is_so: Callable[[], bool], what: str, seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until, f"not within {seconds} s: {what}"
        time.sleep(0.02)


@contextlib.contextmanager
def capture_link() -> Iterator[CaptureLink]:
    """Made, and removed whatever happens."""
    link = CaptureLink()
    try:
        link.make()
        yield link
    finally:
        link.remove()


class StatusClient:
    """Reads lines of --status."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(120)
        wait_until(lambda: not self.socket.connect_ex(str(path)), "somebody answers at the socket")
        self.file = self.socket.makefile("r")

    def line(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.file.readline())
        return told

    def wait(self, is_so: Callable[[dict[str, Any]], bool], what: str, seconds: float = 120) -> dict[str, Any]:
        until = time.monotonic() + seconds
        while True:
            line = self.line()
            if is_so(line):
                return line
            assert time.monotonic() < until, f"not within {seconds} s: {what}; the last was {line}"

    def close(self) -> None:
        self.file.close()
        self.socket.close()


def wait_counted(status: Path, **least: int) -> dict[str, Any]:
    """The first line of --status in which each of these has come so far, and nothing waits in the queue."""
    until = time.monotonic() + 120
    while True:
        client = StatusClient(status)  # a new client gets a message at once
        line = client.line()
        client.close()
        if not line["queued"] and all(line[name] >= count for name, count in least.items()):
            return line
        assert time.monotonic() < until, f"not within 120 s: {least}; the last was {line}"
        time.sleep(0.1)  # the daemon forgets those who left once a second


def finished(folder: Path, suffix: str = ".pcapng") -> list[Path]:
    """Published files, in the order of names."""
    return sorted(path for path in folder.iterdir() if path.name.endswith(suffix) and not path.name.startswith("."))


def captures_of(*files: Path) -> list[dict[str, Any]]:
    """`wiretale info` of each interface of each file; damage is an answer, too."""
    done = subprocess.run(
        [sys.executable, "-m", "wiretale", "info", "--json", *map(str, files)],
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode in (0, 3), done.stderr
    told: list[dict[str, Any]] = json.loads(done.stdout)["interfaces"]
    return told


def packets_in(*files: Path) -> int:
    return sum(capture["packets"] for capture in captures_of(*files)) if files else 0


def total(said: str) -> dict[str, int]:
    """The counts of the daemon's last line."""
    line = said.strip().splitlines()[-1]
    words = line.replace(",", "").replace(";", "").split()
    where = {word: int(words[i - 1]) for i, word in enumerate(words) if i and words[i - 1].isdigit()}
    by = {words[i + 2]: int(words[i - 1]) for i, word in enumerate(words) if word == "by" and words[i + 1] == "the"}
    return {
        "received": int(words[words.index("packets") - 1]),
        "written": where["written"],
        "bytes": where["bytes"],
        **{f"dropped_{what}": by[what] for what in ("kernel", "interface", "queue", "disk")},
    }


def check_sum(counts: dict[str, int]) -> None:
    """Each packet received was written or is counted as dropped."""
    left = counts["written"] + counts["dropped_queue"] + counts["dropped_disk"] + counts.get("queued", 0)
    assert counts["received"] == left, counts
