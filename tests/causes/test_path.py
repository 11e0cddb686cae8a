# SPDX-License-Identifier: Apache-2.0
"""Causes on the path: each beside its nearest rivals, which are not taken for it; and healthy transfers, which have none."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import causes_path as paths
import needless_wire as repeats
import one_queue
import transfer_wires as wires
import wiretale
from causes_ends import late_reader, names_behind
from finding_captures import of_wire
from plain_wire import ACK, MSS, PSH, RST, Connection, Wire, sack
from wiretale.analyzer.causes.path.loss_moments import Moment, later_losses
from wiretale.analyzer.causes.path.lossy import Lossy, pooled
from wiretale.analyzer.findings.transfers import RETRANSMISSIONS, Transfer
from wiretale.analyzer.rows import CauseRow

Make = Callable[[Path], Path]


def causes_of(make: Make, folder: Path) -> list[CauseRow]:
    """The causes above a note."""
    return [row for row in wiretale.analyze(make(folder / "capture.pcap")).causes if row["severity"] != "info"]


def first(make: Make, folder: Path) -> CauseRow:
    """The cause that heads the capture."""
    path = make(folder / "capture.pcap")
    trace = wiretale.analyze(path)
    (row,) = (row for row in trace.causes if row["cause"] == trace.answer.number)
    assert trace.answer.sentence.startswith(row["sentence"])  # more such cases may follow
    return row


@pytest.mark.parametrize(("flight", "is_told"), [(1, True), (20, False)])
def test_a_link_that_is_busy_all_the_time_is_told_by_its_rate(flight: int, is_told: bool, tmp_path: Path) -> None:
    answer = wiretale.analyze(paths.from_full_link(flight).write(tmp_path / "capture.pcap")).answer
    assert answer.cause == "random-loss" and "lost before the capture point" in answer.sentence, answer.sentence
    assert ("a queue that overflows: nothing comes faster than 10" in answer.sentence) == is_told, answer.sentence


def test_at_the_sender_a_full_window_may_be_of_a_slow_reader(tmp_path: Path) -> None:
    trace = wiretale.analyze(late_reader(0.0).write(tmp_path / "capture.pcap"))
    assert trace.answer.cause == "bottleneck"
    assert "or a program that reads no faster behind a full window of 11.8 kB" in trace.answer.sentence


def at_random(share: float, behind: bool = False) -> Callable[[], Wire]:
    return lambda: paths.dropped_at_random(behind, share)


def constant_rate() -> Wire:
    """A tenth of a steady stream of flights, at random: the rate that passes is as level as a policer's."""
    dice = random.Random(2)
    return paths.rounds(lambda now: dice.random() < 0.1, [40] * 150)


@pytest.mark.parametrize(
    ("megabits", "bucket", "behind"), [(3, 15_000, False), (10, 30_000, False), (10, 30_000, True)]
)
def test_a_policer_is_told_with_its_rate(megabits: int, bucket: int, behind: bool, tmp_path: Path) -> None:
    byte_ms = megabits * 125.0
    flights = paths.sizes_of(120) if megabits == 10 else [8, 12, 10, 16, 9] * 30
    row = first(of_wire(lambda: paths.rounds(paths.Policer(byte_ms, bucket, bucket).drops, flights, behind)), tmp_path)
    assert row["code"] == "policer", row["sentence"]
    rate = float(row["sentence"].split(" Mbit/s")[0].split()[-1])
    assert rate == pytest.approx(megabits, rel=0.1)
    assert (row["certainty"], row["place"]) == (("likely", "before") if behind else ("proven", "after"))
    assert ("round trip stayed at 40 ms" in row["sentence"]) != behind


GROWING = [10, 20, 40, 80, 160, 240, *(28 + 2 * (turn % 18) for turn in range(120))]


@pytest.mark.parametrize("behind", [False, True])
def test_a_policer_is_told_of_flights_at_line_rate(behind: bool, tmp_path: Path) -> None:
    """The first flights overshoot, and each runs back to back at ten times the rate."""
    policer = paths.Policer(bucket=60_000, tokens=60_000)
    row = first(of_wire(lambda: paths.rounds(policer.drops, GROWING, behind, each=1000)), tmp_path)
    assert row["code"] == "policer" and " at 10 Mbit/s after bursts" in row["sentence"], row["sentence"]


def test_the_losses_of_slow_start_are_told_from_those_after_it() -> None:
    """The moments of most of the first ones are not known."""
    first = [Moment(1e9 + 1e6 * n, 1e6, MSS, n, 2e9 + 1e6 * n) for n in range(40)]
    afterwards = [Moment(9e9 + 1e7 * n, 5e6 + 1e4 * n, MSS, 50 + n, 10e9 + 1e7 * n) for n in range(60)]
    words = {name: number for number, name in enumerate(RETRANSMISSIONS)}
    repeats = [2e9 + 1e6 * n for n in range(200)] + [moment.shown_ns for moment in afterwards]
    trace = SimpleNamespace(words=words, events=lambda flows, *names: [(0, 0, time_ns) for time_ns in repeats])
    transfer = SimpleNamespace(row={"flow": 0, "direction": 0})
    assert later_losses(cast(Any, trace), cast(Any, transfer), [*first, *afterwards], 4e7) == afterwards
    repeats.extend([10e9] * 60)  # of those the moments are not known
    assert not later_losses(cast(Any, trace), cast(Any, transfer), [*first, *afterwards], 4e7)


@pytest.mark.parametrize(("room", "drop", "is_full"), [(16.0, 0.0, True), (400.0, 0.02, False)])
def test_a_short_queue_that_is_always_full_overflows(room: float, drop: float, is_full: bool, tmp_path: Path) -> None:
    """Round trips at losses are as long as all others."""
    path = one_queue.Path(50e6, room, drop)
    causes = wiretale.analyze(paths.through(path, 0.5, 2.0).write(tmp_path / "capture.pcap")).causes
    codes = [row["code"] for row in causes]
    assert ("bottleneck" in codes, "random-loss" in codes) == (is_full, not is_full)


@pytest.mark.parametrize(
    ("room", "drop", "is_even"), [(8.0, 0.0, True), (3.0, 0.0, True), (1000.0, 0.004, False), (1000.0, 0.01, False)]
)
def test_a_queue_too_short_to_delay_overflows_at_even_distances(
    room: float, drop: float, is_even: bool, tmp_path: Path
) -> None:
    """Losses at random come at any distance."""
    path, limit = one_queue.Path(300e6, room, drop), 400.0 if is_even else 24.0
    row = first(of_wire(lambda: paths.through(path, 1.0, 0.6, most=limit)), tmp_path)
    assert row["code"] == "random-loss", row["sentence"]
    assert ("about once in each " in row["sentence"], "too short to delay" in row["sentence"]) == (is_even, is_even), (
        row
    )


def line_rate(flights: list[int], share: float = 0.02) -> Callable[[], Wire]:
    """Flights back to back that lose some segments at random."""
    dice = random.Random(4)
    return lambda: paths.rounds(lambda now: dice.random() < share, flights, each=1000)


@pytest.mark.parametrize(
    "rival",
    [
        line_rate(GROWING),
        line_rate([12] * 60),
        line_rate([20] * 60),
        at_random(0.01),
        at_random(0.05),
        at_random(0.1, True),
        constant_rate,
        lambda: one_queue.through_one_queue(1, 10e6, 60.0, 6.0)[0],
        lambda: one_queue.through_one_queue(1, 10e6, 60.0, 6.0, True)[0],
        lambda: one_queue.through_one_queue(1, 10e6, 10.0, 6.0)[0],
    ],
    ids=[
        "growing flights",
        "flights of 12",
        "flights of 20",
        "1% at random",
        "5%",
        "10% upstream",
        "constant rate",
        "queue",
        "behind a queue",
        "short queue",
    ],
)
def test_other_losses_are_no_policer(rival: Callable[[], Wire], tmp_path: Path) -> None:
    assert "policer" not in [row["code"] for row in causes_of(of_wire(rival), tmp_path)]


def test_a_queue_that_overflows_at_the_start_is_no_policer(tmp_path: Path) -> None:
    """Seen at the receiver: the losses of slow start, then a level rate."""
    codes = [
        row["code"]
        for row in causes_of(of_wire(lambda: paths.through(one_queue.Path(20e6, 20.0), behind=True)), tmp_path)
    ]
    assert codes == ["random-loss"]


def test_losses_at_random_are_told_with_share_place_and_round_trip(tmp_path: Path) -> None:
    row = first(of_wire(at_random(0.01)), tmp_path)
    assert (row["code"], row["certainty"], row["place"]) == ("random-loss", "proven", "after")
    assert "were lost after the capture point, one at a time" in row["sentence"] and "at 40 ms" in row["sentence"]
    row = first(of_wire(at_random(0.05, True)), tmp_path)
    assert (row["code"], row["certainty"], row["place"]) == ("random-loss", "likely", "before")


def test_hosts_that_lose_alike_are_told_as_one(tmp_path: Path) -> None:
    """Twelve pairs of hosts behind one full queue, which no round trip shows, because it is always full."""
    rows = causes_of(of_wire(lambda: one_queue.through_one_queue(12, 10e6, 25.0, 3.0)[0]), tmp_path)
    alike = [row for row in rows if row["code"] == "random-loss" and "at a place that they share" in row["sentence"]]
    assert len(alike) == 1 and alike[0]["certainty"] == "likely", [row["sentence"] for row in rows]


@pytest.mark.parametrize(
    ("lost", "places", "sizes"),
    [
        ((100, 120, 90, 300), "dddd", [4]),
        ((100, 120, 90, 900), "dddd", [3, 1]),  # one of them has a worse place of its own
        ((100, 120), "dd", [1, 1]),
        ((100, 120, 90), "ddu", [1, 1, 1]),
    ],
)
def test_hosts_that_lose_otherwise_are_told_apart(lost: tuple[int, ...], places: str, sizes: list[int]) -> None:
    every = [
        Lossy(
            cast("Transfer", SimpleNamespace(sent_or_lost=1000)), {"d": "downstream", "u": "upstream"}[place], [], count
        )
        for count, place in zip(lost, places, strict=True)
    ]
    assert sorted(map(len, pooled([[lossy] for lossy in every])), reverse=True) == sizes


@pytest.mark.parametrize(("spared", "back", "sizes"), [(2, 0, [3]), (4, 0, [1, 1, 1]), (0, 9, [3])])
def test_hosts_that_lose_beside_others_that_do_not(spared: int, back: int, sizes: list[int]) -> None:
    """Three lose 1%; `spared`: other pairs that lose nothing, `back`: those in the opposite direction."""

    def transfer(source: str, target: str, lost: int) -> Any:
        row = {"source": source, "destination": target}
        return SimpleNamespace(sent_or_lost=1000, row=row, count=lambda *names: lost)

    losing = [transfer(f"c{number}", f"s{number}", 10) for number in range(3)]
    beside = [transfer(f"d{number}", "s1", 0) for number in range(spared)]
    beside += [transfer(f"s{number}", "c1", 0) for number in range(back)]
    groups = [[Lossy(cast("Transfer", each), "upstream", [], 10)] for each in losing]
    every = cast("list[Transfer]", [*losing, *beside])
    assert sorted(map(len, pooled(groups, every)), reverse=True) == sizes


def test_what_the_capture_missed_is_not_lost(tmp_path: Path) -> None:
    make = of_wire(lambda: paths.thinned(paths.dropped_at_random(True, 0.004)))
    trace = wiretale.analyze(make(tmp_path / "capture.pcap"))
    assert trace.answer.cause == "capture-drops", trace.answer.sentence
    assert {row["severity"] for row in trace.causes if row["code"] == "random-loss"} <= {"info"}


@pytest.mark.parametrize(("rtt", "share", "may_be"), [(8.0, 0.15, True), (8.0, 0.02, False), (40.0, 0.15, False)])
def test_many_losses_on_a_short_path_may_be_a_duplex_mismatch(
    rtt: float, share: float, may_be: bool, tmp_path: Path
) -> None:
    row = first(of_wire(lambda: paths.collisions(rtt, share)), tmp_path)
    assert (row["code"], row["certainty"]) == (("duplex-mismatch", "possible") if may_be else ("random-loss", "proven"))


@pytest.mark.parametrize("rtt", [8.0, 40.0])
def test_a_cause_of_many_losses_spans_all_of_them(rtt: float, tmp_path: Path) -> None:
    """Fewer packets are listed than were lost, but the time ends at the last."""
    make = of_wire(lambda: paths.collisions(rtt, 0.2))
    trace = wiretale.analyze(make(tmp_path / "capture.pcap"))
    repaired_ns = [row["time_ns"] or 0 for row in trace.events.rows() if row["kind"].endswith("retransmission")]
    assert len(repaired_ns) > 200
    assert trace.causes[0]["code"] == ("duplex-mismatch" if rtt == 8.0 else "random-loss")
    assert (trace.causes[0]["last_ns"] or 0) > max(repaired_ns) - 1_000_000_000


def test_lost_tails_are_not_losses_at_random(tmp_path: Path) -> None:
    row = first(of_wire(paths.lost_tails), tmp_path)
    assert (row["code"], row["waited_ns"]) == ("tail-loss", 12 * 300_000_000)
    assert row["sentence"].startswith("The last segments of 12 bursts from ")


@pytest.mark.parametrize(
    ("offered", "rtt", "is_told"), [(False, 120.0, True), (True, 120.0, False), (False, 2.0, False)]
)
def test_missing_sack_is_told_where_it_costs(tmp_path: Path, offered: bool, rtt: float, is_told: bool) -> None:
    row = first(of_wire(lambda: paths.repaired_one_by_one(offered, rtt)), tmp_path)
    said = (
        "The SYN-ACK of 10.0.0.2 has no SACK, which 10.0.0.1 offers, so each lost segment of a burst takes a round trip"
    )
    assert (said in row["sentence"], "SACK" in row["sentence"]) == (is_told, is_told)


@pytest.mark.parametrize(("turns", "is_felt"), [(3, False), (12, True)])
def test_a_pause_hides_no_wait_of_seconds(tmp_path: Path, turns: int, is_felt: bool) -> None:
    """3.6 s of waiting are felt, 0.9 s are not, in a connection that is open for an hour."""
    rows = causes_of(of_wire(lambda: paths.lost_tails(turns, idle_ms=3_600_000)), tmp_path)
    assert [row["code"] for row in rows] == ["tail-loss"] * is_felt


def test_one_lost_tail_is_told_if_its_timer_took_most(tmp_path: Path) -> None:
    row = first(of_wire(lambda: paths.lost_tails(1)), tmp_path)
    assert (row["code"], row["waited_ns"]) == ("tail-loss", 300_000_000)
    assert row["sentence"].startswith("The last segment of a burst from ")
    assert row["sentence"].endswith("so the sender waited 300 ms for a timer.")


def test_damage_is_told_beside_loss(tmp_path: Path) -> None:
    row = first(paths.EXAMPLES["damaged-packets"], tmp_path)
    assert row["code"] == "damaged-packets" and row["sentence"].startswith("6 packets from 10.0.0.1 to 10.0.0.2:80 ")


def test_a_wrong_checksum_in_every_packet_is_the_senders(tmp_path: Path) -> None:
    row = first(paths.wrong_outer_checksum, tmp_path)
    assert (row["code"], row["place"], row["waited_ns"]) == ("wrong-checksums", "client", 31_002_000_000)
    assert "5 packets" in row["sentence"] and "outer UDP checksum" in row["sentence"]


def test_a_wrong_checksum_in_large_packets_is_no_path_mtu(tmp_path: Path) -> None:
    row = first(paths.large_ones_wrong, tmp_path)
    assert (row["code"], row["place"]) == ("wrong-checksums", "client")
    assert "15 packets" in row["sentence"] and "but answered those with a right one" in row["sentence"]


def test_names_behind_a_queue_are_not_a_slow_servers(tmp_path: Path) -> None:
    for late_ms, code in ((350.0, "bufferbloat"), (900.0, "slow-dns")):
        make = partial(names_behind, paths.standing_queue(), late_ms)
        assert first(of_wire(make), tmp_path)["code"] == code


@pytest.mark.parametrize(("shift", "is_rewritten"), [(900_000_000, True), (0, False)])
def test_sack_blocks_of_another_numbering_are_a_firewalls(shift: int, is_rewritten: bool, tmp_path: Path) -> None:
    rows = causes_of(of_wire(lambda: paths.shifted_sacks(shift)), tmp_path)
    assert ("options-rewritten" in [row["code"] for row in rows]) == is_rewritten
    if is_rewritten:
        assert "10 timeouts" in rows[0]["sentence"] and rows[0]["place"] == "device"


@pytest.mark.parametrize(("mss", "is_clamped"), [(536, True), (1360, False), (1460, False)])
def test_an_mss_that_no_tunnel_needs_is_a_clamp(mss: int, is_clamped: bool, tmp_path: Path) -> None:
    rows = causes_of(of_wire(lambda: paths.clamped(mss)), tmp_path)
    assert ("mss-clamp" in [row["code"] for row in rows]) == is_clamped


def codes_of(make: Callable[[], Wire], folder: Path) -> list[str]:
    return [row["code"] for row in causes_of(of_wire(make), folder)]


@pytest.mark.parametrize("flows", [1, 2])
def test_an_outage_has_its_times(flows: int, tmp_path: Path) -> None:
    """The path is down at 2.0, 5.5 and 9.0 s; timers of 300, 900 and 2,100 ms end the silence 2.1 s later."""
    rows = causes_of(of_wire(lambda: paths.down([2000.0, 5500.0, 9000.0], flows)), tmp_path)
    (row,) = (row for row in rows if row["code"] == "outage")
    assert row["waited_ns"] == pytest.approx(3 * 2.1e9, rel=0.06) and row["members"] == flows
    assert "2 times more every 3.5" in row["sentence"] or "2 times more every 3.4" in row["sentence"]
    assert {"stall", "tail-loss", "random-loss"}.isdisjoint(each["code"] for each in rows)


def test_a_stall_loses_nothing(tmp_path: Path) -> None:
    rows = causes_of(of_wire(paths.stood_still), tmp_path)
    (row,) = (row for row in rows if row["code"] == "stall")
    assert row["waited_ns"] == pytest.approx(1.122e9, rel=0.02)
    assert "1 segment was retransmitted needlessly" in row["sentence"] and "outage" not in [
        each["code"] for each in rows
    ]


def test_a_short_stall_holds_up_what_is_sent_meanwhile(tmp_path: Path) -> None:
    row = first(of_wire(paths.held_up), tmp_path)
    assert row["code"] == "stall" and "stalled for 2" in row["sentence"], row["sentence"]


def test_acks_that_a_timer_holds_back_are_no_stall(tmp_path: Path) -> None:
    assert "stall" not in codes_of(paths.acks_held, tmp_path)


@pytest.mark.parametrize("timer", [True, False])
def test_an_outage_shows_at_the_receiver_when_slow_start_comes_to_the_hole(timer: bool, tmp_path: Path) -> None:
    assert ("outage" in codes_of(lambda: paths.down_at_receiver(timer), tmp_path)) == timer


def test_missing_ip_ids_show_an_outage_whose_losses_all_were_repeated_in_order(tmp_path: Path) -> None:
    row = first(of_wire(lambda: paths.down_at_receiver(hole=False)), tmp_path)
    assert (row["code"], row["certainty"]) == ("outage", "likely") and "was probably down" in row["sentence"]


@pytest.mark.parametrize("timer", [True, False])
def test_a_stall_shows_at_the_receiver_by_what_timers_repeated_meanwhile(timer: bool, tmp_path: Path) -> None:
    assert ("stall" in codes_of(lambda: paths.stood_still_at_receiver(timer), tmp_path)) == timer


def test_a_path_that_always_loses_is_not_down(tmp_path: Path) -> None:
    def lossy_and_down() -> Wire:
        wire = paths.down([2000.0, 5500.0], 1)
        talk = Connection(wire, 40000)
        for n in range(300):
            number = 3000 + n
            talk.data(30000 + 25 * n, number * MSS)
            if n % 10 == 5:
                talk.data(30000 + 25 * n + 22, number * MSS)
            talk.ack(30000 + 25 * n + (44 if n % 10 == 5 else 20), (number + 1) * MSS)
        return wire

    assert "outage" in codes_of(lambda: paths.down([2000.0, 5500.0], 1), tmp_path)
    assert "outage" not in codes_of(lossy_and_down, tmp_path)


def test_a_slow_server_and_lost_tails_are_no_pause_of_the_path(tmp_path: Path) -> None:
    def slow_answers() -> Wire:
        talk = Connection(Wire()).open()
        for turn in range(5):
            talk.send(100 + 1000 * turn, 0, 50 * turn, 50, PSH | ACK, 200 * turn)
            talk.send(120 + 1000 * turn, 1, 200 * turn, ack=50 * turn + 50)
            talk.send(900 + 1000 * turn, 1, 200 * turn, 200, PSH | ACK, 50 * turn + 50)
        return talk.wire

    for make in (slow_answers, paths.lost_tails):
        assert {"stall", "outage"}.isdisjoint(codes_of(make, tmp_path))


@pytest.mark.parametrize(("every", "share", "certainty"), [(2, "49.9%", "proven"), (40, "2.42%", "likely")])
def test_reordering_has_share_and_delay(every: int, share: str, certainty: str, tmp_path: Path) -> None:
    trace = wiretale.analyze(of_wire(lambda: paths.out_of_order(every))(tmp_path / "capture.pcap"))
    (row,) = trace.causes
    assert (row["code"], row["certainty"]) == ("reordering", certainty)
    assert row["sentence"].startswith(share) and "2.75 ms late" in row["sentence"]


def test_a_standing_queue_is_told_with_bytes_and_round_trips(tmp_path: Path) -> None:
    row = first(of_wire(paths.standing_queue), tmp_path)
    assert row["code"] == "bufferbloat" and "policer" not in row["sentence"]


@pytest.mark.parametrize("together", [True, False])
def test_answers_that_start_together_are_incast(together: bool, tmp_path: Path) -> None:
    rows = causes_of(of_wire(lambda: paths.answers_at_once(together)), tmp_path)
    assert ("incast" in [row["code"] for row in rows]) == together
    assert together or rows[0]["members"] == 12


def test_incast_has_the_answers_that_were_repaired_without_a_timer(tmp_path: Path) -> None:
    """Beside them, a download of the same client that loses segments at other times is no part of it."""

    def beside() -> Wire:
        wire = paths.answers_at_once(fast=4)
        bulk = Connection(wire, 50000, ("10.0.0.1", "10.0.2.1")).open(0.0, 0.4)
        bulk.send(5.0, 0, 0, 50, PSH | ACK, 0)
        for n in range(200):
            at, is_lost = 240.0 + 10.0 * n, n % 20 == 10
            if not is_lost:
                bulk.send(at, 1, n * MSS, MSS, ACK, 50)
            if n % 20 == 13:
                bulk.send(at + 1.0, 0, 50, ack=(n - 3) * MSS, options=sack(((n - 2) * MSS, (n + 1) * MSS)))
                bulk.send(at + 2.0, 1, (n - 3) * MSS, MSS, ACK, 50)
            if n % 20 not in (10, 11, 12):
                bulk.send(at + 2.5, 0, 50, ack=(n + 1) * MSS)
        return wire

    (row,) = (row for row in causes_of(of_wire(beside), tmp_path) if row["code"] == "incast")
    assert row["members"] == 12


@pytest.mark.parametrize("behind", [False, True], ids=["sender", "receiver"])
def test_a_short_queue_is_a_bottleneck_where_its_delay_shows(behind: bool, tmp_path: Path) -> None:
    codes = codes_of(lambda: one_queue.through_one_queue(1, 20e6, 12.0, 8.0, behind)[0], tmp_path)
    assert codes == ["random-loss"] if behind else ["bottleneck"]


@pytest.mark.parametrize(
    "healthy",
    [
        lambda: wires.steady(wires.connection(), 400),
        lambda: wires.flights(wires.connection(), 30, 28),
        lambda: wires.growing_flights(),
        lambda: wires.bursts_of_work(80.0),
        lambda: wires.numbered(200, lambda i: True),
        lambda: paths.rounds(lambda now: False, [30] * 100),
        lambda: one_queue.run([one_queue.Path(200e6, 500.0)], [40.0], 3.0, most=60.0)[0],
    ],
)
def test_a_healthy_transfer_has_no_cause_on_its_path(healthy: Callable[[], Wire], tmp_path: Path) -> None:
    trace = wiretale.analyze(of_wire(healthy)(tmp_path / "capture.pcap"))
    path_codes = set(paths.EXAMPLES)
    assert not [row["sentence"] for row in trace.causes if row["code"] in path_codes and row["severity"] != "info"]


@pytest.mark.parametrize("in_bursts", [True, False])
def test_losses_in_the_bursts_of_a_stream_are_no_faulty_link(in_bursts: bool, tmp_path: Path) -> None:
    row = first(of_wire(lambda: paths.video(in_bursts)), tmp_path)
    assert row["code"] == "random-loss" and ("nearly all in its largest bursts" in row["sentence"]) == in_bursts


def test_a_path_mtu_that_a_router_told_is_no_loss_of_a_link(tmp_path: Path) -> None:
    trace = wiretale.analyze(of_wire(paths.smaller_path)(tmp_path / "told.pcap"))
    row = next(row for row in trace.causes if row["code"] == "path-mtu-found")
    assert row["sentence"].startswith("The router 10.0.0.9 told 10.0.0.1 that at most 1,400 bytes pass")
    assert row["severity"] == "info" and trace.answer.cause is None
    silent = wiretale.analyze(of_wire(lambda: paths.smaller_path(False))(tmp_path / "silent.pcap"))
    assert "path-mtu-found" not in [row["code"] for row in silent.causes]


def test_what_its_receiver_drops_is_not_lost_on_the_path(tmp_path: Path) -> None:
    row = first(of_wire(paths.dropped_by_the_host), tmp_path)
    assert (row["code"], row["certainty"], row["place"]) == ("host-drops", "proven", "server")
    assert row["sentence"].startswith(
        "The network is not at fault: 42 segments from 10.0.0.1 (0.94% of 4,452) reached 10.0.0.2 intact, but it dropped "
        "them, and acknowledged them only when they came again"
    )


def test_behind_an_adapter_it_may_be_the_path(tmp_path: Path) -> None:
    assert first(of_wire(lambda: paths.dropped_by_the_host(summed=True)), tmp_path)["code"] == "random-loss"


def test_lost_acks_are_proven_by_timestamps(tmp_path: Path) -> None:
    row = first(paths.EXAMPLES["needless-repeats"], tmp_path)
    assert (row["code"], row["certainty"], row["place"]) == ("needless-repeats", "proven", "after")
    assert (
        "at least 12 ACKs were lost on the way back, after the capture point; its timers took 6.72 s" in row["sentence"]
    )


def test_acks_that_come_late_are_probably_delayed(tmp_path: Path) -> None:
    row = first(paths.of_packets(paths.acks_late), tmp_path)
    assert (row["code"], row["certainty"]) == ("needless-repeats", "likely")
    assert "its timer expired before the ACKs came, on a path of 20 ms" in row["sentence"]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"rtt": 300.0, "rate": 2.0, "every": 3}, "it repeats after 200 ms what has no ACK, and ACKs take"),
        ({}, "it repeats after 200 ms what has no ACK, and hardly an ACK comes sooner"),
        ({"near": 59.9, "count": 1_500}, "of a path that is full"),
    ],
    ids=["a long path", "a queue", "a queue before the receiver"],
)
def test_a_timer_that_is_too_short_fills_the_path(more: dict[str, Any], says: str, tmp_path: Path) -> None:
    trace = wiretale.analyze(repeats.impatient(**more).write(tmp_path / "timers.pcap"))
    assert trace.answer.cause == "needless-repeats" and says in trace.answer.sentence
    assert "bottleneck" not in trace.causes.column("code")


def test_a_full_path_without_repeats_is_a_bottleneck(tmp_path: Path) -> None:
    codes = causes_of(of_wire(lambda: repeats.impatient(timer=60_000.0, near=59.9)), tmp_path)
    assert "needless-repeats" not in [row["code"] for row in codes]


@pytest.mark.parametrize("more", [{}, {"every": 3, "late": 12.0}, {"gap": 15.0, "late": 60.0, "rtt": 20.0}])
def test_repeats_after_three_duplicate_acks_are_of_no_timer(more: dict[str, float], tmp_path: Path) -> None:
    trace = wiretale.analyze(repeats.overtaken(**more).write(tmp_path / "overtaken.pcap"))
    assert "overtake each other" in trace.answer.sentence or trace.answer.cause == "reordering"


def test_needless_probes_are_a_note(samples: Path) -> None:
    """A probe goes out before the timer, so that nobody waits for it."""
    trace = wiretale.analyze(samples / "tail_loss_probes.pcapng")
    (row,) = (row for row in trace.causes if row["code"] == "needless-repeats")
    assert (row["severity"], row["waited_ns"]) == ("info", None)


def test_a_transfer_that_never_goes_on_is_no_outage(tmp_path: Path) -> None:
    """After small messages, no full segment is acknowledged any more, until its sender gives up."""
    talk = Connection(Wire(by_time=True)).open()
    for n in range(8):
        talk.send(30 + 30 * n, 0, 300 * n, 300, PSH | ACK, 60 * n).send(
            50 + 30 * n, 1, 60 * n, 60, PSH | ACK, 300 * (n + 1)
        )
    for n in range(10):
        talk.send(300 + n / 10, 0, 2400 + n * MSS, MSS, ack=480)
    for ms in (600, 1_200, 2_400, 4_800, 9_600):
        talk.send(ms, 0, 2400, MSS, ack=480)
    talk.send(14_000, 1, 480, 60, PSH | ACK, 2400).send(14_000.1, 0, 2400 + 10 * MSS, flags=RST)
    assert "outage" not in [row["code"] for row in causes_of(of_wire(lambda: talk.wire), tmp_path)]
