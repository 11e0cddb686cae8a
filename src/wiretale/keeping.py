# SPDX-License-Identifier: Apache-2.0
"""Store and view(): `wiretale store`, `wiretale watch` and `wiretale view` for programs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from wiretale.analyzer.capture_paths import Paths, expand_paths
from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.options import AnalysisOptions, link_rate, number_within
from wiretale.analyzer.trace import analyze_with, can_reread

if TYPE_CHECKING:
    from typing import Unpack

    from wiretale.analyzer.options import AnalysisKeywords
    from wiretale.reports.store.add import Added

ROWS_MOST = 10_000_000


class StoreRows(NamedTuple):
    """The rows of a query over a store."""

    #: name and type in SQL of each column
    columns: list[tuple[str, str]]
    #: times are text, in UTC
    rows: list[tuple[Any, ...]]


class Store:
    """A folder that keeps the tables of many captures, each once by its content.

    >>> import tempfile, wiretale
    >>> store = wiretale.Store(tempfile.mkdtemp() + "/archive")
    >>> [(added.outcome, added.flows) for added in store.add("sample_pcaps/tcp_losses.pcap", "sample_pcaps/timeouts.pcap")]
    [('added', 1), ('added', 3)]
    >>> store.query("SELECT code, count(*) FROM findings GROUP BY code ORDER BY code LIMIT 1").rows
    [('lost-downstream', 3)]
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def add(self, *captures: Paths, **options: Unpack[AnalysisKeywords]) -> list[Added]:
        """Adds captures, with the options of analyze(); the first ones make the store.

        Each outcome has `path`, `outcome` (added, present, damaged, failed), `reason` and `flows`; a capture that cannot be
        read does not end the others. UsageError if the folder is no store and not empty, or a store with other options;
        OutputError if it cannot be written.
        """
        from wiretale.reports.store.add import add

        return list(add(self.folder, expand_paths(captures, local=True), options=AnalysisOptions.of(options)))

    def query(self, sql: str, limit: int = ROWS_MOST) -> StoreRows:
        """Returns at most `limit` rows of one SELECT over all captures: every table is a view, with `day` and `capture_id`.

        UsageError if the text is no SELECT or fails; InputError if the folder is no store.
        """
        from wiretale.reports.store.views import connect, consistent, select

        most = number_within("limit", limit, 1, ROWS_MOST)

        def answer() -> StoreRows:
            with connect(self.folder, sql) as connection:
                return StoreRows(*select(connection, sql, most, lists=True))

        return consistent(self.folder, answer)

    def watch(self, folder: str | os.PathLike[str], **options: Unpack[AnalysisKeywords]) -> bool:
        """Adds the files of a folder into which a capture is rotated, as `wiretale watch --once` does: those that are complete,
        with flows across files. Call it again for later ones. Returns whether all of them could be read whole.

        UsageError for a store with other options, InputError without the folder, OutputError if it cannot be written.
        """
        from wiretale.reports.store.watch import Notes, Watch
        from wiretale.reports.store.window import LIMITS

        def quiet(text: str) -> None:
            """Nobody reads the progress."""

        watch = Watch(Path(folder), self.folder, LIMITS, AnalysisOptions.of(options), Notes(quiet, quiet))
        try:
            watch.open()
            watch.run(once=True)
        finally:
            watch.close()
        return not watch.damaged


@contextmanager
def view(
    *captures: Paths,
    link: str | None = None,
    port: int = 0,
    **options: Unpack[AnalysisKeywords],
) -> Iterator[str]:
    """Serves the page of `wiretale view` on 127.0.0.1 while the block runs, and gives its address, which holds a secret.

    >>> import urllib.request, wiretale
    >>> with wiretale.view("sample_pcaps/tcp_losses.pcap") as address:
    ...     b"tcp_losses.pcap" in urllib.request.urlopen(address).read()
    True

    InputError or UsageError for captures that cannot be read, or not twice.
    """
    from threading import Thread

    from wiretale.analyzer.index.capture_index import CaptureIndex
    from wiretale.reports.view.answers import Answers
    from wiretale.reports.view.folder import PAGE_FILE, write_view
    from wiretale.reports.view.server import listening

    paths = expand_paths(captures, local=True)
    if not can_reread(paths):
        raise UsageError("view reads packets when they are looked at: expected files, not a pipe or standard input")
    with TemporaryDirectory(prefix="wiretale-view-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        write_view(analyze_with(paths, AnalysisOptions.of(options)), folder, link_rate(link))
        answers = Answers(CaptureIndex(folder))
        with listening(folder / PAGE_FILE, answers.by_path, port) as server:
            thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)
            thread.start()
            try:
                yield server.url
            finally:
                server.shutdown()
                thread.join()
                server.finish_answers()
                answers.close()
