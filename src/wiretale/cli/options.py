# SPDX-License-Identifier: Apache-2.0
"""Types of option values, the options that commands share, and the lines that commands write."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

TYPE_CHECKING = False  # importing typing would take 2 ms
if TYPE_CHECKING:
    from typing import Any

COUNT_MAX = 2**31 - 1
PORTS = range(1, 65536)
STDOUT = Path("-")
REPORT = "report.html"  # in -o DIR
FILE_HELP = "a pcap or pcapng file (also gzip, zstd or lz4), a directory of captures, a URL, or - for standard input"
LOCAL_FILE_HELP = FILE_HELP.replace(" a URL,", "")
LINK_HELP = "rate of the link in bit/s (100M, 1G), which goodput is compared with"
BLOCK_BYTES = (32, 2**30)  # as in analyzer/trace.py, which must not be imported for --help


def option(group: argparse._ActionsContainer, names: str, value: str | None, text: str, **settings: Any) -> None:
    """Adds an argument; `names` are separated by blanks. If `value` is None, the option is a switch."""
    shape: dict[str, Any] = {"action": "store_true"} if value is None else {"metavar": value}
    group.add_argument(*names.split(), help=text, **shape, **settings)


@contextmanager
def count_bar(doing: str, total: int, quiet: bool) -> Iterator[Callable[[], None]]:
    """A bar of finished captures on stderr, if that is a terminal; the function that is yielded counts one."""
    if quiet or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), TextColumn("captures"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=total)
        yield lambda: bar.advance(task)


def port_number(text: str) -> int:
    """Returns a port. Only digits are accepted, because `8k` would be a typing error."""
    if not (text.isascii() and text.isdecimal()) or len(text) > 5 or int(text) not in PORTS:
        raise argparse.ArgumentTypeError(f"{text!r}: expected {PORTS[0]} to {PORTS[-1]}")
    return int(text)


def whole_number(least: int, most: int = COUNT_MAX) -> Callable[[str], int]:
    """Returns a parser of counts such as `1000` or `10k`."""

    def parse(text: str) -> int:
        from wiretale.analyzer.units import parse_count

        count = parse_count(text)
        if count is None or not least <= count <= most:
            raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number from {least} to {most}")
        return count

    return parse


def block_size(text: str) -> int:
    """Returns bytes, from `8192`, `9k` or `64KiB`."""
    from wiretale.analyzer.units import parse_bytes

    least, most = BLOCK_BYTES
    count = parse_bytes(text)
    if count is None or not least <= count <= most:
        raise argparse.ArgumentTypeError(f"{text!r}: expected {least} to {most:,} bytes, such as 8192, 9k or 64KiB")
    return count


def folder(text: str) -> Path:
    """Returns a directory for several files, which must not be standard output or a URL."""
    if text in ("", "-") or "://" in text:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a directory")
    return Path(text)


def folder_or_url(text: str) -> Path | str:
    """Returns a directory as folder(), or the URL of one as text."""
    return text if "://" in text else folder(text)


def page(text: str) -> Path:
    """Returns the file of a page; `-` is standard output."""
    if not text:
        raise argparse.ArgumentTypeError("'': expected a file, or - for standard output")
    return Path(text)


def add_selection(group: argparse._ActionsContainer) -> None:
    """Adds the options that select packets."""
    option(group, "-f --filter", "BPF", "analyze only packets that match a pcap-filter(7) expression, as in tcpdump")
    option(group, "--start", "TIME", "skip packets before TIME: ISO 8601 (UTC) or epoch seconds")
    option(group, "--end", "TIME", "skip packets at or after TIME")


def add_json(group: argparse._ActionsContainer, instead: str = "") -> None:
    """Adds --json; `instead` names the output that it replaces."""
    option(group, "--json", None, "print one JSON object" + instead)


def add_overwrite(group: argparse._ActionsContainer) -> None:
    """Adds --overwrite: without it, an output must not replace a capture."""
    option(group, "--overwrite", None, "replace an existing capture file")


def note(text: str) -> None:
    """Writes a message to stderr."""
    from wiretale.analyzer.printable import printable

    print(f"wiretale: {printable(text)}", file=sys.stderr)


def report_paths(arguments: argparse.Namespace) -> list[Path]:
    """Returns the files of a report: in -o DIR, and the one of --report unless it is standard output."""
    paths = [arguments.output / REPORT] if arguments.output else []
    return paths + ([arguments.report] if arguments.report not in (None, STDOUT) else [])


def check_outputs(arguments: argparse.Namespace, inputs: list[str], files: list[str]) -> None:
    """Rejects outputs that would destroy an input or cannot be written; `files` are the other files in -o DIR."""
    from wiretale.reports.export import destination

    if arguments.report not in (None, STDOUT):
        destination.check_outputs([arguments.report], inputs, arguments.overwrite, page=True)
    pictures = getattr(arguments, "pictures", [])  # of analyze
    destination.check_outputs(pictures, inputs, arguments.overwrite)
    if arguments.output:
        destination.check_folder(arguments.output, [*files, REPORT], inputs, arguments.overwrite)


def deliver(arguments: argparse.Namespace, show: Callable[[], None], written: Iterator[Path | str]) -> None:
    """Shows the results, then writes the files and names each on stderr.

    If stdout is full, the files must still be written.
    """
    from wiretale.analyzer.errors import WiretaleError

    problem = None
    try:
        show()
        sys.stdout.flush()
    except WiretaleError:  # some are OSErrors, but not of stdout
        raise
    except OSError as error:
        problem = error
    for path in list(written):
        if not arguments.quiet:
            note(f"wrote {path}")
    if problem:
        raise problem


def print_page(text: str) -> None:
    """Writes a page to standard output."""
    sys.stdout.buffer.write(text.encode())
    sys.stdout.flush()


def print_json(content: object) -> None:
    """Writes one JSON object, in one line."""
    import json

    print(json.dumps(content, allow_nan=False))
