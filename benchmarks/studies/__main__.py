# SPDX-License-Identifier: Apache-2.0
"""Repeats the published studies, shortened, in labs on this machine, and writes docs/measured/studies.md.

PYTHONPATH=benchmarks python -m studies [-o DIR]                    about twenty minutes, as root; `make studies` runs it
PYTHONPATH=benchmarks python -m studies --only NAME... [-o DIR]     replaces these sections, such as sweep or anomalies

DIR keeps the sections (sections.json), so that those which other programs disturbed can be run again, and the answers to the
questions are made from all of them. Without an earlier run in DIR, --only leaves the answers as they are.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from shared.markdown import table
from studies import file_transfer, runs, same_switch
from studies.anomalies import anomalies, anomalies_section
from studies.answers import answers
from studies.by_study import BY_STUDY, by_study
from studies.paused_receiver import paused_receiver
from studies.shared_card import shared_card
from studies.tcp_over_link import tcp_over_link
from studies.three_sessions import three_sessions
from wiretale.analyzer.errors import WiretaleError
from wiretale.traffic.lab.run import run_study

ANOMALIES_TITLE = "Anomalies and their top finding"
QUESTIONS_TITLE = "Open questions of the studies"
TARGET = Path(__file__).parents[2] / "docs" / "measured" / "studies.md"
INTRODUCTION = """\
# The studies, repeated

Made by `make studies` ({date}, {machine}, {minutes:.0f} minutes); do not edit. Each figure is from a shortened test of a study
with `wiretale-traffic` in a lab ([lab.md](../lab.md)). Compare the shapes, because machines differ: a network card of 100 Mb/s
is a token bucket, and the hosts share {cores} cores with the link. In S6 the figures themselves are comparable. Rates are of
payload: for TCP at the receiver, for UDP in S2 to S4 at the end of the link; the study S4 published rates on the wire, so
its table has those, of frames with preambles and gaps. Published figures are unchanged.
[Experiments](../experiments.md#the-six-studies) names the studies S1 to S6.
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
    text = "Measured / published, from the captures alone. [lab.md](../lab.md) explains the counts.\n\n"
    return text + markdown(headings, rows), results["rows"]


def sweep_section(tables: dict[str, list[runs.Row]]) -> str:
    headings = "block bytes | TCP Mbit/s | % | UDP Mbit/s | % | UDP+12 Mbit/s | % | TCP with its set-up, Mbit/s | "
    headings += "UDP+12+RTT, Mbit/s"
    parts = [f"{name}:\n\n{markdown(headings, rows)}" for name, rows in tables.items()]
    findings = [(name, *sweep_findings(rows)) for name, rows in tables.items()]
    summary = markdown(
        "connection | UDP over TCP, median of nine sizes | UDP received %, median | TCP received %", findings
    )
    published = (
        "Published: same switch TCP 2 × UDP, received near 100 %; same LAN UDP 6 × TCP, near 100 %; LAN to LAN UDP 2 × TCP, "
        "below 50 %; LAN to home below 10 %; TCP 100 % everywhere. The study asked how much of a difference is TCP's set-up: the "
        "last two columns of each table have a round trip more in their time.\n"
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
        "In the study UDP fell to half of its rate beside TCP. In a system of today TCP keeps little in the queue of its own "
        "card (TCP small queues), so UDP keeps its 10 Mbit/s and TCP has the rest. The next section has the queues of the time."
    ),
    "card": (
        "UDP is not lost on the network; it does not leave its host. One TCP fills the queue of 1,000 packets, which takes "
        "about 120 ms to drain; a UDP socket has room for about 64 datagrams of 1,470 bytes, so its program can write 64 in "
        "120 ms, which is about 6 Mbit/s. TCP comes from a neighbor through the sender's host, because a TCP socket of today "
        "would not fill that queue. TCP begins 15 s before UDP; rates are of the 8 s in which all ran. `wiretale explain` names "
        "the cause from a capture behind the card: packets that wait there and no router before the capture (`sender-queue`)."
    ),
    "s6tcp": (
        "The study's text compares UDP with TCP in these cases. Its settings are assumed to be ns-2's defaults: a window of 20 "
        "packets, headers of 40 bytes, an ACK for each packet, no SACK. The sender's window is bounded by its route (`cwnd lock "
        "20`). Latency is that of the median packet by the log of the link; the expected one is the time of 20 packets less the "
        "way of an ACK, or that of an empty queue if they do not fill the link. Queues of 20 and 50 "
        "have 4 places more, because lines of the control connection share them. After a loss Linux's Reno halves its window; "
        "ns-2's default TCP (Tahoe) begins again with one packet."
    ),
    "parallel": (
        "The commands of the staggered sessions are `-t 40` at port 5001 and `-t 40 -n 50M` at the other two, and iperf takes "
        "the last of the two: those send 50 MiB each. So 73.2 is what the first session has left over its 40 s, (94.1 · 40 − "
        "2 · 50 MiB · 8) / 40 = 73.1 Mbit/s. The study shows it in the column of port 5003, because three commands share a "
        "terminal and the first one ends last. 45.5 is half of the wire."
    ),
    "ten": (
        "Medians of three tests each. The study shows the rates of 10 and of 100 blocks only in pictures and prints no figure of "
        "10 blocks; its text says of both that UDP is much slower than TCP on the LAN, and much faster on an ideal WLAN."
    ),
    "paused": (
        "A receiver's buffer bridges the time in which its program does not read. By default Windows 7 gives it 8,192 "
        "bytes, which fill in under 0.2 ms at S4's rates: a program that misses one tick of the clock (15.6 ms) loses nearly "
        "all blocks of that tick. "
        "The table has how often S4's receiver must have missed one, and what a receiver here loses that is stopped as often. "
        "Whether S4's did is not known, because its report has neither buffers nor captures. No buffer makes blocks late: "
        "a socket is a queue. S4's late blocks (0.3 to 0.6%) need a program that has several reads open and handles them in "
        "threads, as Windows' overlapped reads do, or a card with several queues; it names neither."
    ),
    "sharing": (
        "A further run would lie between the least and the most of 20 with a probability of 19 in 21 (90%), whatever the "
        "distribution. A published figure outside them is one that chance gives in 2 of 21 runs."
    ),
    "windows": (
        "A receive window limits TCP to a window in each round trip, and UDP not at all. So UDP is faster than TCP by this "
        "factor on a path that loses nothing, as in S2 (8,760 bytes were the default of systems of the time), and TCP over "
        "1 Gb/s has rates as in S4 with the window of 64 kB that its authors suspected."
    ),
    "writes": (
        "The study found TCP fastest at 64 bytes. With a write for each block, as ttcp does, small blocks cost more CPU time, "
        "but all sizes fill the wire: which of them is the largest is chance here. The study shows graphs only."
    ),
}


class Section(NamedTuple):
    """A part of the document: its rows, and how they are shown."""

    name: str
    title: str
    run: Callable[[], Any]
    show: Callable[[Any], str]


class Page:
    """The document. If a section fails, it contains the error, and the other sections are still run."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "sections.json"
        self.sections: dict[str, dict[str, Any]] = {}  # of this run and of earlier ones in the folder
        self.failed = False

    def take_earlier(self) -> None:
        """Reads the sections of an earlier run, if there are any."""
        if self.file.exists():
            self.sections = json.loads(self.file.read_text("utf-8"))

    def run(self, section: Section) -> None:
        started = time.monotonic()
        print(f"==> {section.title}", file=sys.stderr)
        rows = None
        try:
            rows = section.run()
            body = section.show(rows)
        except WiretaleError as error:
            self.failed = True
            body = f"Could not be run: {error}\n"
            print(f"    {error}", file=sys.stderr)
        seconds = time.monotonic() - started
        print(f"    {seconds:.0f} s", file=sys.stderr)
        remark = f"\n{REMARKS[section.name]}\n" if section.name in REMARKS else ""
        text = f"## {section.title}\n\n{body}{remark}"
        today = datetime.date.today().isoformat()
        self.sections[section.name] = {"rows": rows, "text": text, "seconds": seconds, "date": today}
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps(self.sections, default=str), "utf-8")

    def text(self, names: Sequence[str]) -> str:
        """Returns the document with these sections."""
        parts = [self.sections[name] for name in names]
        introduction = INTRODUCTION.format(
            date=" and ".join(sorted({part["date"] for part in parts})),
            machine=f"Linux {platform.release().split('-')[0]}",
            minutes=sum(part["seconds"] for part in parts) / 60,
            cores=os.cpu_count(),
        )
        rows_by_name = {name: self.sections[name]["rows"] for name in names if self.sections[name]["rows"] is not None}
        questions = f"## {QUESTIONS_TITLE}\n\n{answers(rows_by_name)}"
        return "\n".join([introduction, by_study(rows_by_name, markdown), *(part["text"] for part in parts), questions])


TABLES = (
    (
        "S6: one TCP flow over the same link",
        "s6tcp",
        tcp_over_link,
        "case | segment, bytes | queue, packets | delay ms | latency ms | expected ms | Kibit/s | % of the base | sent | lost | "
        "published",
    ),
    ("S5: UDP rate sweep", "sweep", runs.rate_sweep, "medium | offered Mbit/s | measured | published | received %"),
    (
        "S5: TCP and UDP sharing 100 Mb/s",
        "mix",
        runs.tcp_udp_mix,
        "TCP sessions | UDP sessions | of | Mbit/s each | published",
    ),
    (
        "S5: TCP and UDP sharing a card with the queues of the time",
        "card",
        shared_card,
        "TCP sessions | UDP sessions | of | Mbit/s each | published | difference % | warnings about UDP",
    ),
    ("S5: one and three TCP sessions", "parallel", runs.parallel_tcp, "sessions | Mbit/s of each | published"),
    (
        "S5: three TCP sessions, in 20 runs",
        "sharing",
        three_sessions,
        "figure | unit | runs | median | least | most | published",
    ),
    (
        "S2, S4: TCP with a small receive window beside UDP",
        "windows",
        runs.receive_windows,
        "network | window, bytes | block bytes | TCP with it, Mbit/s | TCP without | UDP | UDP over TCP with it | "
        "top finding for it | published",
    ),
    (
        "S2: TCP by block size, joined and written one by one",
        "writes",
        runs.block_writes,
        "block bytes | joined, Mbit/s | a write each | a write each, no delay | CPU of a write each, ns/B",
    ),
    (
        "S3: 10 and 100 blocks",
        "ten",
        runs.ten_blocks,
        "network | protocol | block bytes | 10 blocks, MB/s | 100 blocks, MB/s | received % of 10 | of 100",
    ),
    (
        "S4: blocks at full speed over 1 Gb/s",
        "blocks",
        runs.block_benchmark,
        "protocol | block bytes | sent Mbit/s | received Mbit/s | lost | dropped by the receiver's host | out of order | "
        "packets lost by the link, all sizes",
    ),
    (
        "S4: missing blocks by a receiver that pauses",
        "paused",
        paused_receiver,
        "block bytes | published: sent | missing | % | late | pauses a second that lose as many there | here, at 95 Mbit/s | "
        "ms each | lost here, % | out of order here",
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


TRANSFERS = (
    "network | protocol | block bytes | MB/s | published | first to last ms | published | received % | published"
)
PICTURES = (
    "network | protocol | block bytes | MB/s of the program | MB/s in the capture | ms of a bar | MB/s of the highest bar | "
    "rate over time"
)


def transfers_section(rows: Sequence[Any]) -> str:
    """Returns S3's table and the networks on which it was measured."""
    networks = "\n".join(f"- {file_transfer.in_words(medium)}" for medium in dict.fromkeys(row[0] for row in rows))
    figures = [row[: -len(file_transfer.Course._fields)] for row in rows]
    courses = [file_transfer.Course(*row[-len(file_transfer.Course._fields) :]) for row in rows]
    pictures = [
        (*row[:4], course.rate, course.bar_ms, max(course.rates), f"`{file_transfer.drawn(course.rates)}`")
        for row, course in zip(rows, courses, strict=True)
    ]
    return (
        f"{markdown(TRANSFERS, figures)}\n"
        f"Each figure is the mean of {file_transfer.RUNS} runs, as in the study. Its pictures of Wireshark show the rate over "
        "time, their mean; here is the same, of payload, from a tracer at the receiver:\n\n"
        f"{markdown(PICTURES, pictures)}\n"
        "The program's rate is that from the end of its first block to the end of its last; the capture's is over the "
        "milliseconds with payload of complete blocks. "
        "`wiretale experiment report` draws such pictures of every plan whose tests are captured.\n\n"
        "The study names its media only. These are the networks that agree best with its figures, one for each medium, found by "
        "search; others may agree as well:\n\n"
        f"{networks}\n\n"
        "Three tests on the LAN are said to take 64 ms; for UDP with 4,096 bytes the window of the study's program shows 108 ms, "
        "which agrees with its rate. For TCP with 60,000 bytes over the WAN it shows 10,740 ms where the text has 10.07 s. The "
        "program's time stamps are called nanoseconds, but by its own delays they count 310 ns (LAN) and 1.03 us (WAN).\n"
    )


MECHANISMS = (
    "what is set | TCP over UDP, median of nine sizes | TCP over UDP, mean rates | TCP's best block, bytes | "
    "TCP with 64, Mbit/s | TCP with the best | sizes apart, % | UDP's best block, bytes"
)


def mechanisms_section(rows: Sequence[Any]) -> str:
    """Returns the table of mechanisms and what it shows of the study's figures."""
    shown = [row[0] for row in rows if abs(row[2] / 2 - 1) <= 0.15]
    words = f"have it: {', '.join(shown)}" if shown else "do not have it, so none of these mechanisms explains it"
    by_chance = [row[0] for row in rows if row[3] == 64 and row[6] >= 5]
    return (
        f"{markdown(MECHANISMS, rows)}\n"
        f"The study had TCP twice as fast as UDP; of these rows {words}. UDP was fastest there with 8 kB. A host that is bounded "
        "in packets, not in bytes, sends small datagrams slowly, whereas TCP fills its segments with any blocks. IP "
        "fragmentation, the study's explanation, is none: UDP has 95.8% of the wire with 8 kB, TCP 94.1%. TCP was fastest there "
        "with 64 bytes; "
        + (f"here with: {', '.join(by_chance)}.\n" if by_chance else "here no row has that by 5% or more.\n")
    )


def all_sections(folder: Path) -> list[Section]:
    """Returns the sections in the order of the document."""
    tables = [
        Section(name, title, partial(run, folder), partial(markdown, heads)) for title, name, run, heads in TABLES
    ]
    transfers = partial(file_transfer.file_transfers, folder)
    switch = "S2: mechanisms by which TCP could be faster than UDP on one switch"
    sweep = "S2: 27 tests over six connections (less than the study's 8 MiB each)"
    return [
        Section("s6", "S6: one UDP flow over one link", lambda: s6_section(folder / "s6"), lambda made: str(made[0])),
        *tables,
        Section("mechanisms", switch, partial(same_switch.mechanisms, folder), mechanisms_section),
        Section("transfers", "S3: 100 blocks", transfers, transfers_section),
        Section("sweep27", sweep, lambda: runs.controller_sweep(folder), sweep_section),
        Section(
            "anomalies", ANOMALIES_TITLE, lambda: anomalies(folder), lambda rows: anomalies_section(rows, markdown)
        ),
    ]


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


def with_lines(text: str, made: str) -> str:
    """Returns the document with lines of the tables by study in place of those that begin with the same figure.

    Sections have tables of their own, whose lines may begin as these do.
    """
    heads = ("| figure |", "| ---")
    rows = [line for line in made.splitlines() if line.startswith("| ") and not line.startswith(heads)]
    anew = {line.partition(" | ")[0]: line for line in rows}
    before, begin, tables = text.partition(f"{BY_STUDY}\n")
    tables, end, sections = tables.partition("\n## ")
    tables = "\n".join(anew.get(line.partition(" | ")[0], line) for line in tables.split("\n"))
    return "".join([before, begin, tables, end, sections])


def changed_page(page: Page, measured: Sequence[Section]) -> str:
    """Returns the document with some sections and their lines in the tables by study anew."""
    text, rows = TARGET.read_text("utf-8"), {}
    for section in measured:
        made = page.sections[section.name]
        text = with_section(text, section.title, made["text"])
        if made["rows"] is not None:
            rows[section.name] = made["rows"]
    return with_lines(text, by_study(rows, markdown))


def make_page(folder: Path, only: Sequence[str]) -> Page:
    """Runs the sections, or only some, and writes the document."""
    page, sections = Page(folder), all_sections(folder)
    if only:
        page.take_earlier()
    measured = [section for section in sections if not only or section.name in only]
    for section in measured:
        page.run(section)
    names = [section.name for section in sections]
    is_complete = all(name in page.sections for name in names)
    TARGET.write_text(page.text(names) if is_complete else changed_page(page, measured), "utf-8")
    judged = page.sections.get("anomalies", {}).get("rows") or ()
    page.failed = page.failed or any(row[-1] != "yes" for row in judged)
    return page


def main() -> int:
    """Runs the studies and writes the document. Returns 3 if a section could not be run, or an anomaly is not explained."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="keep sections, captures, logs of the links and the S6 report in DIR",
    )
    names = [section.name for section in all_sections(Path())]
    parser.add_argument(
        "--only", nargs="+", choices=names, default=[], metavar="NAME", help=f"run these sections: {', '.join(names)}"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wiretale-studies-") as temporary:
        page = make_page(arguments.output or Path(temporary), arguments.only)
    print(f"==> wrote {TARGET}", file=sys.stderr)
    return 3 if page.failed else 0


if __name__ == "__main__":
    sys.exit(main())
