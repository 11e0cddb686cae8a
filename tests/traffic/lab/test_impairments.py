# SPDX-License-Identifier: Apache-2.0
"""Each thing that a link can do to packets, in a lab: in the truth and in both captures alike."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lab_bench import NEEDED, Sent, frames, send_through, truth_rows
from processes import small_disk
from scenario_wire import checksum
from wiretale.analyzer.errors import OutputError
from wiretale.traffic.lab.capture import captures
from wiretale.traffic.lab.hosts import ADDRESSES
from wiretale.traffic.lab.lifecycle import lab_for_run
from wiretale.traffic.lab.link import write_truth
from wiretale.traffic.lab.profile import make_profile
from wiretale.traffic.lab.state import known_labs

pytestmark = [pytest.mark.xdist_group("live"), NEEDED]
HEADERS = 28
ETHERNET = 14
Send = Callable[..., Sent]


def lost_as(sent: Sent, fate: str) -> set[int]:
    """Numbers of the packets with that fate; they are missing behind the link, and no others are."""
    lost = {row["index"] for row in sent.truth if row["fate"] == fate}
    assert {row["index"] for row in sent.truth if row["fate"] == "delivered"} == set(sent_indexes(sent)) - lost
    assert {number + 1 for number in set(sent.numbers_before) - set(sent.numbers_after)} == lost
    return lost


def sent_indexes(sent: Sent) -> list[int]:
    """Numbers of all packets."""
    return [row["index"] for row in sent.truth]


def test_losses_in_bursts_are_those_of_the_truth(send: Send) -> None:
    sent = send("gilbert=5%,40%", count=600, gap=0)
    lost = lost_as(sent, "gilbert")
    assert 25 < len(lost) < 150  # 1 in 9
    assert any(index + 1 in lost for index in lost)


def test_every_tenth_packet_is_lost(send: Send) -> None:
    assert lost_as(send("periodic=10"), "periodic") == set(range(10, 101, 10))


@pytest.mark.parametrize(("setting", "fate"), [("loss-span=100ms-200ms", "span"), ("outage=100ms-200ms", "outage")])
def test_packets_in_a_span_of_time_are_dropped(send: Send, setting: str, fate: str) -> None:
    sent = send(setting, count=150, gap=0.002)
    lost, origin = lost_as(sent, fate), sent.truth[0]["in_ns"]
    inside = {row["index"] for row in sent.truth if 100e6 <= row["in_ns"] - origin < 200e6}
    assert lost and len(lost ^ inside) <= 2  # two clocks are read one after the other


def test_a_stalled_link_lets_nothing_out_and_loses_nothing(send: Send) -> None:
    sent = send("stall=50ms-150ms", count=100, gap=0.002)
    origin = sent.truth[0]["in_ns"]
    assert not lost_as(sent, "queue")
    assert not any(51e6 < row["due_ns"] - origin < 149e6 for row in sent.truth)


@pytest.mark.parametrize("reorders", ["no", "yes"])
def test_jitter_reorders_only_if_asked_to(send: Send, reorders: str) -> None:
    sent = send(f"delay=20ms jitter=10ms jitter-reorders={reorders}", count=300, gap=0.001)
    assert sorted(sent.numbers_after) == sent.numbers_before == list(range(300))
    late = sum(second < first for first, second in pairwise(sent.numbers_after))
    assert late > 30 if reorders == "yes" else late == 0
    ideal = [(row["due_ns"] - row["in_ns"]) / 1e6 for row in sent.truth]
    assert 9.9 < min(ideal) < 20 and 26 < max(ideal) < 30.1  # kept in order, few have the least
    by_due = [row["block_sequence"] for row in sorted(sent.truth, key=lambda row: (row["due_ns"], row["index"]))]
    assert reorders == "yes" or by_due == list(range(300))


def test_packets_leave_at_the_opportunities_of_a_trace(send: Send, tmp_path: Path) -> None:
    """As mahimahi's: 1500 bytes at each line, shared by small packets, over and over from the first packet on."""
    (tmp_path / "cell.trace").write_text("50\n100\n100\n200\n")
    sent = send("trace=cell.trace queue=1000", size=750 - HEADERS, count=40, gap=0)
    origin = sent.truth[0]["in_ns"]
    times = [ms + 200 * turn for turn in range(5) for ms in (50, 100, 100, 200)]
    for row, ms in zip(sent.truth, (time for time in times for _ in "ab"), strict=True):
        assert (row["due_ns"] - origin) / 1e6 == pytest.approx(ms, abs=0.5)
    assert sent.numbers_after == list(range(40))


def test_red_drops_early_and_codel_drops_old_packets(send: Send) -> None:
    red = send("rate=2Mbit queue=40 discipline=red red-weight=0.1", size=1000 - HEADERS, count=600, gap=0.002)
    assert len(lost_as(red, "red")) > 20  # a sender that a busy machine holds up causes fewer
    codel = send("rate=2Mbit queue=400 discipline=codel", size=1000 - HEADERS, count=400, gap=0.002)
    dropped = lost_as(codel, "codel")
    assert 3 < len(dropped) < 60
    assert min(dropped) > 20  # nothing in the first interval


def has_right_checksums(frame: bytes) -> bool:
    """Of IPv4 and of UDP."""
    ip = frame[ETHERNET:]
    pseudo = ip[12:20] + bytes([0, ip[9]]) + ip[24:26]
    return len(ip) == int.from_bytes(ip[2:4], "big") and not checksum(ip[:20]) and not checksum(pseudo + ip[20:])


def test_a_flipped_bit_arrives_with_a_wrong_checksum(send: Send) -> None:
    sent = send("corrupt=30%", size=200, count=100)
    flipped = [row["corrupted_bits"] > 0 for row in sent.truth]
    length = len(sent.truth) and ETHERNET + HEADERS + 200
    before = [frame for frame in sent.before if len(frame) == length]
    after = [frame for frame in sent.after if len(frame) == length]
    assert 15 < sum(flipped) < 50
    assert all(map(has_right_checksums, before)) and len(before) == len(after) == 100
    assert [not has_right_checksums(frame) for frame in after] == flipped


TRANSFER = """
import socket, sys, threading
server = sys.argv[1] == "serve"
family = socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET
if server:
    with socket.create_server((sys.argv[2], 5006), family=family) as listening:
        print("ready", flush=True)
        peer, _ = listening.accept()
        total = 0
        while data := peer.recv(65536):
            total += len(data)
        peer.sendall(str(total).encode())
        peer.close()
else:
    with socket.create_connection((sys.argv[2], 5006), timeout=20) as peer:
        peer.sendall(bytes(200_000))
        peer.shutdown(socket.SHUT_WR)
        sys.exit(peer.recv(100) != b"200000")
"""


def transfer(folder: Path, settings: str, address: str) -> list[dict[str, Any]]:
    """200 kB by TCP through a link with those settings; the truth."""
    profile = make_profile("trial", settings, "trial", folder)
    with lab_for_run(profile, folder) as lab, captures(lab, folder):
        words = [sys.executable, "-c", TRANSFER]
        serving = lab.inside("receiver", *words, "serve", address)
        with subprocess.Popen(serving, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout and server.stdout.readline() == "ready\n"
                client = lab.inside("sender", *words, "send", address)
                assert not subprocess.run(client, timeout=40).returncode
            finally:
                server.kill()
    write_truth(folder, folder / "truth.parquet")
    return truth_rows(folder / "truth.parquet", "true")


@pytest.mark.parametrize("family", [0, 1])
def test_tcp_finds_the_mtu_of_the_path_by_the_links_answer(tmp_path: Path, family: int) -> None:
    if family and not Path("/proc/sys/net/ipv6").exists():
        pytest.skip("this kernel has no IPv6")
    rows = transfer(tmp_path, '[both]\ndelay = "5ms"\n[forward]\nmtu = 1300\n', ADDRESSES["receiver"][family])
    large = [row["ip_bytes"] for row in rows if row["fate"] == "mtu"]
    data = [row for row in rows if row["fate"] == "delivered" and row["direction"] == 0]
    full = [row["ip_bytes"] for row in data if row["payload_bytes"] > 1000]
    assert set(large) == {1500}
    assert max(full) == 1300
    assert full.count(1300) >= max(100, len(full) - 3)  # segments split for the MTU leave rests
    assert {row["direction"] for row in rows if row["fate"] == "made"} == {1}
    assert sum(row["payload_bytes"] for row in data) >= 200_000


def test_tcp_escapes_a_black_hole_by_probing(tmp_path: Path) -> None:
    settings = (
        '[both]\ndelay = "2ms"\n[forward]\nmtu = 1300\nblack-hole = true\n[sysctl]\n"net.ipv4.tcp_mtu_probing" = 1\n'
        '"net.ipv4.tcp_retries1" = 1\n'  # timeouts before it probes
    )
    rows = transfer(tmp_path, settings, ADDRESSES["receiver"][0])
    assert not [row for row in rows if row["fate"] == "made"]
    assert [row for row in rows if row["fate"] == "mtu"]
    delivered = [row["ip_bytes"] for row in rows if row["fate"] == "delivered" and row["direction"] == 0]
    assert max(delivered) <= 1300 and sum(delivered) > 200_000


def key_of(frame: bytes) -> tuple[str, str, int, int, int]:
    """The fields that identify a TCP packet: addresses, IP ID, sequence, size."""
    ip = frame[ETHERNET:]
    source, destination = (".".join(map(str, ip[at : at + 4])) for at in (12, 16))
    number = int.from_bytes(ip[24:28], "big")
    return source, destination, int.from_bytes(ip[4:6], "big"), number, int.from_bytes(ip[2:4], "big")


KEY = ("source", "destination", "ip_id", "tcp_sequence", "ip_bytes")


def keys_of(rows: list[dict[str, Any]], count: str = "") -> Counter[tuple[Any, ...]]:
    """How often each packet was, as its row says."""
    return Counter(tuple(row[name] for name in KEY) for row in rows for _ in range(row[count] if count else 1))


def captured(folder: Path, source: str) -> Counter[tuple[Any, ...]]:
    """How often each packet of a host was captured."""
    return Counter(key for key in map(key_of, frames(folder)) if key[0] == source)


def test_each_packet_of_the_truth_is_a_frame_of_the_captures_and_the_other_way_round(tmp_path: Path) -> None:
    settings = '[both]\ndelay = "5ms"\nloss = "2%"\nduplicate = "3%"\nreorder = "2%"\n'
    rows = transfer(tmp_path, settings, ADDRESSES["receiver"][0])
    for direction, (source, _) in enumerate(ADDRESSES.values()):
        one_way = [row for row in rows if row["direction"] == direction]
        entry, exit_ = ("before", "after") if direction == 0 else ("after", "before")
        assert captured(tmp_path / entry, source) == keys_of(one_way)
        assert captured(tmp_path / exit_, source) == keys_of(one_way, "copies")
    assert {row["fate"] for row in rows} == {"delivered", "random"}
    assert max(row["copies"] for row in rows) == 2


def test_a_full_disk_is_named_and_leaves_no_host(tmp_path: Path) -> None:
    with small_disk(tmp_path, "size=64k"):
        with pytest.raises(OutputError, match=r"truth\.bin: not all of it could be written: No space left"):
            send_through(tmp_path, "delay=1ms", count=2000, gap=0)
        assert known_labs() == []
