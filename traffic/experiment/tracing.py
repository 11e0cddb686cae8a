# SPDX-License-Identifier: Apache-2.0
"""The tracer of an experiment. It captures from before the first block of a test is sent until after the last has arrived."""

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
    """The capture of a test."""

    program: str
    files: list[str] = field(default_factory=list)  # relative to the directory of the experiment
    log: str = ""


def remote_output(endpoint: Endpoint, script: str) -> bytes:
    """Returns the output of a line of shell on the other host. ProgramError if it fails."""
    try:
        done = subprocess.run(endpoint.shell(script), stdin=-3, capture_output=True, timeout=SHELL_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProgramError(f"{endpoint}: {error}") from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise ProgramError(f"{endpoint}: {lines[-1] if lines else f'exit code {done.returncode}'}")
    return done.stdout


def find_capture(tracer: Tracer) -> CaptureProgram:
    """Returns the capture program of the host. MissingToolError if there is none."""
    for capture in CAPTURE_PROGRAMS:
        script, remote = f"command -v {capture.name} || true", tracer.endpoint.is_remote
        if remote_output(tracer.endpoint, script).strip() if remote else program_path(capture.name):
            return capture
    raise MissingToolError(NO_PROGRAM.format(where=tracer.endpoint))


def check_interface(tracer: Tracer) -> None:
    """Raises UsageError if the interface does not exist, because the tracer would wait for it in each test.

    On another host, the capture program reports it.
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
    """Makes a directory on the host of the tracer; on another host returns its name, which the command of the tracer makes."""
    if endpoint.is_remote:
        return f"/tmp/wiretale-{secrets.token_hex(8)}"
    beside.mkdir(parents=True, exist_ok=True)
    return tempfile.mkdtemp(prefix=".partial-", dir=beside)


def fetch(endpoint: Endpoint, folder: str, into: Path) -> None:
    """Moves the files of a directory on another host to this one. ProgramError if that fails."""
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


def keep_files(files: list[Path], test: str, into: Path) -> list[str]:
    """Moves captures into the experiment and returns their names."""
    names = []
    for number, path in enumerate(files, start=1):
        name = test + (f".{number}" if len(files) > 1 else "") + path.suffix
        move(path, into / name)
        names.append(f"{CAPTURES}/{name}")
    return names


def collect(tracer: Tracer, folder: str, test: str, into: Path) -> list[str]:
    """Collects the captures of a test and returns their names."""
    local = Path(folder)
    try:
        if tracer.endpoint.is_remote:
            into.mkdir(parents=True, exist_ok=True)
            local = Path(tempfile.mkdtemp(prefix=".partial-", dir=into))
            fetch(tracer.endpoint, folder, local)
        captures = (path for path in local.rglob("*.pcap*") if path.suffix != ".index")
        return keep_files(sorted(captures), test, into)
    finally:
        shutil.rmtree(local, ignore_errors=True)


def start_command(tracer: Tracer, capture: CaptureProgram, folder: str) -> list[str]:
    """Returns the command that starts the tracer."""
    if not tracer.endpoint.is_remote:
        return tracer_command(tracer, capture, folder)
    arguments = capture.arguments(tracer, folder, capture.name)
    return tracer.endpoint.shell(f"mkdir -m 700 {folder} || exit 1; {watched(arguments)}")


def drain(child: Child) -> None:
    """Waits until tcpdump has read the packets in the kernel, because it would drop them silently when stopped.

    That is so if two answers in a row have the same count. A busy interface always has more, so the answers are limited.
    """
    until = time.monotonic() + DRAIN_S
    answers: list[str] = []
    while time.monotonic() < until and child.is_running and len(answers) < ANSWERS:
        child.ask()
        time.sleep(ASK_S)
        answers = COUNTS.findall(child.log())
        if len(answers) > 1 and answers[-1] == answers[-2]:
            return


@contextmanager
def tracing(tracer: Tracer, capture: CaptureProgram, test: str, experiment: Path) -> Iterator[Recording]:
    """Captures while the body runs and for a margin; the recording is complete afterwards."""
    recording = Recording(capture.name)
    into = experiment / CAPTURES
    folder = make_folder(tracer.endpoint, into)
    try:
        with Child(start_command(tracer, capture, folder), tracer.endpoint.is_remote) as child:
            name = f"the tracer ({capture.name} on {tracer.interface}, {tracer.endpoint})"
            child.wait_until(lambda log: capture.ready in log, READY_S, name)
            yield recording
            time.sleep(tracer.margin_s)  # for packets in flight
            if capture.logs_counts and not tracer.endpoint.is_remote:
                drain(child)
            child.stop()
            recording.log = child.log()
    finally:
        recording.files = collect(tracer, folder, test, into)
