# SPDX-License-Identifier: Apache-2.0
"""Datagrams in fragments that do not arrive whole: a device that drops the later fragments, or loss that fragments multiply."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import grouped
from wiretale.analyzer.findings.evidence import CITED, SHOWN, Cited
from wiretale.analyzer.findings.fragmentation import FILTER
from wiretale.analyzer.findings.model import endpoint_str
from wiretale.analyzer.units import plural, show_bytes, show_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case, Numbered
    from wiretale.analyzer.rows import DatagramRow

DATAGRAMS_MAX = 20_000
DROPPED_MIN = 3  # datagrams; two may be chance
EXCEPTIONS = 0.03  # of the datagrams of a device that drops fragments
#: a capture filter by port passes first fragments only, because later ones have no ports
FILTERED = "Capture again with `or ip[6:2] & 0x1fff != 0` in the filter: a filter by port stores first fragments alone."
EFFECTS = ("datagram-incomplete", "loss-amplified", "blocks-lost", "fragmentation", "dns-unanswered")


class Pair(NamedTuple):
    """The fragmented datagrams from one host to another."""

    source: str
    destination: str
    datagrams: list[DatagramRow]

    @property
    def incomplete(self) -> list[DatagramRow]:
        """Those of which fragments are missing."""
        return [row for row in self.datagrams if row["state"] == "incomplete"]

    @property
    def is_first_alone(self) -> bool:
        """Whether first fragments arrive, and none of the later ones of nearly all datagrams."""
        alone = sum(row["fragments"] - row["duplicates"] == 1 and bool(row["missing_from"]) for row in self.incomplete)
        return alone >= DROPPED_MIN and alone >= (1 - EXCEPTIONS) * len(self.datagrams)


def pairs_of(case: Case) -> list[Pair]:
    """Returns the fragmented datagrams by their hosts."""
    rows = case.transfers.without_legs(case.trace.datagrams.rows(0, DATAGRAMS_MAX))
    by_hosts = grouped(rows, lambda row: (row["source"], row["destination"]))
    return [Pair(*hosts, datagrams) for hosts, datagrams in by_hosts.items()]


def fragment_cited(rows: Sequence[DatagramRow]) -> list[Cited]:
    """Returns the first fragments of the first of these datagrams."""
    return [Cited(row["first_frame"], row["first_ns"], row["flow"], row["capture"], CITED) for row in rows[:SHOWN]]


def whole_datagrams(case: Case, pair: Pair) -> int:
    """Returns the datagrams between the hosts that needed no fragments and arrived in that direction."""
    flows = {flow for row in pair.datagrams if (flow := row["flow"]) is not None}
    sides = {(row["flow"], row["direction"] or 0) for row in pair.datagrams if row["flow"] in flows}
    rows = (case.direction(flow, direction) for flow, direction in sides if flow is not None)
    return sum(max(row["packets"] - row["fragments"], 0) for row in rows)


def lost_str(lost: int, total: int) -> str:
    """Returns `all 7 fragmented datagrams`, or `6 of 7 fragmented datagrams`."""
    return f"{'all' if lost == total else f'{lost:,} of'} {plural(total, 'fragmented datagram')}"


@cause(
    code="fragments-dropped",
    title="A device drops all fragments but the first",
    sentence="A device before the capture point {probably}drops IP fragments: {lost} from {source} arrived with only the "
    "first fragment{beside}.",
    advice="Send messages that fit the path MTU, or use TCP (SIP: RFC 3261 section 18.1.1; DNS: an EDNS size of 1,232; IKE: RFC "
    "7383), or let the firewall pass or reassemble fragments (RFC 8900).",
    shows="Of at least three fragmented datagrams from one host to another, the first fragment arrives and no later one, with "
    "at most 3% exceptions.",
    rivals={
        "fragment-loss": "no datagram in fragments is complete, and always the later ones are missing",
        "mtu-black-hole": "the packets may be fragmented (no DF)",
        "capture-drops": "the file has later fragments of other datagrams",
    },
    unknown="Whether a capture filter by port hides the later fragments, unless the file has others. "
    "Which device: a capture at the sender's side of each firewall shows where the later fragments end.",
    explains=EFFECTS,
)
def fragments_dropped(case: Case) -> Matches:
    pairs = pairs_of(case)
    are_stored = any(row["fragments"] > 1 for pair in pairs for row in pair.datagrams)
    for pair in pairs:
        if not pair.is_first_alone:
            continue
        lost, complete = pair.incomplete, whole_datagrams(case, pair)
        yield Match(
            certainty="proven" if are_stored else "likely",
            place="before",
            findings=findings_about(case, pair),
            flows=flows_of(pair.datagrams),
            failed=len(lost),
            attempts=len(pair.datagrams),
            bytes=sum(row["received_bytes"] for row in lost),
            members=len(lost),
            frames=fragment_cited(lost),
            packets=len(lost),
            filter=f"ip.addr == {pair.source} && ip.addr == {pair.destination} && ({FILTER})",
            proof="the fragment index separates what is lost from what passes",
            excluded={"fragment-loss": f"{len(lost)} of {len(pair.datagrams)} lack the same fragments"},
            undecided={} if are_stored else {"capture-drops": FILTERED},
            lost=lost_str(len(lost), len(pair.datagrams)),
            source=pair.source,
            beside=f", while all {plural(complete, 'datagram')} without fragments arrived" if complete else "",
        )


def findings_about(case: Case, pair: Pair) -> list[Numbered]:
    """Returns the findings about fragments, if most of the incomplete datagrams are of these hosts."""
    incomplete = len(case.trace.datagrams._rows_where("state", "incomplete"))
    return case.findings("loss-amplified", "datagram-incomplete") if 2 * len(pair.incomplete) > incomplete else []


def flows_of(rows: Sequence[DatagramRow]) -> list[int]:
    """Returns the flows of datagrams."""
    return sorted({flow for row in rows if (flow := row["flow"]) is not None})


@cause(
    code="fragment-loss",
    title="Lost fragments cost whole datagrams",
    sentence="{p} of the fragments from {source} were lost before the capture point, which cost {share} of its datagrams: each "
    "needs all {each} of its fragments, so {multiple} times as many are lost.",
    advice="Send datagrams that fit the path MTU (`iperf3 -l 1448`, at most 1,472 bytes over IPv4): then one lost packet costs "
    "one datagram.",
    shows="At least three datagrams between two hosts are incomplete; any fragment may be missing. p is the share of missing "
    "fragments, counted by the usual number in a complete datagram. 1-(1-p)^n is the share of datagrams that independent "
    "losses cost.",
    rivals={
        "fragments-dropped": "datagrams in fragments do arrive",
        "random-loss": "whole datagrams are lost, not fragments of them",
        "mtu-black-hole": "the packets may be fragmented, and large ones arrive",
    },
    unknown="Datagrams of which no fragment arrived.",
    explains=EFFECTS,
)
def fragment_loss(case: Case) -> Matches:
    for pair in pairs_of(case):
        lost = pair.incomplete
        complete = [row["fragments"] for row in pair.datagrams if row["state"] == "complete"]
        if len(lost) < DROPPED_MIN or not complete or pair.is_first_alone:
            continue
        each = round(sum(complete) / len(complete))
        missing = each * len(pair.datagrams) - sum(row["fragments"] - row["duplicates"] for row in pair.datagrams)
        if each < 2 or missing <= 0:
            continue
        p, share = missing / (each * len(pair.datagrams)), len(lost) / len(pair.datagrams)
        yield Match(
            certainty="proven",
            place="before",
            findings=findings_about(case, pair),
            flows=flows_of(pair.datagrams),
            attempts=len(pair.datagrams),
            bytes=sum(row["received_bytes"] for row in lost),
            members=len(lost),
            frames=fragment_cited(lost),
            packets=len(lost),
            filter=f"ip.addr == {pair.source} && ip.addr == {pair.destination} && ({FILTER})",
            proof=f"{show_bytes(sum(row['received_bytes'] for row in lost))} of incomplete datagrams were thrown away; "
            f"1-(1-p)^{each} = {show_share(1 - (1 - p) ** each, 1)}",
            excluded={"fragments-dropped": f"{plural(len(complete), 'datagram')} in fragments arrived whole"},
            p=show_share(p, 1),
            source=endpoint_str(pair.source, None),
            share=show_share(share, 1),
            each=each,
            multiple=f"{share / p:.1f}",
        )
