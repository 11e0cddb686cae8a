# SPDX-License-Identifier: Apache-2.0
"""Shortened tests of the studies in labs. Each function returns the rows of a table with measured and published figures.

If only UDP is measured, the lab is `apart`: the control connection must not share the link with the data. If a link changes the
rate, it is taken from the log of the link, because a receiver that is scheduled late would report another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from studies.block_rates import s4_round_trip
from studies.lab import Report, StudyLab, percent_received, rate_mbit, received, study_lab

Row = tuple[Any, ...]
IPERF_UDP = 1470  # bytes of a datagram in iperf
SECONDS = 2
MIX_SECONDS = 4
BLOCKS = (1000, 2000, 5000, 10000)

# Published figures, unchanged. Medium, offered and received Mbit/s.
SWEEP = {
    "same-switch": ("wire 100 Mb/s", ((10, 10), (50, 50), (80, 80), (90, 90), (100, 95.9))),
    "wlan-b": ("802.11b", ((1, 1), (5, 5), (10, 6.53), (25, 6.19), (54, 6.45))),
    "wlan-g": ("802.11g", ((10, 10), (20, 20), (25, 23.03), (35, 23.26), (54, 24.67))),
}
# Mbit/s of one session beside 0 to 5 sessions of the other protocol.
MIX = {"tcp": (94.1, 88.3, 82.5, 77.5, 71.5, 65.5), "udp": (9.72, 6.01, 5.53, 5.28, 4.98, 4.98)}
# Network of the test, card, delay each way, receive window, buffer of TCP with which the kernel announces about that window,
# block sizes, and the published figures: of payload, for which those of S4 are blocks sent over their time.
WINDOWS = (
    ("S2: same LAN", "100Mbit", "2ms", 8760, 8000, (64, 1024, 8192), "UDP 6 × TCP"),
    ("S4: 1 Gb/s", "1Gbit", f"{500 * s4_round_trip():.0f}us", 65536, 65536, BLOCKS, "TCP 190 to 500, UDP to 889"),
)
WINDOW_PROFILE = """\
mtu = 1500
card = "{card}"
[both]
rate = "{card}"
overhead = 38
delay = "{delay}"
queue = "512KiB"
"""
WINDOW_SECONDS = 3
WRITES_SECONDS = 2
SIZES = (32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
# Profile, bytes of each TCP and of each UDP test. The study sent 8 MiB.
CONNECTIONS = {
    "same-switch": (1 << 20, 1 << 20),
    "same-lan": (1 << 21, 1 << 20),
    "lan-to-lan": (1 << 20, 1 << 21),
    "lan-to-home": (1 << 17, 1 << 20),
    "wlan-g": (1 << 19, 1 << 20),
    "same-host": (1 << 22, 1 << 20),
}
TEN_SIZES, TEN_COUNTS, TEN_TRIALS = (60000, 4096), (10, 100), 3
TEN_TESTS = [(size, count) for size in TEN_SIZES for count in TEN_COUNTS] * TEN_TRIALS
BLOCKS_BYTES = 40_000_000  # of each size


def rate_sweep(folder: Path) -> list[Row]:
    """S5: medium, offered, measured and published Mbit/s, percent received."""
    rows: list[Row] = []
    for profile, (medium, figures) in SWEEP.items():
        with study_lab(profile, folder / f"sweep-{profile}", apart=True) as lab:
            for offered, published in figures:
                report = lab.send("--udp", "--size", IPERF_UDP, "--rate", f"{offered}M", "--time", SECONDS)
                measured = (rate_mbit(report), float(published), percent_received(report))
                rows.append((medium, float(offered), *measured))
    return rows


def tcp_udp_mix(folder: Path) -> list[Row]:
    """S5: TCP and UDP sessions at once over 100 Mb/s: sessions, protocol, measured and published Mbit/s each."""
    rows: list[Row] = []
    tcp_test = ("--time", MIX_SECONDS)
    udp_test = ("--udp", "--size", IPERF_UDP, "--rate", "10M", "--time", MIX_SECONDS)
    with study_lab("same-switch", folder / "mix") as lab:
        for protocol, figures in MIX.items():
            for competitors, published in enumerate(figures):
                tcp, udp = (1, competitors) if protocol == "tcp" else (competitors, 1)
                reports = lab.send_together([*[tcp_test] * tcp, *[udp_test] * udp])
                measured = reports[0] if protocol == "tcp" else reports[-1]
                rows.append((tcp, udp, protocol, rate_mbit(measured) or 0.0, published))
    return rows


def streams_of(report: Report) -> list[float]:
    return [stream["rate_mbit_s"] for stream in received(report).get("streams", [])]


def parallel_tcp(folder: Path) -> list[Row]:
    """S5: one session, three with staggered starts: rates of each, published."""
    with study_lab("same-switch", folder / "parallel") as lab:
        alone = lab.send("--time", 5)
    buffer, file = ("--buffer", "250KiB"), ("--bytes", "50MiB")
    with study_lab("same-switch", folder / "staggered") as late:
        tests = [(*buffer, "--time", 40), *((*buffer, *file, "--start-offset", start) for start in (10, 20))]
        staggered = late.send_together(tests)
    return [
        ("one", streams_of(alone), "94.4"),
        (
            "three, 10 s apart: 40 s, 50 MiB, 50 MiB; mean of each",
            [rate_mbit(report) for report in staggered],
            "–, 45.5, –",
        ),
        ("the same: the first, mean of its 40 s", [rate_mbit(staggered[0])], "73.2"),
    ]


def receive_windows(folder: Path) -> list[Row]:
    """S2 and S4: TCP with a small receive window, TCP without, and UDP: network, window, block size, Mbit/s of each, UDP over TCP
    with the window, top finding of that TCP, published."""
    rows: list[Row] = []
    for number, (network, card, delay, window, buffer, sizes, published) in enumerate(WINDOWS):
        place = folder / f"window-{number}"
        place.mkdir(parents=True, exist_ok=True)
        profile = place / "profile.toml"
        profile.write_text(WINDOW_PROFILE.format(card=card, delay=delay))
        time = ("--time", WINDOW_SECONDS)
        for size in sizes:
            with study_lab(str(profile), place / f"small-{size}", captured=True) as lab:
                small = rate_mbit(lab.send("--size", size, "--buffer", buffer, *time))
            with study_lab(str(profile), place / f"large-{size}") as lab:
                large = rate_mbit(lab.send("--size", size, *time))
            with study_lab(str(profile), place / f"udp-{size}", apart=True) as lab:
                udp = lab.send("--udp", "--size", size, *time)
            sent = rate_mbit(udp, lab.wire_rates())
            ratio = sent / small if sent and small else None
            top = top_finding(place / f"small-{size}" / "before")
            rows.append((network, window, size, small, large, sent, ratio, top, published))
    return rows


def top_finding(capture: Path) -> str | None:
    """Returns the code of the first finding about a capture."""
    from wiretale.analyzer.trace import analyze

    codes = analyze(str(capture)).findings.column("code")
    return f"`{codes[0]}`" if len(codes) else None


def block_writes(folder: Path) -> list[Row]:
    """S2: TCP by block size on one switch: Mbit/s with blocks joined in large writes, with a write for each block, and without
    Nagle's algorithm; CPU time of the sender with a write for each block, ns per byte."""
    rows: list[Row] = []
    kinds = ((), ("--write-each",), ("--write-each", "--no-delay"))
    with study_lab("same-switch", folder / "writes") as lab:
        for size in SIZES:
            reports = [lab.send("--size", size, *kind, "--time", WRITES_SECONDS) for kind in kinds]
            sender = reports[1]["sender"]
            cpu = 1e9 * (sender["cpu_user_s"] + sender["cpu_system_s"]) / sender["bytes_sent"]
            rows.append((size, *map(rate_mbit, reports), cpu))
    return rows


# MB/s of each TCP test at the end of the link: a program reads few blocks at once, and faster than they came. Control
# connections carry less.
TEN_RATES = """
SELECT (sum(payload_bytes) - first(payload_bytes ORDER BY out_ns)) * 1e3 / (max(out_ns) - min(out_ns)) FROM truth
WHERE direction = 0 AND protocol = 6 AND payload_bytes > 0 AND out_ns IS NOT NULL
GROUP BY source_port HAVING sum(payload_bytes) > 20000 ORDER BY min(in_ns)
"""


def ten_rates(
    profile: str, protocol: str, folder: Path
) -> dict[tuple[int, int], list[tuple[float | None, float | None]]]:
    """Returns MB/s and percent received of each trial, by block size and count."""
    pairs: dict[tuple[int, int], list[tuple[float | None, float | None]]] = {test: [] for test in TEN_TESTS}
    with study_lab(profile, folder / f"ten-{profile}-{protocol}", apart=protocol == "udp") as lab:
        for size, count in TEN_TESTS:
            lab.send(f"--{protocol}", "--size", size, "--count", count)
    wire = lab.wire_rates()
    if protocol == "tcp":
        rates: list[float | None] = [rate for (rate,) in lab.truth(TEN_RATES)]
    else:
        rates = [rate and rate / 8 for rate in (wire.get(report["test"]["run"]) for report in lab.reports)]
    for test, rate, report in zip(TEN_TESTS, rates, lab.reports, strict=True):
        pairs[test].append((rate, percent_received(report)))
    return pairs


def ten_blocks(folder: Path) -> list[Row]:
    """S3: network, protocol, size, MB/s of 10 and of 100 blocks at the end of the link (medians), percent received of each."""
    rows: list[Row] = []
    for network, profile in (("LAN", "same-lan"), ("WLAN", "wlan-g")):
        for protocol in ("tcp", "udp"):
            pairs = ten_rates(profile, protocol, folder)
            for size in TEN_SIZES:
                trials = [pairs[size, count] for count in TEN_COUNTS]
                figures = [middle([trial[column] for trial in each]) for column in (0, 1) for each in trials]
                rows.append((network, protocol.upper(), size, *figures))
    return rows


def middle(figures: Sequence[float | None]) -> float | None:
    """Returns the median of the known figures."""
    figures_known = [figure for figure in figures if figure is not None]
    return median(figures_known) if figures_known else None


def controller_sweep(folder: Path) -> dict[str, list[Row]]:
    """S2: 27 tests over each connection: size, then Mbit/s and percent received for TCP, UDP and UDP with 12 bytes more; of
    TCP also with its set-up, of UDP with 12 bytes more also with a round trip."""
    tables: dict[str, list[Row]] = {}
    for profile, (tcp_bytes, udp_bytes) in CONNECTIONS.items():
        measured: dict[tuple[str, int], Report] = {}
        with study_lab(profile, folder / f"sweep27-{profile}-tcp") as lab:
            for size in SIZES:
                measured["tcp", size] = lab.send("--size", size, "--count", tcp_bytes // size)
        with study_lab(profile, folder / f"sweep27-{profile}-udp", apart=True) as lab:
            for size in SIZES:
                measured["udp", size] = lab.send("--udp", "--size", size, "--count", udp_bytes // size)
                measured["udp+12", size] = lab.send("--udp", "--size", size + 12, "--count", udp_bytes // size)
        wire, rtt_ns = lab.wire_rates(), shortest_rtt_ns(measured)
        with_rtt = None if rtt_ns is None else lab.wire_rates(rtt_ns)
        tables[profile] = [
            (
                *(size, *sweep_cells(measured, size, wire), with_set_up(measured["tcp", size])),
                with_rtt and rate_mbit(measured["udp+12", size], with_rtt),
            )
            for size in SIZES
        ]
    return tables


def shortest_rtt_ns(measured: dict[tuple[str, int], Report]) -> float | None:
    """Returns the shortest round trip of the TCP tests, because the control connection of UDP tests does not cross the link;
    None without a sample."""
    samples = [(report["sender"] or {}).get("tcp_info") for (name, _), report in measured.items() if name == "tcp"]
    shortest = min((sample[-1]["min_rtt_us"] for sample in samples if sample), default=None)
    return None if shortest is None else 1e3 * shortest


def with_set_up(report: Report) -> float | None:
    """Returns the rate of TCP over its time and a round trip more, in which its connection is made."""
    samples, elapsed = (report["sender"] or {}).get("tcp_info"), received(report).get("elapsed_s")
    if not samples or elapsed is None:
        return None
    seconds: float = elapsed + samples[-1]["min_rtt_us"] / 1e6
    return float(report["bytes_received"]) * 8e-6 / seconds


def sweep_cells(measured: dict[tuple[str, int], Report], size: int, wire: dict[int, float | None]) -> Row:
    reports = [measured[name, size] for name in ("tcp", "udp", "udp+12")]
    return tuple(value for report in reports for value in (rate_mbit(report, wire), percent_received(report)))


def block_benchmark(folder: Path) -> list[Row]:
    """S4: blocks of four sizes at full speed over 1 Gb/s: protocol, size, Mbit/s sent and received, lost, dropped by the
    receiver's host, out of order, and packets lost by the link for all sizes together."""
    rows: list[Row] = []
    for protocol in ("udp", "tcp"):
        with study_lab("same-lan", folder / f"blocks-{protocol}", apart=protocol == "udp") as lab:
            reports = [lab.send(f"--{protocol}", "--size", size, "--count", BLOCKS_BYTES // size) for size in BLOCKS]
        wire = lab.wire_rates()
        (lost,), *_ = lab.truth("SELECT count(*) FROM truth WHERE direction = 0 AND fate <> 'delivered'")
        for size, report in zip(BLOCKS, reports, strict=True):
            got = received(report)
            rates = (report["sender"]["rate_mbit_s"], rate_mbit(report, wire))
            counts = (got.get("blocks_lost"), got.get("host_dropped"), got.get("blocks_out_of_order"))
            rows.append((protocol.upper(), size, *rates, *counts, lost))
    return rows


# Profile and receive buffer of each test.
LOSING = (
    ("same-switch", 8_000),
    ("same-switch", 50_000),
    ("same-switch", 4_000_000),
    ("same-host", 8_000),
    ("same-host", 4_000_000),
)


def udp_losses(folder: Path) -> list[Row]:
    """UDP losses by place: profile, receive buffer, blocks sent, delivered and lost by the link, captured, received, dropped
    by the receiver's host."""
    rows: list[Row] = []
    for profile, buffer in LOSING:
        place = folder / f"who-{profile}-{buffer}"
        with study_lab(profile, place, apart=True, captured=True, receiver=("--buffer", str(buffer))) as lab:
            report = lab.send("--udp", "--size", 1000, "--count", 20_000)
        rows.append((profile, buffer, report["blocks_sent"], *out_of_link(lab), *at_receiver(report)))
    return rows


def out_of_link(lab: StudyLab) -> Row:
    """Returns the blocks that the link delivered and lost, and the blocks in the capture next to the receiver."""
    from wiretale.analyzer.trace import analyze

    (delivered, lost), *_ = lab.truth(
        "SELECT count(*) FILTER (fate = 'delivered'), count(*) FILTER (fate <> 'delivered') FROM truth "
        "WHERE direction = 0 AND block_sequence IS NOT NULL"
    )
    trace = analyze(str(lab.folder / "after"))
    return int(delivered), int(lost), sum(number or 0 for number in trace.directions.column("blocks"))


def at_receiver(report: Report) -> Row:
    """Returns the blocks that the program received and the datagrams that its kernel dropped."""
    return received(report).get("blocks_received"), received(report).get("host_dropped")


def tcp_retransmissions(folder: Path) -> list[Row]:
    """TCP with losses and without: profile, blocks, lost by the link, retransmitted by the capture, percent received."""
    from wiretale.analyzer.trace import analyze

    rows: list[Row] = []
    for profile in ("same-switch", "wan"):
        with study_lab(profile, folder / f"tcp-{profile}", captured=True) as lab:
            report = lab.send("--size", 1448, "--count", 3000)
        (lost,), *_ = lab.truth(
            "SELECT count(*) FROM truth WHERE direction = 0 AND payload_bytes > 1000 AND fate <> 'delivered'"
        )
        trace = analyze(str(folder / f"tcp-{profile}" / "before"))
        again = sum(number or 0 for number in trace.directions.column("retransmissions"))
        rows.append((profile, report["blocks_sent"], lost, again, percent_received(report)))
    return rows


# Profile, bit/s, overhead of an IP packet in bytes, protocol, block size, bytes in total.
SHARES = (
    ("same-switch", 100e6, 38, "tcp", 8192, "12M"),
    ("same-switch", 100e6, 38, "udp", 1472, "12M"),
    ("same-switch", 100e6, 38, "udp", 8192, "12M"),
    ("same-switch", 100e6, 38, "udp", 64, "2M"),
    ("lan-to-lan", 45e6, 4, "tcp", 8192, "4M"),
)
SHARES_QUERY = """
WITH data AS (SELECT min(in_ns) AS first, max(out_ns) AS last FROM truth WHERE direction = 0 AND payload_bytes > 0)
SELECT sum(ip_bytes + {overhead}) FILTER (direction = 0 AND copies > 0),
    coalesce(sum(ip_bytes + {overhead}) FILTER (direction = 1), 0),
    max(out_ns) - min(in_ns), (SELECT first FROM data) - min(in_ns), max(out_ns) - (SELECT last FROM data)
FROM truth
"""


def bandwidth_shares(folder: Path) -> list[Row]:
    """Use of the link at full speed: profile, protocol, size, rates, percent received, shares of the link: payload, headers and
    framing, responses, idle before, between and after the data."""
    rows: list[Row] = []
    for profile, line_bps, overhead, protocol, size, count in SHARES:
        with study_lab(profile, folder / f"shares-{profile}-{protocol}-{size}", apart=protocol == "udp") as lab:
            report = lab.send(f"--{protocol}", "--size", size, "--bytes", count)
        (wire, responses, span_ns, before_ns, after_ns), *_ = lab.truth(SHARES_QUERY.format(overhead=overhead))
        payload = report["bytes_sent"]
        line = line_bps * span_ns / 8e9  # bytes that the link can carry in that time
        share = (100 * payload / line, 100 * (wire - payload) / line, 100 * responses / line)
        before, after = 100 * before_ns / span_ns, 100 * after_ns / span_ns
        idle = (before, max(100 - 100 * wire / line - before - after, 0.0), after)
        rates = (report["sender"]["rate_mbit_s"], rate_mbit(report, lab.wire_rates()))
        rows.append((profile, protocol.upper(), size, *rates, percent_received(report), *share, *idle))
    return rows
