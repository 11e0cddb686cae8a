# SPDX-License-Identifier: Apache-2.0
"""S2 on one switch: TCP had twice UDP's throughput and was fastest with blocks of 64 bytes. Each mechanism that could do that is
set alone, with all nine block sizes, and its row says what it gives.

A host that sends N packets a second is a UDP sender with that rate: TCP fills segments whatever the blocks are, so that the cost
of a packet holds up only small datagrams.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

from studies.lab import StudyLab, rate_mbit, study_lab

Row = tuple[Any, ...]
SIZES = (32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
SECONDS = 1
PACKETS_A_SECOND = 10_000  # by which a host of the time is bounded: 32-byte datagrams have 2.6 Mbit/s
BATCH_PACKETS = 8  # of 1,500 bytes in a millisecond: 96 Mbit/s
PROFILE = """\
mtu = 1500
card = "100Mbit"
[both]
{link}
delay = "50us"
queue = 200
"""
ETHERNET = 'rate = "100Mbit"\noverhead = 38'


class Mechanism(NamedTuple):
    """What is set, for the link and for senders of both protocols."""

    name: str
    link: str = ETHERNET
    tcp: tuple[str | int, ...] = ()
    packets_a_second: int | None = None  # of UDP


MECHANISMS = (
    Mechanism("hosts of today, blocks joined"),
    Mechanism("a write for each block", tcp=("--write-each",)),
    Mechanism("the same without Nagle's algorithm", tcp=("--write-each", "--no-delay")),
    Mechanism("socket buffers of 8 kB, a write each", tcp=("--write-each", "--buffer", 8192)),
    Mechanism("each packet costs 50 us on the wire", link='rate = "100Mbit"\noverhead = 663'),
    Mechanism("packets arrive each millisecond, as coalesced interrupts have them", link='trace = "batch.trace"'),
    Mechanism(f"hosts that send {PACKETS_A_SECOND:,} packets a second", packets_a_second=PACKETS_A_SECOND),
)


def udp_options(mechanism: Mechanism, size: int) -> tuple[str | int, ...]:
    """Returns the options of a UDP sender."""
    if not mechanism.packets_a_second:
        return ()
    fragments = -(-(size + 8) // 1480)
    return ("--rate", f"{8 * size * mechanism.packets_a_second // fragments}")


def best(rates: Sequence[float]) -> int:
    """Returns the block size of the largest rate."""
    return SIZES[max(range(len(rates)), key=rates.__getitem__)]


def figures(mechanism: Mechanism, tcp: Sequence[float], udp: Sequence[float]) -> Row:
    """Returns the row of a mechanism: TCP over UDP by the median ratio and by mean rates, best sizes, and how far TCP's rates of
    all sizes are apart in percent of the largest."""
    ratios = [tcp_rate / udp_rate for tcp_rate, udp_rate in zip(tcp, udp, strict=True)]
    apart = 100 * (1 - min(tcp) / max(tcp))
    return (
        mechanism.name,
        median(ratios),
        mean(tcp) / mean(udp),
        best(tcp),
        tcp[SIZES.index(64)],
        max(tcp),
        apart,
        best(udp),
    )


def measured(lab: StudyLab, *options: str | int) -> float:
    """Returns the Mbit/s that one test of a second received; 0 if it had none."""
    return rate_mbit(lab.send(*options, "--time", SECONDS)) or 0.0


def mechanisms(folder: Path) -> list[Row]:
    """S2: mechanism, TCP over UDP (median ratio, mean rates), TCP's best block size, its Mbit/s with 64 bytes and with the best,
    how far all sizes are apart (%), UDP's best block size."""
    rows: list[Row] = []
    for number, mechanism in enumerate(MECHANISMS):
        place = folder / f"mechanism-{number}"
        place.mkdir(parents=True, exist_ok=True)
        profile = place / "profile.toml"
        profile.write_text(PROFILE.format(link=mechanism.link))
        (place / "batch.trace").write_text("1\n" * BATCH_PACKETS)
        with study_lab(str(profile), place) as lab:
            tcp = [measured(lab, "--size", size, *mechanism.tcp) for size in SIZES]
            udp = [measured(lab, "--udp", "--size", size, *udp_options(mechanism, size)) for size in SIZES]
        if all(tcp) and all(udp):
            rows.append(figures(mechanism, tcp, udp))
    return rows
