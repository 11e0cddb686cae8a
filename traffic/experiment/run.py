# SPDX-License-Identifier: Apache-2.0
"""Runs a plan: one receiver, and for each test the tracer, the senders at their times, and the results."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict
from typing import Any

from wiretale.analyzer.errors import MissingToolError, UsageError
from wiretale.traffic.experiment.beside import Program
from wiretale.traffic.experiment.child import Child, ProgramError
from wiretale.traffic.experiment.commands import CaptureProgram, receiver_command, sender_command
from wiretale.traffic.experiment.endpoint import Endpoint
from wiretale.traffic.experiment.host_facts import facts_of_plan
from wiretale.traffic.experiment.plan import Plan, Session, Test
from wiretale.traffic.experiment.results import write_results
from wiretale.traffic.experiment.store import Store
from wiretale.traffic.experiment.tracing import check_interface, find_capture, tracing
from wiretale.traffic.program import find_program, program_path

RECEIVER_S = 15.0
SPARE_S = 60.0  # after the planned end of a test
POLL_S = 0.01
OUTPUT_MOST = 1 << 20  # characters of a program's output that are kept
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
        if self.plan.sender.is_remote and any(s.pattern or s.turns for test in self.plan.tests for s in test.sessions):
            raise UsageError(f"the sender is {self.plan.sender}: expected one on this host, which has the patterns")
        if self.plan.tracer:
            self.plan.tracer.endpoint.check()
            self.capture = self.choose_capture()
            if self.capture:
                check_interface(self.plan.tracer)
        self.check_programs()

    def check_programs(self) -> None:
        """Raises MissingToolError if a program beside the sessions is missing on this host."""
        if any(test.ping for test in self.plan.tests) and not self.plan.sender.is_remote:
            find_program("ping")
        for program in {program for test in self.plan.tests for program in test.programs}:
            name = shlex.split(program.command)[0]
            if not self.end(program).is_remote and not program_path(name):
                raise MissingToolError(f"{name} is missing, which the plan runs beside its sessions: install it")

    def end(self, program: Program) -> Endpoint:
        """Returns the endpoint of a program beside the sessions."""
        return self.plan.sender if program.at == "sender" else self.plan.receiver

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

    def senders(self, test: Test, stack: ExitStack) -> tuple[list[Child], list[dict[str, Any]]]:
        """Starts senders and programs of a test at their times, and waits until the senders end. Returns the senders, and the
        results of the programs, which are then stopped."""
        begin = time.monotonic()
        listed: list[tuple[int, Session | Program]] = [*enumerate(test.sessions), *enumerate(test.programs)]
        waiting = sorted(listed, key=lambda sender: sender[1].start_s)
        running: dict[int, Child] = {}
        beside: dict[int, Beside] = {}
        until = begin + test.seconds + SPARE_S if all(s.seconds for s in test.sessions) else float("inf")
        while len(running) < len(test.sessions) or any(child.is_running for child in running.values()):
            now = time.monotonic()
            while waiting and waiting[0][1].start_s <= now - begin:
                number, item = waiting.pop(0)
                if isinstance(item, Program):
                    child = stack.enter_context(Child(item.words(self.plan), self.end(item).is_remote))
                    beside[number] = Beside(item, child, now)
                else:
                    command = sender_command(self.plan, item)
                    running[number] = stack.enter_context(Child(command, self.plan.sender.is_remote))
            for sender in beside.values():
                sender.stop_in_time(now)
            if now > until:
                raise ProgramError(f"still running {SPARE_S:g} s after its planned end")
            time.sleep(POLL_S)
        # A client must be stopped before its server.
        results = {number: beside[number].result() for number in reversed(beside)}
        return [running[number] for number in range(len(test.sessions))], [
            results[number] for number in sorted(results)
        ]

    def run_sessions(self, test: Test) -> dict[str, Any]:
        """Returns the reports of the sessions of a test, the output of the programs beside them, and its capture."""
        tracer, capture = self.plan.tracer, self.capture
        captured = tracing(tracer, capture, test.name, self.store.folder) if tracer and capture else nullcontext()
        with ExitStack() as stack:
            with captured as recording, self.pinging(test) as ping:
                children, programs = self.senders(test, stack)
            pairs = zip(test.sessions, children, strict=True)
            sessions = [session_result(session, child) for session, child in pairs]
        return {
            "sessions": sessions,
            "programs": programs,
            "ping": ping,
            "tracer": asdict(recording) if recording else None,
        }

    @contextmanager
    def pinging(self, test: Test) -> Iterator[dict[str, Any] | None]:
        """Measures the latency while the body runs, and before and after it; the result is complete afterwards."""
        if not test.ping:
            yield None
            return
        with Child(test.ping.words(self.plan), self.plan.sender.is_remote) as child:
            time.sleep(test.ping.alone_s)
            record: dict[str, Any] = {"command": child.command, "from_ns": time.time_ns()}
            yield record
            record["to_ns"] = time.time_ns()
            time.sleep(test.ping.alone_s)
            if not child.is_running:
                raise ProgramError(f"ping: {child.last_line()}")
            child.stop()
            record["output"] = child.output()

    def run_test(self, test: Test) -> str | None:
        """Runs a test, writes its result, and returns its error."""
        self.ensure_receiver()
        started, error = time.time_ns(), None
        empty: dict[str, Any] = {"command": None, "report": None, "intervals": [], "error": "did not run"}
        result: dict[str, Any] = {
            "sessions": [{"label": session.label, **empty} for session in test.sessions],
            **{"programs": [], "ping": None, "tracer": None},
        }
        try:
            result = self.run_sessions(test)
            error = next((part["error"] for part in [*result["sessions"], *result["programs"]] if part["error"]), None)
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
                **result,
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


class Beside:
    """A running program beside the sessions."""

    def __init__(self, program: Program, child: Child, started: float) -> None:
        self.program, self.child = program, child
        self.until = started + program.seconds if program.seconds else float("inf")
        self.was_stopped = False

    def stop_in_time(self, now: float) -> None:
        """Stops it if its time is over."""
        if now >= self.until and not self.was_stopped:
            self.was_stopped = self.child.is_running
            self.child.stop()
            self.until = float("inf")

    def result(self) -> dict[str, Any]:
        """Stops it, and returns its output. It failed if it ended by itself with another code than 0."""
        self.stop_in_time(self.until)
        code = self.child.process.returncode
        failed = code != 0 and not self.was_stopped
        return {
            "label": self.program.label,
            "command": self.child.command,
            "exit_code": None if self.was_stopped else code,
            "output": self.child.output()[:OUTPUT_MOST],
            "said": self.child.log(),
            "error": f"{self.program.label}: {self.child.last_line()}" if failed else None,
        }


def json_lines(text: str) -> list[dict[str, Any]]:
    """Returns the JSON objects among the lines; a truncated line is skipped."""
    objects = []
    for line in text.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            objects.append(value)
    return objects


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
        store.keep_hosts(facts_of_plan(plan), time.time_ns())
        try:
            return runner.run(done)
        finally:
            write_results(store)
