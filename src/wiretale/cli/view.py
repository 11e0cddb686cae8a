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
from typing import TYPE_CHECKING, NamedTuple

from wiretale.cli import options, process
from wiretale.cli.analyze import DAMAGED, exit_code, read
from wiretale.cli.options import add_analysis_options, analysis_options, note, option

if TYPE_CHECKING:
    from wiretale.analyzer.capture_paths import Expanded
    from wiretale.analyzer.options import AnalysisOptions
    from wiretale.reports.view.answers import Answers
    from wiretale.reports.view.live import Live

USAGE = "wiretale view FILE|DIR... [options]\nwiretale view --follow DIR [options]"
EXAMPLES = """\
# analyze, and print the address of the page
wiretale view transfer.pcapng
# keep the index; the second command opens it at once
wiretale view day/*.pcap.zst -o day.view
wiretale view day.view --open
# live traffic, while `wiretale capture -i eth0 -w captures/ -G 10` runs
wiretale view --follow captures/ --open
"""


LAST_NS = 60 * 10**9
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Request(NamedTuple):
    """A page and index to make."""

    files: Expanded
    options: AnalysisOptions
    #: the folder; None for a temporary one
    output: Path | None
    link_bps: int | None


def add_options(parser: argparse.ArgumentParser) -> None:
    text = "a pcap or pcapng file (also gzip, zstd or lz4), a directory of captures, or one that -o has written"
    option(parser, "files", "FILE|DIR", text, nargs="+")
    inputs = parser.add_argument_group("input")
    text = "follow the capture being written to this directory; the page is refreshed after each file"
    option(inputs, "--follow", None, text)
    text = "with --follow, show open flows, and those that ended in the last TIME (default: 1m)"
    option(inputs, "--last", "TIME", text, type=options.duration)
    add_analysis_options(inputs)
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


def build(request: Request, folder: Path, quiet: bool) -> int:
    """Analyzes the captures and writes page and index; returns the exit code."""
    from wiretale.reports.view.folder import write_view

    trace = read(request.files, request.options, quiet)
    code = exit_code(trace)
    if code in (0, DAMAGED):
        write_view(trace, folder, request.link_bps)
    return code


def forked(work: Callable[[], int]) -> int:
    """Runs work in a process of its own; returns its number. STOPPING are blocked until the caller unblocks them."""
    from wiretale.cli import run as run_command

    sys.stdout.flush()
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)  # until both processes can handle them
    child = os.fork()
    if child:
        return child
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


def in_child(work: Callable[[], int]) -> int:
    """Runs work in a process of its own, whose memory is free again before the page is served; returns its exit code."""
    interrupted, before = False, signal.getsignal(signal.SIGINT)

    def end_child(number: int, frame: object) -> None:
        """Ctrl-C reaches the child too, SIGTERM does not."""
        nonlocal interrupted
        if before == signal.SIG_IGN and not process.terminated:  # a background job of a script
            return
        interrupted = True
        with suppress(ProcessLookupError):  # it has ended
            os.kill(child, signal.SIGTERM)

    child = forked(work)
    signal.signal(signal.SIGINT, end_child)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    signal.signal(signal.SIGINT, before)
    return process.interrupted_code() if interrupted else code


def index_of(arguments: argparse.Namespace) -> Path | None:
    """Returns the folder of an index or of snapshots that exists. UsageError if there are options of an analysis, which it has
    already."""
    from wiretale.reports.live.snapshots import about
    from wiretale.reports.view.folder import index_in, refuse_options

    folder = input_folder(arguments)
    existing = (folder if about(folder) else index_in(folder)) if folder else None
    if folder and existing:
        refuse_options(analysis_options(arguments), folder)
    return existing


def input_folder(arguments: argparse.Namespace) -> Path | None:
    """Returns the folder that is the only input, or None."""
    (first, *further) = map(Path, arguments.files)
    return None if further or not first.is_dir() else first


def request_of(arguments: argparse.Namespace) -> Request:
    """Returns captures, options and output of a new index. If the input is an output folder of `analyze -o`, they are those of
    its analysis. UsageError for an input that cannot be read twice, and for an output that would replace a capture."""
    from wiretale.analyzer.capture_paths import expand_paths
    from wiretale.analyzer.options import link_rate
    from wiretale.reports.view import folder as folders

    files, options, output = list(arguments.files), analysis_options(arguments), arguments.output
    folder = input_folder(arguments)
    if folder and folders.is_output(folder):
        folders.refuse_options(options, folder)
        files, analyzed = folders.analysis_of(folder)
        options, output = analyzed._replace(jobs=options.jobs), output or folder / folders.INSIDE
    request = Request(expand_paths(files, local=True), options, output, link_rate(arguments.link))
    check_request(request)
    return request


def check_request(request: Request) -> None:
    """UsageError for an input that cannot be read twice, and for an output that would replace a capture."""
    from wiretale.analyzer.errors import UsageError
    from wiretale.reports.export.destination import check_folder
    from wiretale.reports.view.folder import PAGE_FILE, index_in, is_output, refuse_streams

    refuse_streams(request.files)
    if request.output:
        if is_output(request.output) and index_in(request.output) != request.output:
            raise UsageError(f"{request.output}: has tables of `wiretale analyze -o`: expected another folder")
        check_folder(request.output, [PAGE_FILE], request.files)


def serve(folder: Path, arguments: argparse.Namespace, goes_on: Callable[[], bool] = lambda: True) -> int:
    """Serves an index, or snapshots of an analysis that goes on, until Ctrl-C; returns the exit code."""
    from wiretale.analyzer.index.capture_index import CaptureIndex
    from wiretale.reports.live.snapshots import about
    from wiretale.reports.view.answers import Answers
    from wiretale.reports.view.folder import PAGE_FILE
    from wiretale.reports.view.live import Live

    if arguments.follow or about(folder):
        live = Live(folder, goes_on)
        return serve_page(live.page, live, arguments)
    index = CaptureIndex(folder)
    index.check()
    return serve_page((folder / PAGE_FILE).read_bytes, Answers(index), arguments)


def serve_page(page: Callable[[], bytes], answers: Answers | Live, arguments: argparse.Namespace) -> int:
    """Serves a page and the answers about it until Ctrl-C; returns the exit code."""
    from wiretale.reports.view.server import listening

    with listening(page, answers.by_path, arguments.port) as server:
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


def follow(arguments: argparse.Namespace) -> int:
    """Serves the page of a folder that a capture program writes to, whose files another process analyzes."""
    from wiretale.analyzer.errors import InputError, UsageError
    from wiretale.analyzer.options import link_rate
    from wiretale.reports.live.follow import Follow

    folder = input_folder(arguments)
    if folder is None:
        raise (UsageError if len(arguments.files) > 1 else InputError)(
            f"{arguments.files[0]}: expected one directory, into which a capture is written"
        )
    if arguments.output:
        raise UsageError("--follow takes no -o: store watch --open-flows keeps such a folder")
    with ExitStack() as stack:
        made, server = temporary(stack) / "now", os.getpid()
        following = Follow(folder, made, analysis_options(arguments), arguments.last or LAST_NS, note)
        following.snapshots.link_bps = link_rate(arguments.link)

        def work() -> int:
            try:
                following.run(lambda: os.getppid() == server)
            finally:
                following.snapshots.close()
            return 0

        child = forked(work)
        stack.callback(end, child)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
        return serve(made, arguments, lambda: os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None)


def end(child: int) -> None:
    """Ends a child, and waits for it."""
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGTERM)
    os.waitpid(child, 0)


def run(arguments: argparse.Namespace) -> int:
    if arguments.follow:
        return follow(arguments)
    if arguments.last:
        from wiretale.analyzer.errors import UsageError

        raise UsageError("--last needs --follow")
    existing = index_of(arguments)
    if existing:
        if arguments.output:
            note(f"{existing} has an index: -o {arguments.output} is not written")
        return serve(existing, arguments)
    with ExitStack() as stack:
        request = request_of(arguments)
        folder = request.output or temporary(stack)
        code = in_child(lambda: build(request, folder, arguments.quiet))
        return code if code not in (0, DAMAGED) else serve(folder, arguments) or code


def temporary(stack: ExitStack) -> Path:
    """Returns a folder that is removed at the end."""
    from tempfile import TemporaryDirectory

    return Path(stack.enter_context(TemporaryDirectory(prefix="wiretale-view-", ignore_cleanup_errors=True)))
