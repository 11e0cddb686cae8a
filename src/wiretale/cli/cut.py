# SPDX-License-Identifier: Apache-2.0
"""Copy chosen packets into a pcapng or pcap file: flows, findings, frames or a time, with verdicts as comments, or without
addresses and payload. Without a choice, all packets are copied.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from wiretale.cli import options
from wiretale.cli.options import add_overwrite, note, option
from wiretale.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wiretale.analyzer.cut.writing import Order, Outcome

USAGE = "wiretale cut FILE... -o OUT.pcapng [options]"
NOTES = """\
Flow numbers are those of `wiretale analyze` without options. Finding numbers, from 1, are those of the report and of
`wiretale analyze --all`, in the order of --json. Several choices add up; --start and --end limit them. Interfaces, their time
resolution and drop counts are copied, and so are decryption secrets and process information, which a pcap file cannot hold.
Comments of packets are not.

Crypto-PAn makes the pseudonyms and preserves prefixes. Two captures with one key have the same pseudonyms; without --key,
the key is random and forgotten. Payload becomes 0, so that findings about DNS, TLS, HTTP, QUIC and numbered packets are
lost; docs/cut.md lists the bytes that stay.
"""
EXAMPLES = """\
wiretale cut transfer.pcapng --flow 3 -o flow3.pcapng
# the packets of the first finding and all traffic 50 ms before and after them
wiretale cut transfer.pcapng --finding 1 --around 0.05 -o stall.pcapng
# verdicts in Wireshark; filter: frame.comment contains "retransmission"
wiretale cut transfer.pcapng --annotate -o annotated.pcapng
# to share a capture: no addresses, names or payload
wiretale cut transfer.pcapng --anonymize -o public.pcapng
# every frame in a range, without payload, to another program
wiretale cut big.pcap.zst --frames 1000-2000 --headers -o - | tshark -r -
"""
EXIT_TEXTS = {3: "done, but a file is skipped, damaged or truncated: the packets before the damage are copied"}
DAMAGED = 3
NS = 1_000_000_000
AROUND_MAX = 1_000_000  # seconds
FRAME_MAX = 2**62


def frame_ranges(text: str) -> list[tuple[int, int]]:
    """Returns the ranges in `1-10,15,20-`."""
    ranges = []
    for part in text.split(","):
        first, dash, last = (word.strip() for word in part.partition("-"))
        low = int(first) if first.isascii() and first.isdecimal() and len(first) < 19 else 0
        high = (
            int(last)
            if last.isascii() and last.isdecimal() and len(last) < 19
            else FRAME_MAX
            if dash and not last
            else 0
        )
        high = high if dash else low
        if not 1 <= low <= high:
            raise argparse.ArgumentTypeError(f"{text!r}: expected frame numbers such as 1-10,15,20-")
        ranges.append((low, high))
    return ranges


def seconds(text: str) -> int:
    """Returns ns, from `0.25`."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= AROUND_MAX:
        raise argparse.ArgumentTypeError(f"{text!r}: expected seconds, such as 0.25")
    return round(value * NS)


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "files", "FILE", options.LOCAL_FILE_HELP, nargs="+")
    choice = parser.add_argument_group("packets")
    text = "packets of flow N of `wiretale analyze`; several times for several flows"
    option(choice, "--flow", "N", text, action="append", type=options.whole_number(0), default=[])
    text = "packets of the evidence of finding N, from 1, or of all findings of a code; several times for several"
    option(choice, "--finding", "N|CODE", text, action="append", type=options.finding_name, default=[])
    text = "frames by number, as in 1-10,15,20-"
    option(choice, "--frames", "LIST", text, action="extend", type=frame_ranges, default=[])
    option(choice, "--start", "TIME", "skip packets before TIME: ISO 8601 (UTC) or epoch seconds")
    option(choice, "--end", "TIME", "skip packets at or after TIME")
    text = "also every packet of any flow at most SECONDS before or after a chosen one"
    option(choice, "--around", "SECONDS", text, type=seconds, default=0)
    change = parser.add_argument_group("changes")
    text = "write verdicts and findings as comments of packets, and server names for their addresses"
    option(change, "--annotate", None, text)
    text = "replace addresses by pseudonyms that preserve prefixes, set payload to 0, drop names"
    option(change, "--anonymize", None, text)
    option(
        change,
        "--key",
        "FILE",
        "key of Crypto-PAn (32 bytes), or any secret of at least 16, for the same pseudonyms each time",
        type=Path,
    )
    option(change, "--headers", None, "cut each packet after its transport header")
    writing = parser.add_argument_group("output")
    text = "the file to write: pcap if it is called .pcap, .cap or .dmp, else pcapng; - for standard output"
    option(writing, "-o --output", "OUT", text, type=options.file_or_stdout, required=True)
    add_overwrite(writing)
    option(writing, "-q --quiet", None, "print nothing but errors")


# What --anonymize removes, and what stays (docs/cut.md).
REMOVED = (
    "payload (now 0)",
    "link-layer and IP addresses (now pseudonyms)",
    "names of interfaces and hosts",
    "comments",
)
KEPT = "kept: times, lengths, ports, TCP options and the prefixes that addresses share"


def order_of(arguments: argparse.Namespace) -> Order:
    """Returns the packets that the options choose. UsageError if they contradict each other."""
    from wiretale.analyzer.capture_paths import expand_paths
    from wiretale.analyzer.cut.writing import Order, is_classic, key_of
    from wiretale.analyzer.errors import UsageError
    from wiretale.analyzer.options import check_range, time_ns

    if arguments.key and not arguments.anonymize:
        raise UsageError("--key needs --anonymize")
    is_selective = arguments.flow or arguments.finding or arguments.frames or arguments.start or arguments.end
    if arguments.around and not is_selective:
        raise UsageError("--around needs --flow, --finding, --frames, --start or --end")
    start_ns, end_ns = time_ns(arguments.start), time_ns(arguments.end)
    check_range(start_ns, end_ns)
    return Order(
        paths=expand_paths(arguments.files, local=True),
        flows=arguments.flow,
        findings=arguments.finding,
        frames=arguments.frames,
        start_ns=start_ns,
        end_ns=end_ns,
        around_ns=arguments.around,
        annotate=arguments.annotate,
        headers=arguments.headers,
        classic=arguments.output != options.STDOUT and is_classic(arguments.output),
        key=key_of(arguments.key) if arguments.anonymize else None,
    )


def write(order: Order, arguments: argparse.Namespace) -> Outcome:
    """Writes the file, which appears when it is complete."""
    from wiretale.analyzer.cut.writing import cut
    from wiretale.cli.analyze import progress_bar
    from wiretale.reports.export.destination import check_outputs, output_file

    with progress_bar(not arguments.quiet) as progress:
        if arguments.output == options.STDOUT:
            sys.stdout.flush()
            return cut(order, sys.stdout.fileno(), __version__, progress)
        inputs = [*order.paths, *([str(arguments.key)] if arguments.key else [])]
        check_outputs([arguments.output], inputs, arguments.overwrite)
        with output_file(arguments.output) as out:
            return cut(order, out.fileno(), __version__, progress)


def block_notes(outcome: Outcome) -> Iterator[str]:
    """Yields what to know of secrets and processes in the captures."""
    from wiretale.analyzer.units import plural

    blocks = (
        (outcome.secrets, outcome.with_secrets, "decryption secrets"),
        (outcome.processes, outcome.with_processes, "process information"),
    )
    for count, kept, contents in blocks:
        if count:
            yield f"{'kept' if kept else 'left out'}: {plural(count, 'block')} of {contents}"
    if outcome.secrets and outcome.with_secrets:
        yield "whoever has these secrets can decrypt their connections: --anonymize or --headers leaves them out"


def run(arguments: argparse.Namespace) -> int:
    from wiretale.analyzer.units import plural

    order = order_of(arguments)
    try:
        outcome = write(order, arguments)
    except BrokenPipeError:  # of stdout, which had all packets that its reader took
        return 0
    if not arguments.quiet:
        packets = f"{outcome.written:,} of {plural(outcome.read, 'packet')}"
        note(packets if arguments.output == options.STDOUT else f"wrote {arguments.output}: {packets}")
        if arguments.anonymize:
            note(f"removed: {', '.join(REMOVED)}; {KEPT}")
        for text in block_notes(outcome):
            note(text)
    for text in outcome.damage:
        note(text)
    return DAMAGED if outcome.damage else 0
