# SPDX-License-Identifier: Apache-2.0
"""Captures with super-segments: losses are those on the wire, and every output has the same figures."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import needs
import wiretale
from checkout import Run
from dropping_path import PORT, RECEIVER, SENDER, DroppingPath, NamespacePath, made, missing
from talk import Talk
from wiretale.analyzer.findings.model import ON_WIRE
from wiretale.reports.html.analyze import segment_sizes
from wiretale.reports.phrases import problem_sums

Row = dict[str, Any]
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
CONTROLS = ("cubic", "reno", "bbr", "dctcp")  # those that the kernel has
POINT = 1.0  # percentage point
MSS = 1448

# --- known super-segments


def lossy(sizes: list[int], again: list[tuple[int, int]], **more: Any) -> Talk:
    """Super-segments of a window, of which some bytes are lost after the capture point and retransmitted after three SACKs."""
    talk = Talk(**more)
    total = sum(sizes)
    for number, size in enumerate(sizes):
        talk.data(30 + number / 10, sum(sizes[:number]), size)
    first, last = again[0][0], again[-1][1]
    talk.ack(50, first)
    for number in range(3):
        talk.ack(50.1 + number / 10, first, (last, last + (number + 1) * MSS))
    for number, (start, end) in enumerate(again):
        talk.data(50.6 + number / 10, start, end - start)
    return talk.ack(70.7, total)


@pytest.fixture
def offloaded(tmp_path: Path) -> Path:
    """200 segments in 10 packets, of which 5 are lost and retransmitted in 2 packets; with the handshake."""
    talk = lossy([20 * MSS] * 10, [(MSS, 4 * MSS), (4 * MSS, 6 * MSS)], packets=list(Talk().open().packets))
    return talk.write(tmp_path)


def sentence(path: Path, code: str) -> str:
    (text,) = [row["sentence"] for row in wiretale.analyze(path).findings.rows() if row["code"] == code]
    return str(text)


def test_every_output_has_the_same_figures(offloaded: Path, wiretale_run: Run) -> None:
    trace = wiretale.analyze(offloaded)
    row = trace.directions.rows()[0]
    assert (row["data_packets"], row["lost_downstream"], row["lost_downstream_bytes"]) == (12, 2, 5 * MSS)
    assert (row["wire_mss"], row["wire_segments"], row["wire_lost_downstream"]) == (MSS, 205, 5)
    assert "lost 5 of 205 data segments (2.44%; 7.24 kB of payload in 2 captured packets)" in sentence(
        offloaded, "lost-downstream"
    )
    assert "5 lost" in wiretale_run("analyze", offloaded, "--all").stdout
    assert sum(trace.series.column("lost")) == 5
    assert segment_sizes(trace, [0]) == {0: MSS}  # with which the report counts the losses of an event
    assert problem_sums(trace)[0] == ("lost", "", {0: 5})


def test_diff_counts_as_on_the_wire(offloaded: Path, wiretale_run: Run) -> None:
    done = wiretale_run("diff", offloaded, offloaded, "--fail-if", "lost_downstream>4", "--json")
    assert '"lost_downstream"' in done.stdout and re.search(r'"(?:before|a)": 5\b', done.stdout), done.stdout


def test_unknown_segments_are_said_in_bytes(tmp_path: Path) -> None:
    path = lossy([8001, 7003, 9005, 6011], [(8001, 15004)]).write(tmp_path)
    row = wiretale.analyze(path).directions.rows()[0]
    assert row["wire_mss"] is row["wire_segments"] is row["wire_lost_downstream"] is None
    assert "lost 7 kB of 37 kB of payload (18.9%; 1 captured packet)" in sentence(path, "lost-downstream")


def test_captures_without_super_segments_count_as_before(samples: Path) -> None:
    for row in wiretale.analyze(samples / "tcp_losses.pcap").directions.rows():
        for name in ("retransmissions", "spurious_retransmissions", "lost_upstream", "lost_downstream"):
            assert row[ON_WIRE[name]] == row[name]
        assert row["wire_segments"] == row["data_packets"]


# --- the same traffic captured with and without offloads


class OffloadedPath(DroppingPath):
    """A sender with offloads; a host that splits its super-segments; one that drops; a receiver that merges."""

    def __init__(self) -> None:
        NamespacePath.__init__(self, "os", "oh", "or", "od")
        self.sender, self.splitter, self.router, self.receiver = self.names

    def make(self) -> None:
        NamespacePath.make(self)
        self.connect((self.sender, "path", SENDER), (self.splitter, "left", "10.213.1.254"))
        self.connect((self.splitter, "right", "10.213.3.1"), (self.router, "left", "10.213.3.254"))
        self.connect((self.router, "right", "10.213.2.254"), (self.receiver, "path", RECEIVER))
        for name, target, gateway in (
            (self.sender, "default", "10.213.1.254"),
            (self.splitter, "10.213.2.0/24", "10.213.3.254"),
            (self.router, "10.213.1.0/24", "10.213.3.1"),
            (self.receiver, "default", "10.213.2.254"),
        ):
            self.route(name, target, gateway)
        for name, line in (
            (self.sender, "ethtool -K path tx on tso on gso on"),
            (self.receiver, "ethtool -K path gro on"),
            (self.router, "tc qdisc add dev right root handle 1: htb default 10"),
            (self.router, "tc class add dev right parent 1: classid 1:10 htb rate 200mbit burst 32k"),
        ):
            self.run(name, *line.split())

    @contextlib.contextmanager
    def capturing_all(self, folder: Path) -> Iterator[dict[str, Path]]:
        """Captures with and without offloads, before and behind the loss."""
        points = {
            "sender": (self.sender, "path"),
            "before": (self.router, "left"),
            "behind": (self.router, "right"),
            "receiver": (self.receiver, "path"),
        }
        files = {name: folder / f"{name}.pcap" for name in points}
        with contextlib.ExitStack() as stack:
            for point, (name, link) in points.items():
                stack.enter_context(self.capture(name, link, files[point]))
            yield files


@pytest.fixture(scope="module")
def offloads() -> Iterator[OffloadedPath]:
    needs.skip_without(missing())
    with made(OffloadedPath()) as path:
        yield path


def share(row: Row, place: str) -> float:
    """Percentage of the segments on the wire that were lost."""
    return float(100 * row[f"wire_lost_{place}"] / row["wire_segments"])


def data_row(file: Path) -> Row:
    """The direction with the data, not that of iperf3's control connection."""
    row: Row = max(wiretale.analyze(file).directions.rows(), key=lambda row: row["payload_bytes"])
    return row


@pytest.mark.xdist_group("counted")
@pytest.mark.parametrize(
    ("control", "mss", "mille"),
    [*((name, MSS, 20) for name in CONTROLS), ("cubic", 524, 20), ("cubic", MSS, 100)],
)
def test_losses_agree_with_a_capture_without_offloads(
    offloads: OffloadedPath, tmp_path: Path, control: str, mss: int, mille: int
) -> None:
    if control not in AVAILABLE.read_text().split():
        pytest.skip(f"this kernel has no {control}")
    offloads.drop(offloads.router, f"tcp dport {PORT} meta length > 400", mille)
    client = f"iperf3 -c {RECEIVER} -p {PORT} -n 6M -C {control}".split()
    with offloads.capturing_all(tmp_path) as files:
        options = [] if mss == MSS else ["-M", str(mss + 12)]
        offloads.transfer(f"iperf3 -s -1 -B {RECEIVER} -p {PORT}".split(), [*client, *options])
    sender, before, behind, receiver = (data_row(file) for file in files.values())
    assert sender["segment_max"] >= 2 * mss
    assert before["segment_max"] == mss == sender["wire_mss"] == before["wire_mss"]
    assert before["wire_segments"] == before["data_packets"]
    assert sender["wire_segments"] == pytest.approx(before["wire_segments"], rel=0.01)
    assert share(sender, "downstream") == pytest.approx(share(before, "downstream"), abs=POINT)
    dropped = 100 * offloads.dropped_by(offloads.router) / before["data_packets"]
    assert share(sender, "downstream") == pytest.approx(dropped, abs=POINT)
    assert share(receiver, "upstream") == pytest.approx(share(behind, "upstream"), abs=POINT)
