# SPDX-License-Identifier: Apache-2.0
"""S3's transfers of 100 blocks, on the network that agrees best with its published figures of a medium.

The study names media, but neither rates nor round trips. So a network of one link is searched for each medium: its rate, round
trip, TCP window and queue, and the time between two datagrams of the sending program. The lab then has that network. A figure
that no such network can have beside the others contradicts them, and its line says which.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache
from itertools import product
from math import ceil, log
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from studies.lab import Report, StudyLab, bound_window, percent_received, received, study_lab
from wiretale.analyzer.errors import WiretaleError
from wiretale.analyzer.query import connect
from wiretale.analyzer.trace import analyze
from wiretale.traffic.experiment.published import published_rows
from wiretale.traffic.experiment.session_series import Piece, course

Row = tuple[Any, ...]
BLOCKS = 100
RUNS = 5  # of each transfer, as in the study
BARS, BAR_HEIGHTS = 32, " ▁▂▃▄▅▆▇█"  # of a rate over time
REASSEMBLY_S = 1.5  # fragments that stay incomplete have then left the receiver, with [sysctl] below
MTU, SEGMENT, FRAGMENT = (
    1500,
    1448,
    1480,
)  # bytes: an IP packet, and what it carries of TCP (RFC 7323) and of a datagram
IP_HEADER, UDP_HEADER = 20, 8
FIRST_WINDOW = 2  # segments: RFC 5681 for hosts of that time
NEAR = 1.03  # rates of two or three digits times milliseconds
ABOUT = 1.25  # shares that the study calls "around"
PROFILE = """\
mtu = 1500
[sysctl]
"net.ipv4.ipfrag_time" = 1
[both]
rate = "{rate:.0f}bit"
delay = "{delay:.0f}us"
queue = "{queue:.0f}KiB"
"""


class Figure(NamedTuple):
    """What S3 published of 100 blocks."""

    network: str
    protocol: str
    size: int
    rate: float  # MB/s
    ms: float  # from the first packet to the last
    percent: float | None  # received


class Network(NamedTuple):
    """A link between two hosts, and what the hosts send into it."""

    rate: float  # bytes of IP packets per second
    round_trip: float  # s
    window: float  # bytes, of TCP
    queue: float  # bytes
    pause: float  # s between two datagrams


def figures() -> list[Figure]:
    """Returns the published figures."""
    return [
        Figure(
            row["network"],
            row["protocol"],
            int(row["block_bytes"]),
            float(row["rate_mb_per_s"]),
            float(row["first_to_last_packet_ms"]),
            float(row["percent_received"]) if row["percent_received"] else None,
        )
        for row in published_rows("file_transfer")
    ]


def near(measured: float, published: float, factor: float) -> bool:
    """Returns whether two figures differ by less than a factor."""
    return 1 / factor <= measured / published <= factor


def contradiction(figure: Figure) -> str:
    """Returns what rate, time and share of a transfer say of each other if they cannot all be true, otherwise nothing."""
    blocks = figure.rate * figure.ms * 1e3 / figure.size
    percent = 100 if figure.percent is None else figure.percent
    if near(blocks, BLOCKS * percent / 100, NEAR if percent == 100 else ABOUT):
        return ""
    return f"{figure.rate:.3g} MB/s for {figure.ms:,.0f} ms are {blocks:.0f} of 100 blocks, not {percent:.0f}"


def tcp_rate(network: Network, bytes_total: int) -> float:
    """Returns the bytes per second of a transfer over TCP, which doubles its window in each round trip."""
    bytes_left, congestion_window, seconds = float(bytes_total), float(FIRST_WINDOW * SEGMENT), 0.0
    rate = network.rate * SEGMENT / MTU
    while bytes_left > 0:
        burst = min(congestion_window, network.window, bytes_left)
        bytes_left -= burst
        seconds += max(network.round_trip, burst / rate) if bytes_left > 0 else burst / rate
        congestion_window *= 2
    return bytes_total / seconds


def udp_rate(network: Network, size: int) -> tuple[float, int]:
    """Returns the bytes per second of the complete blocks, and their number. What the queue has no room for is lost."""
    fragments = ceil((size + UDP_HEADER) / FRAGMENT)
    wire = size + UDP_HEADER + IP_HEADER * fragments
    queued, last, complete = 0.0, 0.0, 0
    for block in range(BLOCKS):
        entered = min(fragments, int((network.queue - queued) / MTU) + 1)
        queued += wire * entered / fragments
        if entered == fragments:
            last, complete = block * network.pause + queued / network.rate, complete + 1
        queued = max(0.0, queued - network.rate * network.pause)
    return (complete * size / last if complete else 0.0), complete


def distance(network: Network, medium: Sequence[Figure]) -> float:
    """Returns how far a network is from the published rates and shares: the sum of the logarithms of their ratios.

    A sum, because one figure that contradicts the others must not move the network away from them.
    """
    apart = 0.0
    for figure in medium:
        if figure.protocol == "tcp":
            rate, percent = tcp_rate(network, BLOCKS * figure.size), None
        else:
            rate, percent = udp_rate(network, figure.size)
        apart += abs(log(max(rate, 1) / 1e6 / figure.rate))
        if figure.percent and percent is not None:
            apart += abs(log(max(percent, 0.5) / figure.percent))
    return apart


STARTS = [
    Network(rate, round_trip, 1e5, 3e5, pause)
    for rate in (1e6, 1e7, 5e7)
    for round_trip in (0.002, 0.02, 0.2)
    for pause in (0.001, 0.004)
]
STEPS = (3, 1.7, 1.3, 1.1, 1.03, 1.01)  # factors


@cache
def network_of(medium: str) -> Network:
    """Returns the network that agrees best with the figures of a medium; each search changes one number at a time."""
    published = [figure for figure in figures() if figure.network == medium]

    def search(start: Network) -> tuple[float, Network]:
        best, network = distance(start, published), start
        for step in STEPS:
            moved = True
            while moved:
                moved = False
                for name, factor in product(Network._fields, (step, 1 / step)):
                    beside = network._replace(**{name: getattr(network, name) * factor})
                    if (apart := distance(beside, published)) < best - 1e-9:
                        best, network, moved = apart, beside, True
        return best, network

    return min(map(search, STARTS))[1]


def rate_bounds(medium: str) -> tuple[float, float]:
    """Returns the least MB/s of IP packets that TCP shows the link to carry, and the most that the losses of UDP leave it.

    A link that lost blocks because its queue was full has sent all the time. With equal gaps and one queue, whole blocks come
    first and only parts of blocks after them (udp_rate): until the last whole one the link was no faster than what arrived.
    """
    published = [figure for figure in figures() if figure.network == medium]
    least = max(figure.rate * MTU / SEGMENT for figure in published if figure.protocol == "tcp")
    most = min(
        (
            figure.rate * MTU / FRAGMENT
            for figure in published
            if figure.protocol == "udp" and figure.percent and figure.percent < 90 / ABOUT
        ),
        default=float("inf"),
    )
    return least, most


def reason(figure: Figure) -> str:
    """Returns why a lab with the best network does not have a figure.

    Rates that need two links come first, because they are further apart than rate and time of one transfer are.
    """
    least, most = rate_bounds(figure.network)
    if least > most:
        return f"cannot fit: TCP brought {least:.3g} MB/s through this link, UDP beside its full queue {most:.3g}"
    words = contradiction(figure)
    return f"cannot fit: {words}" if words else ""


def in_words(medium: str) -> str:
    """Returns the network of a medium for readers."""
    network = network_of(medium)
    return (
        f"{medium}: {network.rate * 8e-6:.3g} Mbit/s, a round trip of {network.round_trip * 1e3:.3g} ms, a TCP window of "
        f"{network.window / 1e3:.3g} kB, a queue of {network.queue / 1e3:,.0f} kB, a datagram each {network.pause * 1e3:.2g} ms"
    )


def options(figure: Figure, network: Network) -> tuple[str | int, ...]:
    """Returns the options of a sender for a figure."""
    common = (f"--{figure.protocol}", "--size", figure.size, "--count", BLOCKS)
    return common if figure.protocol == "tcp" else (*common, "--rate", f"{figure.size * 8 / network.pause:.0f}")


def milliseconds(report: Report) -> float | None:
    """Returns the time of the blocks that were received: a block's more than from the end of the first to the end of the last."""
    count, seconds = received(report).get("blocks_received"), received(report).get("elapsed_s")
    return 1e3 * seconds * count / (count - 1) if seconds and count and count > 1 else None


class Course(NamedTuple):
    """What the tracer at the receiver has of the runs of a transfer."""

    rate: float  # MB/s of useful payload while there was any: mean of the runs
    bar_ms: float
    rates: list[float]  # MB/s in each bar: means of the runs


TRANSFERS = "SELECT flow, direction FROM blocks GROUP BY ALL HAVING count(*) > 1 ORDER BY min(first_ns)"
PIECES = """
SELECT start_ns / 1e9, (start_ns + width_ns) / 1e9, goodput_bps * width_ns / 8e9 FROM series
WHERE flow = ? AND direction = ? AND goodput_bps > 0 ORDER BY 1
"""


def captured_courses(folder: Path, transfers: int) -> list[Course]:
    """Returns the course of each transfer, of which RUNS follow each other in the capture."""
    with connect(analyze(str(folder / "after"))) as tables:
        measured = tables.execute(TRANSFERS).fetchall()
        pieces: list[list[Piece]] = [tables.execute(PIECES, row).fetchall() for row in measured]
    if len(measured) != transfers * RUNS:
        raise WiretaleError(f"{folder}: {len(measured)} transfers in the capture, {transfers * RUNS} were sent")
    courses = []
    for first in range(0, len(pieces), RUNS):
        runs = pieces[first : first + RUNS]
        bar_s, rates = course(runs, BARS)
        means = [fmean(values) / 8 for values in zip(*rates, strict=True)]
        rate = fmean(sum(size for *_, size in run) / 1e6 / (run[-1][1] - run[0][0]) for run in runs)
        courses.append(Course(rate, 1e3 * bar_s, means))
    return courses


def drawn(rates: Sequence[float]) -> str:
    """Returns a bar for each rate, in eighths of the highest."""
    steps = len(BAR_HEIGHTS) - 1
    return "".join(BAR_HEIGHTS[ceil(steps * rate / max(rates) - 0.5)] for rate in rates)


def mean(values: Sequence[float | None]) -> float | None:
    """Returns the mean of the known values."""
    numbers = [value for value in values if value is not None]
    return fmean(numbers) if numbers else None


def transfer(figure: Figure, reports: Sequence[Report], course_of_runs: Course) -> Row:
    """Returns the row of a transfer; its runs are `reports`."""
    times = [milliseconds(report) for report in reports]
    rates = [report["bytes_received"] / ms / 1e3 if ms else None for report, ms in zip(reports, times, strict=True)]
    got = mean([percent_received(report) for report in reports])
    figures = (mean(rates), figure.rate, mean(times), figure.ms, got, figure.percent)
    return figure.network, figure.protocol.upper(), figure.size, *figures, *course_of_runs


def settled(lab: StudyLab, test: Sequence[str | int]) -> Report:
    """Returns the report of a run, when its fragments are gone.

    Datagrams that stay incomplete fill the receiver's memory for fragments for 30 s by default, and with it full the next run
    loses every fragmented datagram.
    """
    report = lab.send(*test)
    if (percent_received(report) or 0) < 100:
        time.sleep(REASSEMBLY_S)
    return report


def file_transfers(folder: Path) -> list[Row]:
    """S3: 100 blocks, means of the runs: network, protocol, size, measured and published MB/s, ms and percent received, and the
    Course in the capture."""
    rows: list[Row] = []
    for medium in dict.fromkeys(figure.network for figure in figures()):
        network = network_of(medium)
        for protocol in ("tcp", "udp"):
            published = [figure for figure in figures() if (figure.network, figure.protocol) == (medium, protocol)]
            place = folder / f"transfer-{medium}-{protocol}"
            place.mkdir(parents=True, exist_ok=True)
            profile = place / "profile.toml"
            profile.write_text(
                PROFILE.format(rate=8 * network.rate, delay=network.round_trip * 5e5, queue=network.queue / 1024)
            )
            with study_lab(str(profile), place, apart=protocol == "udp", captured=True) as lab:
                bound_window(lab, FIRST_WINDOW, max(FIRST_WINDOW, round(network.window / SEGMENT)))
                reports = [[settled(lab, options(figure, network)) for _ in range(RUNS)] for figure in published]
            courses = captured_courses(place, len(published))
            rows += map(transfer, published, reports, courses)
    return rows
