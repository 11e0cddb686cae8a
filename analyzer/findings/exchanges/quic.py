# SPDX-License-Identifier: Apache-2.0
"""QUIC by what is not encrypted: round trips of the handshake and the spin bit, losses by the bits Q and L."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.cost import BY_COST
from wiretale.analyzer.findings.model import Match, Matches, Words, finding, flow_str, row_at
from wiretale.analyzer.findings.shared.places import packet_at
from wiretale.analyzer.table import integer_in
from wiretale.analyzer.units import plural, show_duration, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.findings.transfers import Transfer, Transfers
    from wiretale.analyzer.rows import HandshakeRow

CHAPTER = "QUIC"
ROWS_MAX = 200  # connections that are examined
SIDES = ("client", "server")
UPSTREAM, DOWNSTREAM = "between sender and capture point", "between capture point and receiver"
NETWORK_ADVICE = "Check drop counters, queues and policers {place}."
CAPTURE_ADVICE = "Check the drop count of the capture, and give it larger buffers, before the network is suspected."


class Losses(NamedTuple):
    """Packets of one side, as in the handshakes table; None is unknown."""

    sent: int
    missing: int
    lost: int | None
    upstream: int | None
    downstream: int | None

    @property
    def contradict(self) -> bool:
        """Whether far more packets are missing in the capture than the sender declared lost."""
        return self.upstream is None

    def words(self) -> Words:
        """Returns `lost 218 of 19,904 1-RTT packets`, ` (1.10%)` and the places."""
        lost, share = self._of_all(self.missing)
        if self.upstream is None:
            declared = f"declared {plural(self.lost or 0, 'packet')} lost, but the capture lacks {lost}"
            return {"lost": declared, "share": share, "places": ""}
        if self.downstream is None:
            return {"lost": f"lost {lost}", "share": share, "places": f" {UPSTREAM}; losses after it are unknown"}
        total = self.upstream + self.downstream
        if not total:
            return {"lost": f"lost none of {plural(self.sent, '1-RTT packet')}", "share": "", "places": ""}
        places = ((self.upstream, UPSTREAM), (self.downstream, DOWNSTREAM))
        parts = [f"{count:,} {place}" if count < total else place for count, place in places if count]
        lost, share = self._of_all(total)
        return {
            "lost": f"lost {lost}",
            "share": share,
            "places": f"{':' if len(parts) > 1 else ''} {' and '.join(parts)}",
        }

    def text(self) -> str:
        """Returns the losses by place."""
        return "".join(self.words().values())

    def _of_all(self, count: int) -> tuple[str, str]:
        return f"{count:,} of {self.sent:,} 1-RTT packets", f" ({show_share(count, self.sent)})"


def losses_of(row: HandshakeRow, direction: int) -> Losses | None:
    """Returns the losses of a direction of the flow; None if the Q bit does not show them."""
    side = SIDES[direction != row["client_direction"]]
    names = ("sent", "missing", "lost", "lost_upstream", "lost_downstream")
    sent, missing, *places = (integer_in(row, f"{side}_{name}") for name in names)
    return None if sent is None or missing is None else Losses(sent, missing, *places)


def round_trips(row: HandshakeRow) -> str:
    """Returns `round trip 20 ms (handshake), 21 ms (spin bit)`; empty if none is known."""
    server, client, spin = row["server_rtt_ns"], row["client_rtt_ns"], row["spin_rtt_ns"]
    if server is not None and client is not None:
        handshake = f"round trip {show_duration(server + client)} (handshake)"
    elif server is not None:
        handshake = f"round trip to the server {show_duration(server)} (handshake)"
    else:
        handshake = f"round trip to the client {show_duration(client)} (handshake)" if client is not None else ""
    return f"{handshake}, {show_duration(spin)} (spin bit)" if spin is not None else handshake


def headline(row: HandshakeRow, transfer: Transfer) -> str:
    """Returns the round trips and losses of a direction in one line."""
    losses = losses_of(row, transfer.row["direction"])
    losses_text = losses.text() if losses else "losses unknown, because QUIC is encrypted"
    return "; ".join(
        filter(None, (plural(transfer.row["data_packets"] or 0, "QUIC datagram"), round_trips(row), losses_text))
    )


def advice_of(losses: Losses) -> str:
    """Returns the advice for the place where most were lost."""
    if losses.contradict:
        return CAPTURE_ADVICE
    return NETWORK_ADVICE.format(place=UPSTREAM if losses.missing >= (losses.downstream or 0) else DOWNSTREAM)


@finding(
    code="quic-lost",
    title="QUIC packets lost",
    severity=BY_COST + "; info if the sender declared far fewer lost than the capture lacks",
    unit="bytes",
    computed="Connections whose short headers have the bits Q and L of RFC 9506 and of "
    "draft-ferrieux-hamchaoui-quic-lossbits, because both ends agreed on them. Q changes after each 64 packets: the "
    "packets that a block lacks were lost before the capture point (handshakes.client_missing, server_missing). "
    "L counts those that the sender declared lost anywhere (client_lost, server_lost); the difference was lost after the "
    "capture point. Q counts only if it is a square wave over 8 blocks or more. The cost is the bytes of the lost packets.",
    unknown="Losses of connections without these bits, which are most. Packets that the capture dropped are missing, "
    "too. Senders may not declare packets lost that hold ACKs alone. A burst longer than a block and a half, and losses "
    "in the first and the last block, do not show.",
    sentence="{name} {lost}[{share}][{places}].",
    summary="lost QUIC packets",
    advice="{what}",
)
def quic_lost(transfers: Transfers) -> Matches:
    table = transfers.trace.handshakes
    names = [f"{side}_{name}" for side in SIDES for name in ("lost", "missing")]
    numbers = sorted({number for counts in table._nonzero(names).values() for number, _ in counts})
    for row in transfers.without_legs(row_at(table, number) for number in numbers[:ROWS_MAX]):
        for direction in range(2):
            losses, side = losses_of(row, direction), SIDES[direction != row["client_direction"]]
            count = losses.missing + (losses.downstream or 0) if losses else 0
            if losses and count:
                flow, sender = (
                    row_at(transfers.trace.flows, row["flow"]),
                    row_at(transfers.trace.directions, 2 * row["flow"] + direction),
                )
                yield Match(
                    "info" if losses.contradict else "warning",
                    flows=[(row["flow"], direction)],
                    cost=None if losses.contradict else float(count * sender["wire_bytes"] / sender["packets"]),
                    cited=packet_at(
                        transfers, flow, integer_in(row, f"{side}_loss_frame"), integer_in(row, f"{side}_loss_ns")
                    ),
                    filter=flow_filter(flow),
                    impact=transfers.traffic_share(sender) * count / losses.sent,
                    name=flow_str(sender),
                    **losses.words(),
                    what=advice_of(losses),
                )
