# SPDX-License-Identifier: Apache-2.0
"""Losses of QUIC by the bits Q and L, beside the losses that made them; bits that are no signal give null."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import needs
import wiretale
from checkout import Run
from placed import placed
from plain_wire import Wire
from quic_bits import Q_BLOCK, REPORT_AFTER, L, Q, Quic, Sent, losses, marked, reordered
from wiretale.analyzer.findings.judged import judge

COUNT = 20_000
NAMES = ("sent", "missing", "lost", "lost_upstream", "lost_downstream")
NOTHING = dict.fromkeys(NAMES)
SPINDUMP = needs.shared_files("labelled/spindump", "trace_quic_*.pcap*")


def trace_of(tmp_path: Path, server: list[int], client: list[int] | None = None, size: int = 1200) -> wiretale.Trace:
    """A connection whose sides send 1-RTT packets with these bits."""
    wire = Wire()
    Quic(wire).open().bits(30, 1, server, size).bits(30.005, 0, client or [], 60)
    return wiretale.analyze(wire.write(tmp_path / "quic.pcap"))


def losses_of(trace: wiretale.Trace, side: str = "server") -> dict[str, int | None]:
    (row,) = trace.handshakes.rows()
    return {name: row[f"{side}_{name}"] for name in NAMES}


def is_near(counts: dict[str, int | None], sent: Sent) -> bool:
    """The first block, the last ones and the last reports do not count: at most some 250 packets at this rate."""
    rate = (sent.upstream + sent.downstream) / sent.sent
    left_out = rate * (3 * Q_BLOCK + REPORT_AFTER)
    truths = {
        "lost_upstream": sent.upstream,
        "lost_downstream": sent.downstream,
        "lost": sent.upstream + sent.downstream,
    }
    return all(
        (count := counts[name]) is not None and abs(count - truth) <= 3 * left_out**0.5 + left_out + 0.005 * truth
        for name, truth in truths.items()
    )


@pytest.mark.parametrize(
    ("where", "frame"),
    [
        ("up", 323),  # behind the block of packets 256 to 319, one of which is missing, and three of the handshake
        ("down", 404),  # with L, 100 packets after the loss
    ],
)
def test_the_first_loss_is_cited(tmp_path: Path, where: str, frame: int) -> None:
    """Packet 300 and later ones are lost; before that, two change places at the end of a block."""
    sent = marked(3000, ("" if n < 300 or n % 100 else where for n in range(3000))).bits
    sent[127], sent[128] = sent[128], sent[127]
    trace = trace_of(tmp_path, sent)
    (row,) = trace.handshakes.rows()
    assert (row["server_loss_frame"], row["client_loss_frame"]) == (frame, None)
    (lost,) = [row for row in placed(trace) if row["code"] == "quic-lost"]
    assert (lost["first_frame"], lost["last_frame"], lost["first_ns"]) == (frame, frame, row["server_loss_ns"])


@pytest.mark.parametrize(
    ("up", "down"), [(0, 0), (0.01, 0), (0, 0.02), (0.01, 0.03), (0.05, 0.001), (0.1, 0.05), (0.002, 0.002)]
)
@pytest.mark.parametrize(("share", "places"), [(0.0, 1), (0.05, 5), (0.02, 15), (0.01, 40)])
def test_losses_are_those_that_were_made(tmp_path: Path, up: float, down: float, share: float, places: int) -> None:
    """Each place of loss is found within the packets that cannot count; reordering changes nothing."""
    sent = marked(COUNT, losses(7, up, down))
    trace = trace_of(tmp_path, reordered(sent.bits, 3, share, places))
    counts = losses_of(trace)
    assert COUNT - 3 * Q_BLOCK <= (counts["sent"] or 0) <= COUNT
    assert is_near(counts, sent), (counts, sent.upstream, sent.downstream)
    assert counts["lost_upstream"] == counts["missing"]
    if not up:
        assert counts["lost_upstream"] == 0
    assert losses_of(trace, "client") == NOTHING


def test_both_directions_are_apart(tmp_path: Path) -> None:
    server, client = marked(COUNT, losses(1, 0.02, 0.0)), marked(4000, losses(2, 0.0, 0.03))
    trace = trace_of(tmp_path, server.bits, client.bits)
    assert is_near(losses_of(trace), server) and is_near(losses_of(trace, "client"), client)
    assert losses_of(trace)["lost_downstream"] == 0 and losses_of(trace, "client")["lost_upstream"] == 0


def bursts(every: int, long: int, where: str) -> Iterator[str]:
    n = 0
    while True:
        yield where if n % every >= every - long else ""
        n += 1


@pytest.mark.parametrize("long", [5, 20, 40, 64, 90])
def test_a_burst_that_takes_a_whole_block_counts(tmp_path: Path, long: int) -> None:
    sent = marked(COUNT, bursts(1013, long, "up"))
    counts = losses_of(trace_of(tmp_path, sent.bits))
    assert counts["lost_upstream"] == pytest.approx(sent.upstream, abs=2 * long)


def dice(seed: int, mask: int, count: int = COUNT) -> list[int]:
    """Bits as header protection leaves them."""
    roll = random.Random(seed)
    return [roll.getrandbits(8) & mask for _ in range(count)]


def square(block: int, count: int = COUNT) -> list[int]:
    return marked(count, block=block).bits


def interleaved(bits: list[int], further: list[int], every: int) -> list[int]:
    """Another connection between the same ports, whose bits are protected, sends each few packets."""
    remaining = iter(further)
    return [
        bits_of
        for n, value in enumerate(bits)
        for bits_of in ((value, next(remaining)) if n % every == 0 else (value,))
    ]


NO_SIGNAL: dict[str, Callable[[], list[int]]] = {
    "protected": lambda: dice(1, Q | L),
    "protected, few": lambda: dice(2, Q | L, 700),
    "Q alone random": lambda: dice(3, Q),
    "always 0": lambda: [0] * COUNT,
    "always 1": lambda: [Q | L] * COUNT,
    "delay bit": lambda: [Q if n % 97 == 0 else 0 for n in range(COUNT)],
    "blocks of 16": lambda: square(16),
    "blocks of 32": lambda: square(32),
    "blocks of 128": lambda: square(128),
    "blocks of 256": lambda: square(256),
    "too short": lambda: square(Q_BLOCK, 9 * Q_BLOCK),
    "each packet twice": lambda: [bits for value in square(Q_BLOCK) for bits in (value, value)],
    "half of it is lost": lambda: marked(COUNT, losses(4, 0.5, 0.0)).bits,
    "another connection": lambda: interleaved(marked(COUNT, losses(4, 0.2, 0.0)).bits, dice(6, Q | L), 5),
    "random, then a wave": lambda: dice(5, Q | L, COUNT) + square(Q_BLOCK, COUNT // 8),
}


@pytest.mark.parametrize("kind", NO_SIGNAL)
def test_other_bits_are_no_signal(tmp_path: Path, kind: str) -> None:
    trace = trace_of(tmp_path, NO_SIGNAL[kind]())
    assert losses_of(trace) == NOTHING
    assert "quic-lost" not in trace.findings.column("code")
    assert judge(trace).measures["loss"].packets == 0


def test_random_bits_never_become_a_signal(tmp_path: Path) -> None:
    """Many short connections with header protection."""
    wire = Wire()
    for n in range(60):
        Quic(wire, client=("10.0.0.1", 30000 + n)).open().bits(30, 1, dice(n, Q | L, 1500), 60)
    trace = wiretale.analyze(wire.write(tmp_path / "many.pcap"))
    assert trace.handshakes.column("server_sent") == [None] * 60


def test_a_reflected_square_is_not_taken_for_losses(tmp_path: Path) -> None:
    """RFC 9506 has a bit R in the place of L, which is set in half of the packets."""
    bits = [value | (L if n // 63 % 2 else 0) for n, value in enumerate(marked(COUNT, losses(5, 0.01, 0.0)).bits)]
    counts = losses_of(trace_of(tmp_path, bits))
    assert counts["lost"] is None and counts["lost_downstream"] is None
    assert 150 < (counts["lost_upstream"] or 0) < 250


def test_datagrams_of_several_packets_are_not_counted(tmp_path: Path) -> None:
    """A capture on a host with UDP GSO or GRO has only the first byte of each."""
    assert losses_of(trace_of(tmp_path, marked(COUNT).bits, size=2400)) == NOTHING


def test_a_capture_that_drops_packets_is_not_taken_for_the_network(tmp_path: Path) -> None:
    """The sender declared nothing lost: the packets passed, but are not in the file."""
    bits = marked(COUNT).bits
    trace = trace_of(tmp_path, [value for n, value in enumerate(bits) if n % 50])
    counts = losses_of(trace)
    assert counts["lost"] == 0 and counts["lost_upstream"] is None and counts["lost_downstream"] is None
    assert 380 <= (counts["missing"] or 0) <= 400
    (row,) = [row for row in trace.findings.rows() if row["code"] == "quic-lost"]
    assert (row["severity"], row["cost"]) == ("info", None)
    assert "declared 0 packets lost, but the capture lacks 39" in row["sentence"]
    assert "drop count of the capture" in row["advice"]
    assert judge(trace).measures["loss"].packets == 0


def test_losses_are_explained_and_judged(wiretale_run: Run, tmp_path: Path) -> None:
    sent = marked(COUNT, losses(7, 0.01, 0.03))
    trace = trace_of(tmp_path, sent.bits)
    counts = losses_of(trace)
    (row,) = [row for row in trace.findings.rows() if row["code"] == "quic-lost"]
    assert (row["severity"], row["cost_unit"]) == ("warning", "bytes")
    lost = (counts["lost_upstream"] or 0) + (counts["lost_downstream"] or 0)
    assert row["cost"] == pytest.approx(lost * (1200 + 66), rel=0.01)
    assert f"10.0.0.2:443 → 10.0.0.1:40000 lost {lost:,} of {counts['sent']:,} 1-RTT packets (" in row["sentence"]
    places = f"{counts['lost_upstream']:,} between sender and capture point and {counts['lost_downstream']:,} between"
    assert places in row["sentence"] and "between capture point and receiver" in row["advice"]
    text = " ".join(wiretale_run("analyze", tmp_path / "quic.pcap", "--all").stdout.split())
    assert "QUIC datagrams; round trip 20 ms (handshake); lost" in text
    judged = json.loads(wiretale_run("analyze", tmp_path / "quic.pcap", "--json").stdout)["judged"]
    assert judged["loss"]["packets"] == len(sent.bits) + 1  # the server's direction
    assert [(entry["for"], entry["packets"]) for entry in judged["not_judged"]] == [
        (["limits"], len(sent.bits) + 1),
        (["loss", "limits"], 2),
    ]


def test_few_losses_are_a_note_and_none_is_no_finding(tmp_path: Path) -> None:
    few: dict[int, str] = {5000: "up", 9000: "down"}
    trace = trace_of(tmp_path, marked(COUNT, (few.get(n, "") for n in range(COUNT))).bits)
    (row,) = [row for row in trace.findings.rows() if row["code"] == "quic-lost"]
    assert row["severity"] == "info" and "1 between sender and capture point and 1 between" in row["sentence"]
    healthy = trace_of(tmp_path, marked(COUNT).bits)
    assert "quic-lost" not in healthy.findings.column("code")


@pytest.mark.parametrize("path", SPINDUMP, ids=lambda path: path.stem)
def test_captures_without_the_bits_have_no_losses(path: Path) -> None:
    """Spindump prints no losses for these captures: their bits are protected."""
    rows: list[dict[str, Any]] = wiretale.analyze(path).handshakes.rows()
    assert all(row[f"{side}_{name}"] is None for row in rows for side in ("client", "server") for name in NAMES)
