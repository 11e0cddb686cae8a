# SPDX-License-Identifier: Apache-2.0
"""Connections of HTTP/2 that an end closes by a GOAWAY with an error (RFC 9113 sections 6.8 and 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.services.dialogs import by_ends, facts_of
from wiretale.analyzer.findings.shared.servers import family
from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case

HTTP2 = "HTTP/2 connection"
PINGS = "too_many_pings"
#: words of a GOAWAY: what they mean, and what to do
MEANINGS = {
    PINGS: (
        "{peer} sends keep-alive pings more often than it allows",
        "Let {peer} ping less often (gRPC: keepalive_time, by default a server allows one in 5 min), or let {sender} allow it "
        "(MinTime, permit_keepalive_time).",
    ),
    "ENHANCE_YOUR_CALM": (
        "{peer} costs it too much: pings, resets or settings",
        "See the log of {sender} for its limit, and what {peer} sends so often.",
    ),
    "FLOW_CONTROL_ERROR": ("{peer} sent more than its window allows", "Update the HTTP/2 library of {peer}."),
    "SETTINGS_TIMEOUT": (
        "{peer} did not confirm its settings in time",
        "See whether {peer} speaks HTTP/2 on this port, and whether its process hung.",
    ),
    "COMPRESSION_ERROR": (
        "it could not read the headers of {peer}",
        "Update both libraries; look for a proxy that changes headers.",
    ),
    "INADEQUATE_SECURITY": (
        "the TLS of this connection is too weak for it",
        "Allow TLS 1.2 with ECDHE and AEAD, or TLS 1.3.",
    ),
    "HTTP_1_1_REQUIRED": ("it wants HTTP/1.1", "Let {peer} use HTTP/1.1 with {sender}."),
    "FRAME_SIZE_ERROR": (
        "{peer} sent a frame of a wrong size, or no HTTP/2 at all",
        "See whether {peer} speaks HTTP/2 to a port that expects it.",
    ),
    "PROTOCOL_ERROR": (
        "{peer} sent what it does not expect, or no HTTP/2 at all",
        "See the log of {sender}, and which program {peer} is.",
    ),
    "": ("it failed, or has its reason in its log", "See the log of {sender}."),
}


@cause(
    code="http2-closed",
    title="An end closes HTTP/2 with an error",
    sentence='{sender} ended {count} with {peer} by GOAWAY, "{text}": {meaning}.',
    advice="{advice}",
    shows="A GOAWAY frame in clear with another error than NO_ERROR, at the start of a segment or behind other small frames "
    "in it.",
    rivals={
        "idle-timeout": "a GOAWAY with an error comes first",
        "age-limit": "a server that only wants a new connection says NO_ERROR",
        "reset-by-peer": "it says why it ends the connection",
    },
    unknown="What TLS hides: there, only the FIN or RST behind it is visible.",
    explains=("reset", "request-unanswered"),
)
def http2_closed(case: Case) -> Matches:
    for (sender, peer, text), rows in by_ends(case, HTTP2).items():
        facts = facts_of(case, rows, {int(row["name"] or 0) for row in rows})
        meaning, advice = MEANINGS.get(PINGS if PINGS in text else text.partition(" ")[0], MEANINGS[""])
        yield Match(
            certainty="proven",
            place="client" if is_client(case, facts["flows"][:1], sender) else "server",
            failed=len(rows),
            filter=f"http2.type == 7 && {family(sender)}.src == {sender}",
            proof=f'{plural(len(rows), "GOAWAY")} "{text}"',
            excluded={"age-limit": "it is an error", "idle-timeout": "the GOAWAY came first"},
            sender=sender,
            count=plural(len(rows), "HTTP/2 connection") if len(rows) > 1 else "the HTTP/2 connection",
            peer=peer,
            text=text,
            meaning=meaning.format(sender=sender, peer=peer),
            advice=advice.format(sender=sender, peer=peer),
            **facts,
        )


def is_client(case: Case, flows: Sequence[int], sender: str) -> bool:
    """Returns whether an end opened the first of these flows."""
    return any(case.flow(flow)["destination" if case.flow(flow)["client"] else "source"] == sender for flow in flows)
