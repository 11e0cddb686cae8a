# SPDX-License-Identifier: Apache-2.0
"""iperf3 and iperf2 over a real path that drops and reorders: wiretale's counts against the programs' and the kernel's."""

from __future__ import annotations

import json
import os
import shutil
import struct
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from scapy.utils import RawPcapReader

import wiretale
from dropping_path import PORT, RECEIVER, DroppingPath
from numbered_payloads import jitter_of

pytestmark = pytest.mark.xdist_group("counted")

Row = dict[str, Any]
# Neither iperf3's first packet nor iperf2's last ones, which have negative numbers.
UDP_DATA, UDP_END = "udp length > 200 @th,64,1 0", "udp length > 200 @th,64,1 1"
TCP_DATA = f"tcp dport {PORT} meta length > 400"  # not iperf3's control connection
UDP_HEADERS, UDP_PROTOCOL = 14 + 20 + 8, 14 + 9
# The server takes the time when it has been woken, the capture when the packet came. That differs by some µs; the path
# delays packets by ms, of which 10 % are more.
JITTER_PART, JITTER_NS = 0.1, 20_000
TURNS = 12


def keep(folder: Path, *outputs: str) -> None:
    """Keeps the files of a failed test if WIRETALE_KEEP names a folder."""
    if target := os.environ.get("WIRETALE_KEEP"):
        (folder / "said.txt").write_text("\n".join(outputs))
        shutil.copytree(folder, Path(target, folder.name), dirs_exist_ok=True)


# --- UDP


def numbered(trace: wiretale.Trace, application: str) -> Row:
    """The one direction with numbered packets."""
    row: Row
    (row,) = [row for row in trace.directions.rows() if row["blocks"] is not None]
    flow = trace.flows.rows()[row["flow"]]
    assert (flow["application"], flow["destination"], flow["destination_port"]) == (application, RECEIVER, int(PORT))
    assert (row["direction"], row["blocks_duplicate"], row["blocks_late"], row["block_restarts"]) == (0, 0, 0, 0)
    return row


class Datagram(NamedTuple):
    """As the receiver's capture has it, times in µs."""

    number: int
    sent: int
    came: int


def datagrams(file: Path, number: slice, sent: int) -> list[Datagram]:
    """In the order in which they came, read without wiretale: where the number is, and the time of sending."""
    received = []
    with RawPcapReader(str(file)) as reader:
        for data, meta in reader:
            words = data[UDP_HEADERS:]
            if data[UDP_PROTOCOL] == 17 and len(words) > 60:
                seconds, microseconds = struct.unpack_from(">II", words, sent)
                which = int.from_bytes(words[number], "big", signed=True)
                received.append(Datagram(which, seconds * 10**6 + microseconds, meta.sec * 10**6 + meta.usec))
    return [datagram for datagram in received if datagram.sent]  # not the answer of iperf2's server


def jitter_ns(came: list[Datagram]) -> float:
    return 1000 * jitter_of([datagram.came - datagram.sent for datagram in came])


def assert_lost(row: Row, came: list[Datagram], sent: int, dropped: int) -> None:
    """Every dropped packet is found, except those before the first and after the last that arrived."""
    numbers = [datagram.number for datagram in came]
    outside = (min(numbers) - 1) + (sent - max(numbers))
    assert (row["blocks"], row["blocks_lost"] + outside) == (len(came), dropped)
    assert sent == len(came) + dropped


def end_of_test(trace: wiretale.Trace) -> int:
    """Time at which the server learned that the test is over: the first byte that came alone on the control connection."""
    control = next(row["flow"] for row in trace.flows.rows() if row["protocol"] == "tcp")
    rows = trace.packets([control]).rows()
    time_ns: int = next(row["time_ns"] for row in rows if row["direction"] == 0 and row["payload_bytes"] == 1)
    return time_ns


def until_woken_in_time(folder: Path, jitters: Callable[[Path], tuple[float, float]]) -> None:
    """The capture's jitter and the program's, in ns: alike in a transfer in which others do not hold the program up."""
    for turn in range(TURNS):
        (folder / str(turn)).mkdir()
        captured, reported = jitters(folder / str(turn))
        if captured == pytest.approx(reported, rel=JITTER_PART, abs=JITTER_NS):
            return
    assert captured == pytest.approx(reported, rel=JITTER_PART, abs=JITTER_NS)


@pytest.mark.parametrize("bits", [32, 64])
def test_iperf3_over_udp(path: DroppingPath, tmp_path: Path, bits: int) -> None:
    until_woken_in_time(tmp_path, lambda folder: iperf3_over_udp(path, folder, bits))


def iperf3_over_udp(path: DroppingPath, tmp_path: Path, bits: int) -> tuple[float, float]:
    file = tmp_path / "receiver.pcap"
    path.disturb(UDP_DATA, dropped=30, slow=40, last=f"tcp dport {PORT}")
    # In bursts every 30 ms: the last is over before the test is.
    client = f"iperf3 -c {RECEIVER} -p {PORT} -u -b 8M -l 1000 -t 2 --pacing-timer 30000 -J".split()
    with path.capturing(path.receiver, file):
        server_output, client_output = path.transfer(
            f"iperf3 -s -1 -B {RECEIVER} -p {PORT} -J".split(),
            [*client, *(["--udp-counters-64bit"] if bits == 64 else [])],
        )
    keep(tmp_path, server_output, client_output)
    server, sent = (
        json.loads(server_output)["end"]["streams"][0]["udp"],
        json.loads(client_output)["end"]["sum"]["packets"],
    )
    came = datagrams(file, slice(8, 8 + bits // 8), 0)
    trace = wiretale.analyze(file)
    assert_lost(numbered(trace, "iperf3"), came, sent, path.dropped())
    # The server stops reading once the client has ended the test.
    end = end_of_test(trace)
    counted = [datagram for datagram in came if datagram.came * 1000 < end]
    row = numbered(wiretale.analyze(file, end=end), "iperf3")
    assert row["blocks"] == len(counted) == server["packets"] - server["lost_packets"]
    assert row["blocks_lost"] + min(came).number - 1 == server["lost_packets"]
    assert row["blocks_out_of_order"] == server["out_of_order"] > 0
    assert row["jitter_ns"] == pytest.approx(jitter_ns(counted), abs=1)
    return row["jitter_ns"], server["jitter_ms"] * 1e6


def test_iperf2_over_udp(path: DroppingPath, tmp_path: Path) -> None:
    until_woken_in_time(tmp_path, lambda folder: iperf2_over_udp(path, folder))


def iperf2_over_udp(path: DroppingPath, tmp_path: Path) -> tuple[float, float]:
    file = tmp_path / "receiver.pcap"
    path.disturb(UDP_DATA, dropped=30, slow=100, last=UDP_END)
    with path.capturing(path.receiver, file):
        server_output, client_output = path.transfer(
            f"iperf -s -u -P 1 -B {RECEIVER} -p {PORT} -y C".split(),
            f"iperf -c {RECEIVER} -p {PORT} -u -b 8M -l 1000 -t 2".split(),
        )
    keep(tmp_path, server_output, client_output)
    jitter_ms, lost, total, _, out_of_order = map(float, server_output.strip().split(",")[-5:])
    came = datagrams(file, slice(0, 4), 4)
    data = [datagram for datagram in came if datagram.number > 0]
    row = numbered(wiretale.analyze(file), "iperf2")
    # The server takes the first of the negative numbers, which mark the end, for one more datagram.
    assert_lost(row, data, int(total) - 1, int(lost))
    assert row["blocks_out_of_order"] == out_of_order > 10
    assert row["jitter_ns"] == pytest.approx(jitter_ns(data), abs=1)
    return jitter_ns(came[: len(data) + 1]), jitter_ms * 1e6


# --- TCP


def data_flow(trace: wiretale.Trace) -> int:
    """The connection with the data; the other one is for control."""
    row = max(trace.directions.rows(), key=lambda row: row["payload_bytes"])
    assert row["direction"] == 0
    return int(row["flow"])


def positions(trace: wiretale.Trace) -> list[int]:
    """Of the segments in the stream, in the order in which they passed here."""
    rows = trace.packets([data_flow(trace)]).rows()
    return [row["sequence"] for row in rows if row["direction"] == 0 and row["payload_bytes"]]


def losses_shown(passed: list[int], lost: Collection[int]) -> int:
    """Number of lost segments that a capture beside the receiver can find by their retransmissions.

    That requires a gap: the end of a burst that is lost, and retransmitted before later data, opens no gap.
    """
    gaps: set[int] = set()
    highest = -1
    for position in passed:
        if position in lost and position < highest:
            gaps.add(position)
        highest = max(highest, position)
    return len(gaps)


def resent_until(trace: wiretale.Trace, time_ns: int) -> int:
    """Number of data segments that were retransmitted."""
    rows = trace.events.rows()
    again = [row for row in rows if row["kind"].endswith("retransmission") and row["time_ns"] <= time_ns]
    return sum(row["flow"] == data_flow(trace) for row in again)


@pytest.mark.parametrize("control", ["reno", "cubic"])
def test_iperf3_over_tcp(path: DroppingPath, tmp_path: Path, control: str) -> None:
    if control not in Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split():
        pytest.skip(f"this kernel has no {control}")
    path.disturb(TCP_DATA, dropped=10)
    before = Counter({counter: path.tcp_count(counter) for counter in ("RetransSegs", "TCPTimeouts")})
    with path.capturing_both(tmp_path) as files:
        server_output, client_output = path.transfer(
            f"iperf3 -s -1 -B {RECEIVER} -p {PORT} -J".split(),
            f"iperf3 -c {RECEIVER} -p {PORT} -n 8M -w 64K -C {control} -J".split(),
        )
    keep(tmp_path, server_output, client_output)
    kernel = {counter: path.tcp_count(counter) - before[counter] for counter in before}
    sender, receiver = map(wiretale.analyze, files)
    there, here = Counter(positions(sender)), Counter(positions(receiver))
    lost = there - here
    assert lost.total() == path.dropped() > 20  # the captures have it all
    row = sender.directions.rows()[2 * data_flow(sender)]
    # The last ones may be dropped for good, when the server closes.
    again = sum(min(times, there[position] - 1) for position, times in lost.items())
    assert row["lost_downstream"] == again and row["lost_upstream"] == row["out_of_order"] == row["ambiguous"] == 0
    assert sum(row["retransmissions"] for row in sender.directions.rows()[::2]) == kernel["RetransSegs"]
    assert row["timeouts"] == kernel["TCPTimeouts"]
    # iperf3 asks its kernel just before it says that the test is over, when the last segments are still under way.
    until = resent_until(sender, end_of_test(sender))
    assert until - json.loads(client_output)["end"]["sum_sent"]["retransmits"] in (0, 1)
    # The receiver's side shows one loss per segment: the loss of a retransmission is invisible there.
    row = receiver.directions.rows()[2 * data_flow(receiver)]
    assert row["lost_upstream"] == losses_shown(positions(receiver), lost)
    assert row["lost_downstream"] == 0  # a machine under load may reorder on the way here, between its processors


@pytest.mark.parametrize("window", ["64K", "4M"])
def test_a_router_that_captures_all_its_interfaces(path: DroppingPath, tmp_path: Path, window: str) -> None:
    """Its queue keeps each packet up to 100 ms between both interfaces. A dropped packet passes one of them."""
    file = tmp_path / "router.pcap"
    path.disturb(TCP_DATA, dropped=5)
    before = path.tcp_count("RetransSegs")
    with path.capture(path.router, "any", file):
        server_output, client_output = path.transfer(
            f"iperf3 -s -1 -B {RECEIVER} -p {PORT} -J".split(),
            f"iperf3 -c {RECEIVER} -p {PORT} -n 8M -w {window} -J".split(),
        )
    keep(tmp_path, server_output, client_output)
    trace = wiretale.analyze(file)
    total = trace.directions.total
    assert total("retransmissions") == path.tcp_count("RetransSegs") - before
    # Each packet is stored twice, unless the router dropped it.
    assert 2 * (total("packets") - total("mirror_duplicates")) == total("packets") + path.dropped()
    assert total("network_duplicates") == total("unknown_duplicates") == total("lost_upstream") == 0
    (row,) = [row for row in trace.findings.rows() if row["code"] == "mirror-duplicates"]
    assert "on both sides of a router, with TTL 64 and with TTL 63" in row["sentence"]
