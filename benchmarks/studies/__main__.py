# SPDX-License-Identifier: Apache-2.0
"""Repeats the published studies, shortened, in labs on this machine, and writes docs/studies.md: measured beside published.

PYTHONPATH=benchmarks python -m studies [-o DIR]                     about twelve minutes, as root; `make studies` runs it
PYTHONPATH=benchmarks python -m studies --only anomalies [-o DIR]    replaces that section of the document
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from shared.markdown import table
from studies import runs
from studies.anomalies import anomalies, anomalies_section
from studies.answers import answers
from wiretale.analyzer.errors import WiretaleError
from wiretale.traffic.lab.run import run_study

ANOMALIES_TITLE = "Anomalies and their top finding"
QUESTIONS_TITLE = "Open questions of the studies"
TARGET = Path(__file__).parents[2] / "docs" / "studies.md"
INTRODUCTION = """\
# The studies, repeated

Made by `make studies` ({date}, {machine}, {minutes:.0f} minutes); do not edit. Each figure is from a shortened test of a study
with `wiretale-traffic` in a lab ([lab.md](lab.md)). Compare the shapes, because the machines differ: a network card of 100 Mb/s
is a token bucket, and the hosts share {cores} cores with the link. In S6 the figures themselves are comparable. Rates are of
payload: for TCP at the receiver, for UDP in S2 to S4 at the end of the link. Published figures are unchanged.
"""


def cell(value: Any) -> str:
    """Formats a value; – stands for an unknown one."""
    if value is None:
        return "–"
    if isinstance(value, list):
        return ", ".join(map(cell, value)) or "–"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def markdown(headings: str, rows: Sequence[Sequence[Any]]) -> str:
    return table(headings, [[cell(value) for value in row] for row in rows], left=None) + "\n"


def s6_section(folder: Path) -> tuple[str, list[dict[str, Any]]]:
    results = run_study("s6", folder, None, lambda text: print(f"    {text}", file=sys.stderr))
    names = ("packets_sent", "packets_received", "throughput_kibps", "latency_ms", "jitter_ms")
    pairs = (*((name, name) for name in names), ("queue_packets", "queue_length_packets"))
    rows = [
        [
            row["case"],
            *(f"{cell(row[a])} / {cell(row['published'].get(b))}" for a, b in pairs),
            ", ".join(name for name, near in row["as_published"].items() if not near) or "nothing",
        ]
        for row in results["rows"]
    ]
    headings = "case | sent | received | kibps | latency ms | jitter ms | queued | differs"
    text = "Measured / published, from the captures alone. [lab.md](lab.md) explains the counts.\n\n"
    return text + markdown(headings, rows), results["rows"]


def sweep_section(tables: dict[str, list[runs.Row]]) -> str:
    headings = "block bytes | TCP Mbit/s | % | UDP Mbit/s | % | UDP+12 Mbit/s | %"
    parts = [f"{name}:\n\n{markdown(headings, rows)}" for name, rows in tables.items()]
    findings = [(name, *sweep_findings(rows)) for name, rows in tables.items()]
    summary = markdown(
        "connection | UDP over TCP, median of nine sizes | UDP received %, median | TCP received %", findings
    )
    published = (
        "Published: same switch TCP 2 × UDP, received near 100 %; same LAN UDP 6 × TCP, near 100 %; LAN to LAN UDP 2 × TCP, "
        "below 50 %; LAN to home below 10 %; TCP 100 % everywhere.\n"
    )
    return "\n".join([summary, published, *parts])


def sweep_findings(rows: list[runs.Row]) -> runs.Row:
    """Returns the median ratio of UDP's to TCP's rate, the median percent received of UDP, the least of TCP."""
    from statistics import median

    ratios = [row[3] / row[1] for row in rows if row[1] and row[3]]
    udp = [row[4] for row in rows if row[4] is not None]
    tcp = [row[2] for row in rows if row[2] is not None]
    return median(ratios) if ratios else None, median(udp) if udp else None, min(tcp, default=None)


# Remarks below a table, by section.
REMARKS = {
    "mix": (
        "In the study UDP lost up to half of its packets beside TCP. In the lab both leave through the sender's card, which "
        "delays UDP and drops nothing, so UDP keeps its 10 Mbit/s and TCP has the rest."
    ),
    "parallel": (
        "The published figures of the staggered sessions cannot be means over their 40 s: together they would be 8.5 Gbit in "
        "60 s, and the wire carries 5.7. The first two fit one session alone and each of two sessions."
    ),
}


class Page:
    """The document. If a section fails, it contains the error, and the other sections are still run."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.found: dict[str, Any] = {}
        self.failed = False

    def section(self, title: str, name: str, run: Callable[[], Any], show: Callable[[Any], str]) -> None:
        started = time.monotonic()
        print(f"==> {title}", file=sys.stderr)
        try:
            self.found[name] = run()
            body = show(self.found[name])
        except WiretaleError as error:
            self.failed = True
            body = f"Could not be run: {error}\n"
            print(f"    {error}", file=sys.stderr)
        print(f"    {time.monotonic() - started:.0f} s", file=sys.stderr)
        remark = f"\n{REMARKS[name]}\n" if name in REMARKS else ""
        self.parts.append(f"## {title}\n\n{body}{remark}")


SECTIONS = (
    ("S5: UDP rate sweep", "sweep", runs.rate_sweep, "medium | offered Mbit/s | measured | published | received %"),
    (
        "S5: TCP and UDP sharing 100 Mb/s",
        "mix",
        runs.tcp_udp_mix,
        "TCP sessions | UDP sessions | of | Mbit/s each | published",
    ),
    ("S5: one and three TCP sessions", "parallel", runs.parallel_tcp, "sessions | Mbit/s of each | published"),
    (
        "S3: 100 blocks",
        "transfers",
        runs.file_transfers,
        "network | protocol | block bytes | MB/s | published | first to last ms | received % | published",
    ),
    (
        "S4: blocks at full speed over 1 Gb/s",
        "blocks",
        runs.block_benchmark,
        "protocol | block bytes | sent Mbit/s | received Mbit/s | lost | dropped by the receiver's host | out of order | "
        "packets lost by the link, all sizes",
    ),
    (
        "UDP losses by place on a switch without congestion",
        "who",
        runs.udp_losses,
        "profile | receive buffer, bytes | sent | delivered by the link | lost by the link | in the tracer's capture | "
        "received | dropped by the receiver's host",
    ),
    (
        "TCP's losses and retransmissions",
        "retransmitted",
        runs.tcp_retransmissions,
        "profile | segments | lost by the link | retransmitted | received %",
    ),
    (
        "Use of the link: 100 Mb/s, and 45 Mb/s with 20 ms each way",
        "shares",
        runs.bandwidth_shares,
        "profile | protocol | block bytes | sent Mbit/s | received Mbit/s | received % | payload % | headers, "
        "framing, retransmissions % | responses (reverse direction) % | idle before the data (set-up) % | idle between (slow "
        "start, pauses) % | idle after it %",
    ),
)


def make_page(folder: Path) -> Page:
    page = Page()
    page.section("S6: one UDP flow over one link", "s6", lambda: s6_section(folder / "s6"), lambda made: str(made[0]))
    for title, name, run, headings in SECTIONS:
        page.section(title, name, partial(run, folder), partial(markdown, headings))
    title = "S2: 27 tests over four connections (less than the study's 8 MiB each)"
    page.section(title, "sweep27", lambda: runs.controller_sweep(folder), sweep_section)
    explain_anomalies(page, folder)
    return page


def explain_anomalies(page: Page, folder: Path) -> None:
    page.section(
        ANOMALIES_TITLE, "anomalies", lambda: anomalies(folder), lambda rows: anomalies_section(rows, markdown)
    )
    page.failed = page.failed or any(row[-1] != "yes" for row in page.found.get("anomalies", ()))


def with_section(text: str, title: str, section: str) -> str:
    """Returns the document with a section replaced; if it has none of that title, inserted before the questions."""
    heads = [place for place, line in enumerate(text.splitlines()) if line.startswith("## ")]
    lines = text.splitlines(keepends=True)
    begin = next((place for place in heads if lines[place].strip() == f"## {title}"), None)
    if begin is None:
        begin = end = next((place for place in heads if QUESTIONS_TITLE in lines[place]), len(lines))
    else:
        end = next((place for place in heads if place > begin), len(lines))
    return "".join([*lines[:begin], section, "\n", *lines[end:]])


def renew_anomalies(folder: Path) -> Page:
    page = Page()
    explain_anomalies(page, folder)
    TARGET.write_text(with_section(TARGET.read_text("utf-8"), ANOMALIES_TITLE, page.parts[0]), "utf-8")
    return page


def main() -> int:
    """Runs the studies and writes the document. Returns 3 if a section could not be run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="keep captures, logs of the links and the S6 report in DIR"
    )
    parser.add_argument("--only", choices=["anomalies"], help="run one section and keep the others")
    arguments = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="wiretale-studies-") as temporary:
        folder = arguments.output or Path(temporary)
        page = renew_anomalies(folder) if arguments.only else make_page(folder)
    if not arguments.only:
        write_page(page, started)
    print(f"==> wrote {TARGET}", file=sys.stderr)
    return 3 if page.failed else 0


def write_page(page: Page, started: float) -> None:
    introduction = INTRODUCTION.format(
        date=datetime.date.today().isoformat(),
        machine=f"Linux {platform.release().split('-')[0]}",
        minutes=(time.monotonic() - started) / 60,
        cores=os.cpu_count(),
    )
    questions = f"## {QUESTIONS_TITLE}\n\n{answers(page.found)}"
    TARGET.write_text("\n".join([introduction, *page.parts, questions]), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
