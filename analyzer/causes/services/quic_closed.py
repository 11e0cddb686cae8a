# SPDX-License-Identifier: Apache-2.0
"""QUIC handshakes that the server refuses: by an error in its Initial (RFC 9000 section 10.2.3), or by its versions."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.evidence import SHOWN, Cited
from wiretale.analyzer.findings.exchanges.exchange_rows import named
from wiretale.analyzer.findings.model import endpoint_str
from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.findings.model import Words
    from wiretale.analyzer.rows import HandshakeRow

ROWS_MAX = 20_000
NO_ERROR = "no_error"
UNKNOWN_VERSION = ""  # no error: the client went no further than the list of versions
#: error: what it means; what to do
MEANINGS = {
    "no_application_protocol": (
        "it supports none of the application protocols that the client offers{alpn}",
        "Compare the ALPN of both ends: each version of HTTP/3 has a name of its own (h3, h3-29).",
    ),
    "connection_refused": ("it takes no connection now", "See the log of {server}: it may be overloaded, or stop."),
    "invalid_token": (
        "the token of the client is not valid, as behind a NAT that changes its address or a server that was restarted",
        "Let the client forget the token, and compare the keys of several servers behind one address.",
    ),
    "transport_parameter_error": ("it does not take a parameter of the client", "Update both QUIC libraries."),
    "unrecognized_name": (
        "it has no certificate for the name that was asked for",
        "Check the name (SNI) and the server's sites.",
    ),
    "protocol_violation": ("the client broke the protocol, as it says", "Update the QUIC library of both ends."),
    UNKNOWN_VERSION: (
        "it does not know the client's version, and the client takes none of those that it offers (Version Negotiation)",
        "Compare the QUIC versions of both ends, and update the older one.",
    ),
}
OTHER = ("it gives no further reason", "See the log of {server}.")


class Refused(NamedTuple):
    """A server, how it refuses handshakes, and whether it refused the version of their first Initial."""

    host: str
    port: int
    error: str
    is_renegotiated: bool


def replies_of(case: Case, row: HandshakeRow) -> int:
    """Returns the packets of the server of a handshake."""
    return case.direction(row["flow"], 0 if row["client_direction"] else 1)["packets"]


def ends_of(case: Case, row: HandshakeRow) -> tuple[str | int | None, ...]:
    """Returns the protocol, client, server and port of a handshake: a client may take another version from another port."""
    flow = case.flow(row["flow"])
    ends = flow["source"], flow["destination"], flow["destination_port"]
    return row["protocol"], *((ends[1], ends[0], flow["source_port"]) if row["client_direction"] else ends)


def refusal_of(case: Case, row: HandshakeRow) -> Refused | None:
    """Returns how a server refuses a handshake; None if it does not."""
    flow, is_back = case.flow(row["flow"]), bool(row["client_direction"])
    is_refused = row["alert"] not in (None, NO_ERROR) and row["alert_direction"] != row["client_direction"]
    is_stuck = bool(row["version_negotiation"]) and row["server_hello_frame"] is None and replies_of(case, row) == 1
    if row["protocol"] != "quic" or row["finished_frame"] is not None or not (is_refused or is_stuck):
        return None
    host, port = (flow["source"], flow["source_port"]) if is_back else (flow["destination"], flow["destination_port"])
    error = row["alert"] if is_refused else UNKNOWN_VERSION
    return Refused(host, port or 0, error or "", bool(row["version_negotiation"]) and is_refused)


@cause(
    code="quic-refused",
    title="A server refuses QUIC handshakes",
    sentence="The server {server} refuses {count}{error}: {meaning}{versions}.",
    advice="{advice}",
    shows="The server closes the connection in an Initial, whose error can be read (handshakes.alert), and no handshake "
    "follows. Or it "
    "answers with Version Negotiation, and with nothing else.",
    rivals={
        "quic-dropped": "the server answers",
        "tls-refused": "it refuses over QUIC",
    },
    unknown="What it says behind the Initials: those packets cannot be read without keys.",
    explains=("one-way",),
)
def quic_refused(case: Case) -> Matches:
    groups: dict[Refused, list[HandshakeRow]] = defaultdict(list)
    handshakes = case.transfers.without_legs(case.trace.handshakes.rows(0, ROWS_MAX))
    accepted = {ends_of(case, row) for row in handshakes if not row["version_negotiation"] and replies_of(case, row)}
    for row in handshakes:
        refusal = refusal_of(case, row)
        if refusal and (refusal.error or ends_of(case, row) not in accepted):
            groups[refusal].append(row)
    for refusal, rows in groups.items():
        yield refused_match(case, refusal, rows, sum(is_with(case, row, refusal) for row in handshakes))


def is_with(case: Case, row: HandshakeRow, refusal: Refused) -> bool:
    """Returns whether a handshake of QUIC is with this server and port."""
    flow = case.flow(row["flow"])
    ends = (flow["source"], flow["source_port"]), (flow["destination"], flow["destination_port"])
    return row["protocol"] == "quic" and (refusal.host, refusal.port) in ends


def count_str(refused: int, total: int) -> str:
    """Returns `the QUIC handshake`, `all 6 QUIC handshakes`, `3 of 8 QUIC handshakes`."""
    if refused < total:
        return f"{refused:,} of {plural(total, 'QUIC handshake')}"
    return "the QUIC handshake" if refused == 1 else f"all {refused:,} QUIC handshakes"


def refused_match(case: Case, refusal: Refused, rows: Sequence[HandshakeRow], total: int) -> Match:
    """Returns the match of handshakes that one server refuses alike, of all with it."""
    flows = [case.flow(row["flow"]) for row in rows]
    frames = [
        Cited(row["alert_frame"] or row["client_hello_frame"] or 0, row["alert_ns"], row["flow"], flow["first_capture"])
        for row, flow in zip(rows[:SHOWN], flows, strict=False)
    ]
    return Match(
        certainty="proven",
        place="server",
        flows=[row["flow"] for row in rows],
        failed=len(rows),
        attempts=total,
        frames=frames if case.transfers.has_one_file else [],
        filter=" or ".join(flow_filter(flow) for flow in flows[:SHOWN]),
        proof=f"CONNECTION_CLOSE with {refusal.error} in an Initial"
        if refusal.error
        else "Version Negotiation, and no Initial of the server",
        excluded={"quic-dropped": "the server answers"},
        count=count_str(len(rows), total),
        **words_of(refusal, rows),
    )


def in_brackets(texts: Sequence[str | None]) -> str:
    """` (h3-29)`, empty without a text."""
    known_texts = [text for text in texts if text]
    return f" ({named(known_texts, 1)})" if known_texts else ""


def words_of(refusal: Refused, rows: Sequence[HandshakeRow]) -> Words:
    """Returns the words of the sentence and the advice."""
    meaning, advice = MEANINGS.get(refusal.error, OTHER)
    return {
        "server": endpoint_str(refusal.host, refusal.port) + in_brackets([row["server_name"] for row in rows]),
        "error": f" with {refusal.error}" if refusal.error else "",
        "meaning": meaning.format(alpn=in_brackets([row["alpn"] for row in rows])),
        "versions": ", after it had refused the client's version (Version Negotiation)"
        if refusal.is_renegotiated
        else "",
        "advice": advice.format(server=refusal.host),
    }
