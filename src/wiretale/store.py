# SPDX-License-Identifier: Apache-2.0
"""Store: the tables of many captures, as `wiretale store` and `wiretale watch` keep them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wiretale.analyzer.capture_paths import Paths, expand_paths
from wiretale.analyzer.options import AnalysisOptions, number_within

if TYPE_CHECKING:
    from typing import Unpack

    from wiretale.analyzer.options import AnalysisKeywords
    from wiretale.reports.store.add import Added

ROWS_MOST = 10_000_000


class StoreRows(NamedTuple):
    """The rows of a query over a store.

    >>> import tempfile, wiretale
    >>> store = wiretale.Store(tempfile.mkdtemp() + "/archive")
    >>> _ = store.add("sample_pcaps/tcp_losses.pcap")
    >>> store.query("SELECT flow, first_ns FROM flows")
    StoreRows(columns=[('flow', 'BIGINT'), ('first_ns', 'TIMESTAMPTZ_NS')], rows=[(0, '2026-01-15 12:00:00+00')])
    """

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

        >>> import tempfile, wiretale
        >>> store = wiretale.Store(tempfile.mkdtemp() + "/archive")
        >>> [added.outcome for added in store.add("sample_pcaps/tcp_losses.pcap", "sender.pcap")]
        ['added', 'present']
        """
        from wiretale.reports.store.add import add

        return list(add(self.folder, expand_paths(captures, local=True), options=AnalysisOptions.of(options)))

    def query(self, sql: str, limit: int = ROWS_MOST) -> StoreRows:
        """Returns at most `limit` rows of one SELECT over all captures: every table is a view, with `day` and `capture_id`.

        UsageError if the text is no SELECT or fails; InputError if the folder is no store.

        >>> import tempfile, wiretale
        >>> store = wiretale.Store(tempfile.mkdtemp() + "/archive")
        >>> _ = store.add("sample_pcaps/timeouts.pcap")
        >>> store.query("SELECT flow, packets FROM flows ORDER BY flow").rows
        [(0, 66), (1, 67), (2, 118)]
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

        >>> import shutil, tempfile, wiretale
        >>> ring, archive = tempfile.mkdtemp(), tempfile.mkdtemp() + "/archive"
        >>> _ = shutil.copy("sample_pcaps/tcp_losses.pcap", ring)
        >>> wiretale.Store(archive).watch(ring)
        True
        """
        from wiretale.reports.store.watch import Notes, Watch

        def quiet(text: str) -> None:
            """Nobody reads the progress."""

        watch = Watch(Path(folder), self.folder, AnalysisOptions.of(options), Notes(quiet, quiet))
        try:
            watch.open()
            watch.run(once=True)
        finally:
            watch.close()
        return not watch.damaged
