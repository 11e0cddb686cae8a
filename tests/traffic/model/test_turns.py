# SPDX-License-Identifier: Apache-2.0
"""wiretale model of requests and responses: known turns become a plan, a lab takes them, and the test agrees."""

from __future__ import annotations

import json
import random
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from forked_commands import run_command
from json_schema import check_schema
from lab_bench import NEEDED
from plain_wire import ACK, PSH, Connection, Wire
from traffic_ends import Receiver, receiving, send, send_raw, undisturbed

RTT, NEAR = 20.0, 6.0  # ms; both ways, and of that between capture point and client
MS = 1_000_000
Turn = tuple[int, int, int, int]  # request, pause of the client, response, server time; bytes and ns
Lines = list[Turn]


def wiretale(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The command, as a user runs it."""
    return run_command(*arguments)


def drawn(count: int, seed: int) -> Lines:
    """Requests of two sizes, responses of one segment, exponential times in whole µs."""
    source = random.Random(seed)

    def time(mean_ms: float) -> int:
        return round(source.expovariate(1 / mean_ms) * 1000) * 1000

    return [(source.choice((60, 400)), time(6), source.randint(100, 1400), time(8)) for _ in range(count)]


def captured(path: Path, turns: Lines) -> Path:
    """A connection that takes these turns, captured NEAR ms of round trip from the client."""
    wire, now, sent = Wire(), 100.0, [0, 0]
    connection = Connection(wire, 40000, server_port=80)
    connection.open(0.0, RTT, NEAR)
    for request, pause, response, server in turns:
        connection.send(now, 0, sent[0], request, ACK | PSH, ack=sent[1])
        sent[0] += request
        connection.send(now + RTT - NEAR, 1, sent[1], ack=sent[0])
        now += RTT - NEAR + server / MS
        connection.send(now, 1, sent[1], response, ACK | PSH, ack=sent[0])
        sent[1] += response
        connection.send(now + NEAR, 0, sent[0], ack=sent[1])
        now += NEAR + pause / MS
    wire.write(path)
    return path


def lines_of(path: Path) -> Lines:
    lines = (map(int, line.split()) for line in path.read_text().splitlines() if not line.startswith("#"))
    return [(request, pause, response, server) for request, pause, response, server in lines]


def test_a_plan_has_the_turns(tmp_path: Path) -> None:
    """Sizes are the same; times differ by the resolution of the file. The last turn is followed by none, so it has no pause."""
    turns = drawn(40, 1)
    file = captured(tmp_path / "talk.pcap", turns)
    done = wiretale("model", file, "-o", tmp_path / "talk.toml")
    assert done.returncode == 0, done.stderr
    (session,) = tomllib.loads((tmp_path / "talk.toml").read_text())["test"][0]["session"]
    assert (session["label"], session["protocol"], session["count"]) == ("flow 0 turns", "tcp", 40)
    planned = lines_of(tmp_path / session["turns"])
    assert [(line[0], line[2]) for line in planned] == [(line[0], line[2]) for line in turns]
    assert all(abs(line[3] - turn[3]) <= 3000 for line, turn in zip(planned, turns, strict=True))
    assert all(abs(line[1] - turn[1]) <= 3000 for line, turn in zip(planned[:-1], turns[:-1], strict=True))
    assert planned[-1][1] == 0
    dry_run = wiretale("experiment", "run", tmp_path / "talk.toml", "--dry-run")
    assert dry_run.returncode == 0 and "--turns" in dry_run.stdout, dry_run.stderr


@pytest.mark.xdist_group("experiment")
@NEEDED
@pytest.mark.parametrize("wrong", [None, "responses"])
def test_a_lab_takes_the_turns(tmp_path: Path, wrong: str | None) -> None:
    """All four distributions agree; responses of one size in place of drawn ones differ."""
    file, plan = captured(tmp_path / "talk.pcap", drawn(120, 2)), tmp_path / "talk.toml"
    assert wiretale("model", file, "-o", plan).returncode == 0
    if wrong:
        turns_file = tmp_path / "talk.d" / "flow-0-turns.txt"
        turns_file.write_text("".join(f"{a} {b} 1300 {d}\n" for a, b, _, d in lines_of(turns_file)))
    tries = iter(range(100))

    def check() -> None:
        folder = tmp_path / f"run{next(tries)}"
        done = wiretale("lab", "run", plan, "--profile", "same-lan", "-o", folder)
        assert done.returncode == 0, done.stderr
        assert check_schema(json.loads((folder / "result.json").read_text())) == "wiretale.lab-plan/1"
        checked = wiretale("model", "--check", file, folder, "--json")
        comparison: dict[str, Any] = json.loads(checked.stdout)
        verdicts = {row["measure"]: row["agrees"] for row in comparison["measures"]}
        names = ("requests", "responses", "server times", "pauses")
        assert verdicts == {name: name != wrong for name in names}, comparison
        assert checked.returncode == (1 if wrong else 0)

    undisturbed(check)


@pytest.fixture
def receiver(tmp_path: Path) -> Any:
    with receiving(tmp_path) as listening:
        yield listening


@pytest.mark.xdist_group("live")
def test_send_takes_turns(receiver: Receiver, tmp_path: Path) -> None:
    """Responses wait for the server, requests for the client; a block may be larger than all buffers."""
    path = tmp_path / "turns.txt"
    path.write_text("100 4000000 3000000 6000000\n900000 1000000 32 20000000\n")

    def check() -> None:
        report = send(receiver.port, "--turns", str(path), "--count", "11")
        sender = report["sender"]
        assert (report["blocks_sent"], report["blocks_received"], report["blocks_corrupt"]) == (11, 11, 0)
        assert report["bytes_received"] == 6 * 100 + 5 * 900_000
        assert (sender["responses"], sender["response_bytes"]) == (11, 6 * 3_000_000 + 5 * 32)
        assert sender["turn_p50_ns"] > 6_000_000 and 20_000_000 < sender["turn_max_ns"] < 60_000_000
        least_s = (5 * (6 + 4) + 5 * (20 + 1)) / 1000  # until the last request
        assert least_s < sender["elapsed_s"] < least_s + 0.3

    undisturbed(check)


@pytest.mark.xdist_group("live")
def test_a_receiver_bounds_the_bytes_of_turns(tmp_path: Path) -> None:
    """Requests and responses count: 50 turns of 100 kB are refused, those without a number are stopped at the limit."""
    path = tmp_path / "turns.txt"
    path.write_text("100 0 100000 0\n")
    with receiving(tmp_path, "--max-bytes", "1M") as receiver:
        done = send_raw(receiver.port, "--turns", str(path), "--count", "50")
        assert done.returncode == 4 and b"--max-bytes" in done.stderr
        done = send_raw(receiver.port, "--turns", str(path), "--time", "20")
        report = json.loads(done.stdout.splitlines()[-1])
        assert (done.returncode, report["stopped_by"], report["stopped_at"]) == (3, "limit", "receiver")
        assert report["sender"]["responses"] <= 10


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("100 5 64\n", 'line 1, "100 5 64'),
        ("100 5\n", "expected a response"),
        ("100 5 31 5\n", "expected a response"),
        ("100 5 64 x\n", "expected a server time"),
        ("100 5 64 5 6\n", "expected REQUEST, GAP, RESPONSE and SERVER"),
    ],
)
def test_a_wrong_turn_is_one_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "wrong.txt"
    path.write_text(text)
    done = send_raw(9, "--turns", str(path))
    assert done.returncode == 4 and says in done.stderr.decode() and done.stderr.count(b"\n") == 1
    (tmp_path / "plan.toml").write_text(
        '[[test]]\nname = "t"\n[[test.session]]\nprotocol = "tcp"\nturns = "wrong.txt"\n'
    )
    planned = wiretale("experiment", "run", tmp_path / "plan.toml", "--dry-run")
    assert (planned.returncode, planned.stderr.count("\n")) == (2, 1) and "line 1" in planned.stderr
