# SPDX-License-Identifier: Apache-2.0
"""wiretale-traffic at both ends of a test: started, waited for, stopped."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from processes import wait_until
from wiretale.traffic.program import find_program

Report = dict[str, Any]
SECONDS = 60  # that anything may take on a machine that is busy with others
# Below the kernel's ephemeral ports (from 32768), and separate for each process of tests.
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 10
FIRST_PORT, PORTS = 12_000 + 2000 * WORKER, 2000
places = itertools.count(os.getpid() * 31)


def program() -> str:
    """Its path."""
    return find_program("wiretale-traffic")


def assert_sound(errors: str) -> None:
    """A build with sanitizers had nothing to say."""
    assert "Sanitizer" not in errors and "runtime error" not in errors, errors


def is_free(port: int) -> bool:
    """Whether the port is free, also of connections in TIME-WAIT."""
    with socket.socket() as stream, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        try:
            stream.bind(("", port))
            datagrams.bind(("", port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """A port that the kernel assigns to no other program before its use."""
    candidates = (FIRST_PORT + next(places) % PORTS for _ in range(PORTS))
    return next(port for port in candidates if is_free(port))


def undisturbed(check: Callable[[], None], tries: int = 20) -> None:
    """A machine that is busy with others may hold a program up; an error of its own it repeats."""
    for _ in range(tries - 1):
        with contextlib.suppress(AssertionError):
            return check()
        time.sleep(0.2)
    return check()


class Receiver:
    """A receiver while it runs."""

    def __init__(self, process: subprocess.Popen[str], port: int, out: Path, errors: Path) -> None:
        self.process, self.port, self.out, self.errors = process, port, out, errors

    def reports(self) -> list[Report]:
        """Of the tests that are over."""
        lines = [json.loads(line) for line in self.out.read_text().splitlines()]
        return [line for line in lines if line["schema"] == "wiretale.receive/1"]

    def wait_reports(self, count: int) -> list[Report]:
        wait_until(lambda: len(self.reports()) >= count, self.errors.read_text)
        return self.reports()

    def end(self, which: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(which)
        return self.process.wait(timeout=SECONDS)


@contextlib.contextmanager
def receiving(folder: Path, *options: str, inside: tuple[str, ...] = (), port: int = 0) -> Iterator[Receiver]:
    """It listens when this begins, and has ended after it."""
    port = port or free_port()
    out, errors = folder / f"receiver{port}.json", folder / f"receiver{port}.err"
    owner = ["--user", "root"] if inside else []  # in a lab, as labs have it: with buffers that the host may not permit
    command = [*inside, program(), "receive", "--port", str(port), "--json", *owner, *options]
    with out.open("w") as out_file, errors.open("w") as error_file:
        process = subprocess.Popen(command, stdout=out_file, stderr=error_file, text=True)
    receiver = Receiver(process, port, out, errors)
    try:
        wait_until(lambda: "listening on port" in errors.read_text() or process.poll() is not None, errors.read_text)
        assert process.poll() is None, errors.read_text()
        yield receiver
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(timeout=SECONDS)
        finally:
            process.kill()
            process.wait(timeout=SECONDS)
        assert_sound(errors.read_text())


def sending(port: int, *options: str, host: str = "127.0.0.1", inside: tuple[str, ...] = ()) -> list[str]:
    return [*inside, program(), "send", host, "--port", str(port), "--json", *options]


def table_of(port: int, *options: str) -> str:
    """What a sender prints for a person."""
    command = [program(), "send", "127.0.0.1", "--port", str(port), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS).stdout


def send_raw(
    port: int, *options: str, host: str = "127.0.0.1", inside: tuple[str, ...] = (), stdin: bytes | None = None
) -> subprocess.CompletedProcess[bytes]:
    command = sending(port, *options, host=host, inside=inside)
    done = subprocess.run(command, capture_output=True, timeout=2 * SECONDS, input=stdin)
    assert_sound(done.stderr.decode())
    return done


def send(port: int, *options: str, host: str = "127.0.0.1", inside: tuple[str, ...] = ()) -> Report:
    """A test that has to be complete: the sender's report."""
    done = send_raw(port, *options, host=host, inside=inside)
    assert done.returncode == 0, (done.stderr.decode(), done.stdout.decode()[-2000:])
    report: Report = json.loads(done.stdout.splitlines()[-1])
    assert report["schema"] == "wiretale.send/1"
    assert (report["complete"], report["stopped_by"]) == (True, None)
    return report


class Sender:
    """A sender while it runs."""

    def __init__(self, process: subprocess.Popen[str], out: Path) -> None:
        self.process, self.out = process, out

    def lines_so_far(self) -> list[Report]:
        """Its lines that are whole."""
        return [json.loads(line) for line in self.out.read_text().splitlines(keepends=True) if line.endswith("\n")]

    def wait_blocks(self, count: int) -> None:
        """Until so many were sent, or have come if it sends in reverse."""

        def has_them() -> bool:
            lines = self.lines_so_far()
            assert self.process.poll() is None, lines
            return sum(line.get("blocks_sent", 0) + line.get("blocks_received", 0) for line in lines) >= count

        wait_until(has_them, self.out.read_text)

    def end(self, which: signal.Signals) -> int:
        self.process.send_signal(which)
        return self.wait()

    def wait(self) -> int:
        return self.process.wait(timeout=SECONDS)

    def report(self) -> Report:
        """Its last word, when it has ended."""
        self.wait()
        *_, last = self.lines_so_far()
        assert last["schema"] == "wiretale.send/1"
        return last


@contextlib.contextmanager
def sending_early(folder: Path, port: int, *options: str) -> Iterator[Sender]:
    """A sender that is not waited for; it is gone after it."""
    out = folder / f"sender{time.monotonic_ns()}.json"
    with out.open("w") as file:
        command = sending(port, *options, "--interval", "50ms")
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.DEVNULL, text=True)
    try:
        yield Sender(process, out)
    finally:
        process.kill()
        process.wait(timeout=SECONDS)
