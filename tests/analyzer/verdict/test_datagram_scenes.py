# SPDX-License-Identifier: Apache-2.0
"""The cases of docs/verdicts.md on fragments and numbered packets, with their near misses, in every wrapping."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from scapy.all import (
    IP,
    UDP,
    Ether,
    IPv6,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    Packet,
    PadN,
    Raw,
    fragment,
    fragment6,
)
from test_blocks import COUNTS, LENGTH, SIZE, block, iperf2, iperf3, mix, rtp, stream

import wiretale
from scene import Registry, Scene, datagrams, play, register, timed
from talk import RTT, START, WRITERS, Talk

SCENES: Registry = {}
scene = partial(register, SCENES)
BYTES = 8192
DATAGRAM = ("state", "fragments", "missing", "out_of_order", "duplicates", "overlaps", "late")
WHOLE = ("complete", 6, None, 0, 0, 0, 0)


# --- fragments


def pieces(version: int, number: int = 1) -> list[Packet]:
    """8,192 bytes in six fragments."""
    udp = UDP(sport=5000, dport=6000) / Raw(bytes(k % 251 for k in range(BYTES)))
    if version == 4:
        return list(fragment(IP(src="10.0.0.1", dst="10.0.0.2", id=number) / udp, 1480))
    ip = IPv6(src="fd00::1", dst="fd00::2")
    return list(fragment6(ip / IPv6ExtHdrFragment(id=number) / udp, 1500))


def judged(packets: Sequence[Packet], *wanted: tuple[Any, ...]) -> Scene:
    """Datagrams, in the order in which they began."""

    def verify(trace: wiretale.Trace) -> None:
        assert [tuple(row[name] for name in DATAGRAM) for row in trace.datagrams.rows()] == list(wanted)
        assert trace.directions.column("fragmented_datagrams")[0] == len(wanted)
        assert trace.directions.column("incomplete_datagrams")[0] == sum(row[0] != "complete" for row in wanted)

    return Scene(packets, verify)


def number_of(version: int) -> str:
    """The case of this version."""
    return "33" if version == 4 else "34"


def six_fragments(version: int) -> Scene:
    return judged(timed(pieces(version)), WHOLE)


def one_fragment_lost(version: int) -> Scene:
    whole = pieces(version)
    low = 1480 if version == 4 else 1448
    return judged(timed(whole[:2] + whole[3:]), ("incomplete", 5, f"{2 * low}-{3 * low - 1}", 0, 0, 0, 0))


def last_fragment_first(version: int) -> Scene:
    """None is lost: the other five come behind it."""
    whole = pieces(version)
    return judged(timed(whole[-1:] + whole[:-1]), ("complete", 6, None, 5, 0, 0, 0))


def a_fragment_twice(version: int) -> Scene:
    whole = pieces(version)
    return judged(timed(whole[:3] + whole[2:]), ("complete", 7, None, 0, 1, 0, 0))


def a_fragment_of_the_next_datagram(version: int) -> Scene:
    """The same offset, but another identification: no duplicate and no overlap, though it comes amid the first."""
    one, two = pieces(version, 1), pieces(version, 2)
    return judged(timed([*one[:3], two[0], *one[3:], *two[1:]]), WHOLE, WHOLE)


def shifted(version: int, units: int) -> Packet:
    """The third fragment, so many units of 8 bytes further on."""
    packet = pieces(version)[2]
    if version == 4:
        packet.frag += units
        del packet.chksum
    else:
        packet[IPv6ExtHdrFragment].offset += units
    return packet


def a_fragment_that_overlaps(version: int) -> Scene:
    whole = pieces(version)
    return judged(timed([*whole[:2], shifted(version, -1), *whole[2:]]), ("complete", 7, None, 0, 0, 2, 0))


def fragments_that_touch(version: int) -> Scene:
    """Cut where no router would cut, but each begins where the other ends."""
    udp = UDP(sport=5000, dport=6000) / Raw(bytes(k % 251 for k in range(BYTES)))
    if version == 4:
        cut = fragment(IP(src="10.0.0.1", dst="10.0.0.2", id=1) / udp, 800)
    else:
        cut = fragment6(IPv6(src="fd00::1", dst="fd00::2") / IPv6ExtHdrFragment(id=1) / udp, 848)
    return judged(timed(cut), ("complete", len(cut), None, 0, 0, 0, 0))


def an_identification_again_after_40_s(version: int) -> Scene:
    """Of the first one fragment is missing: the second must not fill it."""
    one, two = pieces(version)[:-1], pieces(version)
    end = "7400-" if version == 4 else "7240-"
    return judged(timed(one) + timed(two, 40_000), ("incomplete", 5, end, 0, 0, 0, 0), WHOLE)


def the_last_fragment_after_20_s(version: int) -> Scene:
    """Within the time in which a receiver waits: of the same datagram, and not late."""
    whole = pieces(version)
    return judged(timed(whole[:-1]) + timed(whole[-1:], 20_000), WHOLE)


# What both versions share.
for build, near in (
    (six_fragments, False),
    (one_fragment_lost, False),
    (last_fragment_first, False),
    (a_fragment_twice, False),
    (a_fragment_that_overlaps, False),
    (an_identification_again_after_40_s, False),
    (last_fragment_first, True),
    (a_fragment_of_the_next_datagram, True),
    (fragments_that_touch, True),
    (the_last_fragment_after_20_s, True),
):
    for version in (4, 6):
        scene(number_of(version) + " near" * near, version)(build)


def atomic(number: int = 9) -> Packet:
    """A whole datagram behind a fragment header (RFC 6946)."""
    ip = IPv6(src="fd00::1", dst="fd00::2") / IPv6ExtHdrFragment(id=number, offset=0, m=0)
    return ip / UDP(sport=5000, dport=6000) / Raw(bytes(100))


@scene("34", 6)
def an_atomic_fragment(version: int) -> Scene:
    def verify(trace: wiretale.Trace) -> None:
        assert len(trace.datagrams) == 0
        row = trace.directions.rows()[0]
        assert (row["fragments"], row["payload_bytes"], row["data_packets"]) == (0, 100, 1)

    return Scene(timed([atomic()]), verify)


@scene("34 near", 6)
def an_atomic_fragment_amid_others(version: int) -> Scene:
    """Its identification is that of a datagram in fragments: it is none of them (RFC 6946 section 4)."""
    whole = pieces(6)
    return judged(timed([*whole[:3], atomic(1), *whole[3:]]), WHOLE)


@scene("34", 6)
def fragments_behind_hop_by_hop(version: int) -> Scene:
    packets = []
    for piece in pieces(6):
        options = IPv6ExtHdrHopByHop(nh=44, options=[PadN(optdata=bytes(4))])
        packets.append(IPv6(src="fd00::1", dst="fd00::2") / options / piece.payload.copy())
    return judged(timed(packets), WHOLE)


# --- numbered datagrams


def numbered(version: int, payloads: Sequence[tuple[float, bytes]], application: str | None, **wanted: int) -> Scene:
    def verify(trace: wiretale.Trace) -> None:
        row = trace.directions.rows()[0]
        assert {name: row[name] for name in COUNTS if row[name]} == wanted
        assert trace.flows.column("application") == [application]

    return Scene(datagrams(version, payloads), verify)


def blocks_of(numbers: Sequence[int]) -> list[tuple[float, bytes]]:
    return [(10.0 + k, block(n, sent_ns=START * 10**9 + 1_000_000 * n)) for k, n in enumerate(numbers)]


@scene("35")
def lost_swapped_and_duplicated(version: int) -> Scene:
    numbers = [0, 1, 2, 3, 4, 7, 8, 10, 9, 11, 11, 12, 13]
    counts = {"blocks": 12, "blocks_lost": 2, "blocks_out_of_order": 1, "blocks_duplicate": 1}
    return numbered(version, blocks_of(numbers), "blocks", **counts)


@scene("35 near")
def gaps_that_late_ones_fill(version: int) -> Scene:
    """Each number comes, two of them late: nothing is lost."""
    numbers = [0, 1, 2, 3, 4, 7, 8, 5, 6, 10, 9, 11, 12, 13]
    return numbered(version, blocks_of(numbers), "blocks", blocks=14, blocks_out_of_order=3)


@scene("35")
def numbers_wrap_at_a_loss(version: int) -> Scene:
    sent = [(2.0 * k, iperf3((2**32 - 20 + k) % 2**32, 2.0 * k)) for k in range(40) if k != 20]
    return numbered(version, sent, "iperf3", blocks=39, blocks_lost=1)


@scene("35 near")
def numbers_wrap(version: int) -> Scene:
    sent = [(2.0 * k, iperf3((2**32 - 20 + k) % 2**32, 2.0 * k)) for k in range(40)]
    return numbered(version, sent, "iperf3", blocks=40)


def runs(second: int) -> list[tuple[float, bytes]]:
    numbers = [*((k, 7) for k in range(10)), *((k, second) for k in range(10))]
    return [(float(k), block(n, run=run, flags=n == 0, sent_ns=k * 10**6)) for k, (n, run) in enumerate(numbers)]


@scene("35")
def the_sender_begins_again(version: int) -> Scene:
    return numbered(version, runs(8), "blocks", blocks=20, block_restarts=1)


@scene("35 near")
def the_network_repeats_everything(version: int) -> Scene:
    """The same run and the same times: the blocks themselves once more."""
    sent = [(float(k), block(k % 10, flags=k % 10 == 0, sent_ns=k % 10 * 10**6)) for k in range(20)]
    return numbered(version, sent, "blocks", blocks=10, blocks_duplicate=10)


ORDER = [0, 1, 2, 3, 4, 7, 8, 10, 9, 11, 11, 12, 13]  # 5 and 6 lost, 9 late, 11 twice
ORDER_COUNTS = {"blocks": 12, "blocks_lost": 2, "blocks_out_of_order": 1, "blocks_duplicate": 1}


@scene("36")
def iperf3_with_64_bits(version: int) -> Scene:
    sent = [(2.0 * k, iperf3(n + 1, 2.0 * k, wide=True)) for k, n in enumerate(ORDER)]
    return numbered(version, sent, "iperf3", **ORDER_COUNTS)


@scene("36 near")
def counters_without_a_clock(version: int) -> Scene:
    """Laid out as iperf3 has it, but the time never moves: two counters of something else."""
    sent = [(2.0 * k, iperf3(n + 1, 2.0, wide=True)) for k, n in enumerate(ORDER)]
    return numbered(version, sent, None)


def iperf2_run(end: bool) -> list[tuple[float, bytes]]:
    sent = [(2.0 * k, iperf2(k, 2.0 * k)) for k in range(30) if k not in (10, 11)]
    return sent + [(60.0 + k, iperf2(-30 if end else 30 + k, 60.0 + k * (not end))) for k in range(3)]


@scene("36")
def iperf2_with_its_end_marker(version: int) -> Scene:
    return numbered(version, iperf2_run(end=True), "iperf2", blocks=28, blocks_lost=2)


@scene("36 near")
def iperf2_that_goes_on(version: int) -> Scene:
    """Positive numbers are no end marker: three datagrams more."""
    return numbered(version, iperf2_run(end=False), "iperf2", blocks=31, blocks_lost=2)


@scene("36")
def rtp_with_another_source(version: int) -> Scene:
    sent = [(20.0 * k, rtp(65_530 + k)) for k in range(20) if k != 12]
    sent += [(400 + 20.0 * k, rtp(500 + k, ssrc=0xBEEF)) for k in range(20)]
    return numbered(version, sent, "rtp", blocks=39, blocks_lost=1, block_restarts=1)


@scene("36 near")
def a_new_source_in_each(version: int) -> Scene:
    """Two in sequence from one source are what RFC 3550 asks for before it believes."""
    sent = [(20.0 * k, rtp(500 + k, ssrc=mix(k) & 0xFFFFFFFF)) for k in range(40)]
    return numbered(version, sent, None)


def blocked(version: int, lost: int) -> Scene:
    """Six blocks of 10,000 B over TCP; one segment comes a round trip and a half late."""
    talk, content, count = Talk(version=version), stream(6), 6 * LENGTH // SIZE
    talk.open()
    late = 30 + 0.1 * lost + 1.5 * RTT
    order = sorted(range(count), key=lambda k: late if k == lost else 30 + 0.1 * k)
    for k in order:
        talk.data(late if k == lost else 30 + 0.1 * k, k * SIZE, SIZE)
        packet = talk.packets[-1]
        whole = bytes(packet)
        talk.packets[-1] = Ether(whole[: len(whole) - SIZE] + content[k * SIZE : (k + 1) * SIZE])
        talk.packets[-1].time = packet.time
    behind = range(lost * SIZE // LENGTH + 1, 6)

    def verify(trace: wiretale.Trace) -> None:
        rows = trace.blocks.rows()
        waited = {row["sequence"]: row["head_of_line_ns"] for row in rows if row["verdict"] == "head_of_line"}
        own = {n: 30 + 0.1 * (10 * n + 9) for n in behind}
        wanted = {n: pytest.approx((late - own[n]) * 1e6, abs=2000) for n in behind}
        assert waited == wanted and len(rows) == 6
        assert trace.directions.rows()[0]["blocks_head_of_line"] == len(wanted)

    return Scene(talk.in_order(), verify)


@scene("37")
def blocks_behind_a_lost_segment(version: int) -> Scene:
    return blocked(version, 25)


@scene("37 near")
def the_last_segment_of_the_last_block_lost(version: int) -> Scene:
    """Late as well, but by its own last bytes: no block waits for another's."""
    return blocked(version, 59)


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize(("name", "version"), [(name, version) for name in SCENES for version in SCENES[name][1]])
def test_scene(name: str, version: int, writer: str, tmp_path: Path) -> None:
    play(SCENES[name][0](version), writer, tmp_path)
