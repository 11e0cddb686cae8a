# SPDX-License-Identifier: Apache-2.0
"""The process around a command: SIGTERM, standard streams, garbage collection, and a fast exit."""

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
    from typing import NoReturn

ENCODING_ERRORS = "wiretale.plain"
ARROWS = {"→": "->", "←": "<-"}
PLAIN = {
    **ARROWS,
    **dict.fromkeys("─━╌╍–—−", "-"),
    **dict.fromkeys("│┃", "|"),
    **{"…": "...", "×": "x", "µ": "u", "μ": "u", "·": ".", "≥": ">=", "≤": "<=", "≈": "~", "±": "+-", "’": "'"},
    **{"█": "#", "▲": "!", "✖": "x", "•": "*"},
}
AGAIN_SECONDS = 1.0
terminated = False
interrupted_at = -AGAIN_SECONDS  # time.monotonic()


def interrupt(number: int, frame: object) -> None:
    """Raises KeyboardInterrupt, but not again within a second: it must not interrupt the removal of temporary files."""
    global interrupted_at
    before, interrupted_at = interrupted_at, time.monotonic()
    if interrupted_at - before >= AGAIN_SECONDS:
        raise KeyboardInterrupt


def take_signals() -> None:
    """SIGTERM stops the analysis as Ctrl-C does: results so far are reported, and no partial file is left."""

    def terminate(number: int, frame: object) -> None:
        global terminated
        terminated = True
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a background job of a script: `wiretale … &`
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, terminate)
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, interrupt)


def interrupted_code() -> int:
    """Returns the exit code after an interruption: 130, or 143 after SIGTERM."""
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


def prepare_streams() -> None:
    """If stdout is closed, writing to it must fail, because results would be lost; a closed stderr discards messages.

    Characters that the encoding of a stream lacks become ASCII.
    """
    for descriptor, name, mode in ((1, "stdout", os.O_RDONLY), (2, "stderr", os.O_WRONLY)):
        if getattr(sys, name) is None or not is_open(descriptor):
            held = os.open(os.devnull, mode)  # keeps an output file from getting the descriptor of the stream
            setattr(sys, name, open(held, "w"))  # noqa: SIM115 (open until the process ends)
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=ENCODING_ERRORS)


def close_output() -> None:
    """The reader of stdout is gone: discards buffered output, also at interpreter exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
