# SPDX-License-Identifier: Apache-2.0
"""view(): the page of captures, served to this machine as `wiretale view` does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from wiretale.analyzer.capture_paths import Paths, expand_paths
from wiretale.analyzer.options import AnalysisOptions, link_rate
from wiretale.analyzer.trace import analyze_with

if TYPE_CHECKING:
    from typing import Unpack

    from wiretale.analyzer.options import AnalysisKeywords


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
    from wiretale.reports.view.folder import PAGE_FILE, refuse_streams, write_view
    from wiretale.reports.view.server import listening

    paths = expand_paths(captures, local=True)
    refuse_streams(paths)
    with TemporaryDirectory(prefix="wiretale-view-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        write_view(analyze_with(paths, AnalysisOptions.of(options)), folder, link_rate(link))
        answers = Answers(CaptureIndex(folder))
        with listening((folder / PAGE_FILE).read_bytes, answers.by_path, port) as server:
            thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)
            thread.start()
            try:
                yield server.url
            finally:
                server.shutdown()
                thread.join()
                server.finish_answers()
                answers.close()
