# SPDX-License-Identifier: Apache-2.0
"""Experiments that really run: on loopback, between namespaces, through ssh; broken off, resumed, and failing."""

from __future__ import annotations

import csv
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import needs
import ssh_server
import traffic_ends
import wiretale
from checkout import ROOT, Run
from dropping_path import NamespacePath, made
from processes import command_lines, wait_until
from wiretale.traffic.experiment.results import COLUMNS, on_wire
from wiretale.traffic.program import find_program

pytestmark = pytest.mark.xdist_group("experiment")

Row = dict[str, Any]
CAPTURES_HERE = not needs.first(needs.root(), needs.programs("tcpdump"))
PLAN = """
interval = "100ms"
[[test]]
name = "udp"
protocol = "udp"
sizes = [64, 1472]
count = 200
rates = ["20M"]
trials = 2
[[test]]
name = "tcp"
protocol = "tcp"
sizes = [1000]
bytes = 100000
"""
SLOW = """
[[test]]
name = "slow"
protocol = "udp"
sizes = [1000]
rates = ["8M"]
seconds = 0.5
trials = 4
"""


def free_port() -> str:
    return str(traffic_ends.free_port())


def table(folder: Path) -> list[Row]:
    with (folder / "results.csv").open() as file:
        return list(csv.DictReader(file))


def raw(folder: Path) -> dict[str, Row]:
    return {path.stem: json.loads(path.read_text()) for path in sorted((folder / "raw").glob("*.json"))}


class Experiment:
    """A plan, the folder of its results and a port of its own."""

    def __init__(self, folder: Path, text: str = PLAN) -> None:
        self.plan, self.out, self.port = folder / "plan.toml", folder / "out", free_port()
        self.plan.write_text(text)

    def words(self, *options: str | Path) -> list[str]:
        command = ["experiment", "run", self.plan, "-o", self.out, "--port", self.port, *options]
        return [str(word) for word in command]

    def begin(self) -> subprocess.Popen[str]:
        """The run, in a process of its own."""
        return subprocess.Popen([sys.executable, "-m", "wiretale", *self.words()], stdout=-1, stderr=-1, text=True)

    def wait_done(self, count: int) -> None:
        wait_until(lambda: len(list((self.out / "raw").glob("*.json"))) >= count, f"{count} tests are done")

    def changed(self) -> dict[Path, int]:
        """When each result was written."""
        return {path: path.stat().st_mtime_ns for path in (self.out / "raw").iterdir()}


def same(cell: str, value: float | None) -> bool:
    return cell == "" if value is None else float(cell) == pytest.approx(value, rel=1e-8)


def assert_columns(folder: Path) -> None:
    """Every line equals the raw report of its session."""
    done = raw(folder)
    for row in table(folder):
        sessions = {session["label"]: session for session in done[row["test"]]["sessions"]}
        report = sessions[row["session"]]["report"]
        sender, receiver = report["sender"], report["receiver"]
        elapsed = max(sender["elapsed_s"], receiver["elapsed_s"])
        rate = report["bytes_received"] / elapsed / 1000
        if row["protocol"] == "udp" and elapsed == receiver["elapsed_s"]:
            rate *= 1 - 1 / report["blocks_received"]  # of N datagrams, N - 1 took the time between first and last
        expected = {
            "blocks_sent": report["blocks_sent"],
            "bytes_sent": report["bytes_sent"],
            "bytes_received": report["bytes_received"],
            "elapsed_s": elapsed,
            "throughput_kb_s": rate,
            "throughput_mbit_s": rate * 8 / 1e3,
            "bytes_lost": report["bytes_sent"] - report["bytes_received"],
            "packets_lost": report["blocks_lost"],
            "percent_received": 100 * report["bytes_received"] / report["bytes_sent"],
            "sending_rate_mbit_s": sender["rate_mbit_s"],
            "receiving_rate_mbit_s": receiver["rate_mbit_s"],
            "start_ns": sender["first_ns"],
            "end_ns": receiver["last_ns"],
            "delay_ns": receiver["last_ns"] - sender["first_ns"],
            "rtt_s": report["rtt_us"] / 1e6,
            "elapsed_with_rtt_s": elapsed + report["rtt_us"] / 1e6,
            "throughput_with_rtt_mbit_s": rate * 8 / 1e3 * elapsed / (elapsed + report["rtt_us"] / 1e6),
        }
        for name, value in expected.items():
            assert same(row[name], value), (row["test"], name, row[name], value)


# --- files of a run


def test_the_table_of_quick_equals_reports_and_captures(wiretale_run: Run, tmp_path: Path) -> None:
    out = tmp_path / "quick"
    done = wiretale_run("experiment", "run", "quick", "-o", out, "--port", free_port())
    assert done.returncode == 0, done.stderr
    rows = table(out)
    # The rest are the starts of the programs, which depend on the machine.
    assert sum(float(row["elapsed_s"]) for row in rows) < 10
    assert len(rows) == 10 and len(raw(out)) == 9
    assert_columns(out)
    head = (out / "results.csv").read_text().splitlines()[0]
    assert head.split(",") == list(COLUMNS)
    for row in rows if CAPTURES_HERE else []:
        trace = wiretale.analyze(out / row["capture"])
        directions = [d for d in trace.directions.rows() if d["blocks"] == int(row["blocks_received"])]
        assert directions, f"{row['test']}: the capture shows no {row['blocks_received']} blocks"
        assert directions[0]["blocks_lost"] == 0 and row["packets_lost"] == "0"


def test_the_first_columns_are_those_of_the_studies() -> None:
    assert COLUMNS[:16] == (
        *(
            "protocol",
            "transport_header_bytes",
            "header_bytes",
            "block_bytes",
            "blocks_sent",
            "bytes_sent",
            "bytes_received",
            "elapsed_s",
        ),
        *("throughput_kb_s", "throughput_mbit_s", "bytes_lost", "packets_lost", "percent_received"),
        *("sending_rate_mbit_s", "receiving_rate_mbit_s", "trial"),
    )


def test_rates_on_the_wire_are_those_that_s4_counts() -> None:
    """(1,000 + 66) · 8 bits for 1,000 bytes of a datagram; a segment of 1,448 bytes has 90 more; S4 has 59.2 MB/s of 55.6."""
    udp = {"protocol": "udp", "block_bytes": 1000}
    assert on_wire(444.444, udp) == pytest.approx(8 * 59.22, rel=1e-3)
    assert on_wire(100.0, {"protocol": "tcp", "block_bytes": 64}) == pytest.approx(100 * 1538 / 1448)
    assert on_wire(100.0, {**udp, "pattern": "sizes.txt"}) is None and on_wire(None, udp) is None


def test_every_column_is_documented() -> None:
    text = (ROOT / "docs" / "experiments.md").read_text()
    assert [name for name in COLUMNS if f"`{name}`" not in text] == []


def test_a_second_run_does_nothing_again(wiretale_run: Run, tmp_path: Path) -> None:
    experiment = Experiment(tmp_path)
    assert wiretale_run(*experiment.words()).returncode == 0
    before, table_before = experiment.changed(), (experiment.out / "results.csv").read_text()
    assert wiretale_run(*experiment.words()).returncode == 0 and experiment.changed() == before and len(before) == 5
    assert (experiment.out / "results.csv").read_text() == table_before


def test_a_plan_that_changed_since_is_an_error_that_names_the_change(wiretale_run: Run, tmp_path: Path) -> None:
    experiment = Experiment(tmp_path)
    assert wiretale_run(*experiment.words()).returncode == 0
    experiment.plan.write_text(PLAN.replace("count = 200", "count = 300"))
    done = wiretale_run(*experiment.words())
    assert done.returncode == 2 and "another plan (udp-64-20mbit-t1, udp-1472-20mbit-t1, udp-64-" in done.stderr
    experiment.plan.write_text(PLAN)
    done = wiretale_run(*experiment.words("--trials", "3"))
    assert done.returncode == 2 and "is new" in done.stderr


# --- broken off


def running_with(port: str) -> list[str]:
    """Processes of ours that have the port among their arguments."""
    return [" ".join(words) for _, words in command_lines() if port in words and "wiretale-traffic" in words[0]]


def wait_gone(port: str) -> None:
    wait_until(lambda: not running_with(port), lambda: running_with(port))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda n: n.name)
def test_a_run_that_was_broken_off_goes_on_where_it_was(wiretale_run: Run, tmp_path: Path, number: int) -> None:
    experiment = Experiment(tmp_path, SLOW)
    process = experiment.begin()
    experiment.wait_done(2)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == (128 + number if number != signal.SIGKILL else -signal.SIGKILL), err
    wait_gone(experiment.port)  # no receiver or sender is left behind
    before = experiment.changed()
    assert 2 <= len(before) < 4 and "Traceback" not in err
    if number != signal.SIGKILL:
        assert len(table(experiment.out)) == len(before)
    done = wiretale_run(*experiment.words())
    assert done.returncode == 0, done.stderr
    assert len(table(experiment.out)) == 4
    assert experiment.changed().items() >= before.items()  # not run again
    assert not list(experiment.out.glob("**/.*partial*"))


def test_sigterm_ends_a_run_that_a_script_has_in_the_background(tmp_path: Path) -> None:
    """A shell without job control starts `command &` with SIGINT ignored."""
    experiment = Experiment(tmp_path, SLOW)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = experiment.begin()
    finally:
        signal.signal(signal.SIGINT, before)
    experiment.wait_done(1)
    process.terminate()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143 and "Traceback" not in err, err
    wait_gone(experiment.port)


def test_two_runs_do_not_share_a_folder(wiretale_run: Run, tmp_path: Path) -> None:
    experiment = Experiment(tmp_path, SLOW)
    process = experiment.begin()
    try:
        experiment.wait_done(1)
        done = wiretale_run(*experiment.words())
        assert done.returncode == 2 and "in use by another run" in done.stderr
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


# --- errors


def test_a_receiver_that_does_not_come_up_is_one_clear_line(wiretale_run: Run, tmp_path: Path) -> None:
    experiment = Experiment(tmp_path)
    with socket.create_server(("", int(experiment.port))):
        done = wiretale_run(*experiment.words())
    assert done.returncode == 4 and done.stdout == ""
    (line,) = [line for line in done.stderr.splitlines() if "wrote" not in line]
    assert (
        line.startswith(f"wiretale: the receiver (here, port {experiment.port}) did not start: ") and "in use" in line
    )


def test_a_test_that_fails_is_recorded_and_the_others_go_on(wiretale_run: Run, tmp_path: Path) -> None:
    text = PLAN + f'[[test]]\nname = "gone"\nprotocol = "tcp"\nsizes = [1000]\nfile = "{tmp_path}/none"\ntrials = 1\n'
    experiment = Experiment(tmp_path, text)
    done = wiretale_run(*experiment.words())
    assert done.returncode == 3 and "gone-1000-t1 failed:" in done.stderr and "1 of 6 tests failed" in done.stderr
    failed = [row for row in table(experiment.out) if row["error"]]
    assert [row["test"] for row in failed] == ["gone-1000-t1"] and "none" in failed[0]["error"]
    assert len(table(experiment.out)) == 6
    (tmp_path / "none").write_bytes(b"x" * 5000)
    assert wiretale_run(*experiment.words()).returncode == 0  # it alone is run again
    assert [row["bytes_received"] for row in table(experiment.out) if row["test"] == "gone-1000-t1"] != [""]


def test_no_program_to_capture_with_is_exit_code_5(wiretale_run: Run, tmp_path: Path) -> None:
    beside = [path for name in ("wiretale-capture",) if (path := Path(sys.executable).parent / name).exists()]
    if beside:
        pytest.skip("wiretale-capture is beside the interpreter: it is always found")
    done = wiretale_run(*Experiment(tmp_path).words("--interface", "lo"), env={"PATH": str(tmp_path)})
    assert done.returncode == 5 and "neither wiretale-capture nor tcpdump" in done.stderr
    assert not (tmp_path / "out").exists()


@needs.marked(needs.root(), needs.programs("tcpdump"))
def test_a_tracer_that_does_not_come_up_fails_the_test_with_its_reason(wiretale_run: Run, tmp_path: Path) -> None:
    text = PLAN + '[tracer]\ninterface = "lo"\nfilter = "no such filter"\n'
    done = wiretale_run(*Experiment(tmp_path, text).words())
    assert done.returncode == 3 and "the tracer (" in done.stderr and "did not start" in done.stderr


@needs.marked(needs.root(), needs.programs("tcpdump"))
def test_a_missing_interface_is_reported_before_anything_runs(wiretale_run: Run, tmp_path: Path) -> None:
    done = wiretale_run(*Experiment(tmp_path).words("--interface", "nosuch0"))
    assert done.returncode == 2 and done.stderr.startswith(
        "wiretale: there is no interface nosuch0 (here): expected one of "
    )
    assert done.stderr.count("\n") == 1 and "lo" in done.stderr and not (tmp_path / "out").exists()


def test_a_file_is_sent_in_place_of_blocks(wiretale_run: Run, tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(bytes(range(256)) * 300)
    experiment = Experiment(tmp_path)
    done = wiretale_run(*experiment.words("--file", tmp_path / "data", "--trials", "1"))
    assert done.returncode == 0, done.stderr
    assert all(
        report_of_test["sessions"][0]["report"]["file"]["same"] for report_of_test in raw(experiment.out).values()
    )


# --- elsewhere


@pytest.fixture
def two_namespaces() -> Iterator[tuple[str, str]]:
    needs.skip_without(needs.network_namespaces(), needs.programs("ethtool"))
    with made(NamespacePath("ea", "eb")) as path:
        sender, receiver = path.names
        path.connect((sender, "path", "10.216.1.1"), (receiver, "path", "10.216.1.2"))
        yield sender, receiver


@needs.marked(needs.root(), needs.programs("tcpdump"))
def test_an_experiment_between_namespaces_is_captured_at_the_receiver(
    wiretale_run: Run, tmp_path: Path, two_namespaces: tuple[str, str]
) -> None:
    experiment, (sender, receiver) = Experiment(tmp_path), two_namespaces
    where = f"--sender netns:{sender} --receiver netns:{receiver} --host 10.216.1.2 --interface path".split()
    done = wiretale_run(*experiment.words(*where))
    assert done.returncode == 0, done.stderr
    assert_columns(experiment.out)
    for row in table(experiment.out):
        (direction,) = [
            d for d in wiretale.analyze(experiment.out / row["capture"]).directions.rows() if d["blocks"] is not None
        ]
        assert (direction["blocks"], direction["blocks_lost"]) == (
            int(row["blocks_received"]),
            int(row["packets_lost"]),
        )


@pytest.fixture
def ssh_here(tmp_path: Path) -> Iterator[Path]:
    """A folder for PATH whose `ssh` reaches a server of this test's own, where the programs are found by name."""
    if reason := ssh_server.why_not():
        pytest.skip(reason)
    programs = Path(find_program("wiretale-traffic")).parent
    beside = tmp_path / "bin"
    beside.mkdir()
    with ssh_server.serving(tmp_path / "ssh", int(free_port()), f"{programs}:{os.environ['PATH']}") as options:
        (beside / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F none {shlex.join(options)} "$@"\n')
        (beside / "ssh").chmod(0o755)
        yield beside


def test_both_ends_and_the_tracer_run_through_ssh(wiretale_run: Run, tmp_path: Path, ssh_here: Path) -> None:
    experiment = Experiment(tmp_path, PLAN.replace("[64, 1472]", "[1472]").partition('[[test]]\nname = "tcp"')[0])
    where = ["--sender", "ssh:root@127.0.0.1", "--receiver", "ssh:root@127.0.0.1", "--trials", "1"]
    if CAPTURES_HERE:
        where += ["--interface", "lo"]
    done = wiretale_run(*experiment.words(*where), env={"PATH": f"{ssh_here}:{os.environ['PATH']}"})
    assert done.returncode == 0, done.stderr
    assert_columns(experiment.out)
    wait_gone(experiment.port)  # nothing is left running over there
    for row in table(experiment.out) if CAPTURES_HERE else []:
        block_counts = [d["blocks"] for d in wiretale.analyze(experiment.out / row["capture"]).directions.rows()]
        assert int(row["blocks_received"]) in block_counts


def test_an_ssh_host_that_cannot_be_reached_is_one_clear_line(
    wiretale_run: Run, tmp_path: Path, ssh_here: Path
) -> None:
    (ssh_here / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F none -p 1 "$@"\n')
    experiment, path = Experiment(tmp_path), {"PATH": f"{ssh_here}:{os.environ['PATH']}"}
    done = wiretale_run(*experiment.words("--receiver", "ssh:root@127.0.0.1"), env=path)
    assert (
        done.returncode == 4
        and f"the receiver (ssh:root@127.0.0.1, port {experiment.port}) did not start" in done.stderr
    )
    assert "Connection refused" in done.stderr
