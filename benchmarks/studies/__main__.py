# SPDX-License-Identifier: Apache-2.0
"""Runs the studies again, shortened, in labs on this machine, and writes docs/studies.md: measured beside published.

PYTHONPATH=benchmarks python -m studies [-o DIR]                     as `make studies` does; about twelve minutes, root
PYTHONPATH=benchmarks python -m studies --only anomalies [-o DIR]    puts only that section anew into the document
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
from pathlib import Path
from typing import Any

from studies import runs
from studies.anomalies import anomalies, anomalies_section
from studies.answers import answers
from wiretale.analyzer.errors import WiretaleError
from wiretale.traffic.lab.run import run_study

ANOMALIES_TITLE = "The anomalies, explained"
QUESTIONS_TITLE = "The questions that the studies left open"
TARGET = Path(__file__).parents[2] / "docs" / "studies.md"
INTRODUCTION = """\
# The studies, run again

Made by `make studies` ({date}, {machine}, {minutes:.0f} minutes); do not edit. Every figure is from a test in a lab
([lab.md](lab.md)) with `wiretale-traffic`, a time-bounded version of what the study did: the shapes are what is compared,
except in S6, where the figures themselves are. Published figures are as their authors gave them; rates are of payload: TCP's
by the receiver, UDP's in S2 to S4 as it left the link. The studies' machines are not these: a 100 Mb/s network card is a token
bucket here, and the hosts share {cores} cores with the link between them.
"""


def cell(value: Any) -> str:
    """A value of a table; a dash for what is not known."""
    if value is None:
        return "–"
    if isinstance(value, list):
        return ", ".join(map(cell, value)) or "–"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def markdown(headings: str, rows: Sequence[Sequence[Any]]) -> str:
    """A table; headings are parted by |."""
    names = [name.strip() for name in headings.split("|")]
    lines = [f"| {' | '.join(names)} |", f"|{' --- |' * len(names)}"]
    lines += [f"| {' | '.join(cell(value) for value in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def s6_section(folder: Path) -> tuple[str, list[dict[str, Any]]]:
    """All rows of the simulation."""
    results = run_study("s6", folder, None, lambda text: print(f"    {text}", file=sys.stderr))
    pairs = (
        ("packets_sent", "packets_sent"),
        ("packets_received", "packets_received"),
        ("throughput_kibps", "throughput_kibps"),
        ("latency_ms", "latency_ms"),
        ("jitter_ms", "jitter_ms"),
        ("queue_packets", "queue_length_packets"),
    )
    rows = [
        [
            row["case"],
            *(f"{cell(row[a])} / {cell(row['published'].get(b))}" for a, b in pairs),
            ", ".join(name for name, near in row["as_published"].items() if not near) or "nothing",
        ]
        for row in results["rows"]
    ]
    headings = "case | sent | received | kibps | latency ms | jitter ms | queued | differs"
    text = "Measured / published, from the captures alone. How it was counted: [lab.md](lab.md).\n\n"
    return text + markdown(headings, rows), results["rows"]


def sweep_section(tables: dict[str, list[runs.Row]]) -> str:
    """The 27 tests over each connection."""
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
    """UDP's rate over TCP's, and percents received."""
    from statistics import median

    ratios = [row[3] / row[1] for row in rows if row[1] and row[3]]
    udp = [row[4] for row in rows if row[4] is not None]
    tcp = [row[2] for row in rows if row[2] is not None]
    return median(ratios) if ratios else None, median(udp) if udp else None, min(tcp, default=None)


# What has to be said to a table.
REMARKS = {
    "mix": (
        "The study's UDP lost up to half of what it sent beside TCP. Here both leave through the sender's card, which holds UDP "
        "back and drops nothing, so that UDP keeps its 10 Mbit/s and TCP has what is left."
    ),
    "parallel": (
        "The published figures of the staggered sessions cannot be means over their 40 s: together they would be 8.5 Gbit in "
        "60 s, and the wire carries 5.7. The first two are what one session has alone and what two have each."
    ),
}


class Page:
    """The document as it grows; what fails is said in it, and the rest goes on."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.found: dict[str, Any] = {}
        self.failed = False

    def section(self, title: str, name: str, run: Callable[[], Any], show: Callable[[Any], str]) -> None:
        """Runs a study's part and adds its table."""
        started = time.monotonic()
        print(f"==> {title}", file=sys.stderr)
        try:
            self.found[name] = run()
            body = show(self.found[name])
        except WiretaleError as error:
            self.failed = True
            body = f"Could not be run here: {error}\n"
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
        *("S3: 100 blocks", "transfers", runs.file_transfers),
        "network | protocol | block bytes | MB/s | published | first to last ms | received % | published",
    ),
    (
        *("S4: blocks at full speed over 1 Gb/s", "blocks", runs.block_benchmark),
        "protocol | block bytes | sent Mbit/s | received Mbit/s | lost | of them dropped by the receiver's host | out of order | "
        "packets lost by the link, all sizes",
    ),
    (
        *("Who loses UDP blocks on a switch that is not congested", "who", runs.udp_losses),
        "profile | receive buffer, bytes | sent | out of the link | lost by the link | in the tracer's capture | received | "
        "dropped by the receiver's host",
    ),
    (
        *("TCP's losses and retransmissions", "retransmitted", runs.tcp_retransmissions),
        "profile | segments | lost by the link | sent again | received %",
    ),
    (
        *("What takes the wire: of 100 Mb/s, and of 45 Mb/s with 20 ms each way", "shares", runs.bandwidth_shares),
        "profile | protocol | block bytes | sent Mbit/s | received Mbit/s | received % | payload % | headers, framing, sent "
        "again % | responses (the other way) % | idle before the data (set-up) % | idle between (slow start, pauses) % | "
        "idle behind it %",
    ),
)


def make_page(folder: Path) -> Page:
    """Runs everything."""
    page = Page()
    page.section("S6: one UDP flow over one link", "s6", lambda: s6_section(folder / "s6"), lambda made: str(made[0]))
    for title, name, run, headings in SECTIONS:
        page.section(title, name, lambda run=run: run(folder), lambda rows, h=headings: markdown(h, rows))  # type: ignore[misc]
    title = "S2: 27 tests over four connections (less than the study's 8 MiB each)"
    page.section(title, "sweep27", lambda: runs.controller_sweep(folder), sweep_section)
    explain_anomalies(page, folder)
    return page


def explain_anomalies(page: Page, folder: Path) -> None:
    """What was odd in the studies, and what `wiretale explain` says of it."""
    page.section(
        ANOMALIES_TITLE, "anomalies", lambda: anomalies(folder), lambda rows: anomalies_section(rows, markdown)
    )
    page.failed = page.failed or any(row[-1] != "yes" for row in page.found.get("anomalies", ()))


def with_section(text: str, title: str, section: str) -> str:
    """The document with this section in place of the one of that title, or before the last one."""
    heads = [place for place, line in enumerate(text.splitlines()) if line.startswith("## ")]
    lines = text.splitlines(keepends=True)
    begin = next((place for place in heads if lines[place].strip() == f"## {title}"), None)
    if begin is None:
        begin = end = next((place for place in heads if QUESTIONS_TITLE in lines[place]), len(lines))
    else:
        end = next((place for place in heads if place > begin), len(lines))
    return "".join([*lines[:begin], section, "\n", *lines[end:]])


def renew_anomalies(folder: Path) -> Page:
    """Runs that part alone and puts it into the document."""
    page = Page()
    explain_anomalies(page, folder)
    TARGET.write_text(with_section(TARGET.read_text("utf-8"), ANOMALIES_TITLE, page.parts[0]), "utf-8")
    return page


def main() -> int:
    """Runs the studies and writes the document; 3 when a part could not be run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="keep captures, truths and the S6 report there"
    )
    parser.add_argument("--only", choices=["anomalies"], help="run that part alone, and leave the others as they are")
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
    """The whole document."""
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
