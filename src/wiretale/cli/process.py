# SPDX-License-Identifier: Apache-2.0
"""The process around a command: signals, standard streams, garbage collection, and a fast exit."""

from __future__ import annotations

import atexit
import codecs
import gc
import io
import os
import signal
import sys
import time
from contextlib import suppress

TYPE_CHECKING = False  # importing typing would take 2 ms
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, NoReturn

ENCODING_ERRORS = "wiretale.plain"
ARROWS = {"→": "->", "←": "<-"}
PLAIN = {
    **ARROWS,
    **dict.fromkeys("─━╌╍–—−", "-"),
    **dict.fromkeys("│┃", "|"),
    **{"…": "...", "×": "x", "µ": "u", "μ": "u", "·": ".", "≥": ">=", "≤": "<=", "≈": "~", "±": "+-", "’": "'"},
    **{"█": "#", "▲": "!", "✖": "x", "•": "*", "◇": "*", "○": "-"},
}
AGAIN_SECONDS, IMPORT_SECONDS = 1.0, 0.01
terminated = False
interrupted_at = -AGAIN_SECONDS  # time.monotonic()


def is_importing(frame: FrameType | None) -> bool:
    """Returns whether the command imports a module: Python drops an exception in callbacks of imports, and a library in C that is
    being loaded may end the process or make another error of it."""
    while frame and frame.f_globals.get("__name__") != "wiretale.cli":
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raises KeyboardInterrupt, after an import. Not again within a second: it must not interrupt the removal of temporary
    files."""
    global interrupted_at
    if is_importing(frame):
        signal.setitimer(signal.ITIMER_REAL, IMPORT_SECONDS)
        return
    before, interrupted_at = interrupted_at, time.monotonic()
    if interrupted_at - before >= AGAIN_SECONDS:
        raise KeyboardInterrupt


def take_signals() -> None:
    """SIGTERM, and the end of the terminal, stop a command as Ctrl-C does: no partial file is left, and results are reported."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        global terminated
        terminated |= number != signal.SIGALRM  # that of interrupt()
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a background job of a script: `wiretale … &`
            interrupt(number, frame)
        else:
            signal.raise_signal(signal.SIGINT)

    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, pass_on)
        signal.signal(signal.SIGALRM, pass_on)
        if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # nohup ignores it
            signal.signal(signal.SIGHUP, pass_on)
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, interrupt)


def raise_waiting() -> None:
    """Raises KeyboardInterrupt if a signal came while the command was imported."""
    if signal.setitimer(signal.ITIMER_REAL, 0)[0]:
        signal.raise_signal(signal.SIGALRM)


def interrupted_code() -> int:
    """Returns the exit code after an interruption: 130, or 143 after SIGTERM or SIGHUP."""
    return 128 + (signal.SIGTERM if terminated else signal.SIGINT)


def plain_text(error: UnicodeError) -> tuple[str, int]:
    """Returns ASCII for characters that an encoding lacks, and the position to continue from.

    In a table, an arrow that is followed by two blanks takes one of them, because the columns must stay aligned.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text, end = error.object, error.end
    replaced = "".join(PLAIN.get(character, "?") for character in text[error.start : end])
    if text[end - 1] in ARROWS and text[end : end + 2] == "  ":
        end += 1
    return replaced, end


codecs.register_error(ENCODING_ERRORS, plain_text)


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


class Discarding(io.FileIO):
    """A standard stream. After an error of `ignored` it discards all output, because a command must still write its files
    and return its exit code if nobody reads its text (`| head`).
    """

    ignored: type[OSError] = BrokenPipeError

    def write(self, content: Any) -> int:
        try:
            return super().write(content)
        except self.ignored:
            discard(self.fileno())
            return memoryview(content).nbytes


def discard(descriptor: int) -> None:
    """Discards what is written to a descriptor from now on."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def prepare_streams() -> None:
    """If stdout is closed or full, writing to it must fail, because results would be lost; stderr then discards messages.

    If the reader of a pipe is gone, its output is discarded. Characters that the encoding of a stream lacks become ASCII.
    """
    for descriptor, name, mode in ((1, "stdout", os.O_RDONLY), (2, "stderr", os.O_WRONLY)):
        if getattr(sys, name) is None or not is_open(descriptor):
            null_device = os.open(os.devnull, mode)  # keeps an output file from getting the descriptor of the stream
            setattr(sys, name, open(null_device, "w"))  # noqa: SIM115 (open until the process ends)
        stream = getattr(sys, name)
        if stream is getattr(sys, f"__{name}__"):
            raw = Discarding(descriptor, "w", closefd=False)
            raw.ignored = BrokenPipeError if descriptor == 1 else OSError
            lines = stream.line_buffering or stream.write_through
            stream = io.TextIOWrapper(io.BufferedWriter(raw), stream.encoding, line_buffering=lines)
            setattr(sys, name, stream)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=ENCODING_ERRORS)


def freeze_gc_at_exit() -> None:
    """Skips the last collection, unless DuckDB is loaded: its binding reports objects that are left."""
    if "duckdb" not in sys.modules:
        gc.freeze()


def flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # main() has reported the error of stdout
            stream.flush()


def fast_exit(code: int) -> NoReturn:
    """Ends the process without freeing objects one by one; main() has flushed all output.

    If other threads or DuckDB's binding may still run, the interpreter must end as usual.
    """
    from threading import active_count

    flush()  # output of an interrupted command
    if active_count() > 1 or "duckdb" in sys.modules:
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(code))  # the interpreter would print a traceback
        sys.exit(code)
    atexit._run_exitfuncs()
    flush()
    os._exit(code)
