# SPDX-License-Identifier: Apache-2.0
"""The tracer of an experiment: it must capture before a test's first block is sent and until its last one arrived."""

from __future__ import annotations

import re
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from wiretale.analyzer.errors import MissingToolError, UsageError
from wiretale.reports.export.destination import move
from wiretale.traffic.experiment.child import Child, ProgramError
from wiretale.traffic.experiment.commands import CAPTURE_PROGRAMS, CAPTURES, CaptureProgram, tracer_command
from wiretale.traffic.experiment.endpoint import Endpoint, watched
from wiretale.traffic.experiment.plan import Tracer
from wiretale.traffic.program import program_path

READY_S = 15.0
SHELL_S = 60.0
DRAIN_S, ASK_S, ANSWERS = 10.0, 0.03, 5
COUNTS = re.compile(r"(\d+) packets captured, ")
NO_PROGRAM = "neither wiretale-capture nor tcpdump is installed to capture at {where}: apt-get install tcpdump"


@dataclass
class Recording:
    """The tracer's results of a test."""

    program: str
    files: list[str] = field(default_factory=list)  # in the experiment's folder
    said: str = ""


def remote_output(endpoint: Endpoint, script: str) -> bytes:
    """Returns the output of a shell line on the other host. Raises ProgramError if it fails."""
    try:
        done = subprocess.run(endpoint.shell(script), stdin=-3, capture_output=True, timeout=SHELL_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProgramError(f"{endpoint}: {error}") from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise ProgramError(f"{endpoint}: {lines[-1] if lines else f'exit code {done.returncode}'}")
    return done.stdout


def has_program(endpoint: Endpoint, name: str) -> bool:
    """Returns whether the endpoint's host has the program."""
    if not endpoint.is_remote:
        return program_path(name) is not None
    return bool(remote_output(endpoint, f"command -v {name} || true").strip())


def find_capture(tracer: Tracer) -> CaptureProgram:
    """Returns the capture program of that host. Raises MissingToolError if it has none."""
    for capture in CAPTURE_PROGRAMS:
        if has_program(tracer.endpoint, capture.name):
            return capture
    raise MissingToolError(NO_PROGRAM.format(where=tracer.endpoint))


def check_interface(tracer: Tracer) -> None:
    """Raises UsageError if the interface is missing, because the tracer would wait for it in each test.

    Another host reports a missing interface when the capture starts.
    """
    if tracer.endpoint.is_remote or tracer.interface == "any":
        return
    command = tracer.endpoint.command([program_path("ip") or "ip", "-brief", "link", "show"])
    try:
        done = subprocess.run(command, stdin=-3, capture_output=True, text=True, timeout=SHELL_S)
    except (OSError, subprocess.TimeoutExpired):
        return
    names = [line.split()[0].partition("@")[0] for line in done.stdout.splitlines() if line.strip()]
    if not done.returncode and names and tracer.interface not in names:
        raise UsageError(
            f"there is no interface {tracer.interface} ({tracer.endpoint}): expected one of {', '.join(names)}"
        )


def make_folder(endpoint: Endpoint, beside: Path) -> str:
    """Creates a folder on the tracer's host; for another host it returns a name that the tracer's command creates."""
    if endpoint.is_remote:
        return f"/tmp/wiretale-{secrets.token_hex(8)}"
    beside.mkdir(parents=True, exist_ok=True)
    return tempfile.mkdtemp(prefix=".partial-", dir=beside)


def fetch(endpoint: Endpoint, folder: str, into: Path) -> None:
    """Copies the files of another host and removes them there. Raises ProgramError if that fails."""
    script = f"cd {folder} && tar -cf - . && cd / && rm -r {folder}"
    with tempfile.TemporaryFile(dir=into) as archive:
        done = subprocess.run(endpoint.shell(script), stdin=-3, stdout=archive, stderr=-1, check=False)
        if not done.returncode:
            archive.seek(0)
            unpack = ["tar", "-xf", "-", "--no-same-owner", "--no-same-permissions", "-C", str(into)]
            done = subprocess.run(unpack, stdin=archive, stderr=-1, check=False)
        if done.returncode:
            raise ProgramError(
                f"{endpoint}: captures cannot be fetched: {done.stderr.decode('utf-8', 'replace').strip()}"
            )


def keep_files(found: list[Path], test: str, into: Path) -> list[str]:
    """Moves captures into the experiment's folder and returns their names."""
    kept = []
    for number, path in enumerate(found, start=1):
        name = test + (f".{number}" if len(found) > 1 else "") + path.suffix
        move(path, into / name)
        kept.append(f"{CAPTURES}/{name}")
    return kept


def collect(tracer: Tracer, folder: str, test: str, into: Path) -> list[str]:
    """Moves the capture to its place."""
    here = Path(folder)
    try:
        if tracer.endpoint.is_remote:
            into.mkdir(parents=True, exist_ok=True)
            here = Path(tempfile.mkdtemp(prefix=".partial-", dir=into))
            fetch(tracer.endpoint, folder, here)
        return keep_files(sorted(here.rglob("*.pcap*")), test, into)
    finally:
        shutil.rmtree(here, ignore_errors=True)


def start_command(tracer: Tracer, capture: CaptureProgram, folder: str) -> list[str]:
    """Returns the command that starts the tracer."""
    if not tracer.endpoint.is_remote:
        return tracer_command(tracer, capture, folder)
    arguments = capture.arguments(tracer, folder, capture.name)
    return tracer.endpoint.shell(f"mkdir -m 700 {folder} || exit 1; {watched(arguments)}")


def start_tracer(tracer: Tracer, capture: CaptureProgram, folder: str) -> Child:
    """Returns the tracer once it captures. Raises ProgramError if it does not start."""
    child = Child(start_command(tracer, capture, folder), tracer.endpoint.is_remote)
    try:
        what = f"the tracer ({capture.name} on {tracer.interface}, {tracer.endpoint})"
        child.wait_until(lambda said: capture.ready in said, READY_S, what)
    except BaseException:
        child.__exit__(None, None, None)
        raise
    return child


def drain(child: Child) -> None:
    """Lets tcpdump read the kernel's buffer, which it would discard at its end without a message.

    Returns if two consecutive counts are equal, or after a few counts, because a busy interface never stops.
    """
    until = time.monotonic() + DRAIN_S
    answers: list[str] = []
    while time.monotonic() < until and child.is_running and len(answers) < ANSWERS:
        child.ask()
        time.sleep(ASK_S)
        answers = COUNTS.findall(child.said())
        if len(answers) > 1 and answers[-1] == answers[-2]:
            return


@contextmanager
def tracing(tracer: Tracer, capture: CaptureProgram, test: str, experiment: Path) -> Iterator[Recording]:
    """Captures the body and a margin; the capture is complete afterwards."""
    recording = Recording(capture.name)
    into = experiment / CAPTURES
    folder = make_folder(tracer.endpoint, into)
    try:
        with start_tracer(tracer, capture, folder) as child:
            yield recording
            time.sleep(tracer.margin_s)  # packets that are still in flight
            if capture.reports_counts and not tracer.endpoint.is_remote:
                drain(child)
            child.stop()
            recording.said = child.said()
    finally:
        recording.files = collect(tracer, folder, test, into)
