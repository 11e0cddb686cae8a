# SPDX-License-Identifier: Apache-2.0
"""Two namespaces with a veth pair between them, a sender at one end, and the capture daemon at the other."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import needs
from dropping_path import NamespacePath
from processes import output, wait_until
from wiretale.traffic.program import find_program

PROGRAM = Path(find_program("wiretale-capture"))
PACKET = 64  # bytes of each that is sent
ORDINARY = 65534  # a user and a group, named or not
UNWRITTEN = 3  # exit code: packets were received, but not written
COUNTS = ("received", "written", "queued", "dropped_kernel", "dropped_interface", "dropped_queue", "dropped_disk")
#: What a program that sends begins with. On a busy machine the other end's queue is full at times: the frame is sent again.
PACKET_SOCKET = """
import errno, socket, time

class PacketSocket(socket.socket):
    def __init__(self, interface):
        super().__init__(socket.AF_PACKET, socket.SOCK_RAW)
        self.settimeout(20)
        self.bind((interface, 0))

    def send(self, frame):
        end = time.monotonic() + 20
        while True:
            try:
                return super().send(frame)
            except OSError as error:
                if error.errno != errno.ENOBUFS or time.monotonic() > end:
                    error.add_note(f"a frame of {len(frame)} bytes")
                    raise
                time.sleep(0.001)
"""
SENDER = f"""{PACKET_SOCKET}
import struct, sys
interface, count, rate, size = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
to = PacketSocket(interface)
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


class Daemon:
    """A running wiretale-capture."""

    def __init__(self, command: list[str], folder: Path, **pipes: Any) -> None:
        self.log = folder / f"said-{time.monotonic_ns()}"
        with self.log.open("w") as errors:
            self.process = subprocess.Popen(command, stderr=errors, **pipes)

    def messages(self) -> str:
        return self.log.read_text()

    def wait_message(self, text: str, seconds: float = 120) -> None:
        wait_until(lambda: text in self.messages() or self.process.poll() is not None, f"{text!r}", seconds)
        assert text in self.messages(), self.messages()

    def fields(self) -> dict[str, str]:
        """The kernel's view of the process."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return dict(line.split(":\t", 1) for line in lines)

    def counts(self) -> dict[str, int]:
        """The counts of the last line, which must add up."""
        counts = total(self.messages())
        check_sum(counts)
        return counts

    def stop(self, how: int = signal.SIGTERM, seconds: float = 120) -> int:
        self.process.send_signal(how)
        return self.process.wait(timeout=seconds)


class CaptureLink(NamespacePath):
    """Two namespaces with the interfaces `out0` at the sender's end and `in0` at the daemon's."""

    home: Path  # of the test that runs: the captures and the status socket are in it

    def __init__(self) -> None:
        super().__init__("st", "tt")
        self.sender, self.tracer = self.names

    @property
    def folder(self) -> Path:
        return self.home / "captures"

    @property
    def status(self) -> Path:
        return self.home / "status"

    def make(self) -> None:
        super().make()
        self.add_interface("in0")

    def add_interface(self, interface: str) -> None:
        there = interface.replace("in", "out")
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

    def sending(
        self, count: int, rate: float = 0, interface: str = "out0", size: int = PACKET
    ) -> subprocess.Popen[bytes]:
        command = (sys.executable, "-S", "-c", SENDER, interface, str(count), str(rate), str(size))
        return subprocess.Popen(self.inside(self.sender, *command))

    def send(self, count: int, rate: float = 0, interface: str = "out0", size: int = PACKET) -> None:
        assert not self.sending(count, rate, interface, size).wait(timeout=180)

    def deliver(self, packets: int) -> None:
        """Sends packets until the capture has written them all."""
        before = self.wait_counted()["written"]
        self.send(packets)
        self.wait_counted(written=before + packets)

    @contextlib.contextmanager
    def daemon(
        self,
        *options: str,
        interface: str = "in0",
        into: Path | str | None = None,
        watched: bool = False,
        ready: str | None = "capturing\n",
        **pipes: Any,
    ) -> Iterator[Daemon]:
        """A capture into a file or folder, the test's own by default, that has said `ready`; `watched` through the status
        socket. It is gone afterwards, whatever happened."""
        where = ("-i", interface, "-w", str(into or self.folder), *(("--status", str(self.status)) if watched else ()))
        daemon = Daemon(self.inside(self.tracer, str(PROGRAM), *where, *options), self.home, **pipes)
        try:
            if ready:
                daemon.wait_message(ready)
            yield daemon
        finally:
            daemon.process.kill()
            daemon.process.wait(timeout=180)

    def records(self, packets: int, *options: str, ends: bool = False, size: int = PACKET, **more: Any) -> Daemon:
        """A capture of so many packets, which is stopped then, or ends by itself."""
        with self.daemon(*options, **more) as daemon:
            if packets:
                self.send(packets, size=size)
            assert not (daemon.process.wait(timeout=120) if ends else daemon.stop())
        return daemon

    def refused(self, code: int, *options: str, **more: Any) -> str:
        """Messages of a capture that ends with this code before it has begun."""
        with self.daemon(*options, ready=None, **more) as daemon:
            assert daemon.process.wait(timeout=60) == code
        return daemon.messages()

    def killed(self, packets: int, *options: str, into: Path | None = None) -> Path:
        """The temporary file of a capture that was killed when it held so many packets."""
        self.status.unlink(missing_ok=True)
        with self.daemon(*options, into=into, watched=True) as daemon:
            self.deliver(packets)
            assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
        self.status.unlink(missing_ok=True)
        (left,) = (into.parent if into else self.folder).glob(".*.part")
        return left

    def files(self, suffix: str = ".pcapng") -> list[Path]:
        return finished(self.folder, suffix)

    def make_folder(self) -> Path:
        """The folder of the captures, of a user without privileges."""
        self.folder.mkdir()
        os.chown(self.folder, ORDINARY, ORDINARY)
        return self.folder

    def wait_counted(self, queued: int = 0, **least: int) -> dict[str, Any]:
        """The first status in which each of these has come so far, and so many wait in the queue."""
        until = time.monotonic() + 120
        while True:
            client = StatusClient(self.status)  # a new client gets a message at once
            line = client.line()
            client.close()
            if line["queued"] == queued and all(line[name] >= count for name, count in least.items()):
                return line
            assert time.monotonic() < until, f"not within 120 s: {least}; the last was {line}"
            time.sleep(0.1)  # the daemon forgets those who left once a second


def refused(code: int, *options: str | Path) -> str:
    """The one line with which the program ends on this host."""
    done = subprocess.run([PROGRAM, *options], capture_output=True, text=True, timeout=60)
    assert done.returncode == code and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


class StatusClient:
    """Reads lines of --status."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(120)
        wait_until(lambda: not self.socket.connect_ex(str(path)), "somebody answers at the socket")
        self.file = self.socket.makefile("r")

    def line(self) -> dict[str, Any]:
        line: dict[str, Any] = json.loads(self.file.readline())
        return line

    def wait(self, is_so: Callable[[dict[str, Any]], bool], condition: str, seconds: float = 120) -> dict[str, Any]:
        until = time.monotonic() + seconds
        while True:
            line = self.line()
            if is_so(line):
                return line
            assert time.monotonic() < until, f"not within {seconds} s: {condition}; the last was {line}"

    def close(self) -> None:
        self.file.close()
        self.socket.close()


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
    interfaces: list[dict[str, Any]] = json.loads(done.stdout)["interfaces"]
    return interfaces


def packets_in(*files: Path) -> int:
    return sum(capture["packets"] for capture in captures_of(*files)) if files else 0


def total(messages: str) -> dict[str, int]:
    """The counts of the daemon's last line."""
    line = messages.strip().splitlines()[-1].replace(",", "")
    counted = re.search(r"(\d+) packets? received(?: (all|\d+) written)?", line)
    assert counted, line
    received = int(counted[1])
    dropped = {place: int(packets) for packets, place in re.findall(r"(\d+) by the (\w+)", line)}
    return {
        "received": received,
        "written": received if counted[2] == "all" else int(counted[2] or 0),
        **{f"dropped_{place}": dropped.get(place, 0) for place in ("kernel", "interface", "queue", "disk")},
    }


def check_sum(counts: dict[str, int]) -> None:
    """Each packet received was written or is counted as dropped."""
    left = counts["written"] + counts["dropped_queue"] + counts["dropped_disk"] + counts.get("queued", 0)
    assert counts["received"] == left, counts
