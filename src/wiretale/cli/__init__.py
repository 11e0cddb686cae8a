# SPDX-License-Identifier: Apache-2.0
"""The command line: `wiretale COMMAND`.

Exit codes: 0 done; 1 a --fail-if holds; 2 usage; 3 done, but the input was damaged or cut short; 4 input unreadable or
output not writable; 5 a tool or a permission is missing; 130 interrupted; 143 terminated. Only this package turns errors
into them.
"""

from __future__ import annotations

import argparse
import atexit
import errno
import gc
import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module

from wiretale.cli import plain_text, program
from wiretale.cli.interruption import interrupted_code, take_terminate_as_interrupt
from wiretale.cli.parser import Parser, exit_codes
from wiretale.version import __version__

TYPE_CHECKING = False  # as typing has it, whose import takes 2 ms
if TYPE_CHECKING:
    from typing import Any, NoReturn

EXAMPLES = """\
# the summary in the terminal; then the same as an interactive page
wiretale analyze transfer.pcapng
wiretale analyze transfer.pcapng --report transfer.html
# the findings, for scripts
wiretale analyze captures/ --json | jq .findings
# why a transfer is slow, and how to fix it
wiretale explain transfer.pcapng
# delays and losses between two capture points
wiretale compare sender.pcapng receiver.pcapng
# a whole study: receiver, tracer, senders, results
wiretale experiment run quick -o quick/
# the help of a command
wiretale help analyze
"""
OBJECTS_A_SEARCH = 100_000
# Each has a module of its name here, but for the C programs (program.py); only the one that is asked for is imported.
COMMANDS = {
    "analyze": "flows, losses, round trips, findings and a report",
    "explain": "what limited each transfer, what went wrong, and how to fix it",
    "compare": "delays and losses between two or three capture points",
    "diff": "compare two runs and rank the changes",
    "verify": "compare every verdict with Wireshark's",
    "info": "show file and interface metadata",
    "theory": "compute the maximum that a link can carry",
    "experiment": "run a plan of tests, and report on it",
    "lab": "an emulated network on this machine that logs the fate of each packet",
    "send": "send sequenced TCP or UDP blocks to a receiver",
    "receive": "receive blocks; count lost, late and corrupt ones",
    "ttcp": "a transfer with classic ttcp",
    "capture": "capture from an interface, unattended, accounting for every drop",
    "link": "emulate a lossy, slow or reordering link between two interfaces",
    "doctor": "check this machine for missing tools and settings",
}
CAPTURE_SUFFIXES = (".pcap", ".pcapng", ".cap", ".dmp", ".ntar")
COMPRESSED_SUFFIXES = (".gz", ".zst", ".lz4", ".bz2", ".xz", ".zip", ".7z")


def make_parser(name: str | None = None) -> Parser:
    """The options of a command, or without one the list of all; cheap, so that --help and --version answer at once."""
    parser = Parser(
        prog="wiretale",
        usage="wiretale COMMAND [options]\nwiretale FILE... [options]",
        description="Read packet captures and explain what happened: conversations, losses and where they were, round "
        "trips, and what limited each transfer. Record, generate and emulate traffic.",
    )
    parser.notes = "wiretale FILE is the same as wiretale analyze FILE."
    parser.examples, parser.exit_codes = EXAMPLES, exit_codes(0, 1, 2, 3, 4, 5, 130, 143)
    parser.add_argument(
        "-V", "--version", action="version", version=f"wiretale {__version__}", help="print the version"
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, prog="wiretale")
    if name in COMMANDS:
        import_module(f"wiretale.cli.{name}").add_command(commands)
    else:
        for other, text in COMMANDS.items():
            commands.add_parser(other, help=text)
    return parser


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options. --help and --version end the program; OSError if their text cannot be written."""
    try:
        return program.parse(arguments) or make_parser(*arguments[:1]).parse_args(arguments)
    except SystemExit:
        sys.stdout.flush()
        raise


def is_capture_name(word: str) -> bool:
    """Whether an argument in a command's place is an input: standard input, a file, a folder, or a capture by its name."""
    name, ending = os.path.splitext(word.lower())
    if ending in COMPRESSED_SUFFIXES:
        ending = os.path.splitext(name)[1]
    return word == "-" or (not word.startswith("-") and (ending in CAPTURE_SUFFIXES or os.path.exists(word)))


def as_command(arguments: list[str]) -> list[str]:
    """`help COMMAND` as `COMMAND --help`, `version` as the option, and captures without a command as analyze takes them."""
    first, *rest = arguments or [""]
    if first == "--" and rest:
        return rest if rest[0] in COMMANDS else ["analyze", *arguments]
    if first == "help":
        return [*(word for word in rest if word != "help" and not word.startswith("-")), "--help"]
    if first == "version":
        return ["--version"]
    if first not in COMMANDS and is_capture_name(first):
        return ["analyze", *arguments]
    return arguments


def show_skipped() -> None:
    """Files that were skipped are one line on stderr, once for each folder, whatever the filters of warnings are."""
    import warnings

    from wiretale.analyzer.errors import SkippedFileWarning
    from wiretale.analyzer.printable import printable

    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *others: Any, **options: Any) -> None:
        if issubclass(category, SkippedFileWarning):
            print(f"wiretale: {printable(str(message))}", file=sys.stderr)
        else:
            usual(message, category, *others, **options)

    warnings.showwarning = show
    warnings.simplefilter("once", SkippedFileWarning)


def run(command: Callable[[argparse.Namespace], int], arguments: argparse.Namespace) -> int:
    """Runs a command; an error is one line on stderr."""
    from wiretale.analyzer.errors import WiretaleError
    from wiretale.analyzer.printable import printable

    show_skipped()
    try:
        return command(arguments)
    except WiretaleError as error:
        print(f"wiretale: {printable(str(error))}", file=sys.stderr)
        return error.exit_code
    except ImportError as error:
        from wiretale.installation import explain_import

        print(f"wiretale: {printable(explain_import(error))}", file=sys.stderr)
        return 5
    except MemoryError:
        print("wiretale: out of memory: analyze a part with --filter, or lower --max-flows", file=sys.stderr)
        return 4


def close_output() -> None:
    """Nobody reads on: what is left to write is dropped, also by the interpreter's end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def is_open(descriptor: int) -> bool:
    """Whether the process was started with it."""
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def prepare_streams() -> None:
    """A closed stdout refuses what is written, because results would be lost; a closed stderr swallows it.

    Characters that the encoding lacks become plain ones.
    """
    for descriptor, name, mode in ((1, "stdout", os.O_RDONLY), (2, "stderr", os.O_WRONLY)):
        if getattr(sys, name) is None or not is_open(descriptor):
            held = os.open(os.devnull, mode)  # also keeps a file from taking the stream's number
            setattr(sys, name, open(held, "w"))  # noqa: SIM115 (open as long as the process lives)
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=plain_text.ERRORS)


def seldom_search() -> None:
    """Garbage that refers to itself is searched for after every 100,000 new objects, not after 700: hardly any is made."""
    gc.set_threshold(OBJECTS_A_SEARCH)


def spare_last_search() -> None:
    """What lives to the end is not searched for garbage then; but DuckDB's binding complains of what is left."""
    if "duckdb" not in sys.modules:
        gc.freeze()


def leave(code: int) -> NoReturn:
    """The process ends, and its memory goes back at once instead of piece by piece; all output was written by main().

    Where something may still be at work, the interpreter ends as usual: other threads, and DuckDB's binding.
    """
    from threading import active_count

    if active_count() > 1 or "duckdb" in sys.modules:
        sys.exit(code)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):  # what was left by an interruption, and by handlers
        with suppress(OSError, ValueError):  # main() has told what could not be written; stderr has nobody to tell
            stream.flush()
    os._exit(code)


def command() -> NoReturn:
    """The program `wiretale`."""
    leave(main())


def main(given: Sequence[str] | None = None) -> int:
    """The command `wiretale`; returns its exit code."""
    arguments = as_command(list(sys.argv[1:] if given is None else given))
    seldom_search()
    prepare_streams()
    take_terminate_as_interrupt()
    atexit.register(spare_last_search)
    try:
        parsed = parse(arguments)
        code = run(parsed.command, parsed)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        close_output()
        return 0
    except OSError as error:
        close_output()
        closed = error.errno == errno.EBADF
        problem = "standard output is closed" if closed else f"cannot write the output: {error.strerror}"
        print(f"wiretale: {problem}", file=sys.stderr)
        return 4
    except KeyboardInterrupt:
        print("wiretale: interrupted", file=sys.stderr)
        return interrupted_code()
