# SPDX-License-Identifier: Apache-2.0
"""wiretale compare as a user runs it: text, JSON, Parquet, a page in a real browser, and errors in one line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from capture_points import MS, START_NS, Clock, Points, block, log, udp
from checkout import SAMPLES
from checkout import Run as Runner
from report_page import Page

RUN = 31


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Blocks and answers; five are lost before the tracer and seven behind it."""
    folder = tmp_path_factory.mktemp("points")
    points = Points(clocks={"receiver": Clock(250 * MS)})
    for n in range(600):
        before, after = n % 120 == 7, n % 100 == 50 or n == 333
        points.pass_by(udp(block(RUN, 0, n), n), n, (0, None if before else 2, None if before or after else 5))
    for n in range(60):
        answer = udp(b"answer %d" % n, n, ("10.0.1.1", 6000), ("10.0.0.1", 5000))
        points.pass_by(answer, 10 * n, (5, 3, 0))
    log(folder / "send.json", test={"run": RUN, "count": 600}, sender={"blocks_sent": 600, "send_errors": {}})
    log(folder / "receive.json", test={"run": RUN}, receiver={"blocks_received": 580, "host_dropped": 8})
    return points.write(folder)


def test_the_answer_comes_first(captures: list[Path], wiretale_run: Runner) -> None:
    done = wiretale_run("compare", *captures)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "Blocks of run 31, sender → receiver: 12 of 600 (2%) did not arrive: 5 in the network before the tracer, "
        "7 in the network after the tracer."
    )
    assert (
        "The missing packets went from 10.0.0.1 to 10.0.1.1, between 7 ms and 550 ms after the sender's first packet."
        in " ".join(done.stdout.split())
    )
    assert "at most ±5 ms off" in done.stdout


@pytest.mark.parametrize(
    ("sender", "receiver", "first"),
    [
        ("udp_fragments", "udp_blocks", "The captures have no packet in common"),
        ("tcp_losses", "reordering", "Each capture lacks a quarter or more of the packets that the other one proves"),
    ],
)
def test_captures_of_different_traffic_are_reported_first(
    wiretale_run: Runner, sender: str, receiver: str, first: str
) -> None:
    done = wiretale_run("compare", SAMPLES / f"{sender}.pcap", SAMPLES / f"{receiver}.pcap")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(first)


def test_two_places_read_as_one_are_found_before_network_duplicates(captures: list[Path], wiretale_run: Runner) -> None:
    result = json.loads(wiretale_run("analyze", captures[0], captures[1], "--all", "--json").stdout)
    first = next(row for row in result["findings"] if row["code"] in ("several-points", "blocks-duplicate"))
    assert (first["code"], first["scope"]) == ("several-points", "capture") and "wiretale compare" in first["advice"]
    alone = json.loads(wiretale_run("analyze", captures[0], "--all", "--json").stdout)
    assert "several-points" not in {row["code"] for row in alone["findings"]}


def test_captures_of_other_traffic_at_the_same_time_are_not_several_places(
    captures: list[Path], wiretale_run: Runner, tmp_path: Path
) -> None:
    points = Points(roles=("other",))
    for n in range(600):  # a few copies, and another run
        packet = udp(block(RUN + 1, 0, n), n, ("10.0.9.1", 5000), ("10.0.9.2", 6000))
        points.put(packet, [START_NS + n * MS])
        if n % 20 == 0:
            points.put(packet, [START_NS + n * MS + 1000])
    other = points.write(tmp_path)[0]
    result = json.loads(wiretale_run("analyze", captures[0], other, "--all", "--json").stdout)
    codes = {row["code"] for row in result["findings"]}
    assert "blocks-duplicate" in codes and "several-points" not in codes


def test_reports_to_link_local_groups_are_no_clock_samples(wiretale_run: Runner, tmp_path: Path) -> None:
    points = Points(roles=("sender", "receiver"))
    for n in range(100):
        points.pass_by(udp(b"question %d" % n, n), 10 * n, (0, 20))
        answer = udp(b"answer %d" % n, n, ("10.0.1.1", 6000), ("10.0.0.1", 5000))
        points.pass_by(answer, 10 * n, (41, 21))
    at_once = START_NS + 105 * MS
    points.put(udp(b"report", 7, target=("224.0.0.22", 6000)), [at_once, at_once + 1000])
    result = json.loads(wiretale_run("compare", *points.write(tmp_path), "--json").stdout)
    assert abs(result["clocks"][0]["offset_ns"]) < MS and result["clocks"][0]["least_rtt_ns"] == pytest.approx(40 * MS)


def test_a_single_capture_does_not_say_that_its_packets_arrived(captures: list[Path], wiretale_run: Runner) -> None:
    log_file = captures[0].parent / "receive.json"
    done = wiretale_run("compare", captures[1], "--receiver-log", log_file)
    assert done.returncode == 0 and done.stdout.startswith("Blocks of run 31"), done.stderr
    assert "packets" not in done.stdout.split("\nCaptures")[0]


def test_json_is_one_object(captures: list[Path], wiretale_run: Runner) -> None:
    folder = captures[0].parent
    logs = ("--sender-log", folder / "send.json", "--receiver-log", folder / "receive.json")
    done = wiretale_run("compare", *captures, *logs, "--json")
    result = json.loads(done.stdout)
    assert (done.returncode, result["schema"], done.stdout.count("\n")) == (0, "wiretale.compare/1", 1)
    blocks = next(entry for entry in result["losses"] if entry["unit"] == "blocks")
    assert blocks["lost"] == {"before_tracer": 5, "after_tracer": 7, "receiver_kernel": 8}
    assert blocks["sent"] == blocks["arrived"] + blocks["lost_total"]
    assert blocks["tracer_saw_all"] is None and blocks["tracer_missed"] == 0
    clock = next(entry for entry in result["clocks"] if (entry["from"], entry["to"]) == ("sender", "receiver"))
    assert abs(clock["offset_ns"] - 250 * MS) <= clock["error_ns"] == 5 * MS
    lost = result["lost_packets"]
    assert len(lost) == result["lost_packets_total"] == 12
    places = {(row["lost"], row["last_seen"]) for row in lost}
    assert places == {("before_tracer", "sender"), ("after_tracer", "tracer")}
    assert all(row["sequence"] is not None and row["sender_frame"] for row in lost)


def test_every_packet_is_written_as_parquet(captures: list[Path], wiretale_run: Runner, tmp_path: Path) -> None:
    import duckdb

    done = wiretale_run("compare", *captures, "-o", tmp_path / "out", "-q")
    assert (done.returncode, done.stdout) == (0, "")
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {"lost.parquet", "packets.parquet", "report.html"}
    rows = duckdb.sql(
        f"SELECT count(*), count(lost), round(median(sender_receiver_ns) / 1e6), round(median(sender_tracer_ns) / 1e6) "
        f"FROM '{tmp_path}/out/packets.parquet' WHERE kind = 'block'"
    ).fetchall()
    assert rows == [(600, 12, 5.0, 2.0)]
    assert duckdb.sql(f"SELECT count(*) FROM '{tmp_path}/out/lost.parquet'").fetchall() == [(12,)]


def test_errors_are_one_line_with_their_code(captures: list[Path], wiretale_run: Runner, tmp_path: Path) -> None:
    (tmp_path / "no.json").write_text("hello")
    (tmp_path / "cut.pcap").write_bytes(captures[2].read_bytes()[:-9])
    (tmp_path / "no.pcap").write_text("hello")
    cases: list[tuple[int, list[Any]]] = [
        (2, [captures[0]]),
        (2, [*captures, captures[0]]),
        (2, [captures[0], captures[1], "--clock"]),
        (4, [captures[0], tmp_path / "missing.pcap"]),
        (4, [captures[0], tmp_path / "no.pcap"]),
        (4, [captures[1], "--receiver-log", tmp_path / "no.json"]),
        (4, [captures[1], "--receiver-log", tmp_path / "missing.json"]),
        (3, [captures[0], tmp_path / "cut.pcap"]),
        (4, [captures[0], captures[1], "-q", "--report", "/proc/none/r.html"]),
    ]
    for code, arguments in cases:
        done = wiretale_run("compare", *arguments)
        assert (done.returncode, done.stderr.count("\n")) == (code, 1), (arguments, done.stderr)
        assert done.stderr.startswith("wiretale: ")


def test_the_page_draws_offline(captures: list[Path], wiretale_run: Runner, tmp_path: Path, page: Page) -> None:
    folder = captures[0].parent
    hostile = shutil.copy(captures[1], tmp_path / "<img src=x onerror=alert(1)>.pcap")
    page_file = tmp_path / "page.html"
    logs = ("--sender-log", folder / "send.json", "--receiver-log", folder / "receive.json")
    done = wiretale_run("compare", captures[0], hostile, captures[2], *logs, "-q", "--report", page_file)
    assert done.returncode == 0, done.stderr
    page.open(page_file)
    drawn = page.page.evaluate(
        "[...document.querySelectorAll('.figure')].map(f => [f.id, f.querySelectorAll('path').length])"
    )
    words = page.page.evaluate("document.getElementById('sankey0').textContent")
    wide = page.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.complaints == []
    assert [url for url in page.requests if not url.startswith(("file:", "blob:", "data:"))] == []
    assert {name for name, paths in drawn if paths > 3} >= {"sankey0", "losses", "delays", "distribution"}
    assert "before the tracer" in words and "kernel" in words and wide
