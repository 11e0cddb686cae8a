# SPDX-License-Identifier: Apache-2.0
"""S6's TCP flow, with which its text compares UDP: bulk data over one link, with segments of 1000, 100 and 4000 bytes, a queue
of 50 and of 5 packets, and a delay of 100 ms.

The text gives few figures and no settings. These are ns-2's defaults: a window of 20 packets (window_) that begins with one,
headers of 40 bytes (so no timestamps), an ACK for each packet, no SACK. Its default TCP is Tahoe, which Linux lacks: Reno is
used, which differs only after a loss.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from studies.lab import bound_window, study_lab

Row = tuple[Any, ...]
WINDOW = 20  # packets
SPARE = 4  # places in the queue for the control connection, where the queue holds the whole window
HEADERS = 40  # bytes: of a segment, and of an ACK
SECONDS = 9.9
RATE_BPS = 2_000_000
PROFILE = """\
mtu = 4040
[both]
rate = "{rate}bit"
delay = "{delay}ms"
queue = {queue}
[sysctl]
"net.ipv4.tcp_timestamps" = 0
"net.ipv4.tcp_sack" = 0
"""


class Case(NamedTuple):
    """A test of the series: one setting differs from the first."""

    name: str
    segment: int  # bytes of payload
    queue: int  # packets
    delay_ms: int
    published: str


CASES = (
    Case("base", 1000, 20, 10, "almost 73 ms"),
    Case("small packets", 100, 20, 10, "reduced almost one-half"),
    Case("large packets", 4000, 20, 10, "more than 300 ms"),
    Case("queue 50", 1000, 50, 10, "as the base"),
    Case("queue 5", 1000, 5, 10, "“felt the hit”"),
    Case("long link", 1000, 20, 100, "“deeply affected”"),
)
# Of the data packets: latency of the median one, Kibit/s of IP packets from the first to the last, packets sent and lost.
FIGURES = """
SELECT median(out_ns - in_ns) / 1e6, sum(ip_bytes) FILTER (copies > 0) * 8e9 / 1024 / (max(out_ns) - min(in_ns)),
    count(*), count(*) FILTER (copies = 0)
FROM truth WHERE direction = 0 AND payload_bytes >= {segment}
"""


def expected_ms(case: Case) -> float | None:
    """Returns the latency of a packet behind a whole window: 20 packets less the time until the ACK of the first one is back; at
    least that of an empty queue. None if the queue does not hold the window, because packets are lost."""
    packet_ms, ack_ms = (8e3 * size / RATE_BPS for size in (case.segment + HEADERS, HEADERS))
    if case.queue < WINDOW:
        return None
    return max(WINDOW * packet_ms - ack_ms - case.delay_ms, packet_ms + case.delay_ms)


def run_case(case: Case, folder: Path, *amount: str) -> Row:
    """Runs a case, for an amount other than the time of the study if it is given. Returns latency in ms, Kibit/s of IP packets,
    packets sent and lost."""
    folder.mkdir(parents=True, exist_ok=True)
    profile = folder / "profile.toml"
    queue = case.queue + (SPARE if case.queue >= WINDOW else 0)
    profile.write_text(PROFILE.format(rate=RATE_BPS, delay=case.delay_ms, queue=queue))
    with study_lab(str(profile), folder) as lab:
        bound_window(lab, 1, WINDOW)
        lab.send("--size", 1000, "--mss", case.segment, "--congestion", "reno", *(amount or ("--time", SECONDS)))
    figures, *_ = lab.truth(FIGURES.format(segment=case.segment))
    return figures


def tcp_over_link(folder: Path) -> list[Row]:
    """S6: case, segment, queue, delay, measured and expected latency in ms, Kibit/s of IP packets, % of the base's, packets sent
    and lost, published."""
    rows: list[Row] = []
    for case in CASES:
        latency, rate, sent, lost = run_case(case, folder / f"s6-tcp-{case.name.replace(' ', '-')}")
        share = 100 * rate / (rows[0][6] if rows else rate)
        rows.append((*case[:4], latency, expected_ms(case), rate, share, sent, lost, case.published))
    return rows
