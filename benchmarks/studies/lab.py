# SPDX-License-Identifier: Apache-2.0
"""A lab in which a study's tests are run one after the other, with the captures and the truth of all of them."""

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
from wiretale.traffic.lab.link import link_summary, write_truth
from wiretale.traffic.lab.profile import load_profile
from wiretale.traffic.lab.program import real_time
from wiretale.traffic.lab.scenario import PORT, SENDER_PRIORITY, wait_for_port
from wiretale.traffic.lab.state import Lab
from wiretale.traffic.program import find_program

LIMIT_SECONDS = 90.0  # of a test
RATE_LEAST = 10  # blocks
RECEIVER_PRIORITY = 4
Report = dict[str, Any]


@dataclass
class StudyLab:
    """Two hosts, a receiver that waits, and what was seen."""

    lab: Lab
    folder: Path
    reports: list[Report] = field(default_factory=list)

    def start(self, *options: str | int | float) -> subprocess.Popen[str]:
        """Starts a sender."""
        command = [find_program("wiretale-traffic"), "send", ADDRESSES["receiver"][0], "--port", str(PORT), "--json"]
        return subprocess.Popen(
            self.lab.inside("sender", *real_time(SENDER_PRIORITY), *command, "--wait", "5", *map(str, options)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, process: subprocess.Popen[str]) -> Report:
        """What a sender reports at its end; a test that was cut short as well."""
        try:
            said, wrong = process.communicate(timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise WiretaleError(f"a test did not end within {LIMIT_SECONDS:g} s") from None
        lines = said.strip().splitlines()
        if not lines:
            raise WiretaleError(f"wiretale-traffic send: {wrong.strip() or process.returncode}")
        report: Report = json.loads(lines[-1])
        self.reports.append(report)
        return report

    def send(self, *options: str | int | float) -> Report:
        """One test."""
        return self.finish(self.start(*options))

    def send_together(self, tests: Sequence[Sequence[str | int | float]]) -> list[Report]:
        """Several at the same time."""
        return [self.finish(process) for process in [self.start(*options) for options in tests]]

    def truth(self, query: str) -> list[tuple[Any, ...]]:
        """A question to the truth, once the lab is down; its table is named truth."""
        import duckdb

        path = str(self.folder / "truth.parquet").replace("'", "''")
        with duckdb.connect() as connection:
            connection.execute(f"CREATE VIEW truth AS SELECT * FROM read_parquet('{path}')")
            return connection.execute(query).fetchall()

    def wire_rates(self) -> dict[int, float | None]:
        """Mbit/s of the blocks of each UDP test as they left the link, by its run: what the receiver had to cope with.

        The receiving program's own times say as much about when it was scheduled. None: too few for a rate.
        """
        rows = self.truth(
            "SELECT block_run, count(*), max(out_ns) - min(out_ns) FROM truth WHERE direction = 0 AND protocol = 17 "
            "AND block_sequence IS NOT NULL AND out_ns IS NOT NULL GROUP BY block_run"
        )
        sizes = {report["test"]["run"]: report["test"]["sizes"][0] for report in self.reports}
        return {
            run: (count - 1) * sizes[run] * 8e3 / span if count >= RATE_LEAST else None
            for run, count, span in rows
            if run in sizes
        }

    def overruns(self) -> int:
        """Packets that the emulation itself lost: the run is worth less then."""
        return sum(direction["overruns"] for direction in link_summary(self.folder)["directions"])


@contextmanager
def study_lab(
    profile: str, folder: Path, *, apart: bool = False, captured: bool = False, receiver: Sequence[str] = ()
) -> Iterator[StudyLab]:
    """A lab of that profile. `apart`: TCP takes a cable of its own, for tests whose data is UDP alone."""
    folder.mkdir(parents=True, exist_ok=True)
    with lab_for_run(load_profile(profile), folder) as lab, ExitStack() as stack:
        if captured:
            stack.enter_context(captures(lab, folder))
        if apart:
            part_tcp(lab)
        command = [find_program("wiretale-traffic"), "receive", "--port", str(PORT), "--parallel", "16", "--quiet"]
        process = subprocess.Popen(
            lab.inside("receiver", *real_time(RECEIVER_PRIORITY), *command, *receiver),
            stdin=subprocess.DEVNULL,
            stdout=stack.enter_context((folder / "receiver.json").open("w")),  # with --json among the options
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            wait_for_port(lab, process)
            yield StudyLab(lab, folder)
        finally:
            process.terminate()
            process.communicate()
    write_truth(folder, folder / "truth.parquet")


def received(report: Report) -> Report:
    """The receiver's side of a report; empty when it did not come."""
    return report["receiver"] or {}


def rate_mbit(report: Report, wire: dict[int, float | None] | None = None) -> float | None:
    """Payload that arrived, from the first block to the last; by the wire where that knows the test."""
    rate: float | None = (wire or {}).get(report["test"]["run"], received(report).get("rate_mbit_s"))
    return rate


def percent_received(report: Report) -> float | None:
    """Of the blocks that were sent."""
    got = received(report).get("blocks_received")
    return None if got is None else 100 * got / report["blocks_sent"]
