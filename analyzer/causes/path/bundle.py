# SPDX-License-Identifier: Apache-2.0
"""Losses of some connections between two hosts and none of the others: one of several parallel links is bad.

Bundles (LACP) and routers with several equal paths (ECMP) choose the link by addresses and ports, so that a connection keeps its
link. A queue, a policer or a single bad link that all share drops packets of all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.ends.talk import parts_str
from wiretale.analyzer.causes.path.lossy import (
    EFFECTS,
    LOSS_CODES,
    PLACES,
    Lossy,
    lossy_of,
    packets_of_losses,
    waited_of,
)
from wiretale.analyzer.findings.exchanges.turns import server_end
from wiretale.analyzer.findings.model import endpoint_str
from wiretale.analyzer.units import show_share

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.findings.transfers import Transfer

MEMBERS_MIN, LOST_MIN = 3, 3  # connections that lose, and that lose nothing; losses of each
EXPECTED_MIN, EXPECTED_EACH = 20.0, 3.0  # losses that the others would have at the same rate; each of them
TURNS_MIN = 3  # changes between both kinds in the order of time
BETWEEN_MOST = 0.15  # of the connections that are neither


class Route(NamedTuple):
    """The way of transfers from a host to another, to or from one port."""

    source: str
    destination: str
    service: str


class Halves(NamedTuple):
    """Transfers of one route that lose at one place, and those that lose nothing."""

    lossy: list[Lossy]
    clean: list[Transfer]
    expected: float  # losses of the latter at the rate of the former

    @property
    def differ(self) -> bool:
        """Returns whether chance is excluded."""
        return len(self.clean) >= MEMBERS_MIN and self.expected >= EXPECTED_MIN

    @property
    def lost(self) -> int:
        """What was lost."""
        return sum(each.lost for each in self.lossy)

    @property
    def sent(self) -> int:
        """What the same transfers sent."""
        return sum(each.transfer.sent_or_lost for each in self.lossy)


def routes_of(case: Case) -> dict[Route, list[Transfer]]:
    """Returns the largest TCP transfers by their route, of hosts of which one loses something that no cause explains."""
    flows = {flow for each in case.findings(*LOSS_CODES) for flow, _ in each.finding.flows}
    routes: dict[Route, list[Transfer]] = defaultdict(list)
    for transfer in case.transfers.tcp() if flows else ():
        row, client = transfer.row, transfer.flow["client"]
        if client is not None and row["first_ns"] is not None:
            service = endpoint_str(*server_end(transfer.flow, client))
            routes[Route(row["source"], row["destination"], service)].append(transfer)
    return {
        route: members
        for route, members in routes.items()
        if len(members) >= 2 * MEMBERS_MIN and any(each.row["flow"] in flows for each in members)
    }


def lossy_among(case: Case, members: Sequence[Transfer]) -> list[Lossy]:
    """Returns the transfers that lose."""
    every = (lossy_of(case, transfer) for transfer in members)
    return [each for each in every if each is not None and each.lost >= LOST_MIN]


def halves_of(case: Case, members: Sequence[Transfer]) -> Halves | None:
    """Returns both kinds of transfers; None if they do not differ so much that chance is excluded."""
    lossy = lossy_among(case, members)
    if len(lossy) < MEMBERS_MIN or len({each.place for each in lossy}) > 1:
        return None
    rate = sum(each.lost for each in lossy) / sum(each.transfer.sent_or_lost for each in lossy)
    telling = [each for each in members if rate * each.sent_or_lost >= EXPECTED_EACH]
    clean = [each for each in telling if not each.lost]
    halves = Halves(lossy, clean, rate * sum(each.sent_or_lost for each in clean))
    between = len(telling) - len(lossy) - len(clean)
    return halves if between <= BETWEEN_MOST * len(members) and halves.differ and alternate(lossy, clean) else None


def alternate(lossy: Sequence[Lossy], clean: Sequence[Transfer]) -> bool:
    """Returns whether both kinds began in turns, not one after the other: the path did not change meanwhile."""
    begun = [(each.transfer.row["first_ns"] or 0, True) for each in lossy]
    begun += [(each.row["first_ns"] or 0, False) for each in clean]
    kinds = [is_lossy for _, is_lossy in sorted(begun)]
    return sum(earlier != later for earlier, later in pairwise(kinds)) >= TURNS_MIN


@cause(
    code="bad-link-of-several",
    title="One of several parallel links loses",
    sentence="{count} of {total:connection} from {source} to {service} lost {lost} of their {sent} segments ({share}) "
    "{where}. The other {clean} lost none of {passed} meanwhile, so {probably}one of several parallel links (LACP, ECMP) is "
    "bad{price}.",
    advice="Compare the error counters of each member link {where} (`show etherchannel summary`, `ethtool -S`), and take the bad "
    "one out; `iperf3 --cport` with several ports shows which connections use it.",
    shows="Between two hosts, at least three connections of one service lose at least three segments each, at one side of the "
    "capture point, and at least three lose none. These began in turns, and at the same rate would have lost 20 in all, 3 "
    "each.",
    rivals={
        "random-loss": "at the same rate the others would have lost as much",
        "bottleneck": "a queue drops packets of all connections that share it",
        "bad-member": "connections are established, and lose some of their packets",
    },
    unknown="Which link, and by what it is chosen. A limit for each connection drops packets of the fast ones only.",
    explains=(*EFFECTS, "shared-queue"),
)
def bad_link_of_several(case: Case) -> Matches:
    for route, members in routes_of(case).items():
        halves = halves_of(case, members)
        if halves is None:
            continue
        place, waited = halves.lossy[0].place, waited_of(halves.lossy)
        whole_ns = max(each.transfer.waited_ns for each in halves.lossy)
        yield Match(
            certainty="likely",
            place="before" if place == "upstream" else "after",
            flows=[each.transfer.side for each in halves.lossy],
            waited_ns=waited or None,
            members=len(halves.lossy),
            frames=packets_of_losses(halves.lossy),
            proof=f"at the rate of these, the others would have lost about {halves.expected:,.0f} segments",
            excluded={
                "random-loss": f"the others would have lost about {halves.expected:,.0f} segments",
                "bottleneck": "a queue drops packets of all connections that share it",
            },
            undecided={"policer": "counters of each member link: which of them has errors"},
            count=f"{len(halves.lossy):,}",
            total=len(halves.lossy) + len(halves.clean),
            source=route.source,
            service=route.service if route.service.startswith(route.destination) else route.destination,
            share=show_share(halves.lost, halves.sent),
            lost=f"{halves.lost:,}",
            sent=f"{halves.sent:,}",
            where=PLACES[place],
            clean=f"{len(halves.clean):,}",
            passed=f"{sum(each.data_segments for each in halves.clean):,}",
            price=f". That cost up to {parts_str(waited, whole_ns)}" if waited else "",
        )
