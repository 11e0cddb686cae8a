# SPDX-License-Identifier: Apache-2.0
"""The tracer of an experiment: recording before a test's first block is sent, and until its last one has come."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from wiretale.analyzer.errors import MissingToolError
from wiretale.traffic.child import Child, ProgramError
from wiretale.traffic.commands import CAPTURE_PROGRAMS, CAPTURES, CaptureProgram, tracer_command
from wiretale.traffic.endpoint import Endpoint
from wiretale.traffic.plan import Tracer
from wiretale.traffic.program import program_path

READY_S = 15.0
SHELL_S = 60.0
FILE_NAME = re.compile(r"[A-Za-z0-9_.:-]+")
NO_PROGRAM = "neither wiretale-capture nor tcpdump is there to capture at {where}: apt-get install tcpdump"


@dataclass
class Recording:
    """What the tracer recorded of a test."""

    program: str
    files: list[str] = field(default_factory=list)  # in the experiment's folder
    said: str = ""


def remote_output(endpoint: Endpoint, script: str) -> bytes:
    """Of a line of shell on the other host. ProgramError when it fails."""
    try:
        done = subprocess.run(endpoint.shell(script), stdin=-3, capture_output=True, timeout=SHELL_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProgramError(f"{endpoint}: {error}") from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise ProgramError(f"{endpoint}: {lines[-1] if lines else f'exit code {done.returncode}'}")
    return done.stdout


def has_program(endpoint: Endpoint, name: str) -> bool:
    """Whether the endpoint's host has it."""
    if not endpoint.is_remote:
        return program_path(name) is not None
    return bool(remote_output(endpoint, f"command -v {name} || true").strip())


def find_capture(tracer: Tracer) -> CaptureProgram:
    """The program that records there. MissingToolError when there is none."""
    for capture in CAPTURE_PROGRAMS:
        if has_program(tracer.endpoint, capture.name):
            return capture
    raise MissingToolError(NO_PROGRAM.format(where=tracer.endpoint))


def make_folder(endpoint: Endpoint, beside: Path) -> str:
    """A new folder on the tracer's host."""
    if endpoint.is_remote:
        name = remote_output(endpoint, "mktemp -d").decode().strip()
        if not re.fullmatch(r"/[A-Za-z0-9_./-]+", name):
            raise ProgramError(f"{endpoint}: mktemp -d gave {name!r}")
        return name
    beside.mkdir(parents=True, exist_ok=True)
    return tempfile.mkdtemp(prefix=".partial-", dir=beside)


def fetch(endpoint: Endpoint, folder: str, into: Path) -> None:
    """Brings the files of another host here."""
    for name in remote_output(endpoint, f"ls {folder}").decode().split():
        if FILE_NAME.fullmatch(name):
            with (into / name).open("wb") as file:
                subprocess.run(endpoint.shell(f"cat {folder}/{name}"), stdin=-3, stdout=file, check=False)


def keep_files(found: list[Path], test: str, into: Path) -> list[str]:
    """Moves captures to their place; their names in the experiment's folder."""
    kept = []
    for number, path in enumerate(found, start=1):
        name = test + (f".{number}" if len(found) > 1 else "") + path.suffix
        os.replace(path, into / name)
        kept.append(f"{CAPTURES}/{name}")
    return kept


def collect(tracer: Tracer, folder: str, test: str, into: Path) -> list[str]:
    """What was written there, in its place."""
    endpoint, here = tracer.endpoint, Path(folder)
    try:
        if endpoint.is_remote:
            into.mkdir(parents=True, exist_ok=True)
            here = Path(tempfile.mkdtemp(prefix=".partial-", dir=into))
            fetch(endpoint, folder, here)
        return keep_files(sorted(here.glob("*.pcap*")), test, into)
    finally:
        if endpoint.is_remote:
            remote_output(endpoint, f"rm -r {folder}")
        shutil.rmtree(here, ignore_errors=True)


def start_tracer(tracer: Tracer, capture: CaptureProgram, folder: str) -> Child:
    """The tracer, when it records. ProgramError when it does not."""
    child = Child(tracer_command(tracer, capture, folder), tracer.endpoint.is_remote)
    try:
        what = f"the tracer ({capture.name} on {tracer.interface}, {tracer.endpoint})"
        child.wait_until(lambda said: capture.ready in said, READY_S, what)
    except BaseException:
        child.__exit__(None, None, None)
        raise
    return child


@contextmanager
def tracing(tracer: Tracer, capture: CaptureProgram, test: str, experiment: Path) -> Iterator[Recording]:
    """Records what runs within, and a margin; the recording is complete after it."""
    recording = Recording(capture.name)
    into = experiment / CAPTURES
    folder = make_folder(tracer.endpoint, into)
    try:
        with start_tracer(tracer, capture, folder) as child:
            yield recording
            time.sleep(tracer.margin_s)  # what is still under way
            child.stop()
            recording.said = child.said()
    finally:
        recording.files = collect(tracer, folder, test, into)
