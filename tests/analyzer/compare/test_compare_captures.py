# SPDX-License-Identifier: Apache-2.0
"""Several capture points of one path: the place of each loss, against the true fate of every packet."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from capture_points import (
    MS,
    START_NS,
    Clock,
    Points,
    block,
    compared,
    in_fragments,
    ledger_of,
    log,
    tcp,
    translated,
    udp,
)
from tracer_wire import write_told
from wiretale.analyzer.compare.answers import answers
from wiretale.analyzer.compare.comparison import compare_captures
from wiretale.analyzer.compare.loss_location import PLACES, REMEDIES, Ledger
from wiretale.reports.phrases import delay_row

RUN = 77
ETHERNET_IP = bytes.fromhex("020000000002 020000000001 0800")


def stages(ledger: Ledger) -> dict[str, int]:
    return {stage.role: stage.seen for stage in ledger.stages}


def answer_now_and_then(points: Points, seconds: float, path_ns: int = 5 * MS) -> None:
    """Packets on the way back, from which the clocks are estimated."""
    for n in range(int(seconds * 50)):
        sent = START_NS + n * 20 * MS
        middle = sent + path_ns // 2
        times = [sent + path_ns, middle, sent] if len(points.roles) == 3 else [sent + path_ns, sent]
        points.put(udp(b"answer %d" % n, 9000 + n, ("10.0.1.1", 6000), ("10.0.0.1", 5000)), times)


def blocks_with_fates(points: Points, count: int, lost: dict[str, set[int]], length: int = 200, **more: Any) -> None:
    """Blocks 1 ms apart; 2 ms to the tracer, 3 ms more to the receiver."""
    for n in range(count):
        sent = START_NS + n * MS
        at_tracer = None if n in lost.get("before", ()) else sent + 2 * MS
        at_receiver = None if at_tracer is None or n in lost.get("after", ()) else sent + 5 * MS
        missed = n in lost.get("tracer", ()), n in lost.get("capture", ())
        seen = [sent, None if missed[0] else at_tracer, None if missed[1] else at_receiver]
        points.put(udp(block(RUN, 0, n, length), 30000 + n, **more), seen)


def test_blocks_are_lost_before_and_after_the_tracer(tmp_path: Path) -> None:
    points, chance = Points(), Random(1)
    before, after = set(chance.sample(range(1000), 20)), set(chance.sample(range(1000), 30))
    blocks_with_fates(points, 1000, {"before": before, "after": after})
    answer_now_and_then(points, 1)
    with compared(points, tmp_path) as comparison:
        ledger = ledger_of(comparison, "blocks")
        assert stages(ledger) == {"sender": 1000, "tracer": 980, "receiver": 1000 - len(before | after)}
        assert ledger.lost == {"before_tracer": 20, "after_tracer": len(after - before)}
        rows = comparison.rows("SELECT key1 AS n, place FROM outcomes WHERE kind = 2 AND place IS NOT NULL")
        assert {row["n"] for row in rows if row["place"] == "before_tracer"} == before
        assert {row["n"] for row in rows if row["place"] == "after_tracer"} == after - before


def test_a_packet_that_a_capture_missed_is_no_loss(tmp_path: Path) -> None:
    points = Points()
    blocks_with_fates(points, 300, {"before": {5}, "tracer": {10, 11, 12}, "after": {20}})
    with compared(points, tmp_path) as comparison:
        ledger = ledger_of(comparison, "blocks")
        assert ledger.lost == {"before_tracer": 1, "after_tracer": 1}
        assert {stage.role: stage.missed for stage in ledger.stages} == {"sender": 0, "tracer": 3, "receiver": 0}
        assert any("tracer's capture missed 3" in note for note in comparison.notes)


def test_logs_add_losses_that_captures_cannot_show(tmp_path: Path) -> None:
    points = Points()
    lost = {"before": set(range(100, 110)), "after": set(range(200, 225)), "capture": set(range(300, 304))}
    blocks_with_fates(points, 997, lost)
    arrived = 997 - 10 - 25
    test = {"run": RUN, "protocol": "udp", "count": 1000}
    sender = log(tmp_path / "s.json", test=test, sender={"blocks_sent": 997, "send_errors": {"ENOBUFS": 3}})
    came = {"blocks_received": arrived - 8, "host_dropped": 6, "host_dropped_source": "SO_RXQ_OVFL"}
    receiver = log(tmp_path / "r.json", test=test, receiver=came)
    with compared(points, tmp_path, sender_log=str(sender), receiver_log=str(receiver)) as comparison:
        ledger = ledger_of(comparison, "blocks")
        # The receiver's capture has 958 of 962; its log proves 960 of them: two more may be lost after the tracer.
        assert ledger.lost == {"never_sent": 3, "before_tracer": 10, "after_tracer": 27, "receiver_kernel": 6}
        assert (ledger.sent, ledger.arrived) == (1000, arrived - 8)


def test_kernel_and_application_are_kept_apart(tmp_path: Path) -> None:
    points = Points()
    blocks_with_fates(points, 500, {"after": {7}})
    receiver = log(tmp_path / "r.json", test={"run": RUN}, receiver={"blocks_received": 480, "host_dropped": 15})
    with compared(points, tmp_path, receiver_log=str(receiver)) as comparison:
        assert ledger_of(comparison, "blocks").lost == {"after_tracer": 1, "receiver_kernel": 15, "application": 4}
        *_, advice = answers(comparison)
        assert advice.startswith("For those lost by the receiver's kernel: raise the receive buffer")


def test_most_of_the_missing_packets_name_their_hosts(tmp_path: Path) -> None:
    """Three of 100 to one host are lost, and one of 100 to another; later ones arrive."""
    points = Points()
    for n in range(200):
        lost = n in (20, 40, 60, 71)
        ends = (("10.0.0.1", 6000), ("10.0.1.1" if n % 2 == 0 else "10.0.1.2", 5000))
        points.pass_by(udp(b"%d" % n, n, *ends), n, (0, None if lost else 2, None if lost else 5))
    with compared(points, tmp_path) as comparison:
        (sentence,) = (text for text in answers(comparison) if "missing" in text)
    assert sentence == (
        "3 of the 4 missing packets went from 10.0.0.1 to 10.0.1.1, between 20 ms and 60 ms after the sender's first packet."
    )


def test_every_place_of_losses_has_advice_and_none_is_given_without_losses(tmp_path: Path) -> None:
    assert set(REMEDIES) == set(PLACES) - {"capture"}
    points = Points()
    blocks_with_fates(points, 300, {"tracer": {10}})
    with compared(points, tmp_path) as comparison:
        assert not any(answer.startswith("For those") for answer in answers(comparison))


@pytest.mark.parametrize(("received", "dropped", "saw"), [(994, 0, None), (990, 4, None), (1000, 0, False)])
def test_the_tracer_alone_answers_whether_it_saw_it_all(
    tmp_path: Path, received: int, dropped: int, saw: bool | None
) -> None:
    from wiretale.analyzer.compare.answers import saw_all

    points = Points(roles=("tracer",))
    for n in range(1000):
        if n % 200 != 7:
            points.put(udp(block(RUN, 0, n), n), [START_NS + n * MS])
    came = {"blocks_received": received, "host_dropped": dropped}
    receiver = log(tmp_path / "r.json", test={"run": RUN}, sender={"blocks_sent": 1000}, receiver=came)
    with compared(points, tmp_path, receiver_log=str(receiver)) as comparison:
        ledger = ledger_of(comparison, "blocks", "run")
        assert saw_all(ledger) is saw
        assert ledger.lost.get("before_tracer", 0) == 1000 - max(995, received + dropped)
        assert ledger.lost.get("receiver_kernel", 0) == dropped


def test_clocks_that_differ_are_compared_within_the_error(tmp_path: Path) -> None:
    points = Points(clocks={"tracer": Clock(-1_500_000_000, -20.0), "receiver": Clock(3_200_000_000, 50.0)})
    blocks_with_fates(points, 5_000, {"before": {4}})
    answer_now_and_then(points, 5)
    with compared(points, tmp_path) as comparison:
        clocks = {(clock.earlier, clock.later): clock for clock in comparison.clocks}
        for pair, offset, skew in (((0, 1), -1_500_000_000, -20.0), ((0, 2), 3_200_000_000, 50.0)):
            clock = clocks[pair]
            assert clock.offset_ns is not None and clock.error_ns is not None and clock.skew_ppm is not None
            true = offset + (clock.stretches[0].middle_ns - START_NS) * skew * 1e-6
            assert abs(clock.offset_ns - true) <= clock.error_ns + 1000
            assert clock.skew_ppm == pytest.approx(skew, abs=1.0)
        for delay in comparison.delays:
            true = {("sender", "tracer"): 2, ("tracer", "receiver"): 3, ("sender", "receiver"): 5}.get(
                (delay.start, delay.end), 2.5
            )
            assert delay.absolute and delay.error_ns is not None
            if (delay.end, delay.start) != ("sender", "receiver"):
                assert abs(delay.summary["median"] - true * MS) <= delay.error_ns + 10_000


def test_a_clock_that_is_set_is_found(tmp_path: Path) -> None:
    points = Points(("sender", "receiver"), {"receiver": Clock(40 * MS, 0.0, START_NS + 4_000 * MS, -300 * MS)})
    for n in range(10_000):
        points.put(udp(block(RUN, 0, n), n), [START_NS + n * MS, START_NS + (n + 5) * MS])
    answer_now_and_then(points, 10)
    with compared(points, tmp_path) as comparison:
        (clock,) = comparison.clocks
        ((time, change),) = clock.steps
        assert abs(time - (START_NS + 4_000 * MS)) < 10 * MS
        assert change == pytest.approx(-300 * MS, rel=0.001)
        assert {round(delay.summary["median"] / MS) for delay in comparison.delays} == {5}


def test_clocks_of_known_error_give_delays_of_one_direction(tmp_path: Path) -> None:
    """Of 1.5 ms each: a path of 25 ms has a delay, of one of 2 ms nothing is known."""
    for delay_ms, is_below in ((25, False), (2, True)):
        files = []
        for point, late_ms in (("sender", 0), ("receiver", delay_ms)):
            frames = [(1000.0 + n + late_ms, ETHERNET_IP + udp(block(RUN, 0, n), n)) for n in range(200)]
            files.append(str(write_told(tmp_path / f"{point}-{delay_ms}.pcapng", frames)))
        with compare_captures(*files) as comparison:
            (clock,) = comparison.clocks
            assert (clock.evidence, clock.offset_ns, clock.error_ns) == ("stated", 0.0, 3 * MS)
            (delay,) = comparison.delays
            assert delay.absolute and round(delay.summary["median"]) == delay_ms * MS
            assert delay.below_error == is_below
            assert delay_row(delay)[-1] == ("not known: below the 3 ms of both clocks" if is_below else "±3 ms")


def test_clocks_of_known_error_show_a_path_whose_directions_differ(tmp_path: Path) -> None:
    """30 ms there and 10 ms back, of which packets alone make 20 and 20. The record of a clock that is 60 ms ahead is wrong."""
    for ahead_ms, evidence, delays in ((0, "stated", [30, 10]), (60, "both", [20, 20]), (1, "stated", [31, 9])):
        files = []
        for point, there_ms, back_ms in (("sender", 0, 10), ("receiver", 30 + ahead_ms, ahead_ms)):
            frames = [(1000.0 + n + there_ms, ETHERNET_IP + udp(block(RUN, 0, n), n)) for n in range(200)]
            frames += [
                (1000.5 + n + back_ms, ETHERNET_IP + udp(block(RUN, 1, n), n, ("10.0.1.1", 6000), ("10.0.0.1", 5000)))
                for n in range(200)
            ]
            frames.sort(key=lambda frame: frame[0])
            files.append(str(write_told(tmp_path / f"{point}-{ahead_ms}.pcapng", frames)))
        with compare_captures(*files) as comparison:
            (clock,) = comparison.clocks
            assert clock.evidence == evidence
            assert clock.error_ns == (3 * MS if evidence == "stated" else 20 * MS)
            assert [round(delay.summary["median"] / MS) for delay in comparison.delays] == delays


def test_one_direction_gives_no_offset(tmp_path: Path) -> None:
    points = Points(("sender", "receiver"), {"receiver": Clock(3_200_000_000)})
    for n in range(1000):
        points.put(udp(block(RUN, 0, n), n), [START_NS + n * MS, START_NS + (n + 5) * MS + n % 3 * MS])
    with compared(points, tmp_path) as comparison:
        (clock,) = comparison.clocks
        assert (clock.evidence, clock.offset_ns, clock.error_ns) == ("forward", None, None)
        (delay,) = comparison.delays
        assert not delay.absolute
        assert round(delay.summary["min"]) == 0 and round(delay.summary["max"]) == 2 * MS


def handshake(points: Points, **more: Any) -> None:
    part = 1 if len(points.roles) == 3 else 2  # of the points, one more is between the ends or none
    points.pass_by(tcp(-1, flags="S", ip_id=1, **more), 0, (0, 2, 5)[::part])
    points.pass_by(tcp(-1, back=True, flags="SA", ip_id=1, **more), 0, (10, 8, 5)[::part])
    points.pass_by(tcp(0, ip_id=2, **more), 0.001, (10, 12, 15)[::part])


@pytest.mark.parametrize("version", [4, 6], ids=["ids", "no-ids"])
def test_a_retransmission_is_distinguished_from_its_original(tmp_path: Path, version: int) -> None:
    points = Points()
    handshake(points, version=version)
    fates = []
    chance = Random(3)
    for n in range(400):
        fate = chance.choices(("arrives", "before", "after"), (90, 5, 5))[0]
        fates.append(fate)
        times = {"arrives": (0, 2, 5), "before": (0, None, None), "after": (0, 2, None)}[fate]
        points.pass_by(tcp(n * 1000, 1000, ip_id=10 + n, version=version), 20 + n, times)
        if fate != "arrives":  # again, 60 ms later, the same bytes
            points.pass_by(tcp(n * 1000, 1000, ip_id=5000 + n, version=version), 80 + n, (0, 2, 5))
    with compared(points, tmp_path) as comparison:
        ledger = ledger_of(comparison, "packets")
        counts = Counter(fates)
        assert ledger.lost == {"before_tracer": counts["before"], "after_tracer": counts["after"]}
        assert ledger.sent == 2 + 400 + counts["before"] + counts["after"]
        delays = {(delay.start, delay.end): delay.summary for delay in comparison.delays}
        assert delays["sender", "receiver"]["max"] - delays["sender", "receiver"]["min"] < MS


def test_translated_addresses_are_the_same_flow(tmp_path: Path) -> None:
    points = Points(rewrites={"tracer": translated, "receiver": translated})
    handshake(points)
    for n in range(100):
        times = (0, 2, None) if n == 50 else (0, 2, 5)
        points.pass_by(tcp(n * 500, 500, ip_id=10 + n), 20 + n, times)
    for n in range(200):
        points.pass_by(udp(b"voice %d" % n, 7000 + n, ("10.0.0.1", 5004)), n, (0, 2, 5))
    with compared(points, tmp_path) as comparison:
        ledger = ledger_of(comparison, "packets")
        assert (ledger.sent, ledger.lost) == (2 + 100 + 200, {"after_tracer": 1})
        rows = comparison.rows("SELECT evidence FROM members WHERE point = 1")
        assert {row["evidence"] for row in rows} == {"carried"}
        assert not [note for note in comparison.notes if "only the" in note]


def test_super_segments_are_split_as_on_the_wire(tmp_path: Path) -> None:
    points = Points()
    handshake(points)
    lost = {3: "before", 17: "after", 44: "before"}
    for n in range(10):
        start = START_NS + (20 + 10 * n) * MS
        points.put(tcp(n * 10_000, 10_000, ip_id=100 + 10 * n), [start, None, None])
        for k in range(10):
            fate = lost.get(10 * n + k)
            times = [None, None if fate == "before" else start + 2 * MS + k, None if fate else start + 5 * MS + k]
            points.put(tcp(n * 10_000 + k * 1000, 1000, ip_id=100 + 10 * n + k), times)
    with compared(points, tmp_path) as comparison:
        ledger = ledger_of(comparison, "packets")
        assert ledger.sent == 102
        assert ledger.lost == {"before_tracer": 2, "after_tracer": 1}
        places = comparison.rows(
            "SELECT key1::BIGINT - 1099511627776 AS start, place FROM outcomes WHERE place IS NOT NULL ORDER BY start"
        )
        assert [(row["start"] // 1000, row["place"]) for row in places] == [
            (place, f"{fate}_tracer") for place, fate in lost.items()
        ]


def test_a_datagram_is_lost_when_a_fragment_is(tmp_path: Path) -> None:
    points = Points(rewrites={"tracer": in_fragments(), "receiver": in_fragments()})
    for n in range(50):
        points.pass_by(udp(block(RUN, 0, n, 4000), 500 + n), n, (0, 2, 5))
    captures = points.write(tmp_path)
    at_receiver = points.packets["receiver"]
    for n in (10, 20):  # a middle fragment, a last one
        del at_receiver[3 * n + 1 + (n == 20) - (n > 10)]
    points.write(tmp_path)
    with compare_captures(*map(str, captures)) as comparison:
        ledger = ledger_of(comparison, "blocks")
        assert (ledger.sent, ledger.lost) == (50, {"after_tracer": 2})
        assert ledger_of(comparison, "packets").incomplete == 2


@pytest.mark.parametrize("step", [1, 3])
def test_ids_that_wrap_still_distinguish_equal_payloads(tmp_path: Path, step: int) -> None:
    points, count = Points(("sender", "receiver")), 100_000
    lost = set(Random(5).sample(range(count), 700))
    template = bytearray(udp(b"\0" * 64))
    for n in range(count):
        template[4:6] = ((n * step + 11) % 65536).to_bytes(2, "big")
        sent = START_NS + n * 20_000
        points.put(bytes(template), [sent, None if n in lost else sent + 5 * MS])
    with compared(points, tmp_path) as comparison:
        rows = comparison.rows("SELECT f0 - 1 AS n FROM outcomes WHERE place IS NOT NULL")
        assert {row["n"] for row in rows} == lost
        assert len(rows) == len(lost)
        (delay,) = comparison.delays
        assert delay.summary["max"] < 1000


def test_copies_made_by_the_network_are_no_packets_of_their_own(tmp_path: Path) -> None:
    points = Points()
    for n in range(200):
        packet = udp(block(RUN, 0, n), n)
        points.pass_by(packet, n, (0, 2, 5))
        if n % 50 == 0:
            points.pass_by(packet, n, (None, None, 6))
    with compared(points, tmp_path) as comparison:
        ledger = ledger_of(comparison, "packets")
        assert (ledger.sent, ledger.arrived, ledger.copies, ledger.lost) == (200, 200, 4, {})


def test_ports_used_again_are_another_connection(tmp_path: Path) -> None:
    points = Points(("sender", "receiver"))
    for turn in range(3):
        isn = (1000 + 7_000_000 * turn, 900_000 + turn)
        base = START_NS + turn * 1000 * MS
        points.put(tcp(-1, flags="S", isn=isn), [base, base + 5 * MS])
        points.put(tcp(-1, back=True, flags="SA", isn=isn), [base + 10 * MS, base + 5 * MS])
        for n in range(20):
            sent = base + (20 + n) * MS
            points.put(tcp(n * 100, 100, ip_id=n + 1, isn=isn), [sent, None if (turn, n) == (1, 4) else sent + 5 * MS])
    with compared(points, tmp_path) as comparison:
        ledger = ledger_of(comparison, "packets")
        assert (ledger.sent, ledger.lost) == (63, {"network": 1})
        assert len({row["flow"] for row in comparison.flows}) == 3


def test_an_acknowledgment_proves_that_the_last_capture_missed_data(tmp_path: Path) -> None:
    points = Points(("sender", "receiver"))
    handshake(points)
    for n in range(50):
        points.pass_by(tcp(n * 100, 100, ip_id=10 + n), 20 + n, (0, None if n == 25 else 5))
        points.pass_by(tcp(0, back=True, ack=100 * n + 100, ip_id=10 + n), 20 + n, (10, 5.000001))
    with compared(points, tmp_path) as comparison:
        ledger = ledger_of(comparison, "packets")
        assert ledger.lost == {}
        assert {stage.role: stage.missed for stage in ledger.stages} == {"sender": 0, "receiver": 1}
