# SPDX-License-Identifier: Apache-2.0
"""The command line: `wiretale COMMAND`.

Exit codes: 0 done; 1 a --fail-if condition holds, or its value is unknown; 2 wrong usage; 3 done, but an input was damaged,
truncated or skipped; 4 input unreadable or output not writable; 5 a tool or a permission is missing; 130 interrupted; 143
terminated. Only this package turns errors into exit codes.
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
    from wiretale.cli.commands import COMMANDS, KNOWN, MORE, PROGRAM_COMMANDS, routed
    from wiretale.cli.options import note
    from wiretale.cli.parser import EXIT_TEXTS, Parser, add_command
    from wiretale.version import __version__
except KeyboardInterrupt:  # main() cannot handle it yet
    os._exit(130)

TYPE_CHECKING = False  # importing typing would take 2 ms
if TYPE_CHECKING:
    from typing import Any, NoReturn

EXAMPLES = """\
# why was it slow?
wiretale upload.pcapng
# the proof of one cause
wiretale upload.pcapng --cause tail-loss
# everything that was found
wiretale upload.pcapng --all
# an interactive page
wiretale upload.pcapng --report page.html
# delays and losses between two capture points
wiretale compare sender.pcapng receiver.pcapng
# the help of a command
wiretale help analyze
"""
CAPTURE_SUFFIXES = (".pcap", ".pcapng", ".cap", ".dmp", ".ntar")
DAMAGED = 3
COMPRESSED_SUFFIXES = (".gz", ".zst", ".lz4", ".bz2", ".xz", ".zip", ".7z")


def make_parser(name: str | None = None) -> Parser:
    """Returns the parser of a command, or of the list of commands. --help and --version import no command."""
    parser = Parser(
        prog="wiretale",
        usage="wiretale FILE... [options]\nwiretale COMMAND [options]",
        description="Say why a transfer was slow, or what failed, from packet captures; record, generate and emulate traffic.",
    )
    parser.describe(EXAMPLES, tuple(EXIT_TEXTS), "Each command has its own --help and man page.")
    version = f"wiretale {__version__}"
    parser.add_argument("-V", "--version", action="version", version=version, help="print the version")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, prog="wiretale")
    if name in KNOWN:
        add_command(commands, name)
        return parser
    for first, text in COMMANDS.items():
        commands.add_parser(first, help=text)
    for other in KNOWN[len(COMMANDS) :]:
        commands.add_parser(other)
    parser.sections = {"more": MORE}
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
    """Maps `help COMMAND` to `COMMAND --help`, `version` to `--version`, captures without a command to analyze, nothing to
    --help, and `store watch` to `watch`."""
    first, *further = arguments or [""]
    if first == "--" and further:
        return routed(further) if further[0] in KNOWN else ["analyze", *arguments]
    if first == "help":
        return routed([*(word for word in further if word != "help" and not word.startswith("-")), "--help"])
    if first == "version":
        return ["--version"]
    if first not in KNOWN and is_capture_name(first):
        return ["analyze", *arguments]
    return routed(arguments) if arguments else ["--help"]


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
        process.raise_waiting()
        code = run(parsed.command, parsed)
        sys.stdout.flush()
        return code
    except ImportError as error:
        from wiretale.installation import explain_import

        note(explain_import(error))
        return 5
    except OSError as error:
        process.discard(sys.stdout.fileno())  # buffered output, also at interpreter exit
        note(os_problem(error))
        return 4
    except KeyboardInterrupt:
        note("interrupted")
        return process.interrupted_code()
