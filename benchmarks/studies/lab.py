# SPDX-License-Identifier: Apache-2.0
"""A lab that runs the tests of a study, one after the other or together.

The link's log of all packets is written when the lab is removed; wire_rates() and truth() must be called after that."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wiretale.analyzer.errors import WiretaleError
from wiretale.traffic.lab.capture import captures
from wiretale.traffic.lab.hosts import ADDRESSES, part_tcp
from wiretale.traffic.lab.lifecycle import lab_for_run
from wiretale.traffic.lab.link import write_truth
from wiretale.traffic.lab.process import real_time, run_program
from wiretale.traffic.lab.profile import load_profile
from wiretale.traffic.lab.scenario import PORT, SENDER_PRIORITY, wait_for_port
from wiretale.traffic.lab.state import Lab
from wiretale.traffic.program import TRUSTED, find_program

LIMIT_SECONDS = 90.0  # of a test
RATE_LEAST = 10  # blocks
NETWORK = "10.99.0.0/24"
RECEIVER_PRIORITY = 4
Report = dict[str, Any]


@dataclass
class StudyLab:
    """Two hosts and a receiver that listens; `reports` grows with each test."""

    lab: Lab
    folder: Path
    receiver: subprocess.Popen[str]
    reports: list[Report] = field(default_factory=list)

    def start(self, *options: str | int | float, inside: str | None = None) -> subprocess.Popen[str]:
        """Starts a sender on the sender's host, or in another namespace."""
        command = [find_program("wiretale-traffic"), "send", ADDRESSES["receiver"][0], "--port", str(PORT), "--json"]
        words = [*real_time(SENDER_PRIORITY), *command, "--wait", "5", *map(str, options)]
        return subprocess.Popen(
            [find_program("ip"), "netns", "exec", inside, *words] if inside else self.lab.inside("sender", *words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, process: subprocess.Popen[str]) -> Report:
        """Waits for a sender and returns its report, also if the test was interrupted."""
        try:
            printed, wrong = process.communicate(timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise WiretaleError(f"a test did not end within {LIMIT_SECONDS:g} s") from None
        lines = printed.strip().splitlines()
        if not lines:
            raise WiretaleError(f"wiretale-traffic send: {wrong.strip() or process.returncode}")
        report: Report = json.loads(lines[-1])
        self.reports.append(report)
        return report

    def send(self, *options: str | int | float) -> Report:
        return self.finish(self.start(*options))

    def send_together(self, tests: Sequence[Sequence[str | int | float]]) -> list[Report]:
        return [self.finish(process) for process in [self.start(*options) for options in tests]]

    def truth(self, query: str) -> list[tuple[Any, ...]]:
        """Queries the log of the link; its table is named truth."""
        import duckdb

        path = str(self.folder / "truth.parquet").replace("'", "''")
        with duckdb.connect() as connection:
            connection.execute(f"CREATE VIEW truth AS SELECT * FROM read_parquet('{path}')")
            return connection.execute(query).fetchall()

    def wire_rates(self, more_ns: float = 0) -> dict[int, float | None]:
        """Returns the Mbit/s of each UDP test at the end of the link, by run, over its time and `more_ns`; None if it has under
        RATE_LEAST blocks.

        The link gives the rate, because times of the receiving program depend on its scheduling.
        """
        rows = self.truth(
            "SELECT block_run, count(*), max(out_ns) - min(out_ns) FROM truth WHERE direction = 0 AND protocol = 17 "
            "AND block_sequence IS NOT NULL AND out_ns IS NOT NULL GROUP BY block_run"
        )
        sizes = {report["test"]["run"]: report["test"]["sizes"][0] for report in self.reports}
        return {
            run: (count - 1) * sizes[run] * 8e3 / (span + more_ns) if count >= RATE_LEAST else None
            for run, count, span in rows
            if run in sizes
        }


@contextmanager
def study_lab(
    profile: str, folder: Path, *, apart: bool = False, captured: bool = False, receiver: Sequence[str] = ()
) -> Iterator[StudyLab]:
    """Runs a lab of a profile. If `apart` is set, TCP has its own cable, so that UDP data has the link alone."""
    folder.mkdir(parents=True, exist_ok=True)
    with lab_for_run(load_profile(profile), folder) as lab, ExitStack() as stack:
        if captured:
            stack.enter_context(captures(lab, folder))
        if apart:
            part_tcp(lab)
        command = [
            find_program("wiretale-traffic"),
            "receive",
            "--port",
            str(PORT),
            "--parallel",
            "16",
            "--per-address",
            "16",
            "--quiet",
            *TRUSTED,
        ]
        process = subprocess.Popen(
            lab.inside("receiver", *real_time(RECEIVER_PRIORITY), *command, *receiver),
            stdin=subprocess.DEVNULL,
            stdout=stack.enter_context((folder / "receiver.json").open("w")),  # if `receiver` contains --json
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            wait_for_port(lab, process)
            yield StudyLab(lab, folder, process)
        finally:
            process.terminate()
            process.communicate()
    write_truth(folder, folder / "truth.parquet")


def bound_window(lab: StudyLab, first: int, most: int) -> None:
    """Lets the sender's window begin with `first` packets and bounds it to `most`; the receiver acknowledges each packet.

    Linux bounds it by what it remembers of the peer, which it takes from the route when a first connection ends.
    """
    ip = find_program("ip")
    sender = ("initcwnd", str(first), "cwnd", "lock", str(most))
    for host, words in (("sender", sender), ("receiver", ("quickack", "1"))):
        run_program(lab.lab.inside(host, ip, "route", "replace", NETWORK, "dev", "path", *words))
    lab.send("--size", 32, "--count", 1)


def received(report: Report) -> Report:
    """Returns the receiver's part of a report, empty if it is missing."""
    return report["receiver"] or {}


def rate_mbit(report: Report, wire: dict[int, float | None] | None = None) -> float | None:
    """Returns the rate of received payload: that of the link if `wire` has it, else that of the receiver."""
    rate: float | None = (wire or {}).get(report["test"]["run"], received(report).get("rate_mbit_s"))
    return rate


def percent_received(report: Report) -> float | None:
    got = received(report).get("blocks_received")
    return None if got is None else 100 * got / report["blocks_sent"]
