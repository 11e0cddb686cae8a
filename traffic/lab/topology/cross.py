# SPDX-License-Identifier: Apache-2.0
"""Cross traffic of a profile: tests of wiretale-traffic between its hosts, while the flow or plan of a run is measured.

Output of the N-th is in cross-N.out and cross-N.log, that of its receiver in cross-N-receiver.out and cross-N-receiver.log.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wiretale.analyzer.errors import OutputError, UsageError, WiretaleError
from wiretale.traffic.lab.process import end_program, last_line, start_program
from wiretale.traffic.lab.profile import Profile
from wiretale.traffic.lab.state import Lab
from wiretale.traffic.lab.topology.description import MOST, Cross
from wiretale.traffic.lab.topology.network import addresses
from wiretale.traffic.program import TRUSTED, find_program

PORT = 5901  # of the first
NO_RECEIVER = "127.0.0.1", "1"  # address and port
SAYS = "wiretale-traffic send: "
REFUSED = ("--key", "--stop-receiver", "-x")  # what the receiver must permit
CHECK_SECONDS = 30
AFTER = 'sleep "$0"; exec "$@"'


def send_command(cross: Cross, address: str, port: str) -> list[str]:
    """Returns the sender; of an option that is given twice, the last one counts."""
    return [find_program("wiretale-traffic"), "send", address, *cross.options, "--port", port, "--wait", "0", "--json"]


def check_cross(profile: Profile) -> None:
    """Raises UsageError, with its place, if wiretale-traffic refuses options: it accepts them if it tries to connect."""
    for cross in profile.topology.cross:
        if refused := [word for word in cross.options if word.startswith(REFUSED)]:
            raise UsageError(f"{cross.where}: send: {refused[0]}: the receivers of a lab have no such option")
        command = send_command(cross, *NO_RECEIVER)
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=CHECK_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise UsageError(f"{cross.where}: send: expected options of a test that begins at once") from None
        message = last_line(done.stderr if done.returncode else "expected options of a test").removeprefix(SAYS)
        if not message.startswith(" port ".join(NO_RECEIVER)):
            raise UsageError(f"{cross.where}: send: {message.partition('; see')[0]}")


def output_names(number: int) -> tuple[str, ...]:
    """Returns the files of the N-th sender and its receiver."""
    return tuple(f"cross-{number}{end}.{kind}" for end in ("", "-receiver") for kind in ("out", "log"))


def remove_earlier_output(folder: Path) -> None:
    """Removes the output of the cross traffic of an earlier run."""
    try:
        for number in range(1, MOST["cross"] + 1):
            for name in output_names(number):
                (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{error.filename}: cannot remove: {error.strerror}") from None


def start_cross(lab: Lab, profile: Profile, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Starts receivers, then senders, and yields each."""
    receive = [find_program("wiretale-traffic"), "receive", "--once", "--json", *TRUSTED, "--port"]
    where = addresses(lab)
    every = list(enumerate(profile.topology.cross))
    for number, cross in every:
        command = lab.inside(cross.target, *receive, str(PORT + number))
        yield start_program(command, folder, f"cross-{number + 1}-receiver", "listening on")
    for number, cross in every:
        send = send_command(cross, where[cross.target], str(PORT + number))
        command = lab.inside(cross.source, "sh", "-c", AFTER, f"{cross.start_s:g}", *send)
        yield start_program(command, folder, f"cross-{number + 1}", "")


def failure(cross: Cross, number: int, folder: Path, code: int | None) -> str | None:
    """Returns the error of a sender; None if it succeeded, or if it still ran when the flow or plan ended."""
    if not code:
        return None
    if code < 0:
        return f"{cross.where}: wiretale-traffic send: killed by signal {-code}"
    log = folder / output_names(number)[1]
    return f"{cross.where}: {last_line(log.read_text('utf-8', 'replace'))} (exit code {code})"


@contextmanager
def cross_traffic(lab: Lab, profile: Profile, folder: Path) -> Iterator[list[int | None]]:
    """Runs the cross traffic of a profile as long as the body runs. What still runs then is ended; the list has the exit codes
    of the senders afterwards, None of these."""
    started: list[subprocess.Popen[bytes]] = []
    codes: list[int | None] = []
    remove_earlier_output(folder)
    try:
        for process in start_cross(lab, profile, folder):
            started.append(process)
        yield codes
        codes += [process.poll() for process in started[len(started) // 2 :]]
    finally:
        for process in reversed(started):
            end_program(process)


def report_in(text: str) -> dict[str, Any] | None:
    """Returns the report of a sender; None if it had not begun, or if it could not be written whole."""
    try:
        report = json.loads(last_line(text))
    except ValueError:
        return None
    return report if isinstance(report, dict) else None


def cross_results(profile: Profile, folder: Path, codes: list[int | None]) -> list[dict[str, Any]]:
    """Returns each sender with its report, and its error if it failed."""
    results = []
    for number, (cross, code) in enumerate(zip(profile.topology.cross, codes, strict=True), start=1):
        text = (folder / output_names(number)[0]).read_text("utf-8", "replace")
        ends = {"from": cross.source, "to": cross.target, "port": PORT + number - 1}
        results.append({**ends, "sender": report_in(text), "error": failure(cross, number, folder, code)})
    return results


def check_senders(results: list[dict[str, Any]]) -> None:
    """Raises WiretaleError if a sender has failed."""
    for result in results:
        if result["error"]:
            raise WiretaleError(result["error"])
