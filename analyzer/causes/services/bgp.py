# SPDX-License-Identifier: Apache-2.0
"""Sessions of BGP that a router ends by a NOTIFICATION, which says why (RFC 4271 section 4.5, RFC 4486, 9003, 9384)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.services.dialogs import by_ends, facts_of
from wiretale.analyzer.findings.shared.servers import family
from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case

BGP, PORT = "BGP session", 179
HOLD_TIMER, COLLISION = "4/0", "6/7"
SHUT = ("6/2", "6/3", "6/4", "6/9")  # somebody wants it


class Notification(NamedTuple):
    """A code and subcode: its words, what it means for the router that it is sent to, and what to do."""

    text: str
    meaning: str
    advice: str


COMPARE = "Compare the BGP settings of both routers for each other ({sender}, {peer})."
#: code/subcode; a code alone is for its other subcodes
WORDS = {
    "1": Notification("message header error", "it could not read what {peer} sent", COMPARE),
    "2": Notification("OPEN message error", "it does not take the OPEN of {peer}", COMPARE),
    "2/1": Notification("unsupported version", "{peer} speaks another version of BGP", COMPARE),
    "2/2": Notification(
        "bad peer AS",
        "the AS of {peer} is not the one that {sender} has for it",
        "Compare `remote-as` on {sender} with the AS of {peer} (`local-as`, 4-byte AS numbers).",
    ),
    "2/3": Notification(
        "bad BGP identifier", "the router ID of {peer} is 0 or its own", "Give {peer} a router ID of its own."
    ),
    "2/5": Notification("authentication failure", "keys differ", "Compare the keys of both routers."),
    "2/6": Notification("unacceptable hold time", "the hold time of {peer} is too short for it", COMPARE),
    "2/7": Notification(
        "unsupported capability",
        "{peer} lacks a capability or address family that it wants",
        "Compare the address families and capabilities of {sender} and {peer}.",
    ),
    "3": Notification(
        "UPDATE message error",
        "a route of {peer} has attributes that it does not take",
        "Find the route by the data of the NOTIFICATION, and see what {peer} announces.",
    ),
    HOLD_TIMER: Notification(
        "hold timer expired",
        "it got no KEEPALIVE or UPDATE of {peer} within the hold time",
        "Look on {peer} for a busy or stuck BGP process, and between both for lost or too large packets (`ping -M do -s 1472`).",
    ),
    "5": Notification("finite state machine error", "{peer} sent a message that it did not expect", COMPARE),
    "6": Notification("cease", "it ended the session on purpose", "See the log of {sender}."),
    "6/1": Notification(
        "maximum number of prefixes reached",
        "{peer} announces more routes than it allows",
        "See why {peer} announces so many routes, or raise `maximum-prefix` on {sender}.",
    ),
    "6/2": Notification("administrative shutdown", "somebody shut it down there", "Ask who runs {sender}."),
    "6/3": Notification("peer deconfigured", "somebody removed the neighbor there", "Ask who runs {sender}."),
    "6/4": Notification("administrative reset", "somebody reset it there", "Ask who runs {sender}."),
    "6/5": Notification(
        "connection rejected",
        "it does not expect {peer}",
        "See whether {sender} has {peer} as neighbor, with this address.",
    ),
    "6/6": Notification("other configuration change", "its settings were changed", "Ask who runs {sender}."),
    COLLISION: Notification(
        "connection collision resolution", "both had opened a connection, and one is enough", "Nothing is wrong."
    ),
    "6/8": Notification("out of resources", "it lacks memory or CPU", "Look at memory and CPU of {sender}."),
    "6/9": Notification("hard reset", "somebody reset it there", "Ask who runs {sender}."),
    "6/10": Notification(
        "BFD down", "BFD lost {peer}", "Look at the BFD session of {sender} and {peer}, and at the path between them."
    ),
}
UNKNOWN = Notification("an unknown reason", "it gives no known reason", "See the log of {sender}.")


def words_of(code: str) -> Notification:
    """Returns what a NOTIFICATION means, `2/2`."""
    return WORDS.get(code) or WORDS.get(code.partition("/")[0]) or UNKNOWN


@cause(
    code="bgp-closed",
    title="A router ends a BGP session",
    sentence='The router {sender} ended {count} with {peer} by a NOTIFICATION, "{text}": {meaning}.',
    advice="{advice}",
    shows="A BGP NOTIFICATION, at the start of a segment or behind other messages in it. A collision of two connections, of "
    "which one goes on, is a note.",
    rivals={
        "mtu-black-hole": "no large segment stays without an ACK; else the hold timer expires because of it",
        "peer-gone": "the router says why it ends the session",
        "reset-by-peer": "a NOTIFICATION comes first",
    },
    unknown="With a hold timer that expired, why nothing came: the process, its load or the path. The session may be ended by a "
    "NOTIFICATION before the capture began.",
    explains=("reset", "request-unanswered"),
)
def bgp_closed(case: Case) -> Matches:
    vanished = case.flows_of("mtu-black-hole")
    for (sender, peer, code), rows in by_ends(case, BGP).items():
        facts, words = facts_of(case, rows, (PORT,)), words_of(code)
        if code == HOLD_TIMER and vanished.intersection(facts["flows"]):
            continue
        yield Match(
            certainty="proven",
            place="server",
            failed=None if code == COLLISION else len(rows),
            severity="info" if code == COLLISION else "warning" if code in SHUT else None,
            filter=f"bgp.type == 3 && {family(sender)}.src == {sender}",
            proof=f"{plural(len(rows), 'NOTIFICATION')} {code}",
            excluded={"reset-by-peer": "the NOTIFICATION came first", "peer-gone": "it says why"},
            sender=sender,
            count=plural(len(rows), "BGP session") if len(rows) > 1 else "the BGP session",
            peer=peer,
            text=words.text,
            meaning=words.meaning.format(sender=sender, peer=peer),
            advice=words.advice.format(sender=sender, peer=peer),
            **facts,
        )
