# SPDX-License-Identifier: Apache-2.0
"""Types of option values, the options that commands share, and the lines that commands write."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

TYPE_CHECKING = False  # importing typing would take 2 ms
if TYPE_CHECKING:
    from typing import Any

    from wiretale.analyzer.options import AnalysisOptions
    from wiretale.cli.outputs import Outputs

COUNT_MAX = 2**31 - 1
PORTS = range(1, 65536)
STDOUT = Path("-")
REPORT = "report.html"  # in -o DIR
FILE_HELP = "a pcap or pcapng file (also gzip, zstd or lz4), a directory of captures, a URL, or - for standard input"
LOCAL_FILE_HELP = FILE_HELP.replace(" a URL,", "")
LINK_HELP = "compare goodput with this rate of the link, in bit/s (100M, 1G)"


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


def finding_name(text: str) -> int | str:
    """Returns the number or the code of a finding."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else text


def factor(text: str) -> float:
    """Returns a factor over 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a factor over 0, such as 0.1")
    return value


def whole_number(least: int, most: int = COUNT_MAX) -> Callable[[str], int]:
    """Returns a parser of counts such as `1000` or `10k`."""

    def parse(text: str) -> int:
        from wiretale.analyzer.units import parse_count

        count = parse_count(text)
        if count is None or not least <= count <= most:
            raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number from {least} to {most}")
        return count

    return parse


def byte_size(least: int, most: int) -> Callable[[str], int]:
    """Returns a parser of sizes such as `8192`, `9k` or `64KiB`."""

    def parse(text: str) -> int:
        from wiretale.analyzer.units import parse_bytes

        size = parse_bytes(text)
        if size is None or not least <= size <= most:
            raise argparse.ArgumentTypeError(f"{text!r}: expected {least} to {most:,} bytes, such as 8192, 9k or 64KiB")
        return size

    return parse


def duration(text: str) -> int:
    """Returns ns, from `30d` or `12h`."""
    from wiretale.analyzer.units import parse_duration

    ns = parse_duration(text)
    if ns is None or (ns and not text.strip()[-1:].isalpha()):  # 3 would be seconds, and remove all captures
        raise argparse.ArgumentTypeError(f"{text!r}: expected a duration such as 30d or 12h")
    return ns


def folder(text: str) -> Path:
    """Returns a directory for several files, which must not be standard output or a URL."""
    if text in ("", "-") or "://" in text:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a directory")
    return Path(text)


def folder_or_url(text: str) -> Path | str:
    """Returns a directory as folder(), or the URL of one as text."""
    return text if "://" in text else folder(text)


def file_or_stdout(text: str) -> Path:
    """Returns the path of an output; `-` is standard output."""
    if not text:
        raise argparse.ArgumentTypeError("'': expected a file, or - for standard output")
    return Path(text)


def add_analysis_options(group: argparse._ActionsContainer, packets_only: bool = False) -> None:
    """Adds the options of an analysis, or those alone that choose packets."""
    from wiretale.analyzer.options import DEFAULTS, OPTIONS

    numbers = {"count": whole_number, "size": byte_size}
    for name, declared in OPTIONS.items():
        if declared.chooses_packets or not packets_only:
            default, number = DEFAULTS[name], numbers.get(declared.kind)  # texts and times are checked with the record
            parse = number(declared.least, declared.most) if number else str
            text = declared.help.format(default=default)
            option(group, declared.flags, declared.metavar, text, type=parse, default=default)


def analysis_options(arguments: argparse.Namespace) -> AnalysisOptions:
    """Returns the options of an analysis that were given. UsageError if one is invalid."""
    from wiretale.analyzer.options import OPTIONS, AnalysisOptions, keyword_of

    keywords = vars(arguments)
    return AnalysisOptions.of({word: keywords[word] for word in map(keyword_of, OPTIONS) if word in keywords})


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


def report_paths(arguments: argparse.Namespace | Outputs) -> list[Path]:
    """Returns the files of a report: in -o DIR, and the one of --report unless it is standard output."""
    paths = [arguments.output / REPORT] if arguments.output else []
    return paths + ([arguments.report] if arguments.report not in (None, STDOUT) else [])


def check_outputs(
    arguments: argparse.Namespace | Outputs, inputs: list[str], files: list[str], pictures: Iterable[Path] = ()
) -> None:
    """Rejects outputs that would destroy an input or cannot be written; `files` are the other files in -o DIR."""
    from wiretale.reports.export import destination

    if arguments.report not in (None, STDOUT):
        destination.check_outputs([arguments.report], inputs, arguments.overwrite, page=True)
    destination.check_outputs(pictures, inputs, arguments.overwrite)
    if arguments.output:
        destination.check_folder(arguments.output, [*files, REPORT], inputs, arguments.overwrite)


def deliver(arguments: argparse.Namespace | Outputs, show: Callable[[], None], written: Iterator[Path | str]) -> None:
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
