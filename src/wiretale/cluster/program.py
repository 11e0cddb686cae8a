# SPDX-License-Identifier: Apache-2.0
"""Steps as a process of their own, on a worker: a capture that ends it ends neither the worker nor other steps.

The process dies with its worker, even one that is killed, and with its task, if the run is interrupted. It writes one line of
JSON for each step when the step has ended, so that the worker can name the step at which the process died.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from wiretale.analyzer.errors import InputError, WiretaleError
from wiretale.analyzer.options import AnalysisOptions

SPLIT, LEAVE_OUT, ANALYZE = "split", "leave out", "analyze"
DONE, INPUT, STOP, FAULT = "done", "input", "stop", "fault"
ENDING = ("closing", "closed", "failed")  # states of a worker
POLL_SECONDS = 0.2
OUTPUT_MOST = 1 << 24  # bytes
EMPTY = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)  # a pcapng file of a section header alone
# The process asks the kernel for SIGKILL at the death of its parent, which may have died before. With -P, it imports nothing
# from the directory of the captures.
START = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
if os.getppid() != int(sys.argv[1]):
    os._exit(1)
from wiretale.cluster.program import serve
serve(*sys.argv[2:])
"""


class Stopped(Exception):
    """The task of a step was canceled."""


class Ended(NamedTuple):
    """How a step ended: DONE; INPUT and STOP, with an error of wiretale; FAULT, with a reason that another try may not meet."""

    number: int
    state: str
    text: str = ""


def leave_out(folder: str, file: int) -> None:
    """Splits an empty capture in place of one that cannot be read, so that the others keep their numbers."""
    from wiretale.analyzer.shards import layout, steps
    from wiretale.version import __version__

    split = layout.open_split(folder)
    with tempfile.NamedTemporaryFile(suffix=".pcapng") as empty:
        empty.write(EMPTY)
        empty.flush()
        files = [*split.files[:file], empty.name, *split.files[file + 1 :]]
        parts = [layout.partial_path(split.folder, f"{file:06}-{shard:02}") for shard in range(split.shards)]
        try:
            facts = steps.write_shards(split._replace(files=files), file, parts, __version__)
            for shard, part in enumerate(parts):
                split.shard_folder(shard).mkdir(exist_ok=True)
                part.replace(split.packets_path(file, shard))
        finally:
            for part in parts:
                part.unlink(missing_ok=True)
    layout.write_facts(split, file, facts)


def one_step(kind: str, folder: str, number: int, options: AnalysisOptions) -> None:
    """Runs a step in the folder of a split."""
    from wiretale.analyzer.shards import steps
    from wiretale.version import __version__

    if kind == SPLIT:
        steps.split_file(folder, number, __version__)
    elif kind == LEAVE_OUT:
        leave_out(folder, number)
    else:
        steps.analyze_shard(folder, number, options)


def serve(kind: str, folder: str, numbers: str, options: str) -> None:
    """Runs steps and writes how each ended, in the process that run() starts."""
    for number in json.loads(numbers):
        ended = Ended(number, DONE)
        try:
            one_step(kind, folder, number, AnalysisOptions.from_json(json.loads(options)))
        except InputError as error:
            ended = Ended(number, INPUT, str(error))
        except WiretaleError as error:
            ended = Ended(number, STOP, str(error))
        except (OSError, MemoryError, RuntimeError) as error:
            ended = Ended(number, FAULT, str(error) or type(error).__name__)
        print(json.dumps(ended), flush=True)


def run(
    kind: str,
    folder: Path,
    numbers: Sequence[int],
    options: AnalysisOptions,
    directory: str | None,
    is_stopped: Callable[[], bool],
) -> list[Ended]:
    """Runs steps in a process; `directory` is that of relative names. Raises Stopped if `is_stopped` returns true meanwhile.

    If the process dies, the step at which it died has that fault, and the steps after it are not in the result.
    """
    words = [kind, str(folder), json.dumps(list(numbers)), json.dumps(options._asdict())]
    command = [sys.executable, "-P", "-c", START, str(os.getpid()), *words]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as messages:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=messages, cwd=directory)
        try:
            while process.poll() is None:
                if is_stopped():
                    raise Stopped
                try:
                    process.wait(POLL_SECONDS)
                except subprocess.TimeoutExpired:
                    continue
        finally:
            process.kill()
            process.wait()
        outcomes = [Ended(*json.loads(line)) for line in lines_of(out)]
        if len(outcomes) < len(numbers):
            last = (lines_of(messages) or [f"its process ended with {process.returncode}"])[-1]
            outcomes.append(Ended(numbers[len(outcomes)], FAULT, last.strip()))
        return outcomes


def lines_of(file: Any) -> list[str]:
    """Returns the whole lines of an output."""
    file.seek(0)
    text = file.read(OUTPUT_MOST).decode(errors="replace")
    return [line for line in text.splitlines(keepends=True) if line.endswith("\n") and line.strip()]


def canceled() -> Callable[[], bool]:
    """Returns a function that returns whether the running task was canceled, or its worker ends."""
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()

    def is_canceled() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state == "cancelled" or worker.status.name in ENDING

    return is_canceled
