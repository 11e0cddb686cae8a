# SPDX-License-Identifier: Apache-2.0
"""SYNs that are refused for an option, while those without it are accepted."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.unanswered.dropped_syns import CASES_MIN, CASES_PROVEN, OPTION_ADVICE, OPTION_NAMES
from wiretale.analyzer.causes.unanswered.refusals.refused_servers import Refused, fields_of, refused_servers
from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case


def offers_by_flow(case: Case) -> dict[int, set[str]]:
    """Returns the options that the first and the last SYN of attempts have beside the usual ones."""
    exchanges, offers = case.trace.exchanges, defaultdict[int, set[str]](set)
    offering = exchanges._rows_where("syn_options")
    flows, *words = (exchanges.column(name) if offering else [] for name in ("flow", "syn_options", "last_syn_options"))
    for number in offering:
        offers[flows[number]].update(word for column in words for word in (column[number] or "").split())
    return offers


@cause(
    code="option-refused",
    title="SYNs with an option are refused",
    sentence="{what}.",
    advice="{advice}",
    shows="RSTs answer all SYNs to a port with Fast Open, ECN, multipath TCP or a signature, while all connections of the same "
    "clients that came about began without it. At least two of each; four of each prove it. If no connection came about "
    "between these refusals, the port may have been closed for a time.",
    rivals={
        "refused": "the port accepts SYNs without the option in between",
        "option-dropped": "a RST answers",
    },
    unknown="Whether the host or a device on the way refuses them.",
    explains=("connection-refused",),
)
def option_refused(case: Case) -> Matches:
    servers = refused_servers(case)
    offers = case.once(offers_by_flow) if servers else {}
    sources = case.trace.flows.column("source") if offers else []
    for server in servers if offers else ():
        flows = case.connections.to_server((server.host, server.port))
        clients = {sources[flow] for flow in server.flows}  # a firewall may refuse others for their address
        accepted = [flow for flow in flows if sources[flow] in clients and case.transfers.attempts.is_connection(flow)]
        common = set.intersection(*(offers.get(flow, set()) for flow in server.flows))
        words = sorted(common - set().union(*(offers.get(flow, set()) for flow in accepted)))
        if words and min(len(server.flows), len(accepted)) >= CASES_MIN:
            is_between = any(server.flows[0] < flow < server.flows[-1] for flow in accepted)
            case.claimed.update(server.flows)
            yield refusal_match(case, server, words[0], len(accepted), is_between)


def refusal_match(case: Case, server: Refused, option: str, accepted: int, is_between: bool) -> Match:
    """Returns the match of a server whose RSTs an option separates from the connections, some of them between refusals."""
    certain = is_between and min(len(server.flows), accepted) >= CASES_PROVEN
    doubt = "" if certain else "probably " if is_between else "possibly "
    return Match(
        certainty="proven" if certain else "likely" if is_between else "possible",
        place="path",
        excluded={"option-dropped": "a RST answered"}
        | ({"refused": "SYNs without it were accepted in between"} if certain else {}),
        undecided={} if certain else {"refused": "more connections: whether each SYN with the option is refused"},
        proof=f"{plural(len(server.flows), 'SYN')} with it got a RST, and {plural(accepted, 'SYN')} without it were accepted",
        **fields_of(case, server, len(server.flows) + accepted) | {"failed": len(server.flows), "severity": None},
        what=f"{server.server}, or a firewall before it, {doubt}refuses SYNs with "
        f"{OPTION_NAMES[option]}: {'both' if len(server.flows) == 2 else f'all {len(server.flows):,}'} got a RST{server.after}, "
        f"while {plural(accepted, 'connection')} without it came about"
        f"{'' if is_between else '. Or nothing listened there for a time'}",
        advice=OPTION_ADVICE[option].replace("drops", "refuses"),
    )
