# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: the fixture `capture` records packets during a test, which then asserts what they show.

    pytest_plugins = ["wiretale.pytest"]  # in conftest.py

    def test_upload(capture, server):
        with capture("lo", filter=f"tcp port {server.port}") as traffic:
            upload(server)
        traffic.assert_no_loss()
        traffic.fail_if("server_time>0.2s", "cause=policer")

A test that fails tells in its report what the packets say, and where they are. Conditions are those of `wiretale analyze
--fail-if`; one whose value is unknown fails, too, because it was not checked.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Generator, Iterator
from functools import cached_property
from pathlib import Path

import pytest

from wiretale.analyzer.errors import MissingToolError, UsageError, WiretaleError
from wiretale.analyzer.findings.evidence import Files, evidence_of
from wiretale.analyzer.trace import Trace, analyze
from wiretale.checking import check
from wiretale.traffic.program import find_program

WRONG_USAGE = 2  # exit code
SECONDS = 30  # in which a recording must have written its packets
#: the recordings of a test
RECORDINGS = pytest.StashKey[list["Recording"]]()


class Recording:
    """Packets of an interface, from now until stop(), the end of a `with` block, or the first look at them."""

    def __init__(self, path: Path, interface: str, namespace: str | int | None, filter: str | None) -> None:
        __tracebackhide__ = True
        #: the capture, complete after stop()
        self.path = path
        words = [find_program("wiretale-capture"), "-i", interface, "-w", str(path), "--immediate", "-q"]
        if namespace is not None:
            place = f"/proc/{namespace}/ns/net" if isinstance(namespace, int) else f"/run/netns/{namespace}"
            words = [find_program("nsenter"), f"--net={place}", *words]
        words += ["-f", filter] if filter else []
        self._process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, errors="replace")
        assert self._process.stderr
        line = self._process.stderr.readline().strip()
        if line != "capturing":
            self._process.communicate(timeout=SECONDS)
            kind = UsageError if self._process.returncode == WRONG_USAGE else MissingToolError
            raise kind(line or "wiretale-capture did not start")

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> Path:
        """Ends the recording and returns its file."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        if self._process.stderr and not self._process.stderr.closed:
            self._process.communicate(timeout=SECONDS)
        return self.path

    @cached_property
    def trace(self) -> Trace:
        """The analysis of the packets, which ends the recording."""
        return analyze(self.stop())

    def fail_if(self, *conditions: str) -> None:
        """Raises AssertionError if a condition holds, or if its value is unknown."""
        __tracebackhide__ = True
        checks = check(self.trace, *conditions)
        if not self.trace.totals["packets"]:
            raise AssertionError(f"no packet was captured: {self.path}")
        if lines := [line for holds, line in checks.lines() if holds is not False]:
            raise AssertionError("\n".join(lines))

    def assert_no_loss(self) -> None:
        """Raises AssertionError if TCP segments, numbered packets or blocks were lost, or if that cannot be told."""
        __tracebackhide__ = True
        self.fail_if("lost>0")

    def summary(self) -> str:
        """Returns what the packets say, with the frames that show it, and the command that shows more."""
        trace, answer = self.trace, self.trace.answer
        places, evidence = Files(trace.interfaces.column("file")), evidence_of(trace)
        rows = [trace.findings[number - 1] for number in answer.findings]
        proof = {places.of_finding(evidence[row["finding"] - 1], row["packets"]): row["finding"] for row in rows}
        return "\n".join([answer.sentence, *filter(None, proof), f"wiretale {self.path}"])


@pytest.fixture
def capture(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Recording]]:
    """Returns a function that records an interface: capture("lo"), capture("eth0", namespace="client", filter="tcp port 80").

    The namespace is a name of `ip netns`, or the process ID of a container. If the packets cannot be recorded, the test fails
    with the command that allows it.
    """
    recordings: list[Recording] = request.node.stash.setdefault(RECORDINGS, [])

    def record(interface: str, *, namespace: str | int | None = None, filter: str | None = None) -> Recording:
        __tracebackhide__ = True
        path = tmp_path / f"capture-{len(recordings)}.pcapng"
        recordings.append(Recording(path, interface, namespace, filter))
        return recordings[-1]

    yield record
    for recording in recordings:
        recording.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds to the report of a test that fails what its packets say."""
    report = yield
    for recording in item.stash.get(RECORDINGS, []) if report.when == "call" and report.failed else []:
        try:
            report.sections.append(("wiretale", recording.summary()))
        except (WiretaleError, OSError, subprocess.TimeoutExpired) as error:
            report.sections.append(("wiretale", f"{recording.path}: {error}"))
    return report
