# SPDX-License-Identifier: Apache-2.0
"""The command line: `wiretale COMMAND`.

Exit codes: 0 done; 1 a --fail-if condition holds; 2 wrong usage; 3 done, but an input was damaged, truncated or skipped; 4
input unreadable or output not writable; 5 a tool or a permission is missing; 130 interrupted; 143 terminated. Only this
package turns errors into exit codes.
"""

from __future__ import annotations

import os

try:
    import argparse
    import atexit
    import errno
    import gc
    import sys
    from collections.abc import Callable, Sequence

    from wiretale.cli import process
    from wiretale.cli.options import note
    from wiretale.cli.parser import EXIT_TEXTS, Parser, add_command
    from wiretale.version import __version__
except KeyboardInterrupt:  # main() cannot handle it yet
    os._exit(130)

TYPE_CHECKING = False  # importing typing would take 2 ms
if TYPE_CHECKING:
    from typing import Any, NoReturn

EXAMPLES = """\
# the answer in the terminal; then an interactive page
wiretale analyze transfer.pcapng
wiretale analyze transfer.pcapng --report transfer.html
# the findings, for scripts
wiretale analyze captures/ --json | jq .findings
# every transfer with its findings, their proof, and how to fix them
wiretale explain transfer.pcapng --all
# delays and losses between two capture points
wiretale compare sender.pcapng receiver.pcapng
# a whole study: receiver, tracer, senders, results
wiretale experiment run quick -o quick/
# the help of a command
wiretale help analyze
"""
# Each command has a module of its name in this package, except for the C programs; only the requested one is imported.
COMMANDS = {
    "analyze": "what went wrong or took the time, and why; tables and a report",
    "explain": "the same with all causes and findings, and the page of each",
    "view": "the interactive report of captures of any size, on a local address",
    "compare": "delays and losses between two or three capture points",
    "diff": "compare two runs and rank the changes",
    "verify": "compare every verdict with Wireshark's",
    "cut": "copy chosen packets into a file, annotated or anonymized",
    "split": "split captures into shards that other machines analyze",
    "gather": "gather the rows of all shards, as those of one run",
    "store": "keep the analyses of many captures, and query them",
    "watch": "analyze the files of a capture as they are finished, into a store",
    "info": "show file and interface metadata",
    "theory": "compute the maximum that a link can carry",
    "model": "turn flows of a capture into a plan, and test whether its flows agree",
    "experiment": "run a plan of tests, and report on it",
    "lab": "an emulated network on this machine that logs the fate of each packet",
    "send": "send sequenced TCP or UDP blocks to a receiver",
    "receive": "receive blocks; count lost, late and corrupt ones",
    "ttcp": "a transfer with classic ttcp",
    "capture": "capture from an interface, unattended, accounting for every drop",
    "link": "emulate a lossy, slow or reordering link between two interfaces",
    "doctor": "check this machine for missing tools and settings",
}
PROGRAM_COMMANDS = ("send", "receive", "ttcp", "capture", "link")  # run by C programs
CAPTURE_SUFFIXES = (".pcap", ".pcapng", ".cap", ".dmp", ".ntar")
DAMAGED = 3
COMPRESSED_SUFFIXES = (".gz", ".zst", ".lz4", ".bz2", ".xz", ".zip", ".7z")


def make_parser(name: str | None = None) -> Parser:
    """Returns the parser of a command, or of the list of commands. --help and --version import no command."""
    parser = Parser(
        prog="wiretale",
        usage="wiretale COMMAND [options]\nwiretale FILE... [options]",
        description="Read packet captures and explain what happened: conversations, losses and where they were, round "
        "trips, and what limited each transfer. Record, generate and emulate traffic.",
    )
    parser.describe(EXAMPLES, tuple(EXIT_TEXTS), "wiretale FILE is the same as wiretale analyze FILE.")
    version = f"wiretale {__version__}"
    parser.add_argument("-V", "--version", action="version", version=version, help="print the version")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, prog="wiretale")
    if name in COMMANDS:
        add_command(commands, name)
    else:
        for other, text in COMMANDS.items():
            commands.add_parser(other, help=text)
    return parser


def run_program(parsed: argparse.Namespace) -> int:
    """Replaces this process by a C program."""
    from wiretale.traffic.program import become_program

    become_program(parsed.program, parsed.arguments)


def parse(arguments: list[str]) -> argparse.Namespace:
    """Returns the options; a C program parses its own. --help and --version exit; OSError if stdout cannot be written."""
    if arguments and arguments[0] in PROGRAM_COMMANDS:
        return argparse.Namespace(command=run_program, program=arguments[0], arguments=arguments[1:])
    try:
        return make_parser(*arguments[:1]).parse_args(arguments)
    except SystemExit:
        sys.stdout.flush()
        raise


def is_capture_name(word: str) -> bool:
    """Returns whether a word in place of a command is an input: `-`, a path that exists, or the name of a capture."""
    name, ending = os.path.splitext(word.lower())
    if ending in COMPRESSED_SUFFIXES:
        ending = os.path.splitext(name)[1]
    return word == "-" or (not word.startswith("-") and (ending in CAPTURE_SUFFIXES or os.path.exists(word)))


def as_command(arguments: list[str]) -> list[str]:
    """Maps `help COMMAND` to `COMMAND --help`, `version` to `--version`, and captures without a command to analyze."""
    first, *further = arguments or [""]
    if first == "--" and further:
        return further if further[0] in COMMANDS else ["analyze", *arguments]
    if first == "help":
        return [*(word for word in further if word != "help" and not word.startswith("-")), "--help"]
    if first == "version":
        return ["--version"]
    if first not in COMMANDS and is_capture_name(first):
        return ["analyze", *arguments]
    return arguments


def show_skipped() -> list[str]:
    """A skipped file is one line on stderr, once, whatever the user's warning filters are. Returns a list that gets them."""
    import warnings

    from wiretale.analyzer.errors import DamagedInputWarning, SkippedFileWarning, SkippedFolderWarning

    files: list[str] = []
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *places: Any, **options: Any) -> None:
        if issubclass(category, SkippedFileWarning):
            note(str(message))
            if not issubclass(category, SkippedFolderWarning):
                files.append(str(message))
        else:
            usual(message, category, *places, **options)

    warnings.showwarning = show
    warnings.simplefilter("once", SkippedFileWarning)
    warnings.simplefilter("ignore", DamagedInputWarning)  # commands name the damage after their results
    return files


def run(command: Callable[[argparse.Namespace], int], arguments: argparse.Namespace) -> int:
    """Runs a command and returns its exit code; an error is one line on stderr."""
    from wiretale.analyzer.errors import WiretaleError

    skipped = show_skipped()
    try:
        return command(arguments) or (DAMAGED if skipped else 0)
    except WiretaleError as error:
        note(str(error))
        return error.exit_code
    except ImportError as error:
        from wiretale.installation import explain_import

        note(explain_import(error))
        return 5
    except RuntimeError as error:
        if str(error) != "Query interrupted":  # so DuckDB ends at a signal
            raise
        raise KeyboardInterrupt from None
    except MemoryError:
        note("out of memory: analyze a part with --filter, or lower --max-flows")
        return 4


def os_problem(error: OSError) -> str:
    """Returns the text of an error that no command explained; one without a name is of stdout or the current directory."""
    if error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    if error.errno == errno.ENOENT:
        return "the current directory does not exist any more: change to another one"
    return "standard output is closed" if error.errno == errno.EBADF else f"cannot write the output: {error.strerror}"


def command() -> NoReturn:
    """The program `wiretale`."""
    try:
        process.fast_exit(main())
    except KeyboardInterrupt:  # before or after the command, or again
        os._exit(process.interrupted_code())


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    arguments = as_command(list(sys.argv[1:] if words is None else words))
    gc.set_threshold(100_000)  # instead of 700 new objects, because commands make few reference cycles
    process.prepare_streams()
    process.take_signals()
    atexit.register(process.freeze_gc_at_exit)
    try:
        parsed = parse(arguments)
        code = run(parsed.command, parsed)
        sys.stdout.flush()
        return code
    except OSError as error:
        process.discard(sys.stdout.fileno())  # buffered output, also at interpreter exit
        note(os_problem(error))
        return 4
    except KeyboardInterrupt:
        note("interrupted")
        return process.interrupted_code()
