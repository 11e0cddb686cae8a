# SPDX-License-Identifier: Apache-2.0
"""A server that restarts under idle connections: it knows none of them any more, whatever their pauses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import (
    ending_cited,
    filter_of,
    is_alike,
    largest_groups,
    server_str,
    times_str,
)
from wiretale.analyzer.causes.ended.idle import EFFECTS, Cut, cuts
from wiretale.analyzer.causes.ended.resets import reset_of
from wiretale.analyzer.findings.evidence import SHOWN
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case

VICTIMS_MIN = 2
SHORT_NS = 25_000_000_000  # devices remember idle connections for longer


def began_ns(cut: Cut) -> int:
    """Returns when the pause before a reset began."""
    return (cut.connection.flow["pause_until_ns"] or 0) - cut.idle_ns


def knows_nothing(cut: Cut) -> bool:
    """Returns whether the server itself, as far as its TTL tells, resets what it has no socket for."""
    reset = reset_of(cut.connection, cut.reset)
    is_of_server = cut.reset["direction"] == cut.connection.server_side
    return cut.fin is None and is_of_server and reset.has_no_socket and not reset.is_forged


def survivors(case: Case, victims: Sequence[Cut], since_ns: int, until_ns: int) -> bool:
    """Returns whether a connection to the same server was used before a time and after another one."""
    left_out = {cut.connection.number for cut in victims}
    for flow in case.connections.to_server(victims[0].connection.server):
        row = case.flow(flow)
        if flow not in left_out and (row["first_ns"] or 0) < since_ns and (row["last_ns"] or 0) > until_ns:
            return True
    return False


def is_restart(case: Case, group: Sequence[Cut]) -> bool:
    """Returns whether all pauses have a moment in common, are short and unlike, and nothing survived it."""
    idles = [cut.idle_ns for cut in group]
    since_ns, until_ns = (
        max(map(began_ns, group)),
        min(cut.connection.flow["pause_until_ns"] or 0 for cut in group),
    )
    return (
        len(group) >= VICTIMS_MIN
        and all(map(knows_nothing, group))
        and max(idles) < SHORT_NS
        and not is_alike(idles)
        and since_ns < until_ns
        and not survivors(case, group, since_ns, until_ns)
    )


@cause(
    code="server-restarted",
    title="The server restarted under idle connections",
    sentence="The server {server} probably restarted while its clients were idle: it no longer knew {count}, last used {idle} "
    "before, and reset them within {fast} of the next request{again}.",
    advice="See on {host} when the program or the host was started (`systemctl status`, `uptime`, `journalctl --list-boots`); "
    "let clients check pooled connections before they use them, or repeat the request.",
    shows="At least two connections, idle for 4.5 to 25 s, are reset by the server at the next packet, without a FIN. The RST is "
    "that of a host without a socket: no ACK, window 0, no timestamps, its own TTL. Their pauses have a moment in common and "
    "differ by more than 5%, and no connection to the server was used before and after it.",
    rivals={
        "idle-timeout": "the pauses are short and of no common length, and nothing that was in use survived",
        "reset-by-peer": "each RST answers the first packet after a pause",
        "reset-by-device": "the RSTs have the TTL of the server",
    },
    unknown="Whether the program, its container or the host restarted, or a standby took over; after longer pauses, whether a "
    "device forgot the connections.",
    explains=EFFECTS,
)
def server_restarted(case: Case) -> Matches:
    late = [cut for cut in cuts(case) if not cut.is_race]
    for server, group in largest_groups(late, lambda cut: cut.connection.server):
        if not is_restart(case, group):
            continue
        last_ns = min(cut.reset["time_ns"] or 0 for cut in group)
        is_back = case.connections.connected_after(server, last_ns) is not None
        yield Match(
            certainty="likely",
            place="server",
            flows=[cut.connection.number for cut in group],
            failed=len(group),
            attempts=max(case.connections.requests_to(server), len(group)),
            frames=[ending_cited(cut.reset) for cut in group[:SHOWN]],
            filter=filter_of(cut.connection for cut in group),
            proof=f"{plural(len(group), 'RST')} without a socket, and one moment in all pauses",
            excluded={"close-race": "no FIN came", "nat-forgot": "a RST came back"},
            undecided={"idle-timeout": f"when the program on {server[0]} was started"},
            server=server_str([cut.connection for cut in group]),
            host=server[0],
            count=plural(len(group), "connection"),
            idle=times_str([cut.idle_ns for cut in group]),
            fast=show_duration(max(cut.reply_ns for cut in group)),
            again=". It accepts new ones" if is_back else "",
        )
