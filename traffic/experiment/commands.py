# SPDX-License-Identifier: Apache-2.0
"""The commands of a plan: receiver, senders and tracer."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from wiretale.traffic.experiment.plan import Plan, Session, Test, Tracer
from wiretale.traffic.program import TRUSTED

WAIT_S = 10  # for the receiver to become free
CAPTURES = "captures"


@dataclass(frozen=True)
class CaptureProgram:
    """A program that captures: its options, and the words of its log once it captures."""

    name: str
    ready: str
    options: tuple[str, ...]
    logs_counts: bool = False  # on SIGUSR1

    def arguments(self, tracer: Tracer, where: str, program: str) -> list[str]:
        """Returns the program with its options."""
        fixed = [
            option.format(interface=tracer.interface, snaplen=tracer.snaplen, where=where) for option in self.options
        ]
        return [program, *fixed, *([tracer.filter] if tracer.filter else [])]


CAPTURE_PROGRAMS = (
    CaptureProgram("wiretale-capture", "capturing", ("-i", "{interface}", "-s", "{snaplen}", "-w", "{where}")),
    # Without --immediate-mode, libpcap would drop its buffered packets when it is stopped.
    CaptureProgram(
        "tcpdump",
        "listening on",
        (
            *("-i", "{interface}", "-n", "-p", "-U", "--immediate-mode", "--time-stamp-precision=nano"),
            *("-B", "16384", "-s", "{snaplen}", "-w", "{where}/trace.pcap"),
        ),
        logs_counts=True,
    ),
)


def receiver_command(plan: Plan) -> list[str]:
    """Returns the receiver of all tests."""
    program = plan.receiver.program("wiretale-traffic")
    most = plan.sessions_most
    parallel = ["--parallel", str(most), "--per-address", str(most)] if most > 1 else []
    return plan.receiver.command([program, "receive", "--port", str(plan.port), "--json", *TRUSTED, *parallel])


def amount(session: Session) -> list[str]:
    """Returns the options for the amount of data."""
    if session.count is not None:
        return ["--count", str(session.count)]
    if session.seconds is not None:
        return ["--time", f"{session.seconds:g}"]
    return ["--file", session.file or ""]


def sender_command(plan: Plan, session: Session) -> list[str]:
    """Returns the sender of a session."""
    sizes = ["--size", str(session.block_bytes)]
    if session.pattern or session.turns:
        sizes = ["--pattern", session.pattern] if session.pattern else ["--turns", str(session.turns)]
    options = [
        *(["--udp"] if session.protocol == "udp" else []),
        *(*sizes, *(["--draw"] if session.draw else []), *amount(session)),
        *(["--rate", f"{session.rate_bps:.0f}"] if session.rate_bps else []),
        *(["--streams", str(session.streams)] if session.streams > 1 else []),
        *session.sending.options(),
        *("--wait", str(WAIT_S), "--interval", f"{plan.interval_s:g}", "--json"),
    ]
    program = plan.sender.program("wiretale-traffic")
    return plan.sender.command([program, "send", plan.address, "--port", str(plan.port), *options])


def tracer_command(tracer: Tracer, capture: CaptureProgram, where: str) -> list[str]:
    """Returns the tracer of a test, which writes into a directory."""
    return tracer.endpoint.command(capture.arguments(tracer, where, tracer.endpoint.program(capture.name)))


def test_commands(plan: Plan, test: Test, capture: CaptureProgram | None) -> Iterator[str]:
    """Yields the commands of a test as lines of shell."""
    yield f"# {test.name}"
    if plan.tracer and capture:
        yield f"{shlex.join(tracer_command(plan.tracer, capture, f'{CAPTURES}/{test.name}'))} &"
    together = len(test.sessions) > 1
    if test.ping:
        yield f"{shlex.join(test.ping.words(plan))} & sleep {test.ping.alone_s:g}"
    for program in test.programs:
        limit = f"timeout {program.seconds:g} " if program.seconds else ""
        yield f"(sleep {program.start_s:g}; {limit}{shlex.join(program.words(plan))}) &"
    for session in sorted(test.sessions, key=lambda item: item.start_s):
        after = f"sleep {session.start_s:g}; " if session.start_s else ""
        line = f"{after}{shlex.join(sender_command(plan, session))}"
        yield f"({line}) &" if together else line


def all_commands(plan: Plan, capture: CaptureProgram | None) -> Iterator[str]:
    """Yields every command of a run in order."""
    yield f"{shlex.join(receiver_command(plan))} &"
    for test in plan.tests:
        yield from test_commands(plan, test, capture)
