# SPDX-License-Identifier: Apache-2.0
"""Columns of TCP conversations, against captures crafted segment by segment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wiretale
from capture_files import write_pcap
from checkout import SAMPLES
from plain_wire import MSS, START_NS, Connection, Wire, sack
from talk import Talk

SECOND = 1_000_000_000


class Conversation(Talk):
    """Segments by stream position; 0 is the first byte after the SYN."""

    def __init__(self, version: int = 4, isn: tuple[int, int] = (1000, 5000)) -> None:
        super().__init__(ids=False, timestamps=False, version=version, isn=isn)

    def segment(
        self, ms: float, side: int, flags: str, at: int = 0, ack: int | None = None, size: int = 0, **more: Any
    ) -> Conversation:
        """One segment of `side` (0 client, 1 server) at `ms`; SYN is at position -1."""
        self.send(ms, side, at, size, ack, flags, **more)
        return self

    def handshake(self) -> Conversation:
        return (
            self.segment(0, 0, "S", -1, options=[("MSS", 1460), ("WScale", 7), ("SAckOK", b"")])
            .segment(10, 1, "SA", -1, 0, options=[("MSS", 1400), ("WScale", 2)])
            .segment(12, 0, "A", 0, 0)
        )


Analyze = Callable[[Conversation], wiretale.Trace]


@pytest.fixture
def analyze(tmp_path: Path) -> Analyze:
    return lambda conversation: wiretale.analyze(conversation.write(tmp_path))


def kinds(trace: wiretale.Trace) -> list[tuple[str, int, int | None, int | None]]:
    return [(e["kind"], e["frame"], e["bytes"], e["related_frame"]) for e in trace.events.rows()]


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("isn", [(1000, 5000), (2**32 - 1, 2**32 - 700)])
def test_a_clean_transfer_has_no_trouble(analyze: Analyze, version: int, isn: tuple[int, int]) -> None:
    talk = Conversation(version, isn).handshake()
    for i in range(3):
        talk.segment(20 + i, 0, "PA", 500 * i, 0, 500).segment(40 + i, 1, "A", 0, 500 * (i + 1))
    talk.segment(60, 0, "FA", 1500, 0).segment(80, 1, "FA", 0, 1501).segment(82, 0, "A", 1501, 1)
    trace = analyze(talk)
    (flow,) = trace.flows.rows()
    assert (flow["state"], flow["initiator_evidence"], flow["initiator_known"]) == ("closed", "syn", True)
    assert flow["handshake_rtt_ns"] == 12_000_000
    assert (flow["source_port"], flow["destination_port"], flow["ip_version"]) == (40000, 80, version)
    out, back = trace.directions.rows()
    assert out | {"packets": 7, "payload_bytes": 1500, "unique_bytes": 1500, "data_packets": 3} == out
    assert (out["retransmitted_bytes"], out["gaps"], out["unseen_bytes"], out["gap_bytes"]) == (0, 0, 0, 0)
    assert out["rtt_samples"] == 5  # SYN, three segments, FIN
    assert (out["rtt_ns_min"], out["rtt_ns_max"]) == (10_000_000, 20_000_000)
    assert (back["rtt_ns_min"], back["rtt_ns_max"], back["rtt_samples"]) == (2_000_000, 2_000_000, 2)
    assert (out["mss"], out["window_scale"], back["mss"], back["window_scale"]) == (1460, 7, 1400, 2)
    assert (out["sack_permitted"], back["sack_permitted"]) == (True, False)
    assert (out["window_max"], back["window_max"]) == (8192 << 7, 8192 << 2)
    assert out["initial_sequence"] == isn[0]
    assert (out["flight_max"], out["duplicate_acks"], back["duplicate_acks"]) == (1500, 0, 0)
    assert len(trace.events) == 0


def test_bytes_sent_twice_are_retransmitted_and_give_no_round_trip(analyze: Analyze) -> None:
    talk = Conversation().handshake()
    talk.segment(20, 0, "PA", 0, 0, 500).segment(220, 0, "PA", 0, 0, 500).segment(221, 1, "A", 0, 500)
    trace = analyze(talk)
    out, _ = trace.directions.rows()
    assert (out["unique_bytes"], out["retransmitted_bytes"], out["retransmissions"]) == (500, 500, 1)
    assert out["payload_bytes"] == out["unique_bytes"] + out["retransmitted_bytes"]
    assert (out["rtt_samples"], out["rtt_ns_max"]) == (1, 10_000_000)  # of the SYN alone: Karn's rule
    assert kinds(trace) == [("timeout_retransmission", 5, 500, 4)]


def test_a_gap_that_is_filled_is_not_a_retransmission(analyze: Analyze) -> None:
    talk = Conversation().handshake()
    talk.segment(20, 0, "PA", 500, 0, 500).segment(21, 0, "PA", 0, 0, 500).segment(40, 1, "A", 0, 1000)
    trace = analyze(talk)
    out, _ = trace.directions.rows()
    assert (out["unique_bytes"], out["retransmitted_bytes"]) == (1000, 0)
    assert (out["gaps"], out["gaps_filled"], out["gap_bytes"]) == (1, 1, 0)
    assert kinds(trace) == [("gap", 4, 500, None), ("out_of_order", 5, 500, 4)]


def test_partly_new_bytes_are_split(analyze: Analyze) -> None:
    talk = Conversation().handshake()
    talk.segment(20, 0, "PA", 0, 0, 500).segment(30, 0, "PA", 300, 0, 500)
    out, _ = analyze(talk).directions.rows()
    assert (out["unique_bytes"], out["retransmitted_bytes"], out["payload_bytes"]) == (800, 200, 1000)


def test_bytes_acknowledged_and_never_seen_are_unseen(analyze: Analyze) -> None:
    talk = Conversation().handshake()
    talk.segment(20, 0, "PA", 500, 0, 500).segment(40, 1, "A", 0, 1000).segment(50, 0, "PA", 1000, 0, 100)
    trace = analyze(talk)
    out, _ = trace.directions.rows()
    assert (out["unseen_bytes"], out["gap_bytes"], out["unique_bytes"]) == (500, 0, 600)
    assert ("acked_unseen_segment", 5, 500, None) in kinds(trace)


def test_an_acknowledgment_of_part_of_a_gap_makes_that_part_unseen(analyze: Analyze) -> None:
    talk = Conversation().handshake()
    talk.segment(20, 0, "PA", 900, 0, 100).segment(40, 1, "A", 0, 300)
    out, _ = analyze(talk).directions.rows()
    assert (out["unseen_bytes"], out["gap_bytes"]) == (300, 600)


def test_a_segment_stored_after_its_acknowledgment_is_no_retransmission(analyze: Analyze) -> None:
    talk = Conversation().handshake()
    talk.segment(20, 1, "A", 0, 500).segment(20.001, 0, "PA", 0, 0, 500)
    out, _ = analyze(talk).directions.rows()
    assert (out["unseen_bytes"], out["unique_bytes"], out["retransmitted_bytes"]) == (0, 500, 0)


def test_duplicate_acknowledgments_need_data_outstanding(analyze: Analyze) -> None:
    talk = Conversation().handshake()
    talk.segment(15, 0, "A", 0, 0).segment(16, 0, "A", 0, 0)  # nothing outstanding: none of RFC 5681's
    for i in range(4):
        talk.segment(20 + i, 0, "PA", 500 * (i + 1), 0, 500)  # 0..500 is lost before the capture point
        talk.segment(30 + i, 1, "A", 0, 0)
    out, back = analyze(talk).directions.rows()
    assert (out["duplicate_acks"], back["duplicate_acks"]) == (0, 4)


def test_a_keep_alive_is_not_a_retransmission(analyze: Analyze) -> None:
    talk = Conversation().handshake()
    talk.segment(20, 0, "PA", 0, 0, 500).segment(30, 1, "A", 0, 500)
    talk.segment(60_000, 0, "A", 499, 0, 1).segment(60_010, 1, "A", 0, 500)
    out, _ = analyze(talk).directions.rows()
    assert (out["retransmitted_bytes"], out["retransmissions"], out["unique_bytes"]) == (0, 0, 500)


def test_zero_windows_are_counted_and_drawn(analyze: Analyze) -> None:
    talk = Conversation().handshake()
    talk.segment(20, 0, "PA", 0, 0, 500).segment(30, 1, "A", 0, 500, window=0).segment(90, 1, "A", 0, 500, window=100)
    trace = analyze(talk)
    _, back = trace.directions.rows()
    assert (back["zero_windows"], back["window_min"]) == (1, 0)
    assert kinds(trace) == [("zero_window", 5, None, None)]
    assert 0 in [row["window_bytes"] for row in trace.series.rows() if row["direction"] == 0]


def test_a_midstream_start_takes_the_first_segment_as_base(analyze: Analyze) -> None:
    talk = Conversation()
    talk.segment(0, 1, "A", 700, 5000, window=500).segment(1, 0, "PA", 5000, 700, 100).segment(11, 1, "A", 700, 5100)
    talk.segment(12, 0, "PA", 4000, 700, 200)  # below: sent before the capture began, acknowledged
    trace = analyze(talk)
    (flow,) = trace.flows.rows()
    assert (flow["state"], flow["initiator_evidence"], flow["initiator_known"]) == (
        "midstream",
        "first_packet",
        False,
    )
    client = next(d for d in trace.directions.rows() if d["source_port"] == 40000)
    assert (client["unique_bytes"], client["retransmitted_bytes"]) == (100, 200)
    assert client["window_max"] is None  # its scale was never seen
    assert client["rtt_ns_min"] == 10_000_000


def test_one_direction_alone_leaves_two_way_columns_null(analyze: Analyze) -> None:
    talk = Conversation()
    for i in range(20):
        talk.segment(i, 0, "PA", 100 * i, 0, 100)
    talk.segment(30, 0, "PA", 500, 0, 100)
    trace = analyze(talk)
    (flow,) = trace.flows.rows()
    out, back = trace.directions.rows()
    assert flow["one_way"] is True
    assert (out["unique_bytes"], out["retransmitted_bytes"]) == (2000, 100)
    assert out["unseen_bytes"] is None and out["flight_max"] is None and out["rtt_ns_min"] is None
    assert (back["packets"], back["first_ns"], back["throughput_bps"], back["mss"]) == (0, None, None, None)


def test_an_unanswered_and_a_refused_syn(analyze: Analyze) -> None:
    lonely = Conversation().segment(0, 0, "S", -1).segment(1000, 0, "S", -1).segment(3000, 0, "S", -1)
    trace = analyze(lonely)
    assert trace.flows.rows()[0]["state"] == "syn_sent"
    assert [k[0] for k in kinds(trace)] == ["timeout_retransmission"] * 2
    refused = Conversation().segment(0, 0, "S", -1).segment(1, 1, "RA", -1, 0)
    assert analyze(refused).flows.rows()[0]["state"] == "refused"


def test_an_initiator_that_goes_on_had_an_answer(analyze: Analyze) -> None:
    """Of which the capture holds nothing: it took another way."""
    talk = Conversation().segment(0, 0, "S", -1).segment(20, 0, "A", 0, 0)
    for i in range(3):
        talk.segment(21 + i, 0, "PA", 100 * i, 0, 100)
    trace = analyze(talk)
    (flow,) = trace.flows.rows()
    assert (flow["state"], flow["one_way"]) == ("established", True)
    codes = {finding["code"] for finding in trace.findings.rows()}
    assert "one-way" in codes and "syn-unanswered" not in codes


def test_a_syn_ack_after_the_handshake_waited_no_longer_than_that(analyze: Analyze) -> None:
    """The ACK of the SYN-ACK was seen, so the server waited for nothing when it retransmitted that."""
    talk = (
        Conversation()
        .segment(0, 0, "S", -1)
        .segment(1000, 0, "S", -1)
        .segment(1010, 1, "SA", -1, 0)
        .segment(1011, 0, "A", 0, 0)
    )
    talk.segment(2011, 1, "SA", -1, 0).segment(2012, 0, "A", 0, 0).segment(2020, 0, "PA", 0, 0, 100).segment(
        2030, 1, "A", 0, 100
    )
    out, back = analyze(talk).directions.rows()
    assert (out["rto_idle_ns"], back["rto_idle_ns"]) == (1_000_000_000, 0)


def test_a_retransmitted_syn_or_fin_is_no_share_of_the_data(analyze: Analyze) -> None:
    talk = Conversation().handshake().segment(100, 1, "FA", 0, 0).segment(320, 1, "FA", 0, 0).segment(340, 0, "A", 0, 1)
    sentences = [row["sentence"] for row in analyze(talk).findings.rows() if row["code"] == "lost-downstream"]
    assert len(sentences) == 1 and "lost 1 FIN, or its ACK, between capture point and receiver" in sentences[0]


def test_a_syn_ack_shows_the_initiator_if_the_syn_was_missed(analyze: Analyze) -> None:
    talk = Conversation().segment(0, 1, "SA", -1, 0).segment(1, 0, "A", 0, 0)
    (flow,) = analyze(talk).flows.rows()
    assert (flow["source_port"], flow["initiator_evidence"], flow["handshake_rtt_ns"]) == (
        40000,
        "syn_ack",
        None,
    )


def test_a_reset_ends_a_conversation_and_the_ports_can_be_used_again(analyze: Analyze) -> None:
    talk = Conversation().handshake().segment(20, 0, "PA", 0, 0, 100).segment(30, 1, "R", 0)
    talk.isn = (900_000, 950_000)
    talk.segment(1000, 0, "S", -1).segment(1010, 1, "SA", -1, 0).segment(1012, 0, "A", 0, 0).segment(
        1020, 0, "PA", 0, 0, 50
    )
    trace = analyze(talk)
    first, second = trace.flows.rows()
    assert (first["state"], first["end"]) == ("reset", "ports_reused")
    assert (second["state"], second["end"]) == ("established", "end_of_capture")
    assert [d["unique_bytes"] for d in trace.directions.rows()] == [100, 0, 50, 0]


@pytest.mark.parametrize(("flags", "payload", "kind"), [("RA", 100, "reset"), ("PA", 125, None)])
def test_the_text_of_a_reset_is_no_part_of_the_stream(
    analyze: Analyze, flags: str, payload: int, kind: str | None
) -> None:
    talk = Conversation().handshake().segment(20, 0, "PA", 0, 0, 100).segment(30, 1, "A", 0, 100)
    trace = analyze(talk.segment(40, 0, flags, 100, 0, 25))
    out, _ = trace.directions.rows()
    assert (out["payload_bytes"], out["unique_bytes"], out["data_packets"]) == (payload, payload, 1 + (kind is None))
    assert kinds(trace) == ([(kind, 6, 25, None)] if kind else [])
    assert [row["payload_bytes"] for row in trace.packets([0]).rows()] == [0, 0, 0, 100, 0, 25]


def test_a_repeated_syn_is_not_a_new_conversation(analyze: Analyze) -> None:
    talk = Conversation().segment(0, 0, "S", -1).segment(1000, 0, "S", -1)
    talk.segment(1010, 1, "SA", -1, 0).segment(1012, 0, "A", 0, 0)
    trace = analyze(talk)
    (flow,) = trace.flows.rows()
    assert flow["state"] == "established"
    assert trace.directions.rows()[0]["rtt_samples"] == 0  # which of the SYNs was answered cannot be known


def test_a_simultaneous_open_is_one_conversation(analyze: Analyze) -> None:
    talk = Conversation().segment(0, 0, "S", -1).segment(1, 1, "S", -1)
    talk.segment(20, 0, "SA", -1, 0).segment(21, 1, "SA", -1, 0).segment(30, 0, "PA", 0, 0, 10)
    trace = analyze(talk)
    assert len(trace.flows) == 1
    assert trace.directions.rows()[0]["unique_bytes"] == 10


def test_a_wild_acknowledgment_changes_nothing(analyze: Analyze) -> None:
    talk = Conversation().handshake().segment(20, 0, "PA", 0, 0, 100)
    talk.segment(25, 1, "A", 0, 900_000_000).segment(30, 1, "A", 0, 100)
    out, back = analyze(talk).directions.rows()
    assert (back["acks_out_of_range"], out["unseen_bytes"], out["rtt_ns_max"]) == (1, 0, 10_000_000)


def test_a_delayed_acknowledgment_is_no_round_trip_of_the_path(analyze: Analyze) -> None:
    talk = Conversation().handshake()
    for i in range(4):
        talk.segment(100 * i + 100, 0, "PA", 100 * i, 0, 100)
        talk.segment(100 * i + (110 if i < 3 else 150), 1, "A", 0, 100 * i + 100)
    out, _ = analyze(talk).directions.rows()
    assert (out["rtt_samples"], out["rtt_ns_max"]) == (4, 10_000_000)  # SYN and three; 50 ms was the timer


def test_bytes_balance_in_every_conversation_of_the_samples() -> None:
    for path in sorted(SAMPLES.glob("*.pcap*")):
        trace = wiretale.analyze(path)
        for row in trace.directions.rows():
            if row["unique_bytes"] is not None and not row["unknown_bytes"]:
                spent = row["unique_bytes"] + row["retransmitted_bytes"] + row["duplicate_bytes"] + row["probe_bytes"]
                assert row["payload_bytes"] == spent, (path.name, row)


def test_closed_windows_of_a_clock_that_steps_by_decades_add_up_to_no_less(tmp_path: Path) -> None:
    """Each of six windows is closed while the clock is set back, and opened 80 years later."""
    wire, years = Wire(), 80 * 365 * 86_400_000.0
    talk = Connection(wire).open(years, rtt=10).data(years + 12, 0)
    for number in range(1, 7):
        talk.ack(100 + number, MSS, window=0).ack(years + 20 + number, MSS)
    stored = ((START_NS + round(ms * 1e6), frame) for ms, frame in wire.packets)  # as sent, whatever their times
    receiver = wiretale.analyze(write_pcap(tmp_path / "decades.pcap", stored)).directions.rows()[1]
    assert receiver["zero_windows"] == 6
    assert receiver["zero_window_ns"] == 2**63 - 1  # 480 years do not fit


@pytest.mark.parametrize(
    ("acked", "fin", "left"), [(0, False, 500), (300, False, 200), (500, True, 0), (None, False, None)]
)
def test_payload_that_nobody_acknowledged_is_counted(
    analyze: Analyze, acked: int | None, fin: bool, left: int | None
) -> None:
    """A FIN is no payload; without a captured ACK it is unknown."""
    talk = Conversation()
    if acked is not None:
        talk.handshake()
    talk.segment(20, 0, "PA", 0, 0, 500)
    if fin:
        talk.segment(21, 0, "FA", 500)
    if acked is not None:
        talk.segment(40, 1, "A", 0, acked)
    assert analyze(talk).directions.rows()[0]["unacked_bytes"] == left


ACKNOWLEDGED: dict[str, tuple[int | None, Callable[[Connection], Connection]]] = {
    "nothing": (0, lambda talk: talk.data(30, 0, 1400)),
    "all": (1400, lambda talk: talk.data(30, 0, 1400).data(31, 1400, 300).ack(50, 1700)),
    "small ones": (300, lambda talk: talk.data(30, 0, 300).ack(50, 300).data(60, 300, 1400).ack(80, 300)),
    "a part": (1400, lambda talk: talk.data(30, 0, 1400).ack(50, 700)),
    "sent again": (1400, lambda talk: talk.data(30, 0, 1400).data(400, 0, 1400).ack(420, 1400)),
    "again, smaller": (1000, lambda talk: talk.data(30, 0, 1400).data(400, 0, 1000).ack(420, 1000)),
    "in two pieces": (
        1000,
        lambda talk: talk.data(30, 0, 1400).data(400, 0, 1000).data(401, 1000, 400).ack(420, 1400),
    ),
    "by SACK": (600, lambda talk: talk.data(30, 0, 1400).data(31, 1400, 600).ack(51, 0, options=sack((1400, 2000)))),
    "by one SACK of three": (
        900,
        lambda talk: (
            talk.data(30, 0, 1400)
            .data(31, 1400, 300)
            .data(32, 1700, 900)
            .data(33, 2600, 200)
            .ack(53, 0, options=sack((1400, 2800)))
        ),
    ),
    "by SACKs that meet": (
        500,
        lambda talk: (
            talk.data(30, 0, 1400)
            .data(31, 1400, 200)
            .data(32, 1600, 500)
            .data(33, 2100, 100)
            .ack(52, 0, options=sack((2100, 2200)))
            .ack(53, 0, options=sack((1400, 2200)))
        ),
    ),
    "of a super-segment": (MSS, lambda talk: talk.data(30, 0, 4 * MSS).ack(50, MSS)),
    "of a super-segment, again": (MSS, lambda talk: talk.data(30, 0, 4 * MSS).data(400, 0, MSS).ack(420, MSS)),
    "unseen": (None, lambda talk: talk.data(30, 0, 300).data(31, 1700, 1400).ack(50, 1700)),
    "unseen, though none is larger": (MSS, lambda talk: talk.data(30, 0).data(31, 2 * MSS).ack(50, 3 * MSS)),
}


@pytest.mark.parametrize("name", ACKNOWLEDGED)
def test_the_largest_segment_that_was_acknowledged(name: str, tmp_path: Path) -> None:
    most, make = ACKNOWLEDGED[name]
    trace = wiretale.analyze(make(Connection(Wire()).open()).wire.write(tmp_path / "talk.pcap"))
    assert trace.directions.rows()[0]["acked_segment_max"] == most


def test_what_is_outstanding_has_its_time_and_reports(tmp_path: Path) -> None:
    talk = Connection(Wire()).open().data(30, 0, 300).ack(50, 300).data(60, 300, 1400).data(61, 1700, 200)
    talk.ack(81, 300, options=sack((1700, 1900))).data(400, 300, 1400)
    row = wiretale.analyze(talk.wire.write(tmp_path / "talk.pcap")).directions.rows()[0]
    assert (row["unacked_bytes"], row["sacked_bytes"]) == (1600, 200)
    assert row["unacked_first_ns"] == START_NS + 60_000_000


@pytest.mark.parametrize(
    "options, nops",
    [
        (bytes([2, 4, 5, 180, 4, 2, 8, 10]) + bytes(8) + bytes([1, 3, 3, 7]), 1),
        (bytes([2, 4, 5, 180, 4, 2, 8, 10]) + bytes(8) + bytes([1, 1, 1, 1]), 4),
        (bytes([2, 4, 5, 180, 1, 1, 4, 2]), 2),
        (bytes([1, 2, 4, 5, 180, 1, 1, 0]), 2),
        (bytes([2, 4, 5, 180]), 0),
        (bytes([1, 1, 1, 1]), None),
    ],
)
def test_the_syn_has_a_run_of_nops_where_a_device_removed_an_option(
    tmp_path: Path, options: bytes, nops: int | None
) -> None:
    wire = Wire()
    talk = Connection(wire).send(0.0, 0, -1, flags=2, options=options)
    talk.send(20.0, 1, -1, flags=18, options=bytes([2, 4, 5, 180])).send(40.0, 0, 0)
    talk.send(41.0, 1, 0, 100, options=bytes([1, 1, 1, 1]))  # a run in later segments says nothing
    rows = wiretale.analyze(wire.write(tmp_path / "a.pcap")).directions.rows()
    assert [row["syn_nops"] for row in rows] == [nops, 0]


def low_window(talk: Connection, reopens: bool) -> Connection:
    """Data until the window has room for 800 bytes, which it keeps for 1.4 s, or until the end at 2.4 s."""
    for i in range(4):
        talk.data(100 + i, i * MSS)
    talk.ack(120, 2 * MSS, window=40).ack(125, 4 * MSS, window=6)  # of 128 bytes
    if reopens:
        talk.ack(1525, 4 * MSS, window=512).data(1525.1, 4 * MSS).ack(1545, 5 * MSS)
    return talk.data(2400, (5 if reopens else 4) * MSS, 1)


@pytest.mark.parametrize("reopens, low_ms, shut_ms", [(True, 1400, None), (False, 2275, 2275)])
def test_a_window_below_one_segment_is_timed(tmp_path: Path, reopens: bool, low_ms: int, shut_ms: int | None) -> None:
    talk = low_window(Connection(Wire()).open(), reopens)
    trace = wiretale.analyze(talk.wire.write(tmp_path / "a.pcap"))
    row = trace.directions.rows()[1]
    assert (row["low_window_ns"], row["window_shut_ns"]) == (low_ms * 10**6, shut_ms and shut_ms * 10**6)
    assert row["zero_window_ns"] == 0


def test_a_window_that_never_has_room_for_a_segment_is_small_and_not_low(tmp_path: Path) -> None:
    talk = Connection(Wire()).open(scale=0)
    for i in range(6):
        talk.data(100 + 40 * i, i * 1000, 1000).ack(120 + 40 * i, i * 1000 + 1000, window=1000 + i % 2)
    row = wiretale.analyze(talk.wire.write(tmp_path / "a.pcap")).directions.rows()[1]
    assert (row["low_window_ns"], row["window_shut_ns"]) == (0, None)


def test_a_window_of_zero_that_never_opens_is_shut(tmp_path: Path) -> None:
    talk = Connection(Wire()).data(0, 0).ack(20, MSS, window=0).data(1000, MSS - 1, 0).ack(1020, MSS, window=0)
    row = wiretale.analyze(talk.wire.write(tmp_path / "a.pcap")).directions.rows()[1]
    assert (row["low_window_ns"], row["window_shut_ns"]) == (None, 10**9)  # no SYN: the scale is unknown
