# SPDX-License-Identifier: Apache-2.0
"""An analysis that goes on: files are read one after another, and between two of them the flows that ended are taken, so that
a flow crosses files, and memory is that of open flows.
"""

from __future__ import annotations

from array import array

from wiretale.analyzer import _core
from wiretale.analyzer.options import AnalysisOptions, ReadingMode
from wiretale.analyzer.trace import Trace, add_findings, core_errors, read_all

FRAME_BITS = 40  # pipeline/analysis.h


class Running:
    """Files of one capture, in order of time.

    >>> from wiretale.analyzer.options import NO_OPTIONS
    >>> running = Running(NO_OPTIONS)
    >>> running.read("sample_pcaps/tcp_losses.pcap")
    >>> len(running.take().flows), len(running.open_flows()), len(running.finish().flows)
    (0, 1, 1)
    """

    def __init__(self, options: AnalysisOptions) -> None:
        self.options = options
        #: all files that were read; open flows have their places in it
        self.paths: list[str] = []
        self._core: _core.Analysis | None = None

    def read(self, path: str) -> None:
        """Reads a further file, after take() or skip(). InputError if it is no capture, after which others may follow."""
        with core_errors():
            if self._core is None:
                self._core = _core.Analysis([path], [path], self.options, ReadingMode(running=True))
            else:
                self._core.follow([path], [path])
            self.paths.append(path)
            if read_all(self._core, None):
                raise KeyboardInterrupt

    def take(self, causes: bool = True) -> Trace:
        """Returns the flows that ended since the last call, numbered from 0 on, what belongs to no flow, and the interfaces of
        the files that were read since, then those of earlier files that rows name."""
        return traced(self.ended(), self.options, causes)

    def ended(self) -> _core.Analysis:
        """Returns the same without findings."""
        with core_errors():
            return self._running.take()

    def finish(self, causes: bool = True) -> Trace:
        """Ends all flows and returns them as take(). No file may follow."""
        return traced(self.still_open(), self.options, causes)

    def still_open(self) -> _core.Analysis:
        """Returns the same without findings."""
        with core_errors():
            self._running.finish()
        return self._running

    def open_flows(self) -> array[int]:
        """Returns the first packet of each open flow, in rising order: the place of its file in `paths`, then the frame in the
        lower FRAME_BITS."""
        return array("Q", self._running.open_flows())

    def skip(self) -> _core.Table:
        """Forgets the flows that ended since the last call. Returns the interfaces of take()."""
        return self.ended().table("interfaces")

    def keep_flows(self, flows: array[int]) -> None:
        """Forgets the open flows that are not among these."""
        self._running.keep_flows(flows.tobytes())
        self.skip()

    @property
    def _running(self) -> _core.Analysis:
        if self._core is None:
            raise RuntimeError("no file was read")
        return self._core


def traced(core: _core.Analysis, options: AnalysisOptions, causes: bool = True) -> Trace:
    """Returns rows that were taken, with relations, findings and, if they are wanted, causes."""
    with core_errors():
        files = core.table("interfaces").column("file")
        trace = Trace(core, dict.fromkeys(files), options)
    add_findings(trace, causes)
    return trace
