# SPDX-License-Identifier: Apache-2.0
"""Names that a cluster tells its clients, and that these cannot resolve."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.unanswered.names import packets_of_questions
from wiretale.analyzer.causes.unanswered.refusals.named_members import NAMED_NS, PRODUCTS, answering, look_of
from wiretale.analyzer.findings.exchanges.application import NO_NAME, flows_of, queries_of
from wiretale.analyzer.findings.exchanges.exchange_rows import rows_where
from wiretale.analyzer.findings.model import endpoint_str
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.causes.unanswered.refusals.named_members import Product
    from wiretale.analyzer.rows import ExchangeRow, FlowRow

AFTER_NS = 500_000_000  # from an answer of the server to the first question for the name
TURNS_MORE = 5  # answers of the server than lookups
TIMES_MIN, SPACED_NS = 3, 100_000_000  # lookups, of which each begins so long after the last question of the one before


class Unresolved(NamedTuple):
    """A name without an address, for which a client of a cluster asks again and again."""

    name: str
    by: FlowRow  # the connection to the server that probably told it
    product: Product
    rows: list[ExchangeRow]
    lookups: int


def questions_by_name(case: Case) -> dict[tuple[str, str], list[ExchangeRow]]:
    """Returns the questions by client and name."""
    by_name: dict[tuple[str, str], list[ExchangeRow]] = defaultdict(list)
    for row in queries_of(case.transfers):
        if row["client"] and row["name"] and row["asked_ns"] is not None:
            by_name[row["client"], row["name"].lower()].append(row)
    return by_name


def base_of(key: tuple[str, str], bases: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """Returns the name of which this one is the same with a suffix; itself without one."""
    client, name = key
    return next((base for base in bases if base[0] == client and name.startswith(f"{base[1]}.")), key)


def absent_names(case: Case) -> dict[tuple[str, str], list[ExchangeRow]]:
    """Returns the questions for names that do not exist, by client and name, those with a suffix among them."""
    by_name = questions_by_name(case)
    absent = {key: of for key, of in by_name.items() if all(row["code"] == NO_NAME for row in of)}
    bases: dict[tuple[str, str], list[ExchangeRow]] = {}
    for key in sorted(absent, key=lambda key: len(key[1])):
        bases.setdefault(base_of(key, bases), []).extend(absent[key])
    present = [key for key in by_name if key not in absent]
    resolved = {base_of(key, bases) for key in present} | {base for base in bases if base_of(base, present) != base}
    return {
        base: sorted(rows, key=lambda row: row["asked_ns"] or 0) for base, rows in bases.items() if base not in resolved
    }


def lookups_of(rows: list[ExchangeRow]) -> int:
    """Returns how often a name was looked for: questions of several types and suffixes follow at once."""
    times = [row["asked_ns"] or 0 for row in rows]
    return 1 + sum(later - ns >= SPACED_NS for ns, later in pairwise(times))


def answers_of(case: Case, flows: set[int]) -> dict[int, list[int]]:
    """Returns when each answer of the server on some connections ended, ns."""
    ends: dict[int, list[int]] = {flow: [] for flow in flows}
    for row in rows_where(case.transfers, "kind", "turn") if flows else ():
        if row["flow"] in ends and row["answered_ns"] is not None:
            ends[row["flow"]].append(row["answered_ns"] + (row["response_ns"] or 0))
    return ends


def alone_at(members: list[FlowRow]) -> list[FlowRow]:
    """Returns the connections of those clients that talk to one server of a product alone."""
    servers: dict[str, set[tuple[str, int | None]]] = defaultdict(set)
    for row in members:
        servers[row["source"]].add((row["destination"], row["destination_port"]))
    return [row for row in members if len(servers[row["source"]]) == 1]


def is_told(by: FlowRow, ends: list[int], first_ns: int, lookups: int) -> bool:
    """Returns whether the first question comes right after an answer on a young connection that does little more: a program that
    works with the server asks it more often than DNS."""
    is_young = 0 <= first_ns - (by["first_ns"] or 0) <= NAMED_NS
    return is_young and len(ends) <= lookups + TURNS_MORE and any(0 <= first_ns - ns <= AFTER_NS for ns in ends)


def unresolved(case: Case) -> list[Unresolved]:
    """Returns such names."""
    members = [(row, of) for of in dict.fromkeys(PRODUCTS.values()) for row in alone_at(answering(case, of))]
    names = {key: rows for key, rows in absent_names(case).items() if lookups_of(rows) >= TIMES_MIN} if members else {}
    ends = answers_of(case, {row["flow"] for row, _ in members}) if names else {}
    matches = []
    for (client, name), rows in names.items():
        first_ns = rows[0]["asked_ns"] or 0
        for row, product in members:
            if row["source"] == client and is_told(row, ends[row["flow"]], first_ns, lookups_of(rows)):
                matches.append(Unresolved(name, row, product, rows, lookups_of(rows)))
                break
    return matches


@cause(
    code="named-unresolved",
    title="A cluster names a host that the client cannot resolve",
    sentence="{by} answers, but {client} then looks for {name}, which does not exist in DNS ({lookups:lookup} in {time}): "
    "{product} {probably}names this host to its clients.",
    advice="Let the server name a host that its clients resolve and reach ({setting}), or give them this name (DNS, /etc/hosts); "
    "`{look}` shows what it names.",
    shows="A client talks to one server on a port of Kafka, MongoDB or Redis Cluster. Within 2 s of the connection and 0.5 s "
    "of an answer it asks DNS for a name that does not exist, at least three times, about as often as the server, and connects "
    "to no other server of that kind.",
    rivals={
        "named-elsewhere": "the client tries no address",
        "dns-silent": "DNS answers",
        "search-list": "the name does not exist with any suffix",
    },
    unknown="What the server names, which is not read: the same program may look for another name.",
)
def named_unresolved(case: Case) -> Matches:
    for each in unresolved(case):
        by = endpoint_str(each.by["destination"], each.by["destination_port"])
        lasted = (each.rows[-1]["asked_ns"] or 0) - (each.rows[0]["asked_ns"] or 0)
        yield Match(
            certainty="likely",
            place="server",
            flows=[each.by["flow"], *dict.fromkeys(flows_of(each.rows))],
            failed=each.lookups,
            attempts=each.lookups,
            waited_ns=lasted,
            frames=packets_of_questions(case, each.rows),
            packets=len(each.rows),
            filter="dns.flags.rcode == 3",
            proof=f"{plural(len(each.rows), 'question')} for the name, the first right after an answer of {by}, and no address",
            excluded={
                "dns-silent": "DNS answers",
                "search-list": "no suffix leads to an address",
            },
            undecided={"named-elsewhere": f"`{look_of(each.product, by)}`: does it name this host?"},
            by=by,
            client=str(each.by["source"]),
            name=each.name,
            lookups=each.lookups,
            time=show_duration(lasted),
            product=each.product.name,
            setting=each.product.setting,
            look=look_of(each.product, by),
        )
