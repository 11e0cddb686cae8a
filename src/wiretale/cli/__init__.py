# SPDX-License-Identifier: Apache-2.0
"""The command line: wiretale analyze, explain, info, verify, theory, doctor.

Exit codes: 0 done; 2 usage; 3 done, but the input was damaged or cut short; 4 input unreadable or output not
writable; 5 a tool or a permission is missing; 130 interrupted. Only this package turns errors into them.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module

from wiretale.cli import program
from wiretale.cli.help_text import HelpText
from wiretale.version import __version__

TYPE_CHECKING = False  # as typing has it, whose import takes 2 ms
if TYPE_CHECKING:
    from typing import NoReturn

    from _typeshed import SupportsWrite

EXAMPLES = """\
examples:
  wiretale analyze transfer.pcapng                 what happened, in the terminal
  wiretale analyze transfer.pcapng --report t.html the same as an interactive page
  wiretale analyze captures/ --json | jq .findings for scripts
  wiretale explain transfer.pcapng                 what limited each transfer, and what to change
  wiretale compare sender.pcapng receiver.pcapng   the same packets at several points: delays, losses and where
  wiretale diff before.pcapng after.pcapng         two runs, with what changed most
  wiretale experiment run quick -o quick/          a study that runs itself
  wiretale lab run s6-narrow-link -o narrow/       the same on an emulated path whose truth is known
  wiretale info transfer.pcapng                    what the file says of itself
  wiretale verify transfer.pcapng                  where Wireshark judges otherwise, and why
  wiretale theory --link 1G --mtu 1500             what a link can carry at most
  wiretale doctor                                  what this machine lacks
"""
OBJECTS_A_SEARCH = 100_000
# Each has a module of its name here, but for the C programs (program.py); only the one that is asked for is imported.
COMMANDS = {
    "analyze": "flows, findings and a report of captures",
    "explain": "what limited each transfer, what went wrong, and what to change",
    "compare": "the same packets at several capture points: delays, and where losses were",
    "diff": "two runs side by side, with what changed most",
    "verify": "compare every verdict with Wireshark's",
    "info": "what capture files say of themselves",
    "theory": "what a link can carry at most",
    "experiment": "run a plan of tests, and report on it",
    "lab": "an emulated network with known truth, on this machine",
    "send": "send sequenced TCP or UDP blocks to a receiver",
    "receive": "receive them, count what is lost, late or corrupt",
    "ttcp": "a transfer with classic ttcp",
    "capture": "record what passes an interface, for days, and prove what was not recorded",
    "link": "a link between two interfaces that loses, delays and reorders as told",
    "doctor": "what this machine has and lacks",
}


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as all errors are said."""

    help_of: str | None = None  # whose help has what was expected, where that is not its own

    def error(self, message: str) -> NoReturn:
        """Ends with the code for wrong usage."""
        from wiretale.analyzer.printable import printable

        self.exit(2, f"wiretale: {printable(with_near(message))}; see `{self.help_of or self.prog} --help`\n")

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        """Without argparse's neglect of a full device, which begins with Python 3.12."""
        if message and file is sys.stdout:
            file.write(message)
        else:
            super()._print_message(message, file)


def with_near(message: str) -> str:
    """With the command that was probably meant, in place of all that there are."""
    import re
    from difflib import get_close_matches

    found = re.fullmatch(
        r"argument (?:COMMAND|ACTION): invalid choice: '(.*)' \(choose from (.*)\)", message, re.DOTALL
    )
    near = get_close_matches(found[1], re.findall(r"[\w-]+", found[2]), 1) if found else []
    return f"there is no command {found[1]!r} (did you mean {near[0]}?)" if found and near else message


def make_parser(name: str | None = None) -> argparse.ArgumentParser:
    """The options of a command, or without one the list of all; cheap, so that --help and --version answer at once."""
    parser = Parser(
        prog="wiretale",
        usage="wiretale COMMAND …",
        description=EXAMPLES + "\nWhat happened on the wire, and why.",
        formatter_class=HelpText,
    )
    parser.add_argument("--version", action="version", version=f"wiretale {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, prog="wiretale")
    if name in COMMANDS:
        import_module(f"wiretale.cli.{name}").add_command(commands)
        parser.help_of = f"wiretale {name}"
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


def run(command: Callable[[argparse.Namespace], int], arguments: argparse.Namespace) -> int:
    """Runs a command; an error is one line on stderr."""
    from wiretale.analyzer.errors import WiretaleError
    from wiretale.analyzer.printable import printable

    try:
        return command(arguments)
    except WiretaleError as error:
        print(f"wiretale: {printable(str(error))}", file=sys.stderr)
        return error.exit_code
    except ImportError as error:
        print(f"wiretale: {missing_module(error)}", file=sys.stderr)
        return 5
    except MemoryError:
        print("wiretale: out of memory: analyze a part with --filter, or lower --max-flows", file=sys.stderr)
        return 4


def missing_module(error: ImportError) -> str:
    """What is missing, and the command that mends it."""
    name = error.name or ""
    if name.startswith("wiretale"):
        return f"the native core cannot be loaded ({error}): run `make build`, or install wiretale again"
    package = name.partition(".")[0]
    return f"the Python package {package} is missing: run `{sys.executable} -m pip install {package}`"


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
    """Streams that were closed swallow what is written; characters that the locale lacks become question marks."""
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None or not is_open(descriptor):
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (open as long as the process lives)
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def take_terminate_as_interrupt() -> None:
    """SIGTERM does what Ctrl-C does: the reading ends, what was read is reported, nothing half-written stays."""

    def terminate(number: int, frame: object) -> None:
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a script: `wiretale … &`
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, terminate)


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
    arguments = list(sys.argv[1:] if given is None else given)
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
        print(f"wiretale: cannot write the output: {error.strerror}", file=sys.stderr)
        return 4
    except KeyboardInterrupt:
        print("wiretale: interrupted", file=sys.stderr)
        return 130
