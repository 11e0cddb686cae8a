# SPDX-License-Identifier: Apache-2.0
"""One flow of a Trace: its row, directions, packets and findings."""

from __future__ import annotations

TYPE_CHECKING = False  # as typing has it, whose import takes 2 ms
if TYPE_CHECKING:
    from typing import Any

    from plotly.graph_objects import Figure

    from wiretale.analyzer.rows import DirectionRow, FindingRow, FlowRow, PacketRow
    from wiretale.analyzer.table import Table
    from wiretale.analyzer.trace import Trace

FIGURE_POINTS = 20_000  # of a figure, unless the caller asks for more


class Flow:
    """One flow of a Trace, which trace.flow(number) returns.

    >>> import wiretale
    >>> flow = wiretale.analyze("sample_pcaps/tcp_losses.pcap").flow(0)
    >>> flow
    <wiretale.Flow 0: tcp 192.0.2.10:40110 → 198.51.100.20:5201, 342 packets>
    >>> flow["state"], len(flow.packets()), len(flow.findings())
    ('closed', 342, 3)
    """

    def __init__(self, trace: Trace, number: int) -> None:
        #: the Trace
        self.trace = trace
        #: the number of its row in the flows table
        self.number = number
        #: its row in the flows table
        self.row: FlowRow = trace.flows[number]

    def __getitem__(self, column: str) -> Any:
        """Returns a column of its row."""
        return dict(self.row)[column]

    @property
    def name(self) -> str:
        """Protocol and endpoints: `tcp 192.0.2.1:40110 → 198.51.100.2:443`."""
        source = endpoint(self.row["source"], self.row["source_port"])
        return f"{self.row['protocol']} {source} → {endpoint(self.row['destination'], self.row['destination_port'])}"

    @property
    def directions(self) -> list[DirectionRow]:
        """Both directions: that of the initiator, then the other."""
        return self.trace.directions[2 * self.number : 2 * self.number + 2]

    def packets(self) -> Table[PacketRow]:
        """Returns its packets, by a second pass over the files; raises the errors of Trace.packets().

        >>> import wiretale
        >>> wiretale.analyze("sample_pcaps/tcp_losses.pcap").flow(0).packets()[-1]["frame"]
        342
        """
        return self.trace.packets(self.number)

    def findings(self) -> list[FindingRow]:
        """Returns its findings, the most severe first.

        >>> import wiretale
        >>> [row["code"] for row in wiretale.analyze("sample_pcaps/tcp_losses.pcap").flow(0).findings()]
        ['lost-downstream', 'timeout-stalls', 'recovery-limited']
        """
        return [row for row in self.trace.findings if row["flow"] == self.number]

    def plot(self, *panels: str, most: int | None = FIGURE_POINTS) -> Figure:
        """Returns the figure of Trace.figure(), which a notebook shows.

        >>> import wiretale
        >>> len(wiretale.analyze("sample_pcaps/tcp_losses.pcap").flow(0).plot("rtt").data) > 0
        True
        """
        return self.trace.figure(self.number, *panels, most=most)

    def __repr__(self) -> str:
        from wiretale.analyzer.units import plural

        return f"<wiretale.Flow {self.number}: {self.name}, {plural(self.row['packets'], 'packet')}>"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<p>{escape(repr(self))}</p>{self.trace._sketch(self.number)}"


def endpoint(host: str, port: int | None) -> str:
    """Returns an address with its port; that of IPv6 in brackets."""
    from wiretale.analyzer.printable import printable

    text = printable(host)
    if port is None:
        return text
    return f"[{text}]:{port}" if ":" in text else f"{text}:{port}"
