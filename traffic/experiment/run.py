# SPDX-License-Identifier: Apache-2.0
"""Runs a plan: one receiver, and for each test the tracer, the senders at their times, and the results."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from dataclasses import asdict
from typing import Any

from wiretale.analyzer.errors import MissingToolError
from wiretale.traffic.experiment.child import Child, ProgramError
from wiretale.traffic.experiment.commands import CaptureProgram, receiver_command, sender_command
from wiretale.traffic.experiment.plan import Plan, Session, Test
from wiretale.traffic.experiment.results import write_results
from wiretale.traffic.experiment.store import Store
from wiretale.traffic.experiment.tracing import Recording, check_interface, find_capture, tracing
from wiretale.traffic.program import find_program

RECEIVER_S = 15.0
SPARE_S = 60.0  # after the planned end of a test
POLL_S = 0.01
TABLE_SHARE = 10  # results.csv may take a tenth of the run

Note = Callable[[str], None]
Done = Callable[[Test, str | None], None]  # a test, and its error


class Runner:
    """One run of a plan into a directory."""

    def __init__(self, plan: Plan, store: Store, note: Note) -> None:
        self.plan, self.store, self.note = plan, store, note
        self.capture: CaptureProgram | None = None
        self.receiver: Child | None = None
        self.next_table = 0.0  # the earliest time to write results.csv again

    # --- before the first test

    def check(self) -> None:
        """Raises MissingToolError or UsageError if a program or an endpoint is missing, before the first test."""
        for endpoint in (self.plan.sender, self.plan.receiver):
            endpoint.check()
            if not endpoint.is_remote:
                find_program("wiretale-traffic")
        if self.plan.tracer:
            self.plan.tracer.endpoint.check()
            self.capture = self.choose_capture()
            if self.capture:
                check_interface(self.plan.tracer)

    def choose_capture(self) -> CaptureProgram | None:
        """Returns the capture program; None if captures are optional and there is no program."""
        assert self.plan.tracer is not None
        try:
            capture = find_capture(self.plan.tracer)
        except MissingToolError as error:
            if not self.plan.tracer.optional:
                raise
            self.note(f"without captures: {error}")
            return None
        if capture.name != "wiretale-capture":
            self.note(f"wiretale-capture is missing: {capture.name} captures instead")
        return capture

    def ensure_receiver(self) -> None:
        """Starts the receiver if it does not run. ProgramError if it does not start."""
        if self.receiver and self.receiver.is_running:
            return
        if self.receiver:
            self.note(f"the receiver ended and is restarted: {self.receiver.last_line()}")
            self.receiver.__exit__(None, None, None)
        self.receiver = Child(receiver_command(self.plan), self.plan.receiver.is_remote)
        name = f"the receiver ({self.plan.receiver}, port {self.plan.port})"
        self.receiver.wait_until(lambda log: "listening on port" in log, RECEIVER_S, name)

    # --- a test

    def senders(self, test: Test, stack: ExitStack) -> list[Child]:
        """Starts the senders of a test at their times, and waits until they end."""
        begin = time.monotonic()
        waiting = sorted(enumerate(test.sessions), key=lambda one: one[1].start_s)
        running: dict[int, Child] = {}
        until = begin + test.seconds + SPARE_S if all(s.seconds for s in test.sessions) else float("inf")
        while waiting or any(child.is_running for child in running.values()):
            now = time.monotonic()
            while waiting and waiting[0][1].start_s <= now - begin:
                number, session = waiting.pop(0)
                command = sender_command(self.plan, session)
                running[number] = stack.enter_context(Child(command, self.plan.sender.is_remote))
            if now > until:
                raise ProgramError(f"still running {SPARE_S:g} s after its planned end")
            time.sleep(POLL_S)
        return [running[number] for number in range(len(test.sessions))]

    def run_sessions(self, test: Test) -> tuple[list[dict[str, Any]], Recording | None]:
        """Returns the reports of the sessions of a test, and its capture."""
        tracer, capture = self.plan.tracer, self.capture
        captured = tracing(tracer, capture, test.name, self.store.folder) if tracer and capture else nullcontext()
        with ExitStack() as stack:
            with captured as recording:
                children = self.senders(test, stack)
            pairs = zip(test.sessions, children, strict=True)
            return [session_result(session, child) for session, child in pairs], recording

    def run_test(self, test: Test) -> str | None:
        """Runs a test, writes its result, and returns its error."""
        self.ensure_receiver()
        started, error = time.time_ns(), None
        empty: dict[str, Any] = {"command": None, "report": None, "intervals": [], "error": "did not run"}
        sessions = [{"label": session.label, **empty} for session in test.sessions]
        recording: Recording | None = None
        try:
            sessions, recording = self.run_sessions(test)
            error = next((one["error"] for one in sessions if one["error"]), None)
        except ProgramError as problem:
            if self.tracer_is_dispensable(problem):
                return self.run_test(test)
            error = str(problem)
        self.store.keep(
            test.name,
            {
                "test": asdict(test),
                "started_ns": started,
                "ended_ns": time.time_ns(),
                "error": error,
                "sessions": sessions,
                "tracer": asdict(recording) if recording else None,
            },
        )
        return error

    def tracer_is_dispensable(self, problem: ProgramError) -> bool:
        """Returns whether the run must continue without a tracer that did not start."""
        if not (self.capture and self.plan.tracer and self.plan.tracer.optional and "the tracer" in str(problem)):
            return False
        self.note(f"without captures: {problem}")
        self.capture = None
        return True

    def write_results(self) -> None:
        """Writes results.csv, unless that would take more than a tenth of the run; the end of the run writes it anyway."""
        begin = time.monotonic()
        if begin < self.next_table:
            return
        write_results(self.store)
        end = time.monotonic()
        self.next_table = end + TABLE_SHARE * (end - begin)

    def run(self, done: Done) -> int:
        """Runs the tests without a result; returns the number of failures."""
        failed = 0
        try:
            for test in self.plan.tests:
                if self.store.is_done(test.name):
                    done(test, None)
                    continue
                error = self.run_test(test)
                self.write_results()
                failed += error is not None
                done(test, error)
                time.sleep(self.plan.pause_s)
        finally:
            if self.receiver:
                self.receiver.__exit__(None, None, None)
        return failed


def json_lines(text: str) -> list[dict[str, Any]]:
    """Returns the JSON objects among the lines; a truncated line is skipped."""
    found = []
    for line in text.splitlines():
        try:
            one = json.loads(line)
        except ValueError:
            continue
        if isinstance(one, dict):
            found.append(one)
    return found


def session_result(session: Session, child: Child) -> dict[str, Any]:
    """Returns the report of a sender, and its error."""
    lines = json_lines(child.output())
    reports = [line for line in lines if str(line.get("schema", "")).startswith("wiretale.send/")]
    report = reports[-1] if reports else None
    code = child.process.returncode
    error = None
    if report is None:
        error = child.last_line()
    elif code or not report.get("complete"):
        why = report.get("error") or report.get("stopped_by")
        error = f"cut short: {why}" if why else child.last_line()
    return {
        "label": session.label,
        "command": child.command,
        "exit_code": code,
        "report": report,
        "intervals": [line for line in lines if str(line.get("schema", "")).startswith("wiretale.interval/")],
        "said": child.log(),
        "error": error,
    }


def run_plan(plan: Plan, store: Store, note: Note, done: Done) -> int:
    """Runs a plan into a directory; returns the number of failed tests. WiretaleError if it cannot start."""
    runner = Runner(plan, store, note)
    runner.check()
    store.begin(plan)
    with store.locked():
        store.clean()
        try:
            return runner.run(done)
        finally:
            write_results(store)
