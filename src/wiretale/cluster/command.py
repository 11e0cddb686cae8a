# SPDX-License-Identifier: Apache-2.0
"""`wiretale analyze --cluster`: its options, folders and result."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.errors import InputError, UsageError
from wiretale.cluster import pool
from wiretale.cluster.place import Place
from wiretale.cluster.progress import progress

if TYPE_CHECKING:
    from wiretale.analyzer.options import AnalysisOptions
    from wiretale.analyzer.trace import Trace

ADDRESS = re.compile(r"(?:[a-z]+://)?(?:\[[0-9a-fA-F:.%]+\]|[^\s:/\[\]]+)(?::([0-9]{1,5}))?")
PORT = 8786  # of Dask's scheduler
SUFFIX = ".work"  # of the folder that the workers share, beside the output


def address_of(text: str) -> str:
    """Returns `local`, or the address of a scheduler with its port. UsageError if it is neither."""
    address = ADDRESS.fullmatch(text)
    if text == pool.LOCAL:
        return text
    if not address or (address[1] and not 0 < int(address[1]) < 65536):
        raise UsageError(f"--cluster {text}: expected local, or HOST:PORT of a Dask scheduler")
    return text if address[1] else f"{text}:{PORT}"


class ClusterRun(NamedTuple):
    """The options of --cluster."""

    #: `local`, or the address of a scheduler
    address: str
    #: folder or URL that the workers share; None for a temporary folder
    work: str | None
    #: processes of `local`; None for the cores of this machine
    workers: int | None
    #: None for a number by the size of the captures
    shards: int | None


def check_cluster(cluster: ClusterRun, output: Path | str | None) -> ClusterRun:
    """Returns the options with a complete address, and the shared folder beside the output. UsageError if they contradict each
    other, MissingToolError if Dask is not installed."""
    address = address_of(cluster.address)
    if cluster.workers and address != pool.LOCAL:
        raise UsageError("--workers is for --cluster local: a scheduler has workers of its own")
    if address != pool.LOCAL and cluster.work is None and output is None:
        raise UsageError("--cluster with an address needs -o DIR or --work DIR, a folder or URL that its workers share")
    pool.check_library()
    pool.check_listens(address)
    work = cluster.work
    if work is None and output is not None:
        work = str(output).rstrip("/") + SUFFIX
    return cluster._replace(address=address, work=work)


@contextmanager
def local_output(url: str | None) -> Iterator[tuple[Path | None, Callable[[Iterator[Path]], Iterator[Path | str]]]]:
    """The directory that is written for -o URL, None without one. The function takes the paths that are written, copies those
    files to the URL, and yields where they are."""
    if url is None:
        yield None, lambda paths: paths
        return
    place = Place(url.rstrip("/"))
    with tempfile.TemporaryDirectory(prefix="wiretale-") as above:
        folder = Path(above, "output")

        def copied(paths: Iterator[Path]) -> Iterator[Path | str]:
            for path in paths:
                if path != folder and folder not in path.parents:
                    yield path
                    continue
                for file in sorted(path.iterdir()) if path.is_dir() else [path]:
                    place.copy(file, file.relative_to(folder).as_posix())
                yield f"{place}/{path.relative_to(folder).as_posix()}".removesuffix("/.")

        yield folder, copied


@contextmanager
def work_folder(work: str | None) -> Iterator[Place]:
    """The folder that the workers share. If the command can continue in it, it stays after an error."""
    if work is None:
        with tempfile.TemporaryDirectory(prefix="wiretale-") as folder:
            yield Place(folder)
    else:
        yield Place(work)


def check_filter(options: AnalysisOptions) -> None:
    """Raises UsageError if the filter is none of libpcap."""
    from wiretale.analyzer import _core
    from wiretale.analyzer.options import ReadingMode
    from wiretale.analyzer.trace import core_errors

    if options.filter is not None:
        with (
            suppress(InputError),
            core_errors(options.filter),
        ):  # /dev/null is no capture, but the filter is compiled first
            _core.Analysis([os.devnull], [os.devnull], options, ReadingMode())


@contextmanager
def result(
    files: list[str], options: AnalysisOptions, cluster: ClusterRun, quiet: bool
) -> Iterator[tuple[Trace, dict[int, str]]]:
    """The result of the files, and the captures that were left out. The end of the block removes the working folder."""
    from wiretale.cluster.job import begin
    from wiretale.cluster.run import Run

    check_filter(options)
    with work_folder(cluster.work) as place:
        job, continues = begin(place, files, cluster.shards, options)
        with progress(quiet) as display:
            if continues:
                display.show(f"continues the run in {place}")
            with pool.connect(cluster.address, cluster.workers or pool.cores()) as client:
                run = Run(client, job, display)
                trace = run.trace()
        yield trace, run.left_out
        place.remove()
