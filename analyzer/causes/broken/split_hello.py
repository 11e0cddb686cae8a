# SPDX-License-Identifier: Apache-2.0
"""Servers, or devices before them, that do not take a TLS ClientHello in two segments."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import filter_of, server_str, times_str
from wiretale.analyzer.findings.cost import Span, union_ns
from wiretale.analyzer.findings.evidence import SHOWN
from wiretale.analyzer.units import plural, show_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.causes.connections import Connection, End
    from wiretale.analyzer.findings.model import Words
    from wiretale.analyzer.rows import ExchangeRow

CASES_MIN, CASES_PROVEN = 2, 4  # on each side of the size, without an exception
UNHEARD = ("dropped", "cut")  # fates that show alone that the last segment does not arrive
TAIL_MAX = 1200  # bytes of the last segment: so small a one passes where a full one is too large
HELLOS_MAX, TIMEOUTS_MIN = 5_000, 2
BEGUN_NS = 2_000_000_000  # from the answer to STARTTLS to the hello
EFFECTS = (
    *("request-unanswered", "reset", "timeout-stalls", "retransmission-unlocated", "retransmission-cost", "half-open"),
    *("lost-downstream", "suspected-timeout", "path-mtu-black-hole", "loss-pattern", "slow-server"),
)


class Hello(NamedTuple):
    """A ClientHello, and what came of it."""

    flow: int
    size: int
    unit: int  # bytes of a full segment
    wait: Span
    fate: str  # "" if it was answered

    @property
    def is_split(self) -> bool:
        """Whether it takes more than one segment."""
        return self.size > self.unit


def hello_of(case: Case, row: ExchangeRow) -> Hello | None:
    """Returns the ClientHello that begins an exchange; None if its fate is unknown."""
    connection = case.connections[row["flow"] or 0]
    sent, asked_ns = connection.directions[connection.client_side], row["asked_ns"] or 0
    fate = FATE_OF.get(row["outcome"])
    if fate is None or (fate == "acknowledged" and sent["unacked_bytes"]):
        return None
    wait = Span(asked_ns, asked_ns + (row["waited_ns"] or 0))
    return Hello(connection.number, row["request_bytes"] or 0, unit_of(connection), wait, fate)


def unit_of(connection: Connection) -> int:
    """Returns the bytes of a full segment; 0 if they are unknown."""
    return min(row["mss"] or 0 for row in connection.directions)


def dropped_hello(connection: Connection) -> Hello | None:
    """Returns the ClientHello of a connection of which nothing was acknowledged, or only what was full, and not its short last
    segment, which passes where a full one is too large; None if it has none."""
    sent, unit = connection.directions[connection.client_side], unit_of(connection)
    size, is_heard = sent["unique_bytes"] or 0, connection.directions[connection.server_side]["unique_bytes"]
    if is_heard or not unit or not 0 < size % unit < TAIL_MAX or (sent["timeouts"] or 0) < TIMEOUTS_MIN:
        return None
    fate = {size: "dropped", size % unit: "cut"}.get(sent["unacked_bytes"] or 0)
    if fate is None or (fate == "dropped" and sent["acked_segment_max"]):
        return None
    return Hello(connection.number, size, unit, Span(connection.flow["first_ns"] or 0, sent["last_ns"] or 0), fate)


def after_starttls(case: Case) -> Iterator[ExchangeRow]:
    """Yields the exchanges that begin right after the answer to a STARTTLS."""
    begun: dict[tuple[str | None, str | None], list[int]] = defaultdict(list)
    for row in case.exchanges("kind", "service"):
        if row["name"] == "STARTTLS" and row["answered_ns"] is not None:
            begun[row["client"], row["server"]].append(row["answered_ns"])
    seen: set[int | None] = set()
    for row in case.exchanges("kind", "turn") if begun else []:
        since = [(row["asked_ns"] or 0) - ns for ns in begun[row["client"], row["server"]]]
        if any(0 <= ns <= BEGUN_NS for ns in since) and row["flow"] not in seen:
            seen.add(row["flow"])
            yield row


def hellos_of(case: Case) -> dict[End, list[Hello]]:
    """Returns the ClientHellos by server whose fate is known."""
    rows = [row for row in (*case.exchanges("kind", "tls"), *after_starttls(case)) if row["flow"] is not None]
    with_row = {row["flow"] for row in rows}
    silent = [flow for flow in case.transfers.flows_where("application", "tls") if flow not in with_row]
    hellos = [hello_of(case, row) for row in rows[:HELLOS_MAX]]
    hellos += [dropped_hello(case.connections[flow]) for flow in silent[:HELLOS_MAX]]
    by_server: dict[End, list[Hello]] = defaultdict(list)
    for hello in hellos:
        if hello and hello.unit:
            by_server[case.connections[hello.flow].server].append(hello)
    return by_server


PASSED = "the short last segment passed, or nothing of the connection does any more"
SHORT_TEST = "a short ClientHello (`openssl s_client -groups X25519 -connect {server}:PORT`): is it answered?"
#: by outcome of the exchange
FATE_OF = {
    "answered": "",
    "unanswered": "acknowledged",
    "abandoned": "acknowledged",
    "reset": "reset",
    "closed": "closed",
}
FATES = {
    "acknowledged": "were acknowledged, and nothing came back",
    "dropped": "were not acknowledged, not even their short last segment",
    "cut": "were acknowledged but for their short last segment",
    "reset": "were reset",
    "closed": "met the close of the connection",
}


def fate_words(failed: list[Hello]) -> Words:
    """Returns what came of the ClientHellos, and who does not take them."""
    fates = [hello.fate for hello in failed]
    fate = max(FATES, key=fates.count)
    wait = f" in {times_str([hello.wait.ns for hello in failed])}" if fate == "acknowledged" else ""
    who = "A firewall or content filter before it" if fate in UNHEARD else "Its TLS library, or a device before it,"
    return {"fate": FATES[fate] + wait, "who": who}


@cause(
    code="split-hello",
    title="A ClientHello in two segments is not taken",
    sentence="{server} {accepts} a ClientHello in two segments: {count} of {sizes} {fate}, {beside}. {who} {probably}does not "
    "put the pieces together{or_drops}.",
    advice="Update or bypass what terminates or filters TLS before {host}. Until then make the hello smaller: without "
    "post-quantum key shares (X25519MLKEM768: `-groups X25519`; Chrome: policy PostQuantumKeyAgreementEnabled).",
    shows="All ClientHellos to a server that take more than one segment fail (no answer, RST or FIN), at least two, and all "
    "that fit into one segment are answered, at least two; four of each prove it. Of those without an ACK, the short last "
    "segment is not acknowledged by SACK either; then it is possible without a short one, too.",
    rivals={
        "mtu-black-hole": "the hello was acknowledged, or its short last segment got no ACK either",
        "hung-server": "the size separates the hellos that are answered from the others",
        "random-loss": "the size separates them",
    },
    unknown="Whether the server itself or a device before it does not read them.",
    explains=EFFECTS,
)
def split_hello(case: Case) -> Matches:
    for hellos in case.once(hellos_of).values():
        failed, short = [each for each in hellos if each.fate], [each for each in hellos if not each.fate]
        are_compared = min(len(failed), len(short)) >= CASES_MIN and are_separated(failed, short)
        if are_compared or (len(failed) >= CASES_MIN and not short and all(each.fate in UNHEARD for each in failed)):
            case.claimed.update(each.flow for each in failed)
            yield split_match(case, failed, short)


def are_separated(failed: list[Hello], short: list[Hello]) -> bool:
    """Returns whether the size separates ClientHellos without an exception."""
    return all(each.is_split for each in failed) and not any(each.is_split for each in short)


def split_match(case: Case, failed: list[Hello], short: list[Hello]) -> Match:
    """Returns the match of one server."""
    sizes, connections = sorted(each.size for each in failed), [case.connections[each.flow] for each in failed]
    return Match(
        place="device" if failed[0].fate in UNHEARD else "server",
        flows=[each.flow for each in failed],
        failed=len(failed),
        attempts=len(failed) + len(short),
        waited_ns=union_ns(each.wait for each in failed),
        frames=[packet for each in failed[:SHOWN] for packet in case.transfers.span(each.flow)[:1]],
        filter=filter_of(connections),
        server=server_str(connections),
        host=connections[0].server[0],
        count=len(failed),
        sizes=show_bytes(sizes[len(sizes) // 2]),
        **fate_words(failed),
        **(compared(failed, short) if short else alone(failed, connections[0].server[0])),
    )


def compared(failed: list[Hello], short: list[Hello]) -> Words:
    """Returns certainty, rivals and words if short ClientHellos were answered."""
    certain, by_size = min(len(failed), len(short)) >= CASES_PROVEN, "the size separates them without an exception"
    small, least = show_bytes(max(each.size for each in short)), show_bytes(min(each.size for each in failed))
    return {
        "certainty": "proven" if certain else "likely",
        "proof": f"{plural(len(failed), 'ClientHello')} of {least} or more failed, {len(short):,} of {small} or less were "
        "answered",
        "excluded": {"mtu-black-hole": PASSED, "hung-server": by_size} | ({"random-loss": by_size} if certain else {}),
        "undecided": {} if certain else {"random-loss": "more connections: whether the size separates all of them"},
        "accepts": "does not accept",
        "beside": f"while {len(short):,} of one segment (up to {small}) were answered",
        "or_drops": "",
    }


def alone(failed: list[Hello], server: str) -> Words:
    """Returns certainty, rivals and words without a short ClientHello."""
    least = show_bytes(min(each.size for each in failed))
    return {
        "certainty": "possible" if failed[0].fate == "dropped" else "likely",
        "proof": f"{plural(len(failed), 'ClientHello')} of {least} or more failed, none was answered",
        "excluded": {"mtu-black-hole": PASSED, "hung-server": "the last segment was not acknowledged"},
        "undecided": {"peer-gone": SHORT_TEST.format(server=server)},
        "accepts": "may not accept",
        "beside": "and no short one was sent",
        "or_drops": ", or it drops them for their name",
    }


def size_rival(case: Case, flows: Sequence[int]) -> tuple[bool, str] | None:
    """Returns whether these connections, whose request got no answer, exclude that the size of their ClientHello matters, and the
    fact, or the test that would decide; None if they have none."""
    hellos = case.once(hellos_of)
    hellos_sent = [
        each for server in {case.connections[flow].server for flow in flows} for each in hellos.get(server, [])
    ]
    if not any(each.flow in flows for each in hellos_sent):
        return None
    if any(not each.is_split for each in hellos_sent if each.fate):
        return True, "a ClientHello of one segment got no answer either"
    if any(each.is_split for each in hellos_sent if not each.fate):
        return True, "a ClientHello of two segments was answered"
    return False, SHORT_TEST.format(server=case.connections[flows[0]].server[0])
