# SPDX-License-Identifier: Apache-2.0
"""Open the interactive report of captures of any size: the page asks this program for the packets in view. It is served on
127.0.0.1 until Ctrl-C, at an address with a random token.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from wiretale.cli import options, process
from wiretale.cli.analyze import DAMAGED, add_reading, exit_code, read
from wiretale.cli.options import note, option

USAGE = "wiretale view FILE|DIR... [options]"
EXAMPLES = """\
# analyze, and print the address of the page
wiretale view transfer.pcapng
# keep the index; the second command opens it at once
wiretale view day/*.pcap.zst -o day.view
wiretale view day.view --open
"""


# Options of analyze(), and the arguments that they come from; a time can be given as ns.
READING = {
    "filter": "filter",
    "start_ns": "start",
    "end_ns": "end",
    "max_flows": "max_flows",
    "block_size": "block_size",
}
DEFAULTS = {"max_flows": 1_000_000}
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def add_options(parser: argparse.ArgumentParser) -> None:
    text = "a pcap or pcapng file (also gzip, zstd or lz4), a directory of captures, or one that -o has written"
    option(parser, "files", "FILE|DIR", text, nargs="+")
    add_reading(parser)
    output = parser.add_argument_group("output")
    option(
        output,
        "-o --output",
        "DIR",
        "keep page and index, about 6 bytes per packet (docs/cut.md)",
        type=options.folder,
    )
    option(output, "--port", "N", "port to listen on (default: any free one)", type=options.port_number, default=0)
    option(output, "--open", None, "open the page in the browser")
    option(output, "--link", "RATE", options.LINK_HELP)
    option(output, "-q --quiet", None, "print nothing but the address and errors")
    parser.set_defaults(json=False)


def build(arguments: argparse.Namespace, folder: Path) -> int:
    """Analyzes the captures and writes page and index; returns the exit code."""
    from wiretale.reports.view.folder import write_view

    trace = read(arguments, keep_packets=False)
    code = exit_code(trace)
    if code in (0, DAMAGED):
        write_view(trace, folder, arguments.link)
    return code


def in_child(work: Callable[[], int]) -> int:
    """Runs work in a process of its own, whose memory is free again before the page is served; returns its exit code."""
    from wiretale.cli import run as run_command

    interrupted, before = False, signal.getsignal(signal.SIGINT)

    def end_child(number: int, frame: object) -> None:
        """Ctrl-C reaches the child too, SIGTERM does not."""
        nonlocal interrupted
        if before == signal.SIG_IGN and not process.terminated:  # a background job of a script
            return
        interrupted = True
        with suppress(ProcessLookupError):  # it has ended
            os.kill(child, signal.SIGTERM)

    sys.stdout.flush()
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)  # until both processes can handle them
    child = os.fork()
    if child == 0:
        code = 70
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
            code = run_command(lambda _: work(), argparse.Namespace())
            sys.stderr.flush()
        except KeyboardInterrupt:
            code = process.interrupted_code()
        except BaseException:  # the parent process must not continue here too
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)
    signal.signal(signal.SIGINT, end_child)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    signal.signal(signal.SIGINT, before)
    return process.interrupted_code() if interrupted else code


def place_of(arguments: argparse.Namespace) -> tuple[Path | None, Path | None]:
    """Returns the folder of an index that exists, and the folder to write one into; None is a temporary one.

    If the input is an output folder of `analyze -o`, the captures that it is about become the input.
    """
    from wiretale.reports.view import folder as folders

    (first, *others) = map(Path, arguments.files)
    if others or not first.is_dir():
        return None, arguments.output
    existing = folders.index_in(first)
    if existing is None and not folders.is_output(first):
        return None, arguments.output
    refuse_options(arguments, first)
    if existing is None:
        arguments.files, kept = folders.analysis_of(first)
        vars(arguments).update({READING[name]: value for name, value in kept.items()})
        return None, arguments.output or first / folders.INSIDE
    return existing, arguments.output


def refuse_options(arguments: argparse.Namespace, folder: Path) -> None:
    """UsageError if there is an option of the analysis, which the folder has already."""
    from wiretale.analyzer.errors import UsageError

    for name in READING.values():
        if getattr(arguments, name) != DEFAULTS.get(name):
            option = "-f" if name == "filter" else f"--{name.replace('_', '-')}"
            raise UsageError(f"{option}: {folder} has the options of its analysis: expected captures with this option")


def check_arguments(arguments: argparse.Namespace) -> None:
    """UsageError for an input that cannot be read twice, and for an output that would replace a capture."""
    from wiretale.analyzer.arguments import link_rate
    from wiretale.analyzer.capture_paths import expand_paths
    from wiretale.analyzer.errors import UsageError
    from wiretale.analyzer.trace import can_reread

    arguments.link = link_rate(arguments.link)
    arguments.files = expand_paths(arguments.files, local=True)
    missing = [path for path in arguments.files if path != "-" and not os.path.exists(path)]
    if not missing and not can_reread(arguments.files):
        raise UsageError("view reads packets when they are looked at: expected files, not a pipe or standard input")
    if arguments.output:
        from wiretale.reports.export.destination import check_folder
        from wiretale.reports.view.folder import PAGE_FILE, index_in, is_output

        if is_output(arguments.output) and index_in(arguments.output) != arguments.output:
            raise UsageError(f"{arguments.output}: has tables of `wiretale analyze -o`: expected another folder")
        check_folder(arguments.output, [PAGE_FILE], arguments.files)


def serve(folder: Path, arguments: argparse.Namespace) -> int:
    """Serves an index until Ctrl-C; returns the exit code."""
    from wiretale.analyzer.index.capture_index import CaptureIndex
    from wiretale.reports.view.answers import Answers
    from wiretale.reports.view.folder import PAGE_FILE
    from wiretale.reports.view.server import listening

    index = CaptureIndex(folder)
    index.check()
    answers = Answers(index)
    with listening(folder / PAGE_FILE, answers.by_path, arguments.port) as server:
        try:
            print(server.url, flush=True)
            if arguments.open:
                import webbrowser

                webbrowser.open(server.url)
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            return process.interrupted_code() if process.terminated else 0
        finally:
            server.finish_answers()
            answers.close()
    return 0


def run(arguments: argparse.Namespace) -> int:
    with ExitStack() as stack:
        existing, folder = place_of(arguments)
        code = 0
        if existing is None:
            check_arguments(arguments)
            folder = folder or temporary(stack)
            target = folder
            code = in_child(lambda: build(arguments, target))
            if code not in (0, DAMAGED):
                return code
        elif arguments.output:
            note(f"{existing} has an index: -o {arguments.output} is not written")
        return serve(existing or target, arguments) or code


def temporary(stack: ExitStack) -> Path:
    """Returns a folder that is removed at the end."""
    from tempfile import TemporaryDirectory

    return Path(stack.enter_context(TemporaryDirectory(prefix="wiretale-view-", ignore_cleanup_errors=True)))
