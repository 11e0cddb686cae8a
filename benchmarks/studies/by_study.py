# SPDX-License-Identifier: Apache-2.0
"""A table for each study, made from the rows of the sections: measured, published, the difference and its reason.

A reason must be shown by a section or be the absence of a fact; a figure that nothing explains has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any, NamedTuple

from studies import block_rates, file_transfer, same_switch
from studies.tcp_over_link import HEADERS, RATE_BPS, WINDOW
from wiretale.analyzer.theory.capacity import Link, block_maximum, maximum
from wiretale.reports.html.experiment.data import study_title

Found = dict[str, Any]
BY_STUDY = "## Measured and published, by study"
NEAR = 15.0  # percent: as published
UNKNOWN_NETWORK = "the study does not describe its network; that of the profile is an assumption"
CHANCE = "both sizes fill the wire: which is larger is chance"
FITS = "fits"
NOT_FOUND = "does not fit; no published figure contradicts it"
SWITCH_RATIO = "hosts of today: the wire limits both; those that send a bounded number of packets have it"


class Line(NamedTuple):
    """A figure of a study."""

    name: str
    unit: str
    measured: float | None
    published: float | None
    why: str  # if they differ by more than NEAR
    mechanism: str = ""  # of a figure that is as published, or published in words
    near: str = "as published"  # if they do not; a network that was searched for fits


def known_ratios(rows: Sequence[Any], over: int, under: int) -> dict[int, float]:
    """Returns the ratio of two columns by block size."""
    return {row[0]: row[over] / row[under] for row in rows if row[over] and row[under]}


TCP, UDP, UDP_PERCENT = 1, 3, 4  # columns of the sweeps of S2


def s2(results: Found) -> Iterator[Line]:
    sweeps = results.get("sweep27") or {}
    if near := known_ratios(sweeps.get("same-switch", ()), TCP, UDP):
        yield Line("same switch: TCP over UDP, median of nine sizes", "", median(near.values()), 2, SWITCH_RATIO)
        yield Line(
            "the same: blocks of 64 bytes", "", near.get(64), 2, "each block is a packet of 130 bytes on the wire"
        )
    for mechanism, _, mean_rates, *_, udp_best in results.get("mechanisms") or ():
        if mechanism == same_switch.MECHANISMS[-1].name:
            yield Line(f"the same, {mechanism}: TCP over UDP, mean of nine sizes", "", mean_rates, 2, SWITCH_RATIO)
            yield Line(f"the same, {mechanism}: UDP's fastest block", "bytes", udp_best, 8192, CHANCE)
    for row in results.get("windows") or ():
        if row[0].startswith("S2") and row[2] != 64:
            name = f"same LAN: UDP over TCP with a window of {row[1]:,} bytes, blocks of {row[2]:,}"
            yield Line(name, "", row[6], 6, "window and round trip of the study are unknown")
    if far := known_ratios(sweeps.get("lan-to-lan", ()), UDP, TCP):
        yield Line("LAN to LAN: UDP over TCP, median", "", median(far.values()), 2, UNKNOWN_NETWORK)
    for profile, name, share in (("lan-to-lan", "LAN to LAN", 50), ("lan-to-home", "LAN to home", 10)):
        if got := [row[UDP_PERCENT] for row in sweeps.get(profile, ()) if row[UDP_PERCENT] is not None]:
            yield Line(f"{name}: UDP received, median (published: below)", "%", median(got), share, UNKNOWN_NETWORK)


def s3(results: Found) -> Iterator[Line]:
    published = {(figure.network, figure.protocol.upper(), figure.size): figure for figure in file_transfer.figures()}
    transfers = results.get("transfers") or ()
    for network, protocol, size, rate, published_rate, ms, published_ms, got, percent, *_ in transfers:
        name = f"{network}, {protocol}, 100 blocks of {size:,}"
        why = file_transfer.reason(published[network, protocol, size]) or NOT_FOUND
        yield Line(f"{name}: first to last", "ms", ms, published_ms, why, near=FITS)
        yield Line(f"{name}: rate", "MB/s", rate, published_rate, why, near=FITS)
        if protocol == "UDP":
            yield Line(f"{name}: received", "%", got, percent, why, near=FITS)


def s4(results: Found) -> Iterator[Line]:
    rates = block_rates.wire_rates("udp")
    for protocol, size, sent, *_ in results.get("blocks") or ():
        if protocol == "UDP" and size in rates:
            rate = sent and sent / 8 / block_maximum(block_rates.LINK, "udp", size).block_efficiency
            why = block_rates.udp_reason(rates, size)
            yield Line(f"UDP, blocks of {size:,}: sent, on the wire", "MB/s", rate, rates[size], why)
    for size, _, _, percent, _, there, _, _, lost, _ in results.get("paused") or ():
        model = f"a receiver that misses {there:.2g} ticks of 15.6 ms a second"
        yield Line(
            f"UDP, blocks of {size:,}: missing", "%", lost, percent, f"does not fit {model}", near=f"{FITS} {model}"
        )
    rates = block_rates.wire_rates("tcp")
    for network, window, size, small, *_ in results.get("windows") or ():
        if network.startswith("S4") and size in rates:
            name = f"TCP, window {window:,}, round trip {block_rates.s4_round_trip():.2f} ms, blocks of {size:,}: on the wire"
            rate = small and small / 8 / block_rates.payload_share()  # segments are full
            yield Line(name, "MB/s", rate, rates[size], block_rates.tcp_contradiction(rates), near=FITS)


DATA_RATES = (("802.11b", 11, 61.2), ("802.11g", 54, 45.6))  # Mbit/s, and the efficiency that S5 published, percent


def efficiencies(rows: Sequence[Any]) -> Iterator[Line]:
    """Yields the best rate of each wireless LAN over its data rate, as S5 has it."""
    for medium, data_rate, published in DATA_RATES:
        if best := max((row[2] for row in rows if row[0] == medium), default=None):
            name = f"{medium}: best rate over the data rate of {data_rate} Mbit/s"
            most = maximum(Link(data_rate * 10**6, framing="wlan"), "udp").efficiency
            yield Line(
                name, "%", 100 * best / data_rate, published, UNKNOWN_NETWORK, f"the standard permits {most:.1%}"
            )


def s5(results: Found) -> Iterator[Line]:
    yield from efficiencies(results.get("sweep") or ())
    for medium, offered, measured, published, _ in results.get("sweep") or ():
        yield Line(f"UDP over {medium}, {offered:g} Mbit/s offered", "Mbit/s", measured, published, UNKNOWN_NETWORK)
    for tcp, udp, protocol, measured, published, *_ in results.get("card") or ():
        name = f"{tcp} TCP and {udp} UDP at 10 Mbit/s: {protocol.upper()}, each"
        yield Line(name, "Mbit/s", measured, published, UNKNOWN_NETWORK)
    for name, rates, published in results.get("parallel") or ():
        figures = [part.strip() for part in published.split(",")]
        for number, (rate, figure) in enumerate(zip(rates, figures, strict=False), start=1):
            if figure != "–":
                which = f", session {number}" if len(figures) > 1 else ""
                yield Line(f"TCP: {name}{which}", "Mbit/s", rate, float(figure), UNKNOWN_NETWORK)
    for name, unit, runs, middle, least, most, published in results.get("sharing") or ():
        words = f"{runs} runs had {least:.3g} to {most:.3g}"
        why = f"as published: {words}" if least <= published <= most else f"not reproduced: {words}"
        yield Line(name, unit, middle, published, why, words)


S6_FIGURES = (
    ("packets_received", "received", "packets"),
    ("throughput_kibps", "throughput", "kibit/s"),
    ("latency_ms", "latency", "ms"),
    ("jitter_ms", "jitter", "ms"),
)


def s6(results: Found) -> Iterator[Line]:
    _, cases = results.get("s6") or ("", ())
    for row in cases:
        for key, name, unit in S6_FIGURES:
            if row["published"].get(key) is not None:
                yield Line(f"{row['case']}: {name}", unit, row[key], row["published"][key], "a clock of real machines")
    for case, *row in results.get("s6tcp") or ():
        yield s6_over_tcp(case, row)


RENO = "Linux's Reno recovers otherwise than ns-2's TCP"


def s6_over_tcp(case: str, row: Sequence[Any]) -> Line:
    """Returns the figure of a case of the TCP series that the text compares UDP with."""
    segment, _, delay_ms, latency, expected, _, percent, _, lost, words = row
    bytes_ = segment + HEADERS
    if case in {"small packets", "queue 5", "long link"}:
        name = f"TCP, {case}: throughput over that of the base (published: {words})"
        round_trip = 2 * delay_ms + 8e3 * (bytes_ + HEADERS) / RATE_BPS
        mechanism = f"{WINDOW} packets of {bytes_:,} bytes in a round trip of {round_trip:.1f} ms do not fill the link"
        if case == "queue 5":
            mechanism = f"{WINDOW} packets do not fit in the queue: {lost:,} were lost"
        return Line(name, "", percent / 100, 0.5 if case == "small packets" else None, RENO, mechanism)
    back = f"{delay_ms + 8e3 * HEADERS / RATE_BPS:.2f}"
    mechanism = (
        f"the window of {WINDOW} packets of {bytes_:,} bytes waits in the queue: {WINDOW} × {8e3 * bytes_ / RATE_BPS:.2f} less "
        f"the way back, {back}, is {expected:.1f} ms"
    )
    published = {"base": 73, "large packets": 300}.get(case)
    return Line(f"TCP, {case}: latency (published: {words})", "ms", latency, published, RENO, mechanism)


STUDIES = (("S2", s2), ("S3", s3), ("S4", s4), ("S5", s5), ("S6", s6))


def difference(line: Line) -> tuple[float | None, str]:
    """Returns the difference in percent, and the reason if it is large."""
    if line.measured is None:
        return None, "not known"
    if line.published is None:
        return None, f"published in words; {line.mechanism}" if line.mechanism else "not published"
    if not line.published:
        return None, "near 0" if abs(line.measured) < 1 else line.why
    percent = 100 * (line.measured / line.published - 1)
    near = f"{line.near}; {line.mechanism}" if line.mechanism else line.near
    return percent, near if abs(percent) <= NEAR else line.why


def by_study(results: Found, markdown: Any) -> str:
    """Returns the tables."""
    sections = []
    for study, lines in STUDIES:
        rows: list[Sequence[Any]] = []
        for line in lines(results):
            percent, why = difference(line)
            change = None if percent is None else f"{percent:+.0f} %"
            rows.append((line.name, line.unit, line.measured, line.published, change, why))
        if rows:
            sections.append(
                f"### {study_title(study)}\n\n{markdown('figure | unit | measured | published | difference | why', rows)}"
            )
    return "\n".join([f"{BY_STUDY}\n", *sections])
