# SPDX-License-Identifier: Apache-2.0
"""wiretale-traffic at both ends of a test: started, waited for, stopped."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wiretale.traffic.program import find_program

Report = dict[str, Any]


def program() -> str:
    """Its path."""
    return find_program("wiretale-traffic")


def assert_sound(errors: str) -> None:
    """A build with sanitizers had nothing to say."""
    assert "Sanitizer" not in errors and "runtime error" not in errors, errors


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


class Receiver:
    """A receiver while it runs."""

    def __init__(self, process: subprocess.Popen[str], port: int, out: Path, errors: Path) -> None:
        self.process, self.port, self.out, self.errors = process, port, out, errors

    def reports(self) -> list[Report]:
        """Of the tests that are over."""
        lines = [json.loads(line) for line in self.out.read_text().splitlines()]
        return [line for line in lines if line["schema"] == "wiretale.receive/1"]

    def wait_reports(self, count: int) -> list[Report]:
        until = time.monotonic() + 20
        while len(found := self.reports()) < count:
            assert time.monotonic() < until, f"{len(found)} reports of {count}: {self.errors.read_text()}"
            time.sleep(0.02)
        return found

    def end(self, which: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(which)
        return self.process.wait(timeout=20)


@contextlib.contextmanager
def receiving(folder: Path, *options: str, inside: tuple[str, ...] = (), port: int = 0) -> Iterator[Receiver]:
    """It listens when this begins, and has ended after it."""
    port = port or free_port()
    out, errors = folder / f"receiver{port}.json", folder / f"receiver{port}.err"
    command = [*inside, program(), "receive", "--port", str(port), "--json", *options]
    with out.open("w") as out_file, errors.open("w") as error_file:
        process = subprocess.Popen(command, stdout=out_file, stderr=error_file, text=True)
    receiver = Receiver(process, port, out, errors)
    try:
        until = time.monotonic() + 20
        while "listening on port" not in errors.read_text():
            assert process.poll() is None and time.monotonic() < until, errors.read_text()
            time.sleep(0.01)
        yield receiver
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(timeout=20)
        finally:
            process.kill()
            process.wait(timeout=10)
        assert_sound(errors.read_text())


def sending(port: int, *options: str, host: str = "127.0.0.1", inside: tuple[str, ...] = ()) -> list[str]:
    return [*inside, program(), "send", host, "--port", str(port), "--json", *options]


def send_raw(
    port: int, *options: str, host: str = "127.0.0.1", inside: tuple[str, ...] = (), stdin: bytes | None = None
) -> subprocess.CompletedProcess[bytes]:
    command = sending(port, *options, host=host, inside=inside)
    done = subprocess.run(command, capture_output=True, timeout=60, input=stdin)
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


def send_early(port: int, *options: str) -> subprocess.Popen[str]:
    """A sender that is not waited for."""
    return subprocess.Popen(sending(port, *options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
