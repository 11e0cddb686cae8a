# SPDX-License-Identifier: Apache-2.0
"""The anomalies of docs/measured/studies.md over drawn paths with known truth: the first finding names cause, place and remedy.

Codes and words are those of `make studies`, which reproduces the same anomalies with real hosts."""

from __future__ import annotations

import random
import struct
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import duckdb
import pytest

import needs
import wiretale
from capture_points import log
from lab_bench import NEEDED
from plain_wire import ACK, MSS, PSH, Connection, Wire, block, sack
from traffic_ends import undisturbed
from wiretale.analyzer.findings.model import Finding
from wiretale.analyzer.findings.registry import Ranked, in_order, with_causes
from wiretale.analyzer.findings.shared.sharing import FAIR
from wiretale.cli import main

needs.benchmarks()

from studies.anomalies import ANOMALIES, compared_answer, judge, run_anomaly, top_finding

RUN = 7  # of the numbered packets
KNOWN = {anomaly.name: anomaly for anomaly in ANOMALIES}
HEADERS, FRAMING = 28, 38  # bytes of IPv4 and UDP; of Ethernet with its gap
LINE_MS = (MSS + 40 + FRAMING) * 8 / 100e3  # of a full segment at 100 Mbit/s
Offer = tuple[float, int, int]  # ms, number, bytes of the IP packet


def offered(count: int, size: int, mbit: float) -> Iterator[Offer]:
    """IP packets of this size at this rate."""
    return ((i * size * 8 / (mbit * 1000), i, size) for i in range(count))


def through(offers: Iterator[Offer], mbit: float, room: float) -> Iterator[Offer]:
    """The packets that leave a link of this rate with a queue of `room` bytes, when they have left it."""
    free = 0.0
    for now, number, size in offers:
        if max(free - now, 0.0) * mbit * 125 + size <= room:
            free = max(free, now) + size * 8 / (mbit * 1000)
            yield free, number, size


def blocks(packets: Iterator[Offer], sent: Callable[[int], float], port: int = 4000) -> Wire:
    """A capture of numbered packets; `sent` returns when each left its sender."""
    wire = Wire()
    for now, number, size in packets:
        wire.udp(now, block(number, size - HEADERS, sent_ms=sent(number)), port)
    return wire


def above_path(count: int, size: int, mbit: float, link: float, room: float) -> Wire:
    gap = size * 8 / (mbit * 1000)
    return blocks(through(offered(count, size, mbit), link, room), lambda i: i * gap)


def at_line_rate(count: int, size: int) -> Wire:
    gap = (size + FRAMING) * 8 / 100e3
    return blocks(((i * gap, i, size) for i in range(count)), lambda i: i * gap)


def datagrams(count: int, size: int, gap: float, arrives: Callable[[float, int], float | None]) -> Wire:
    """Numbered datagrams in fragments; `arrives` returns when a fragment is captured, None if it is lost."""
    wire = Wire()
    for number in range(count):
        payload = block(number, size, sent_ms=number * gap)
        datagram = struct.pack("!HHHH", 4000, 5000, 8 + size, 0) + payload
        for start in range(0, len(datagram), 1480):
            part, now = datagram[start : start + 1480], number * gap + start / 1480 * LINE_MS
            at = arrives(now, len(part) + 20)
            if at is None:
                continue
            wire.ip(at, "10.0.0.1", "10.0.0.2", 17, part)
            ms, frame = wire.packets[-1]
            flags = start // 8 | (0x2000 if start + 1480 < len(datagram) else 0)
            wire.packets[-1] = ms, frame[:18] + struct.pack("!HH", number + 1, flags) + frame[22:]
    return wire


def overflowing(mbit: float, room: float) -> Callable[[float, int], float | None]:
    """A queue that drops what does not fit."""
    free = 0.0

    def arrive(now: float, size: int) -> float | None:
        nonlocal free
        if max(free - now, 0.0) * mbit * 125 + size > room:
            return None
        free = max(free, now) + size * 8 / (mbit * 1000)
        return free

    return arrive


def lossy(share: float) -> Callable[[float, int], float | None]:
    """A link that loses packets at random."""
    dice = random.Random(6)
    return lambda now, size: None if dice.random() < share else now + 1


def late_by_three(count: int) -> Wire:
    """Every 370th packet leaves after the three that followed it."""
    gap = 1028 * 8 / 30e3
    late = set(range(100, count, 370))
    return blocks(((i * gap + (3.5 * gap if i in late else 0), i, 1028) for i in range(count)), lambda i: i * gap)


def bulk(
    wire: Wire,
    begin: float,
    end: float,
    gap: Callable[[float], float],
    port: int = 40000,
    trip: float = 4.0,
    wait: float = 0.0,
) -> None:
    """A TCP transfer captured near its receiver, with a segment every `gap(ms)` from `wait` ms after the handshake."""
    talk = Connection(wire, port, server_port=5001).open(begin, rtt=trip)
    now, at = begin + trip + wait, 0
    while now < end:
        now += gap(now)
        talk.data(now, at)
        at += MSS
        talk.ack(now + 0.05, at)


def control_connection(wire: Wire, *turns: tuple[float, float]) -> None:
    """Requests of 100 bytes at times in ms, and responses after waits in ms."""
    control = Connection(wire, 39_000, server_port=5001).open(0, rtt=4)
    for start, wait in turns:
        control.send(start, 0, control.received[1], 100, PSH | ACK)
        control.received[1] += 100
        control.send(start + wait, 1, control.received[0], 100, PSH | ACK)
        control.received[0] += 100
        control.send(start + wait + 1, 0, control.received[1])


def wire_tcp() -> Wire:
    """With a control connection over which the server reports each second."""
    wire = Wire()
    bulk(wire, 0, 2000, lambda now: LINE_MS)
    control_connection(wire, (10.0, 1000.0))
    return wire


def mixed() -> Wire:
    """TCP with what five UDP transfers of 10 Mbit/s leave."""
    wire = Wire()
    udp = 1470 * 8 / 10e3
    gap_ms = LINE_MS / (0.99 - 5 * (1470 + HEADERS + FRAMING) * 8 / udp / 100e3)
    bulk(wire, 0, 2000, lambda now: gap_ms)
    for i in range(int(2000 / udp)):
        for sender in range(5):
            now = (i + sender / 5) * udp
            wire.udp(now, block(i, 1470, sent_ms=now), 4001 + sender)
    return wire


def staggered() -> Wire:
    """Three transfers, the later ones faster, and a control connection whose answer waits for their end."""
    wire = Wire()
    for number, share in enumerate((0.07, 0.15, 0.77)):
        paced = partial(lambda gap, now: gap, LINE_MS / share)
        bulk(wire, 1000.0 * number, 6000, paced, 40001 + number)
    control_connection(wire, (10.0, 1.0), (4500.0, 1450.0))
    return wire


def losing_wan() -> Wire:
    """At the sender: flights over an RTT of 120 ms, three segments of every fourth one are lost behind the capture point."""
    talk = Connection(Wire(), server_port=5001).open(0, rtt=120)
    now, at, window = 130.0, 0, 64
    for flight in range(40):
        lost = [at + k * MSS for k in (5, 6, 20)] if flight % 4 == 3 else []
        for k in range(window):
            talk.data(now + k * 1.2, at + k * MSS)
        base = now + 120
        if not lost:
            for k in range(0, window, 2):
                talk.ack(base + (k + 1) * 1.2, at + (k + 2) * MSS, 4096)
            now, at, window = base + 1.3, at + window * MSS, window + 8
            continue
        for k in range(5):
            talk.ack(base + k * 1.2, at + (k + 1) * MSS, 4096)
        first, second, third = lost
        for k in range(7, window):
            there = [(at + 7 * MSS, at + min(k + 1, 20) * MSS)]
            if k > 20:
                there.insert(0, (third + MSS, at + (k + 1) * MSS))
            if k != 20:
                talk.ack(base + k * 1.2, first, 4096, sack(*there))
        for k, missing in enumerate(lost):
            talk.data(base + 13 + k * 1.2 + (15 if missing == third else 0), missing)
        again = base + 133
        talk.ack(again, second, 4096, sack((at + 7 * MSS, third), (third + MSS, at + window * MSS)))
        talk.ack(again + 1.2, third, 4096, sack((third + MSS, at + window * MSS)))
        talk.ack(again + 17.4, at + window * MSS, 4096)
        now, at, window = again + 18, at + window * MSS, 48
    return talk.wire


def short_and_far() -> Wire:
    """At the sender: 1 MB over an RTT of 40 ms is over in six flights, each twice as large as the one before."""
    talk = Connection(Wire(), server_port=5001).open(0, rtt=40)
    now, at, flight = 41.0, 0, 10
    while at < 720 * MSS:
        for k in range(flight):
            talk.data(now + k * LINE_MS, at + k * MSS)
        for k in range(0, flight, 2):
            talk.ack(now + 40 + (k + 1) * LINE_MS, at + (k + 2) * MSS, 8192)
        now, at, flight = now + 40 + 2 * LINE_MS, at + flight * MSS, 2 * flight
    return talk.wire


# Each makes the capture of its anomaly; rates, sizes and queues are those of the study's profile.
PATHS: dict[str, Callable[[], Wire]] = {
    "narrow": lambda: above_path(950, 1000, 1.9, 1, 20_000),
    "wlan": lambda: above_path(6378, 1498, 25, 6.5, 150_000),
    "home": lambda: above_path(40_000, 1052, 93, 2, 230_000),
    "wire": lambda: at_line_rate(6_000, 1470 + HEADERS),
    "wire-tcp": wire_tcp,
    "small": lambda: at_line_rate(25_000, 64 + HEADERS),
    "wlan-large": lambda: datagrams(150, 60_000, 12, overflowing(24, 60_000)),
    "wan-large": lambda: datagrams(100, 20_000, 3.04, overflowing(10, 131_072)),
    "large": lambda: datagrams(1300, 8192, 2.2, lossy(0.01)),
    "order": lambda: late_by_three(7400),
    "mix": mixed,
    "three": staggered,
    "wan-tcp": losing_wan,
    "far-tcp": short_and_far,
}


def test_every_anomaly_has_a_drawn_path() -> None:
    assert set(PATHS) | {"overrun"} == set(KNOWN)


@pytest.mark.parametrize("name", PATHS)
def test_the_first_finding_names_cause_place_and_remedy(name: str, tmp_path: Path) -> None:
    code, text = top_finding(PATHS[name]().write(tmp_path / "drawn.pcap"))
    assert judge(KNOWN[name], code, text.replace("10.0.0.", "10.99.0.")) == "yes", (code, text)


def test_heavy_random_loss_of_fragments_is_not_said_to_be_congestion(tmp_path: Path) -> None:
    wire = datagrams(1300, 8192, 2.2, lossy(0.4))
    rows = {row["code"]: row for row in wiretale.analyze(wire.write(tmp_path / "drawn.pcap")).findings.rows()}
    text = rows["loss-amplified"]["sentence"] + rows["loss-amplified"]["advice"]
    assert "congestion" not in text and "carries" not in text


def test_blocks_that_the_receiver_s_kernel_dropped_are_counted_there(tmp_path: Path) -> None:
    at_line_rate(3000, 1028).write(tmp_path / "after.pcap")
    report = {"test": {"run": RUN}, "sender": {"blocks_sent": 3000}}
    log(tmp_path / "receiver.json", **report, receiver={"blocks_received": 2900, "host_dropped": 100})
    (tmp_path / "after").mkdir()
    (tmp_path / "after.pcap").rename(tmp_path / "after" / "after.pcap")
    code, text = compared_answer(tmp_path)
    assert judge(KNOWN["overrun"], code, text) == "yes", (code, text)
    assert "100 of 3,000 (3.33%) did not arrive" in text


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_the_least_share_costs_the_time_that_an_equal_one_would_save(share: float, tmp_path: Path) -> None:
    """Both transfers last 2 s; of 100 Mbit/s the first has `share`."""
    wire = Wire()
    bulk(wire, 0, 2000, lambda now: LINE_MS / share, 40001)
    bulk(wire, 0, 2000, lambda now: LINE_MS / (1 - share), 40002)
    rows = {row["code"]: row for row in wiretale.analyze(wire.write(tmp_path / "two.pcap")).findings.rows()}
    if share == 0.5:
        assert "unfair-share" not in rows
        return
    row = rows["unfair-share"]
    assert (row["severity"], row["cost_unit"]) == ("warning", "seconds")
    assert row["cost"] == pytest.approx(2.0 * (1 - 0.2 / 0.5), rel=0.02)
    assert f"With an equal share, flow 0 would save {row['cost']:.2f} s of that time." in row["sentence"]


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_the_common_time_begins_with_the_data(share: float, tmp_path: Path) -> None:
    """Both connect at once; the second sends from 2 s, then both for 2 s. In the first 2 s the first has the wire alone."""
    wire = Wire()
    bulk(wire, 0, 4000, lambda now: LINE_MS if now < 2004 else LINE_MS / share, 40001)
    bulk(wire, 0, 4000, lambda now: LINE_MS / (1 - share), 40002, wait=2000)
    rows = {row["code"]: row for row in wiretale.analyze(wire.write(tmp_path / "two.pcap")).findings.rows()}
    assert "an Ethernet of 100 Mbit/s" in rows["wire-full"]["sentence"]
    assert ("unfair-share" in rows) == (share == 0.2)
    if share == 0.2:
        assert "shared 100 Mbit/s on the wire for 2 s unequally" in rows["unfair-share"]["sentence"]


@pytest.mark.parametrize(("seconds", "first"), [(1.81, "lost-downstream"), (0.9, "recovery-limited")])
def test_recovery_follows_the_loss_that_took_most_of_it(seconds: float, first: str) -> None:
    """Recovery from a needless retransmission took the rest."""
    recovery = Finding("recovery-limited", "warning", "flow", 1, 0, "", "", "", impact=0.3, flows=((1, 0),))
    loss = Finding("lost-downstream", "warning", "flow", 1, 0, "", "", "", impact=0.1, flows=((1, 0),))
    ranked = in_order(with_causes([Ranked(recovery, 1.82e9), Ranked(loss, seconds * 1e9)]))
    assert ranked[0].code == first
    assert [row.explained_by for row in ranked] == ([None, 1] if first == "lost-downstream" else [None, None])


def link_fairness(truth: Path) -> float:
    """Jain's index of the bytes that the link delivered for each TCP connection with 1 MB or more, while all had data."""
    with duckdb.connect() as connection:
        connection.execute(
            f"CREATE VIEW truth AS SELECT * FROM read_parquet('{truth}') WHERE payload_bytes > 0 AND protocol = 6"
        )
        (index,) = connection.execute(
            """
            WITH large AS (SELECT source_port, min(out_ns) AS first, max(out_ns) AS last FROM truth
                           WHERE direction = 0 GROUP BY source_port HAVING sum(ip_bytes) >= 1_000_000),
                 span AS (SELECT max(first) AS first, min(last) AS last FROM large),
                 shares AS (SELECT sum(ip_bytes) AS bytes FROM truth SEMI JOIN large USING (source_port), span
                            WHERE out_ns BETWEEN span.first AND span.last GROUP BY source_port)
            SELECT sum(bytes) ** 2 / (count(*) * sum(bytes ** 2)) FROM shares
            """
        ).fetchone() or (1.0,)
    return float(index)


@pytest.mark.xdist_group("live")
@NEEDED
@pytest.mark.parametrize("name", ["three", "wan-tcp"])
@pytest.mark.alone
def test_real_hosts_show_the_same(name: str, tmp_path: Path) -> None:
    """These have a control connection that waits while others carry the data.

    Whether the sessions share evenly is for the congestion control to decide; the finding must agree with the link's log.
    """

    def check() -> None:
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        *_, text, verdict = run_anomaly(KNOWN[name], folder)
        if name == "three" and link_fairness(folder / "anomaly-three" / "truth.parquet") > FAIR:
            assert not text.startswith("`unfair-share`"), text
        else:
            assert verdict == "yes", text

    undisturbed(check, tries=4)


def test_the_part_with_the_first_finding_is_printed_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    several, alone = (PATHS[name]().write(tmp_path / f"{name}.pcap") for name in ("three", "wan-tcp"))
    for file, first in ((several, "Over several flows"), (alone, "Transfers")):
        assert main(["analyze", str(file), "--all"]) == 0
        lines = capsys.readouterr().out.splitlines()
        heads = [line for line in lines if line in ("The capture itself", "Transfers", "Over several flows")]
        assert heads[0] == first, heads
