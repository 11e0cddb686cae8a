# SPDX-License-Identifier: Apache-2.0
"""Shortened tests of the studies in labs. Each function returns the rows of a table with measured and published figures.

If only UDP is measured, the lab is `apart`: the control connection must not share the link with the data. If a link changes the
rate, it is taken from the log of the link, because a receiver that is scheduled late would report another one.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from studies.lab import Report, StudyLab, percent_received, rate_mbit, received, study_lab

Row = tuple[Any, ...]
IPERF_UDP = 1470  # bytes of a datagram in iperf
SECONDS = 2
MIX_SECONDS = 4
STAGGER_SECONDS = 2.5

# Published figures, unchanged.
SWEEP = """\
medium,profile,offered,published
wire 100 Mb/s,same-switch,10,10
wire 100 Mb/s,same-switch,50,50
wire 100 Mb/s,same-switch,80,80
wire 100 Mb/s,same-switch,90,90
wire 100 Mb/s,same-switch,100,95.9
802.11b,wlan-b,1,1
802.11b,wlan-b,5,5
802.11b,wlan-b,10,6.53
802.11b,wlan-b,25,6.19
802.11b,wlan-b,54,6.45
802.11g,wlan-g,10,10
802.11g,wlan-g,20,20
802.11g,wlan-g,25,23.03
802.11g,wlan-g,35,23.26
802.11g,wlan-g,54,24.67
"""
MIX = """\
tcp,udp,measured,published
1,0,tcp,94.1
1,1,tcp,88.3
1,2,tcp,82.5
1,3,tcp,77.5
1,4,tcp,71.5
1,5,tcp,65.5
0,1,udp,9.72
1,1,udp,6.01
2,1,udp,5.53
3,1,udp,5.28
4,1,udp,4.98
5,1,udp,4.98
"""
TRANSFERS = """\
network,profile,protocol,size,published_mb_s,published_percent
LAN,same-switch,tcp,60000,15.50,100
LAN,same-switch,tcp,4096,6.40,100
LAN,same-switch,udp,60000,27.52,95
LAN,same-switch,udp,4096,3.79,100
WLAN,wlan-g,tcp,60000,5.40,100
WLAN,wlan-g,tcp,4096,6.11,100
WLAN,wlan-g,udp,60000,4.11,20
WLAN,wlan-g,udp,4096,2.47,
WAN,wan,tcp,60000,0.56,100
WAN,wan,tcp,4096,0.18,100
WAN,wan,udp,20000,0.39,6
"""
SIZES = (32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
# Profile, bytes of each TCP and of each UDP test. The study sent 8 MiB.
CONNECTIONS = {
    "same-switch": (1 << 20, 1 << 20),
    "same-lan": (1 << 21, 1 << 20),
    "lan-to-lan": (1 << 20, 1 << 21),
    "lan-to-home": (1 << 17, 1 << 20),
}
BLOCKS = (1000, 2000, 5000, 10000)
BLOCKS_BYTES = 40_000_000  # of each size


def table(text: str) -> Iterator[dict[str, str]]:
    return csv.DictReader(io.StringIO(text))


def rate_sweep(folder: Path) -> list[Row]:
    """S5: medium, offered, measured and published Mbit/s, percent received."""
    rows: list[Row] = []
    for profile in ("same-switch", "wlan-b", "wlan-g"):
        chosen = [row for row in table(SWEEP) if row["profile"] == profile]
        with study_lab(profile, folder / f"sweep-{profile}", apart=True) as lab:
            for row in chosen:
                rate = f"{row['offered']}M"
                report = lab.send("--udp", "--size", IPERF_UDP, "--rate", rate, "--time", SECONDS)
                figures = (float(row["offered"]), rate_mbit(report), float(row["published"]), percent_received(report))
                rows.append((row["medium"], *figures))
    return rows


def tcp_udp_mix(folder: Path) -> list[Row]:
    """S5: TCP and UDP sessions at once over 100 Mb/s: sessions, protocol, measured and published Mbit/s each."""
    rows: list[Row] = []
    tcp_test = ("--time", MIX_SECONDS)
    udp_test = ("--udp", "--size", IPERF_UDP, "--rate", "10M", "--time", MIX_SECONDS)
    with study_lab("same-switch", folder / "mix") as lab:
        for row in table(MIX):
            tcp, udp = int(row["tcp"]), int(row["udp"])
            reports = lab.send_together([*[tcp_test] * tcp, *[udp_test] * udp])
            which = reports[:tcp] if row["measured"] == "tcp" else reports[tcp:]
            rates = [rate_mbit(report) or 0.0 for report in which]
            rows.append((tcp, udp, row["measured"], sum(rates) / len(rates), float(row["published"])))
    return rows


def streams_of(report: Report) -> list[float]:
    return [stream["rate_mbit_s"] for stream in received(report).get("streams", [])]


def parallel_tcp(folder: Path) -> list[Row]:
    """S5: one session, three at once, three with staggered starts: rates of each, published."""
    with study_lab("same-switch", folder / "parallel") as lab:
        alone = lab.send("--time", 5)
        together = lab.send("--streams", 3, "--time", 8)
    with study_lab("same-switch", folder / "staggered") as late:
        staggered = late.send("--streams", 3, "--time", 10, "--stagger", STAGGER_SECONDS)
    quarters = late.truth(
        f"SELECT list(rate ORDER BY began) FROM (SELECT (in_ns - (SELECT min(in_ns) FROM truth WHERE payload_bytes > 1000)) "
        f"// {round(STAGGER_SECONDS * 1e9)} AS part, source_port, min(in_ns) AS began, "
        f"sum(payload_bytes) * 8 / {STAGGER_SECONDS * 1e6} AS rate FROM truth WHERE direction = 0 AND payload_bytes > 1000 "
        "GROUP BY ALL) WHERE part < 5 GROUP BY part ORDER BY part"
    )
    return [
        ("one", streams_of(alone), "94.4"),
        ("three at once, 8 s", streams_of(together), "29.4, 29.3, 39.6"),
        ("three, each 10 s, 2.5 s apart: means of each", streams_of(staggered), "(94.4, 45.5, 73.2)"),
        *((f"the same, in the {part}. 2.5 s", *rates, "") for part, rates in enumerate(quarters, start=1)),
    ]


def file_transfers(folder: Path) -> list[Row]:
    """S3: 100 blocks: network, protocol, size, measured and published MB/s, ms, measured and published percent received."""
    rows: list[Row] = []
    for profile in ("same-switch", "wlan-g", "wan"):
        for protocol in ("tcp", "udp"):
            chosen = [r for r in table(TRANSFERS) if (r["profile"], r["protocol"]) == (profile, protocol)]
            place = folder / f"transfer-{profile}-{protocol}"
            with study_lab(profile, place, apart=protocol == "udp") as lab:
                reports = [lab.send(f"--{protocol}", "--size", row["size"], "--count", 100) for row in chosen]
            wire = lab.wire_rates()
            rows += [transfer_row(row, report, wire) for row, report in zip(chosen, reports, strict=True)]
    return rows


def transfer_row(row: dict[str, str], report: Report, wire: dict[int, float | None]) -> Row:
    rate, elapsed = rate_mbit(report, wire), received(report).get("elapsed_s")
    return (
        row["network"],
        row["protocol"].upper(),
        int(row["size"]),
        None if rate is None else rate / 8,
        float(row["published_mb_s"]),
        None if elapsed is None else 1000 * elapsed,
        percent_received(report),
        float(row["published_percent"]) if row["published_percent"] else None,
    )


def controller_sweep(folder: Path) -> dict[str, list[Row]]:
    """S2: 27 tests over each connection: size, then Mbit/s and percent received for TCP, UDP and UDP with 12 bytes more."""
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
        wire = lab.wire_rates()
        tables[profile] = [(size, *sweep_cells(measured, size, wire)) for size in SIZES]
    return tables


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
