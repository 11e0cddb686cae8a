# SPDX-License-Identifier: Apache-2.0
"""The answer: which cause or finding heads a capture, in which words, and what JSON, terminal and page have of it."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import pytest

import wiretale
from finding_captures import CAPTURES
from plain_wire import ACK, RST, SYN, Connection, Wire
from wiretale.analyzer.causes.answer import entries
from wiretale.analyzer.causes.groups import groups
from wiretale.analyzer.causes.rank import rank_of

WORDS_MOST = 60


def test_an_answer_is_one_or_two_sentences(sample: Path) -> None:
    answer = wiretale.analyze(sample).answer
    assert answer.sentence.endswith(".") and len(answer.sentence.split()) <= WORDS_MOST
    assert "verdict" not in answer.sentence and "problem is visible" not in answer.sentence


def test_each_finding_belongs_to_one_entry(sample: Path) -> None:
    trace = wiretale.analyze(sample)
    numbers = sorted(row["finding"] for entry in entries(trace) for row in entry.group.rows)
    assert numbers == trace.findings.column("finding")


def test_a_capture_without_packets_has_an_answer(samples: Path) -> None:
    name = samples / "tcp_losses.pcap"
    assert wiretale.analyze(name, filter="udp port 9").answer.sentence == "The filter matches none of 342 packets."
    assert wiretale.analyze(name, start="2030-01-01").answer.sentence == "No packet was analyzed."


def test_a_healthy_transfer_is_told_with_its_time(tmp_path: Path) -> None:
    talk = Connection(Wire()).open()
    for turn in range(10):
        talk.send(50 + 40 * turn, 0, 100 * turn, 100).ack(70 + 40 * turn, 100 * turn + 100)
    answer = wiretale.analyze(talk.wire.write(tmp_path / "healthy.pcap")).answer
    assert answer.cause is None and answer.findings == []
    assert answer.sentence.startswith("1 TCP connection carried 1 kB and lost nothing")


@pytest.mark.parametrize(
    ("begins", "again", "happened"),
    [
        (1_400, 5, "10.0.0.1 sent its first request 1.38 s after the connection to 10.0.0.2:80 was open"),
        (30, 1_400, "nobody waited for"),  # the client had asked before
    ],
)
def test_a_client_that_asks_late_is_told_with_its_time(begins: int, again: int, happened: str, tmp_path: Path) -> None:
    talk, now = Connection(Wire()).open(), float(begins)
    for turn in range(2):
        talk.send(now, 0, 100 * turn, 100, ack=500 * turn).send(now + 21, 1, 500 * turn, 500, ack=100 * turn + 100)
        talk.send(now + 21.1, 0, 100 * turn + 100, ack=500 * turn + 500)
        now += 21.1 + again
    answer = wiretale.analyze(talk.wire.write(tmp_path / "late.pcap")).answer
    assert answer.cause is None and happened in answer.sentence


DOUBT = "went into waiting for servers, or for repeats of segments that were lost before the capture point"


@pytest.mark.parametrize(
    ("pause", "near", "is_doubtful"),
    [
        (240.0, 0.0, True),  # a timer of 220 ms, and a round trip
        (700.0, 0.0, False),  # no timer is as long
        (240.0, 19.95, False),  # at the server, where its repeats would show
    ],
)
def test_a_pause_as_long_as_a_timer_is_not_charged_to_the_server_for_sure(
    pause: float, near: float, is_doubtful: bool, tmp_path: Path
) -> None:
    """The last of four segments of each answer comes late: lost before the capture point and repeated, or not written before."""
    talk, now, size = Connection(Wire()).open(near=near), 30.0, 1460
    for turn in range(5):
        received = 4 * size * turn
        talk.send(now, 0, 100 * turn, 100, ack=received)
        for number in range(4):
            due = now + 21 - near + 0.1 * number + (pause if number == 3 else 0)
            talk.send(due, 1, received + number * size, size, ack=100 * turn + 100)
            talk.send(due + near + 0.01, 0, 100 * turn + 100, ack=received + (number + 1) * size)
        now += pause + 60
    answer = wiretale.analyze(talk.wire.write(tmp_path / "timer.pcap")).answer
    assert answer.cause is None and "went into waiting for servers" in answer.sentence
    assert (DOUBT in answer.sentence, "lost nothing" in answer.sentence) == (is_doubtful, not is_doubtful)


@pytest.mark.parametrize(("code", "is_busy"), [("wire-full", True), ("path-limited", False)])
def test_a_busy_link_heads_the_answer_where_nothing_else_stands_out(tmp_path: Path, code: str, is_busy: bool) -> None:
    """A flight that fills round trips alone may be held by the sender's congestion window."""
    trace = wiretale.analyze(CAPTURES[code](tmp_path / "full.pcap"))
    answer = trace.answer
    assert (answer.cause, answer.certainty) == (("bottleneck", "proven") if is_busy else (None, None))
    assert answer.sentence.startswith("A full 100 Mbit/s Ethernet of the path is the limit of 10.0.0.1") == is_busy
    assert [(row["code"], row["severity"]) for row in trace.causes] == [("bottleneck", "info")]


@pytest.mark.parametrize(("hosts", "said"), [(1, ""), (3, " 2 more cases like this: 6 failures.")])
def test_causes_like_the_first_are_counted(tmp_path: Path, hosts: int, said: str) -> None:
    wire = Wire()
    for host in range(hosts):
        for port in (40000, 40001):
            refused = Connection(wire, port, (f"10.0.{host}.1", f"10.0.{host}.2"))
            refused.send(host, 0, -1, flags=SYN).send(host + 0.2, 1, -1, flags=RST | ACK, ack=0)
    answer = wiretale.analyze(wire.write(tmp_path / "refused.pcap")).answer
    assert answer.cause == "refused" and answer.sentence.endswith(f"refused 2 connections within 200 µs.{said}")


def cause(**columns: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(("failed", "waited_ns", "bytes", "unjudged"))
    return {**nothing, "severity": "warning", "certainty": "proven", "place": "path", **columns}


def test_failures_come_before_waits_and_waits_before_waste() -> None:
    in_order = [
        cause(place="capture", unjudged=0.5),
        cause(failed=3, waited_ns=9, severity="error"),
        cause(failed=4, severity="error"),
        cause(waited_ns=10**12),
        cause(waited_ns=10**9),
        cause(bytes=10**9),
        cause(place="capture", unjudged=0.1),
        cause(waited_ns=10**13, severity="info"),
    ]
    assert sorted(in_order, key=rank_of) == in_order


def row(number: int, code: str, flow: int | None, cost: float | None = None, **more: Any) -> dict[str, Any]:
    return {
        "finding": number,
        "code": code,
        "severity": "warning",
        "scope": "flow",
        "flow": flow,
        "cost": cost,
        "cost_unit": None if cost is None else "seconds",
        "members": None,
        "sentence": "A sentence.",
        **more,
    }


def test_findings_that_are_alike_are_told_together() -> None:
    rows: list[Any] = [
        row(1, "timeout-stalls", 4, 2.0),
        row(2, "timeout-stalls", 7, 1.5),
        row(3, "shared-queue", None, 1.0, sentence="3 flows lose together.", members=3),
        row(4, "timeout-stalls", None, 10.0, sentence="1,261 more transfers have this finding.", members=1261),
        row(5, "capture-dropped", None, sentence="Dropped.", scope="capture"),
    ]
    queue, stalls, dropped = groups(rows)
    assert queue.first["code"] == "shared-queue" and not queue.is_group  # before its effects
    assert stalls.sentence() == "1,263 transfers stalled in retransmission timeouts: 13.5 s in all."
    assert [row["finding"] for row in stalls.rows] == [1, 2, 4] and dropped.rows[0]["finding"] == 5


def test_costs_of_different_units_are_not_added() -> None:
    rows: list[Any] = [
        row(1, "lost-downstream", 1, 2.0),
        {**row(2, "lost-downstream", 2), "cost": 3000.0, "cost_unit": "bytes"},
    ]
    (group,) = groups(rows)
    assert group.total == "" and group.sentence() == "2 transfers lost segments after the capture point."


@pytest.mark.parametrize("code", ["timeout-stalls"])
def test_an_explained_finding_is_not_listed_beside_its_cause(code: str) -> None:
    rows: list[Any] = [row(1, code, 4, 2.0), row(2, code, 7, 1.5)]
    (group,) = groups(rows, {1})
    assert [row["finding"] for row in group.rows] == [2]


@pytest.mark.parametrize("columns", [60, 80])
def test_the_terminal_begins_with_the_whole_answer(wiretale_run: Any, samples: Path, columns: int) -> None:
    sample, width = samples / "mirror_router.pcap", {"COLUMNS": str(columns)}
    answer = wiretale.analyze(sample).answer
    lines = wiretale_run("analyze", sample, env=width).stdout.splitlines()
    above = lines[: next(number for number, line in enumerate(lines) if line.startswith("Where the time went"))]
    assert all(len(line) <= columns for line in above)
    head = " ".join(" ".join(above).split())
    assert head == f"{answer.sentence} Caveat: {answer.caveat}"
    detail = wiretale_run("analyze", sample, "--cause", "copies", env=width).stdout
    assert "certainty  proven" in detail and "frames" in detail
    result = json.loads(wiretale_run("analyze", sample, "--cause", "copies", "--json").stdout)
    assert [row["code"] for row in result["causes"]] == ["copies"] and result["answer"]["sentence"] == answer.sentence


def test_json_page_and_python_have_the_same_answer(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    trace = wiretale.analyze(samples / "mirror_router.pcap")
    result = json.loads(wiretale_run("analyze", samples / "mirror_router.pcap", "--all", "--json").stdout)
    assert result["answer"] == trace.answer._asdict()
    assert [row["code"] for row in result["causes"]] == trace.causes.column("code")
    page = trace.report(tmp_path / "page.html").read_text("utf-8")
    assert html.escape(trace.answer.sentence) in page and html.escape(trace.answer.caveat or "") in page


def test_a_cause_has_a_page_and_the_list_names_it(wiretale_run: Any) -> None:
    assert "What it is not" in wiretale_run("analyze", "--cause", "copies").stdout
    assert json.loads(wiretale_run("analyze", "--cause", "copies", "--json").stdout)["rivals"]
    assert "one-direction" in wiretale_run("analyze", "--list").stdout
    done = wiretale_run(
        "explain",
        "--cause",
        "copy",
    )
    assert done.returncode == 2 and "there is no cause 'copy'" in done.stderr
