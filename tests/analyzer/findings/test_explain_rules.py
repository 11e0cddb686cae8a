# SPDX-License-Identifier: Apache-2.0
"""Each rule about transfers with a capture that shows it, and one that nearly does and must not."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import wiretale
from capture_files import block as pcapng_block
from capture_files import enhanced, interface, section, write_pcap
from plain_wire import ACK, FIN, MSS, NO_SCALE, PSH, RST, START_NS, SYN, Connection, Wire, block, sack
from transfer_wires import (
    LINE_MS,
    RTT,
    bursts_of,
    bursts_of_work,
    connection,
    datagrams_of,
    ended,
    flights,
    growing_flights,
    lossy,
    marked,
    numbered,
    paced,
    refused_by_icmp,
    side_by_side,
    small_writes,
    steady,
    stuck,
    through_a_queue,
    unscaled,
    widening_flights,
)
from wiretale.analyzer.findings import transfers
from wiretale.cli import main

Row = dict[str, Any]
Found = Callable[[Wire], dict[str, Row]]


@pytest.fixture
def findings_of(tmp_path: Path) -> Found:
    """The first finding of each code, by rank."""

    def run(wire: Wire) -> dict[str, Row]:
        first: dict[str, Row] = {}
        for row in wiretale.analyze(wire.write(tmp_path / "wire.pcap")).findings.rows():
            first.setdefault(row["code"], row)
        return first

    return run


def warned(findings: dict[str, Row]) -> set[str]:
    return {code for code, row in findings.items() if row["severity"] != "info"}


# --- silence


def stream_with_a_silence(missing: int, busy: bool = False, pause: float = 1500.0) -> Wire:
    """Beside the receiver: data 3 s after the handshake, 1.5 s of nothing, and data that goes on where it had stopped. In
    between the sender's host gave out `missing` numbers; `busy` with other things, it gives out others all the time."""
    talk, now = connection(rtt=40.0, near=39.9), 3000.0
    for number in range(400):
        if number == 200:
            now += pause
            talk.wire.ids["10.0.0.1"] += missing
        if busy and number % 5 == 0:
            talk.wire.ids["10.0.0.1"] += 2
        talk.data(now, number * MSS).ack(now + 0.1, (number + 1) * MSS)
        now += 1.0
    return talk.wire


@pytest.mark.parametrize("missing", [3, 60, 120, 1000])
def test_the_silence_of_an_outage_is_no_idleness(tmp_path: Path, missing: int) -> None:
    trace = wiretale.analyze(stream_with_a_silence(missing).write(tmp_path / "wire.pcap"))
    row = trace.directions.rows(0, 1)[0]
    assert row["suspected_timeouts"] == 1
    assert row["rto_idle_ns"] == pytest.approx(1.5e9, rel=0.01) and row["time_pause_ns"] < 0.1e9
    (stall,) = (row for row in trace.findings.rows() if row["code"] == "timeout-stalls")
    assert "stalled 1.50 s (" in stall["sentence"] and " in 1 suspected RTO:" in stall["sentence"]


@pytest.mark.parametrize("missing, busy", [(0, False), (120, True)])
def test_a_silence_in_which_the_sender_may_have_had_nothing_to_send_is_no_outage(
    tmp_path: Path, missing: int, busy: bool
) -> None:
    trace = wiretale.analyze(stream_with_a_silence(missing, busy).write(tmp_path / "wire.pcap"))
    row = trace.directions.rows(0, 1)[0]
    assert (row["suspected_timeouts"], row["rto_idle_ns"]) == (0, 0)
    assert row["time_pause_ns"] == pytest.approx(1.5e9, rel=0.1)


# --- which transfers matter


def test_a_control_connection_comes_after_its_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wire = small_writes(41.0)
    steady(connection(wire, port=41000), 1200)
    path = str(wire.write(tmp_path / "wire.pcap"))
    main(["analyze", path, "--all", "--json"])
    result = json.loads(capsys.readouterr().out)
    assert [(transfer["name"].split(" ")[0], transfer["minor"]) for transfer in result["transfers"]] == [
        *(("10.0.0.1:41000", False), ("10.0.0.1:40000", True)),
    ]
    assert {row["severity"] for row in result["findings"]} == {"info"}
    main(["analyze", path, "--all"])
    _, text = capsys.readouterr().out.split("\n\n", 1)
    above, below = text.split("\n\nTransfers")[1].split("Minor flows")
    assert "10.0.0.1:41000" in above and "10.0.0.1:40000" not in above and "10.0.0.1:40000" in below


def test_a_small_transfer_in_trouble_is_not_put_aside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wire = small_writes(41.0)
    steady(connection(wire, port=41000), 80)  # ten times as much: no main transfer
    main(["analyze", str(wire.write(tmp_path / "wire.pcap")), "--all"])
    text = capsys.readouterr().out
    assert "delayed-ack" in text and "Next to nothing" not in text
    assert text.index("10.0.0.1:40000") < text.index("10.0.0.1:41000")


# --- limits


def test_a_window_that_is_always_full_is_found(findings_of: Found) -> None:
    wire = flights(connection(window=160), 20, 14, window=160)  # 160 << 7 is 20,480 bytes: 14 segments
    row = findings_of(wire)["receive-window-limited"]
    assert row["severity"] == "warning" and 0.3 < row["cost"] < 0.6 and row["cost_unit"] == "seconds"
    assert (
        "its median was 20.5 kB" in row["sentence"]
        and "SO_RCVBUF" in row["advice"]
        and "tcp.port == 40000" in row["filter"]
    )


def many_large_and_a_small_one_that_waits() -> Wire:
    """Sixty transfers that nothing holds up, and a smaller one that waits for its receiver's window."""
    wire = Wire()
    for number in range(60):
        steady(connection(wire, port=41000 + number, window=512), 250)
    flights(connection(wire, window=160), 12, 14, window=160)
    return wire


def test_a_window_limit_is_found_in_a_flow_that_is_not_among_the_largest(findings_of: Found) -> None:
    row = findings_of(many_large_and_a_small_one_that_waits())["receive-window-limited"]
    assert "10.0.0.1:40000 → " in row["sentence"] and 0.1 < row["cost"] < 0.3


def test_flows_that_waited_and_are_left_out_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(many_large_and_a_small_one_that_waits().write(tmp_path / "wire.pcap"))
    main(["analyze", path, "--all", "--json"])
    result = json.loads(capsys.readouterr().out)
    assert result["transfers_left_out"] == 0
    assert [transfer["limited_by"] for transfer in result["transfers"] if "40000" in transfer["name"]] == ["window"]
    monkeypatch.setattr(transfers, "STALLED_MAX", 0)
    main(["analyze", path, "--all", "--json"])
    result = json.loads(capsys.readouterr().out)
    assert result["transfers_left_out"] == 1 and not [
        transfer for transfer in result["transfers"] if "40000" in transfer["name"]
    ]
    main(["analyze", path, "--all"])
    assert "1 smaller flow with waiting times" in capsys.readouterr().out


def test_a_closed_window_says_so(samples: Path) -> None:
    rows = wiretale.analyze(samples / "zero_window.pcap").findings.rows()
    assert all("it was zero for" in row["sentence"] for row in rows if row["code"] == "receive-window-limited")
    assert "receive-window-limited" in {row["code"] for row in rows}


def near_receiver(gap: float) -> Wire:
    """Data every `gap` ms where each is acknowledged at once; the handshake shows the whole RTT of 100 ms."""
    talk = connection(rtt=100.0, near=99.9, window=160)
    for i in range(600):
        talk.data(110 + i * gap, i * MSS).ack(110.1 + i * gap, (i + 1) * MSS, window=160)
    return talk.wire


def test_small_writes_that_wait_for_delayed_acks_are_found(findings_of: Found) -> None:
    row = findings_of(small_writes(41.0))["delayed-ack"]
    assert row["severity"] == "warning" and row["cost"] > 1.5 and "TCP_NODELAY" in row["advice"]


def test_requests_that_wait_for_answers_are_no_delayed_acks(findings_of: Found) -> None:
    talk, now = connection(rtt=1.0), 10.0
    for i in range(60):  # the server thinks for 50 ms, its answer acknowledges
        talk.data(now, i * 200, 200, PSH | ACK)
        talk.received[0] = i * 500
        talk.send(now + 50, 1, i * 500, 500, PSH | ACK, ack=(i + 1) * 200)
        talk.received[0] = (i + 1) * 500
        now += 50.5
    assert findings_of(talk.wire) == {}


def backing_off() -> Wire:
    """The receiver is gone: one segment is retransmitted eight times, each RTO twice the last, and more data waits."""
    talk = connection()
    steady(talk, 20, 2.0)
    for turn in range(9):
        talk.data(300.0 * 2**turn, 20 * MSS)
    return talk.wire


def test_a_receiver_that_sends_nothing_more_may_be_gone(findings_of: Found) -> None:
    row = findings_of(backing_off())["retransmission-unlocated"]
    assert "the last data was never acknowledged despite 8 retransmissions" in row["sentence"]
    assert "because the receiver, or the path to it, may be gone" in row["sentence"] and "keep-alives" in row["advice"]


def test_a_rate_that_loss_explains_is_found(findings_of: Found) -> None:
    rows = findings_of(lossy(60))
    assert "loss-limited-window" in warned(rows)
    assert "1.53%" in rows["loss-limited-window"]["sentence"]
    assert rows["recovery-limited"]["cost"] > 0.1


@pytest.mark.parametrize(("rtt", "is_said"), [(2.0, False), (RTT, True)])
def test_round_trips_did_not_grow_only_if_no_flow_of_the_hosts_had_shorter_ones(
    findings_of: Found, rtt: float, is_said: bool
) -> None:
    wire = lossy(60)
    Connection(wire, 40001, server_port=443).open(5.0, rtt).data(50.0, 0).ack(50.0 + rtt, MSS)
    assert ("loss-limited-window" in findings_of(wire)) == is_said


def test_a_path_that_is_always_in_use_is_no_warning(findings_of: Found) -> None:
    rows = findings_of(steady(connection(), 900))
    assert rows["path-limited"]["severity"] == "info" and not warned(rows)


def test_a_sender_without_data_is_no_warning(findings_of: Found) -> None:
    rows = findings_of(bursts_of_work(80.0))
    assert rows["sender-idle"]["severity"] == "info" and 2.0 < rows["sender-idle"]["cost"] < 3.2 and not warned(rows)


# --- timeouts and retransmissions


def test_timeouts_cost_the_silence_before_them(samples: Path) -> None:
    rows = [
        row for row in wiretale.analyze(samples / "timeouts.pcap").findings.rows() if row["code"] == "timeout-stalls"
    ]
    assert [row["cost"] for row in rows] == pytest.approx([0.25812, 0.25014, 0.248305])  # by time lost
    assert {row["severity"] for row in rows} == {"warning"}


def test_fast_retransmissions_are_no_stall(samples: Path) -> None:
    assert "timeout-stalls" not in wiretale.analyze(samples / "fast_retransmissions.pcap").findings.column("code")


def test_retransmitted_bytes_are_summed(findings_of: Found) -> None:
    row = findings_of(lossy(60))["retransmission-cost"]
    assert row["cost"] == 14 * MSS and row["cost_unit"] == "bytes"


# --- queues


def test_a_standing_queue_is_given_in_time_and_bytes(findings_of: Found) -> None:
    row = findings_of(steady(connection(), 800, 2.0, lambda ms: min(RTT + ms / 4, 120.0)))["bufferbloat"]
    assert row["severity"] == "warning" and row["cost"] == pytest.approx(0.1, abs=0.02)
    assert 70 < float(row["sentence"].partition("about ")[2].partition(" kB")[0]) < 80  # 6 Mbit/s for 100 ms


def test_a_standing_queue_does_not_shrink_in_a_pause(findings_of: Found) -> None:
    talk, at = connection(), 30.0
    for i in range(800):
        at += 3000.0 if i == 400 else 2.0
        talk.data(at, i * MSS).ack(at + min(RTT + i / 2, 120.0), (i + 1) * MSS)
    row = findings_of(talk.wire)["bufferbloat"]
    assert 60 < float(row["sentence"].partition("about ")[2].partition(" kB")[0]) < 85


def test_a_queue_that_stood_before_the_flow_began_shows_beside_other_flows(tmp_path: Path) -> None:
    """The handshake of the second flow waited in it as well; only the first one shows the path without a queue."""
    full = steady(Connection(Wire(), 40001).open(0.0, 150.0), 800, 2.0, lambda ms: 150.0 + abs(ms % 200 - 100) / 2)
    alone = wiretale.analyze(full.write(tmp_path / "alone.pcap"))
    assert "bufferbloat" not in alone.findings.column("code")
    Connection(full, 40002).open(5.0, RTT).data(200.0, 0).ack(200.0 + RTT, MSS)
    beside = wiretale.analyze(full.write(tmp_path / "beside.pcap"))
    (row,) = (row for row in beside.findings.rows() if row["code"] == "bufferbloat")
    assert row["flow"] == 0 and row["cost"] == pytest.approx((175.0 - RTT) / 1000, abs=0.003)


def test_a_longer_path_to_the_same_host_is_no_queue(tmp_path: Path) -> None:
    """Load is balanced over paths, or ports lead to other machines: round trips are longer, and do not vary."""
    far = steady(Connection(Wire(), 40001).open(0.0, 150.0), 800, 2.0, lambda ms: 150.0)
    Connection(far, 40002).open(5.0, RTT).data(200.0, 0).ack(200.0 + RTT, MSS)
    assert "bufferbloat" not in wiretale.analyze(far.write(tmp_path / "far.pcap")).findings.column("code")


@pytest.mark.parametrize(
    ("step_ns", "cause"),
    [
        (5_000, "before, by up to 5 µs: packets of several queues were"),
        (5 * 10**6, ": the clock was set back, or packets of several queues were"),
        (3600 * 10**9, ": the clock was set back, or captures were joined out of order"),
    ],
)
def test_the_cause_of_a_step_back_is_by_its_size(tmp_path: Path, step_ns: int, cause: str) -> None:
    frames = [frame for _, frame in Wire().udp(0, b"a").udp(1, b"b").packets]
    path = write_pcap(tmp_path / "back.pcap", zip((START_NS, START_NS - step_ns), frames, strict=True))
    (row,) = [row for row in wiretale.analyze(path).findings.rows() if row["code"] == "time-backward"]
    assert cause in row["sentence"]


@pytest.mark.parametrize("backward_ms", [50.0, 150.0])
def test_a_queue_delays_by_more_than_timestamps_go_backward(tmp_path: Path, backward_ms: float) -> None:
    packets = steady(connection(), 800, 2.0, lambda ms: min(RTT + ms / 4, 120.0)).packets
    packets = sorted(packets, key=lambda packet: packet[0])
    packets.append((packets[-1][0] - backward_ms, Wire().udp(0, b"late").packets[0][1]))
    path = write_pcap(tmp_path / "backward.pcap", ((START_NS + round(ms * 1e6), frame) for ms, frame in packets))
    assert ("bufferbloat" in wiretale.analyze(path).findings.column("code")) == (backward_ms < 100)


def rounds_of_questions(size: int, think: float, rounds: int = 60) -> Wire:
    """A request, which the other host answers after it has thought."""
    talk, now, dice = connection(rtt=1.0), 10.0, random.Random(3)
    for i in range(rounds):
        for part in range(0, size, MSS):
            talk.data(now + part / MSS * 0.01, i * size + part, min(MSS, size - part), PSH | ACK)
        answered = now + 1.0 + (think * dice.random() if i % 5 else 0.0)
        talk.received[0] = i * 500
        talk.send(answered, 1, i * 500, 500, PSH | ACK, ack=(i + 1) * size)
        talk.received[0] = (i + 1) * 500
        now = answered + 0.5
    return talk.wire


def test_an_offer_above_the_path_s_rate_is_found(findings_of: Found) -> None:
    row = findings_of(through_a_queue(4000))["udp-above-path"]
    assert row["severity"] == "warning" and row["cost_unit"] == "bytes"
    assert row["cost"] == pytest.approx(800 * 266, rel=0.1)  # a fifth of the packets


def test_a_policer_delays_no_packet(findings_of: Found) -> None:
    row = findings_of(numbered(4000, lambda i: i % 5 != 2))["udp-above-path"]
    assert "queue" not in row["sentence"]


def lost_at_random(count: int, share: float, seed: int) -> Wire:
    """Neither the first nor the last."""
    dice = random.Random(seed)
    return numbered(count, lambda i: i in (0, count - 1) or dice.random() > share)


def test_jitter_is_a_finding_from_5_ms_on(findings_of: Found) -> None:
    rows = findings_of(numbered(1000, lambda i: True, lambda i: 60.0, late=50.0))
    assert rows["jitter"]["cost"] == pytest.approx(0.0167, abs=0.005) and rows["jitter"]["severity"] == "info"


def one_in_a_hundred_lost(gap: Callable[[int], float]) -> Wire:
    return numbered(4000, lambda i: i % 100 != 60 or i > 3900, gap)


def test_an_uneven_share_has_jain_s_index(findings_of: Found) -> None:
    rows = findings_of(side_by_side(3000, 750))
    assert "Jain's index is 0.7" in rows["unfair-share"]["sentence"] and rows["unfair-share"]["severity"] == "warning"


def test_an_uneven_share_says_more_than_that_the_path_was_the_limit(findings_of: Found) -> None:
    rows = list(findings_of(side_by_side(3000, 750)))
    assert rows.index("unfair-share") < rows.index("path-limited")


@pytest.mark.parametrize("flows", [1, 3])
def test_a_full_wire_is_reported_with_its_payload(findings_of: Found, flows: int) -> None:
    row = findings_of(paced(LINE_MS, flows))["wire-full"]
    assert "Ethernet of 100 Mbit/s" in row["sentence"] and "95.7% is payload (95.7 Mbit/s)" in row["sentence"]
    assert row["severity"] == "info" and row["cost"] is None  # nothing is wrong


# --- patterns of loss


def pattern(rows: dict[str, Row]) -> str:
    return str(rows["loss-pattern"]["sentence"].partition("pattern of its ")[2])


LOST_IN_RUNS = {at + i for at in (100, 180, 500, 950, 1000, 1700, 2500, 2560) for i in range(7)}


def lost_after_pauses() -> Wire:
    dice = random.Random(3)
    starts, now = set(), 0
    while now < 3000:
        now += dice.randint(60, 400)
        starts.add(now)
    return numbered(3000, lambda i: i - 1 not in starts, lambda i: 300.0 * (1 + i % 7) if i in starts else 2.0)


def overflowing(count: int = 6000) -> Wire:
    """A queue that fills, overflows at uneven times and is then empty."""
    dice, talk, now, full, lost = random.Random(5), connection(Wire(by_time=True)), 30.0, 300, -1
    since = 0
    for i in range(count):
        now += 0.7
        since += 1
        talk.data(now, i * MSS)
        queue = min(since, full) * 0.2
        if since == full and i + 200 < count:
            lost = i
        if lost < 0:
            talk.ack(now + RTT + queue, (i + 1) * MSS)
        elif i > lost:
            talk.ack(now + RTT + queue, lost * MSS, options=sack(((lost + 1) * MSS, (i + 1) * MSS)))
            if i == lost + 3:
                talk.data(now + RTT + queue + 0.1, lost * MSS)
            if i == lost + 150:
                talk.ack(now + RTT + queue + 0.2, (i + 1) * MSS)
                lost, since, full = -1, 0, dice.randint(150, 400)
    return talk.wire


PATTERNS: list[tuple[tuple[str, ...], Callable[[], Wire]]] = [
    (("is random",), lambda: lost_at_random(3000, 0.02, 2)),
    (("is random",), lambda: lost_at_random(4000, 0.2, 1)),
    (("is bursty", "runs of 7 packets on average"), lambda: numbered(3000, lambda i: i not in LOST_IN_RUNS)),
    (("is periodic", "every 300 ms"), lambda: numbered(3000, lambda i: i % 150 != 75)),
    (("is start-of-burst",), lost_after_pauses),
    (("is tail drop",), overflowing),
    (("is tail drop: the delay had grown by 4",), lambda: through_a_queue(4000)),
]


@pytest.mark.parametrize(("pieces", "make"), PATTERNS)
def test_losses_have_a_pattern(findings_of: Found, pieces: tuple[str, ...], make: Callable[[], Wire]) -> None:
    words = pattern(findings_of(make()))
    assert all(piece in words for piece in pieces), words


# --- order, fragments


def overtaken(places: int, times: int) -> Wire:
    """Every 50th segment comes `places` later, with its own IP id."""
    talk, wire = connection(), Wire()
    count = 50 * times + 10
    for i in range(count):
        talk.data(30 + 0.5 * i, i * MSS)
    sent = talk.wire.packets[3:]
    wire.packets = talk.wire.packets[:3]
    for i, (ms, frame) in enumerate(sent):
        late = i % 50 == 25
        wire.packets.append((ms + 0.5 * places + 0.1 if late else ms, frame))
        if not late:
            missing = i // 50 * 50 + 25 if i % 50 > 25 and i % 50 <= 25 + places else i + 1
            wire.ids["10.0.0.1"] = 0
            Connection(wire).ack(ms + RTT, missing * MSS)
    return wire


def test_reordering_has_an_extent(findings_of: Found) -> None:
    row = findings_of(overtaken(4, 4))["reordering-extent"]
    assert "4 of 4 by three or more" in row["sentence"] and row["severity"] == "info"


def fragmented(lost: Callable[[int, int], bool], count: int = 60, pieces: int = 6, numbered: bool = False) -> Wire:
    """Datagrams of 8192 bytes in six fragments, some of which are lost."""
    wire = Wire()
    for number in range(count):
        payload = block(number, 8192, sent_ms=number * 2) if numbered else bytes(8192)
        datagram = struct.pack("!HHHH", 4000, 5000, 8200, 0) + payload
        for i in range(pieces):
            if lost(number, i):
                continue
            part = datagram[i * 1480 : (i + 1) * 1480]
            more = 0x2000 if i < pieces - 1 else 0
            header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(part), number + 1, more | i * 185, 64, 17, 0)
            frame = bytes(12) + b"\x08\0" + header + bytes([10, 0, 0, 1, 10, 0, 0, 2]) + part
            wire.packets.append((number * 2 + i * 0.1, frame))
    return wire


def test_loss_of_fragments_is_amplified(findings_of: Found) -> None:
    dice = random.Random(6)
    gone = {(n, i) for n in range(60) for i in range(6) if dice.random() < 0.05}
    rows = findings_of(fragmented(lambda n, i: (n, i) in gone))
    share = len({n for n, _ in gone}) / 60
    row = rows["loss-amplified"]
    assert f"but {100 * share:.3g}% of datagrams" in row["sentence"] and row["severity"] == "warning"
    wasted = sum(5 * 1480 + 800 - sum(1480 if i < 5 else 800 for m, i in gone if m == n) for n in {n for n, _ in gone})
    assert (row["cost"], row["cost_unit"]) == (wasted, "bytes")
    per_fragment = (wasted + len(gone) * 1367) / len(gone)
    assert f"Each lost fragment cost {per_fragment / 1000:.3g} kB of IP payload" in row["sentence"]
    assert "1-(1-p)^n" in row["sentence"] and next(iter(rows)) == "loss-amplified"  # the cause before what it costs


def test_fragments_dropped_by_a_full_queue_are_distinguished_from_random_loss(findings_of: Found) -> None:
    dice = random.Random(6)
    room = [dice.randint(3, 6) for _ in range(60)]
    row = findings_of(fragmented(lambda n, i: i >= room[n]))["loss-amplified"]
    cut = sum(size < 6 for size in room)
    assert f"{cut} of {cut} incomplete datagrams lack only their end: a queue" in row["sentence"]
    assert "congestion" in row["advice"] and "losses are not independent" in row["sentence"]
    by_chance = findings_of(fragmented(lambda n, i: dice.random() < 0.15))["loss-amplified"]
    assert "queue" not in by_chance["sentence"] and "congestion" not in by_chance["advice"]
    early = findings_of(fragmented(lambda n, i: n % 2 == 0 and i < 2))["loss-amplified"]
    assert "queue" not in early["sentence"]


def bursts_of_blocks(lost: Callable[[int, int], bool], size: int = 20) -> Wire:
    """Sixty bursts of blocks, 100 ms apart; those that come take all the same time on their way."""
    wire = Wire()
    for burst in range(60):
        for i in range(size):
            sent = 10 + burst * 100 + i * 0.1
            if not lost(burst, i):
                wire.udp(sent + 5, block(burst * size + i, sent_ms=sent))
    return wire


def test_the_ends_of_bursts_are_lost_by_a_queue_and_no_beginning_is_blamed(findings_of: Found) -> None:
    dice = random.Random(5)
    room = [dice.randint(12, 18) for _ in range(60)]
    words = pattern(findings_of(bursts_of_blocks(lambda burst, i: i >= room[burst])))
    assert "is tail drop: the beginning of each burst arrives and its end does not: a queue" in words
    assert "is tail drop: the beginning" in pattern(findings_of(bursts_of_blocks(lambda burst, i: i >= 15)))


def test_the_beginnings_of_bursts_are_no_tail_drop(findings_of: Found) -> None:
    dice = random.Random(5)
    late = [dice.randint(1, 4) for _ in range(60)]
    assert "tail drop" not in pattern(findings_of(bursts_of_blocks(lambda burst, i: burst > 0 and i < late[burst])))


def test_two_incomplete_datagrams_amplify_nothing(findings_of: Found) -> None:
    rows = findings_of(fragmented(lambda n, i: (n, i) in {(5, 2), (9, 3)}))
    assert "datagram-incomplete" in rows and "loss-amplified" not in rows


def test_numbers_are_lost_packets_if_most_are_not_of_datagrams_that_lost_a_fragment(findings_of: Found) -> None:
    part, whole = {(5, 2), (9, 0), (20, 5)}, (12, 15, 40, 43)  # the second one has no ports without its first fragment
    rows = findings_of(fragmented(lambda n, i: (n, i) in part, numbered=True))
    assert "loss-amplified" in rows and "blocks-lost" not in rows
    rows = findings_of(fragmented(lambda n, i: (n, i) in part or n in whole, numbered=True))
    assert rows["blocks-lost"]["sentence"].endswith(
        " lost 7 of 60 numbered packets (11.7%) before the capture point, each alone; of at least 2 datagrams only some "
        "fragments arrived."
    )


def test_fragmentation_names_the_largest_payload_without_it(findings_of: Found) -> None:
    row = findings_of(fragmented(lambda n, i: False))["fragmentation"]
    assert "at most 1,472 bytes" in row["advice"] and "300 more frames" in row["sentence"]
    assert row["severity"] == "info" and "saves no bytes" in row["sentence"]
    assert (
        "Payload is 95.8% of" in row["sentence"] and "would be 95.7% with" in row["sentence"]
    )  # 8192 / 8548, 1472 / 1538


# --- connections


def test_a_syn_that_is_answered_at_the_second_try_is_found(findings_of: Found) -> None:
    talk = Connection(Wire())
    talk.send(0, 0, -1, flags=SYN, options=b"")
    talk.open(ms=1000)
    talk.data(1050, 0, 100, PSH | ACK).ack(1060, 100)
    row = findings_of(talk.wire)["syn-lost"]
    assert (
        row["severity"] == "warning" and row["cost"] == pytest.approx(1.0, abs=0.05) and row["cost_unit"] == "seconds"
    )


def test_a_syn_that_is_answered_at_once_is_not(findings_of: Found) -> None:
    talk = connection()
    talk.data(50, 0, 100, PSH | ACK).ack(60, 100)
    assert findings_of(talk.wire) == {}


def test_a_reset_after_a_long_silence_is_found(findings_of: Found) -> None:
    rows = findings_of(ended(600))
    assert (
        rows["idle-reset"]["severity"] == "warning" and "10 min" in rows["idle-reset"]["sentence"]
    ) or "600 s" in str(rows)


def test_a_reset_out_of_silence_is_not(findings_of: Found) -> None:
    talk = connection()
    talk.data(50, 0, 100, PSH | ACK).ack(70, 100)
    talk.ack(45_000, 100)
    rows = findings_of(talk.send(600_000, 1, 0, flags=RST).wire)
    assert "reset" in rows and "idle-reset" not in rows


def test_a_reset_of_an_end_that_had_closed_is_not_of_the_idle_period(findings_of: Found) -> None:
    talk = connection()
    talk.data(50, 0, 100, PSH | ACK).ack(70, 100)
    talk.send(100, 1, 0, flags=FIN | ACK, ack=100).send(120, 0, 100, ack=1)
    rows = findings_of(talk.send(45_000, 0, 100, 50, PSH | ACK, ack=1).send(45_020, 1, 1, flags=RST).wire)
    assert "idle-reset" not in rows


@pytest.mark.parametrize("resets", [1, 3])
def test_a_reset_after_an_answer_is_not_of_the_idle_period(findings_of: Found, resets: int) -> None:
    """Both ends exchanged data after the idle period, and the RST answers a FIN; several RSTs without an answer do not."""
    talk = connection()
    talk.data(50, 0, 100, PSH | ACK).ack(70, 100)
    talk.data(45_000, 100, 100, PSH | ACK).ack(45_020, 200)
    talk.send(46_000, 0, 200, flags=FIN | ACK).send(46_400, 0, 200, flags=FIN | ACK)
    rows = findings_of(talk.send(46_420, 1, 0, flags=RST).wire)
    assert "reset" in rows and "idle-reset" not in rows
    other = connection()
    other.data(50, 0, 100, PSH | ACK).ack(70, 100)
    for turn in range(resets):
        other.data(45_000 + turn, 100 + 100 * turn, 100, PSH | ACK).send(45_020 + turn, 1, 0, flags=RST)
    assert findings_of(other.wire)["idle-reset"]["severity"] == "warning"


def stalled_once(spurious: bool) -> Wire:
    """An RTO, whose data the receiver had or not: then its first ACK was late, and a DSACK reports the second copy."""
    talk = connection()
    steady(talk, 10)
    talk.data(400, 10 * MSS).data(900, 10 * MSS)
    if spurious:
        talk.ack(901, 11 * MSS).ack(921, 11 * MSS, options=sack((10 * MSS, 11 * MSS)))
    else:
        talk.ack(921, 11 * MSS)
    return talk.wire


def test_the_advice_about_an_rto_follows_its_spuriousness(findings_of: Found) -> None:
    lost = findings_of(stalled_once(False))["timeout-stalls"]
    assert lost["advice"].startswith("Find the loss first.") and "spurious" not in lost["advice"]
    late = findings_of(stalled_once(True))["timeout-stalls"]
    assert late["advice"].startswith("Their data had arrived: find the delay") and "Find the loss" not in late["advice"]


def test_a_reset_of_a_busy_connection_is_not(findings_of: Found) -> None:
    rows = findings_of(ended(5))
    assert "reset" in rows and "idle-reset" not in rows


def probed(answered: bool) -> Wire:
    talk = connection()
    talk.data(50, 0, 100, PSH | ACK).ack(70, 100)
    for i in range(1, 6):
        talk.send(50 + 10_000 * i, 0, 99)
        if answered:
            talk.ack(70 + 10_000 * i, 100)
    return talk.wire


def test_keep_alives_with_answers_are_not(findings_of: Found) -> None:
    assert list(findings_of(probed(True))) == ["request-unanswered"]


def test_large_segments_that_never_arrive_are_a_black_hole(findings_of: Found) -> None:
    row = findings_of(stuck(False))["path-mtu-black-hole"]
    assert row["severity"] == "warning" and "1,460 bytes" in row["sentence"] and "tcp.len >= 1460" in row["filter"]


def test_a_large_segment_that_arrives_at_last_is_none(findings_of: Found) -> None:
    rows = findings_of(stuck(True))
    assert "path-mtu-black-hole" not in rows and "timeout-stalls" in rows


def test_an_unreachable_host_is_no_path_mtu(findings_of: Found) -> None:
    rows = findings_of(refused_by_icmp(1))
    assert "icmp-errors" in rows and "path-mtu" not in rows


def test_marks_with_echo_are_not(findings_of: Found) -> None:
    rows = findings_of(marked(True))
    assert "ecn-ignored" not in rows and rows["congestion-marks"]["severity"] == "info"


def test_packets_that_are_mostly_headers_are_found(findings_of: Found) -> None:
    row = findings_of(datagrams_of(32))["small-packets"]
    assert row["cost"] == round(1200 * (84 + 14 - 32 * 1538 / 1460))
    assert row["severity"] == "info" and "times as much" in row["sentence"]


def test_a_microburst_has_its_rate_the_buffer_it_needs_and_its_sender(findings_of: Found) -> None:
    row = findings_of(bursts_of(400, "10.0.0.7"))["microburst"]
    frames = 400  # 400 frames last 492 µs, so all of them are in 1 ms
    assert f"{frames * 1514 / 1000:.0f} kB of frames in its fullest 1 ms (4.84 Gbit/s" in row["sentence"]
    in_100us = -(-100_000 // 1230.4)  # frames that begin within 100 µs
    assert f"{in_100us * 1514 / 1000:.0f} kB in 100" in row["sentence"]
    assert "a port must buffer 481 kB of frames at 1 Gbit/s. " in row["sentence"]  # 606 kB less 125 kB in 1 ms
    assert "10.0.0.7:4000 → 10.0.0.2:5000 sent " in row["sentence"] and row["severity"] == "info"


def test_a_problem_that_costs_little_is_a_note(findings_of: Found) -> None:
    """A zero window of 15 µs, and of 500 ms, in a transfer of 2 s."""

    def closed(ms: float) -> Row:
        talk, now = connection(), 30.0
        for i in range(200):
            talk.data(now, i * MSS)
            if i == 100:
                talk.ack(now + RTT, (i + 1) * MSS, window=0)
                talk.ack(now + RTT + ms, (i + 1) * MSS)
                now += ms + RTT
            else:
                talk.ack(now + 5, (i + 1) * MSS)
            now += 10
        return findings_of(talk.wire)["zero-window"]

    short, long = closed(0.015), closed(500.0)
    assert (short["severity"], short["cost"], short["cost_unit"]) == ("info", pytest.approx(15e-6), "seconds")
    assert (long["severity"], long["cost"]) == ("warning", pytest.approx(0.5))


def test_losses_cost_the_time_that_they_took(findings_of: Found) -> None:
    """One RTO of 1 s in a transfer of 9 s is a warning although 1 of 400 segments was lost."""
    talk, now = connection(), 30.0
    for i in range(400):
        if i == 200:
            talk.data(now, i * MSS)
            now += 1000.0
        talk.data(now, i * MSS)
        talk.ack(now + RTT, (i + 1) * MSS)
        now += RTT + 1
    row = findings_of(talk.wire)["lost-downstream"]
    assert row["severity"] == "warning" and row["cost_unit"] == "seconds"
    assert row["cost"] == pytest.approx(1.0, abs=0.05)


# --- captures that show a finding, and captures that nearly do

SHOWN = [
    ("keep-alive-unanswered", "warning", lambda: probed(False)),
    ("path-mtu", "info", lambda: refused_by_icmp(4)),
    ("mss-clamped", "info", lambda: steady(connection(mss=1200), 1000, size=1200)),
    ("ecn-ignored", "warning", lambda: marked(False)),
    ("slow-start", "info", lambda: growing_flights()),
    ("send-buffer-limited", "warning", lambda: flights(connection(), 30, 28)),
]
SAID = [
    (
        "send-buffer-limited",
        "Flight did not exceed 40.9 kB of payload at an RTT of 20 ms",
        lambda: flights(connection(), 30, 28),
    ),
    ("receive-window-limited", "scaling is off", lambda: unscaled(20480, 20, 14)),
    ("receive-window-limited", "its median was 20.5 kB", lambda: near_receiver(100 / 14)),
    ("window-scaling-off", "at most 5.24 Mbit/s", lambda: unscaled(65535, 25, 30, 100.0)),
    ("udp-above-path", "wait up to 49.5 ms in the full queue", lambda: through_a_queue(4000)),
    ("microburst", "times its mean", lambda: one_in_a_hundred_lost(lambda i: 100.0 if i % 100 == 0 else 0.01)),
]
NEARLY: list[tuple[str, Callable[[], Wire]]] = [
    ("receive-window-limited", lambda: flights(connection(window=512), 20, 14)),  # never reached
    ("receive-window-limited", lambda: near_receiver(100 / 7)),  # half a window
    ("window-scaling-off", lambda: steady(connection(rtt=1.0, scale=None, window=65535), 800, 2.0, lambda ms: 1.0)),
    ("delayed-ack", lambda: small_writes(10.0)),
    *((code, lambda: lossy(420)) for code in ("loss-limited-window", "recovery-limited", "retransmission-cost")),
    ("sender-idle", lambda: flights(connection(), 30, 28)),  # let go by acknowledgments
    ("send-buffer-limited", lambda: steady(connection(), 900)),  # the path is always in use
    ("send-buffer-limited", lambda: widening_flights(30, 14)),  # a congestion window that grows
    ("send-buffer-limited", lambda: bursts_of_work(80.0)),
    ("slow-start", lambda: flights(connection(rtt=100.0), 6, 14, trip=100.0)),  # flights of one size
    ("bufferbloat", lambda: steady(connection(rtt=120.0), 800, 2.0, lambda ms: 120.0)),  # a long path
    ("bufferbloat", lambda: rounds_of_questions(200, 20.0)),
    ("bufferbloat", lambda: rounds_of_questions(4000, 20.0)),
    ("bufferbloat", lambda: steady(connection(), 800, 2.0, lambda ms: min(RTT + ms / 4, 120.0), size=20)),  # of others
    ("udp-above-path", lambda: numbered(4000, lambda i: not 2000 <= i < 2600)),  # one outage
    ("udp-above-path", lambda: lost_at_random(4000, 0.2, 1)),
    ("jitter", lambda: numbered(1000, lambda i: True, lambda i: 60.0, late=8.0)),
    ("microburst", lambda: one_in_a_hundred_lost(lambda i: 1.01)),
    ("microburst", lambda: bursts_of(60)),  # 1 ms of 1 Gbit/s is 125 kB
    ("microburst", lambda: paced(LINE_MS)),  # a steady rate
    ("wire-full", lambda: paced(LINE_MS / 0.97)),
    ("wire-full", lambda: paced(LINE_MS / 1.03)),  # of 1 Gbit/s it is a tenth
    ("wire-full", lambda: paced(LINE_MS, burst=100)),  # a mean of 100 Mbit/s
    ("unfair-share", lambda: side_by_side(1500, 1400)),
    ("loss-pattern", lambda: numbered(3000, lambda i: i not in (100, 500, 900, 1300, 1700))),
    ("loss-pattern", backing_off),  # the sender's timer spaces these losses
    ("reordering-extent", lambda: overtaken(1, 1)),  # one swap of neighbors
    ("mss-clamped", lambda: steady(connection(), 1000)),
    ("small-packets", lambda: datagrams_of(400)),
]


@pytest.mark.parametrize(("code", "severity", "make"), SHOWN)
def test_a_capture_that_shows_it(findings_of: Found, code: str, severity: str, make: Callable[[], Wire]) -> None:
    assert findings_of(make())[code]["severity"] == severity


@pytest.mark.parametrize(("code", "piece", "make"), SAID)
def test_a_finding_says_it(findings_of: Found, code: str, piece: str, make: Callable[[], Wire]) -> None:
    assert piece in findings_of(make())[code]["sentence"]


@pytest.mark.parametrize(("code", "make"), NEARLY)
def test_a_capture_that_nearly_shows_it_has_no_such_finding(
    findings_of: Found, code: str, make: Callable[[], Wire]
) -> None:
    assert code not in findings_of(make())


# --- healthy transfers


def healthy() -> Iterator[Wire]:
    talk, end = connection(), 30 + 400 * 2.0
    steady(talk, 400)
    talk.send(end + 100, 0, 400 * MSS, flags=FIN | ACK)
    talk.send(end + 120, 1, 0, flags=FIN | ACK, ack=400 * MSS + 1)
    yield talk.send(end + 121, 0, 400 * MSS + 1, ack=1).wire
    yield numbered(2000, lambda i: True, late=0.5)
    yield bursts_of_work(30.0, 10)
    yield small_writes(1.0)


@pytest.mark.parametrize("wire", list(healthy()))
def test_a_healthy_transfer_gives_no_warning(wire: Wire, findings_of: Found) -> None:
    assert warned(findings_of(wire)) == set()


# --- captures


@pytest.mark.parametrize("again", [True, False])
def test_duplicates_of_unknown_origin_are_no_warning(findings_of: Found, again: bool) -> None:
    talk = Connection(Wire())  # without SACK, which would report it
    talk.send(0, 0, -1, flags=SYN, options=NO_SCALE).send(20, 1, -1, flags=SYN | ACK, ack=0, options=NO_SCALE).data(
        20, 0, 0
    )
    for i in range(20):
        talk.data(30 + i, i * MSS).ack(50 + i, (i + 1) * MSS)
        if again and i == 7:
            talk.wire.packets.append((37.2, talk.wire.packets[-2][1]))
    rows = findings_of(talk.wire)
    assert ({code for code in rows if code.endswith("duplicates")} != set()) == again and not warned(rows)
    assert ("unknown-duplicates" in rows) == again


@pytest.mark.parametrize("simple", [True, False])
def test_packets_without_time_are_found(tmp_path: Path, simple: bool) -> None:
    frame = Wire().udp(0, bytes(50)).packets[0][1]
    packet = pcapng_block(3, struct.pack("<I", len(frame)) + frame) if simple else enhanced(2**32 + 1, frame)
    (tmp_path / "wire.pcapng").write_bytes(section() + interface() + packet)
    codes = wiretale.analyze(tmp_path / "wire.pcapng").findings.column("code")
    assert ("time-unknown" in codes) == simple


@pytest.mark.parametrize(("filter", "refused"), [("ether host 02:00:00:00:00:01", True), ("ip", False)])
def test_a_filter_that_does_not_fit_an_interface_is_reported(samples: Path, filter: str, refused: bool) -> None:
    trace = wiretale.analyze(samples / "two_interfaces.pcapng", filter=filter)
    assert ("filter-refused" in trace.findings.column("code")) == refused


@pytest.mark.parametrize(("link_type", "is_supported"), [(1, True), (147, False)])
def test_unsupported_link_types_are_reported(tmp_path: Path, link_type: int, is_supported: bool) -> None:
    path = Wire().udp(0, bytes(50)).write(tmp_path / "wire.pcap")
    data = bytearray(path.read_bytes())
    data[20] = link_type
    path.write_bytes(data)
    assert ("undecoded" in wiretale.analyze(path).findings.column("code")) != is_supported


@pytest.mark.parametrize(("pieces", "evicted"), [(65_000, False), (66_000, True)])
def test_too_many_open_datagrams_are_a_finding(tmp_path: Path, pieces: int, evicted: bool) -> None:
    wire = Wire()
    for i in range(pieces):
        address = bytes([10, 1 + i // 65536, i // 256 % 256, i % 256])
        header = struct.pack("!BBHHHBBH", 0x45, 0, 28, 7, 0x2000, 64, 17, 0)
        wire.packets.append((i / 1000, bytes(12) + b"\x08\0" + header + address + bytes([10, 0, 0, 2]) + bytes(8)))
    trace = wiretale.analyze(wire.write(tmp_path / "wire.pcap"))
    assert ("datagrams-evicted" in trace.findings.column("code")) == evicted


@pytest.mark.parametrize("corrupt", [True, False])
def test_a_block_with_a_wrong_length_is_an_error(findings_of: Found, corrupt: bool) -> None:
    wire = Wire()
    for i in range(10):
        data = bytearray(block(i, 200, sent_ms=i))
        data[100] ^= corrupt and i == 5
        wire.udp(i, bytes(data))
    rows = findings_of(wire)
    assert ("blocks-corrupt" in rows) == corrupt and all(row["severity"] == "error" for row in rows.values())
