# SPDX-License-Identifier: Apache-2.0
"""`wiretale analyze --cluster`: its options, folders and result."""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.shards.layout import selection_of
from wiretale.cluster import pool
from wiretale.cluster.place import Place
from wiretale.cluster.progress import progress

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

ADDRESS = re.compile(r"(?:[a-z]+://)?(?:\[[0-9a-fA-F:.%]+\]|[^\s:/\[\]]+)(?::([0-9]{1,5}))?")
PORT = 8786  # of Dask's scheduler
SUFFIX = ".work"  # of the folder that the workers share, beside the output


def address_of(text: str) -> str:
    """Returns `local`, or the address of a scheduler with its port. UsageError if it is neither."""
    found = ADDRESS.fullmatch(text)
    if text == pool.LOCAL:
        return text
    if not found or (found[1] and not 0 < int(found[1]) < 65536):
        raise UsageError(f"--cluster {text}: expected local, or HOST:PORT of a Dask scheduler")
    return text if found[1] else f"{text}:{PORT}"


def check_options(arguments: argparse.Namespace) -> None:
    """Raises UsageError if options contradict --cluster, MissingToolError if Dask is not installed."""
    if arguments.jobs is not None:
        raise UsageError("-j is for one process: use --workers with --cluster local")
    arguments.cluster = address_of(arguments.cluster)
    if arguments.workers and arguments.cluster != pool.LOCAL:
        raise UsageError("--workers is for --cluster local: a scheduler has workers of its own")
    if arguments.cluster != pool.LOCAL and arguments.work is None and arguments.output is None:
        raise UsageError("--cluster with an address needs -o DIR or --work DIR, a folder or URL that its workers share")
    pool.check_library()
    pool.check_listens(arguments.cluster)


@contextmanager
def local_output(arguments: argparse.Namespace) -> Iterator[Callable[[Iterator[Path]], Iterator[Path | str]]]:
    """Makes -o URL a directory. The function takes the paths that are written, copies those files to the URL, and yields where
    they are."""
    if not isinstance(arguments.output, str):
        yield lambda paths: paths
        return
    url = arguments.output.rstrip("/")
    place = Place(url)
    arguments.work = arguments.work if arguments.work is not None else url + SUFFIX
    with tempfile.TemporaryDirectory(prefix="wiretale-") as above:
        folder = arguments.output = Path(above, "output")

        def copied(paths: Iterator[Path]) -> Iterator[Path | str]:
            for path in paths:
                if path != folder and folder not in path.parents:
                    yield path
                    continue
                for file in sorted(path.iterdir()) if path.is_dir() else [path]:
                    place.copy(file, file.relative_to(folder).as_posix())
                yield f"{place}/{path.relative_to(folder).as_posix()}".removesuffix("/.")

        yield copied


@contextmanager
def work_folder(arguments: argparse.Namespace) -> Iterator[Place]:
    """The folder that the workers share. If the command can continue in it, it stays after an error."""
    if arguments.work is None and arguments.output is None:
        with tempfile.TemporaryDirectory(prefix="wiretale-") as folder:
            yield Place(folder)
    else:
        yield Place(arguments.work if arguments.work is not None else f"{arguments.output}{SUFFIX}")


@contextmanager
def result(arguments: argparse.Namespace) -> Iterator[tuple[Trace, dict[int, str]]]:
    """The result of the files, and the captures that were left out. The end of the block removes the working folder."""
    from wiretale.cluster.begin import begin
    from wiretale.cluster.run import Run

    selection = selection_of(arguments.filter, arguments.start, arguments.end)
    chosen = {"max_flows": arguments.max_flows, "block_size": arguments.block_size}
    with work_folder(arguments) as place:
        job, state = begin(place, arguments.files, arguments.shards, selection, chosen)
        with progress(arguments.quiet) as shown:
            if state.continues:
                shown.show(f"continues the run in {place}")
            for text in state.left_out.values():
                shown.warn(f"left out: {text}")
            with pool.connect(arguments.cluster, arguments.workers or pool.cores()) as client:
                trace = Run(client, job, state, shown).trace(arguments.inexact)
        yield trace, state.left_out
        state.remove()
