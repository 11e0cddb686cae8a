# SPDX-License-Identifier: Apache-2.0
"""Members of a cluster, and servers of a directory, whose address, as the first server names it, the client cannot reach."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.unanswered.refusals.refused_servers import fields_of, refused_servers
from wiretale.analyzer.causes.unanswered.silent_hosts import (
    ATTEMPTS_MAX,
    about,
    any_filter,
    attempt_fields,
    silent_hosts,
)
from wiretale.analyzer.findings.cost import union_ns
from wiretale.analyzer.findings.exchanges.exchange_rows import named, packets_of
from wiretale.analyzer.findings.judged import listed
from wiretale.analyzer.findings.model import endpoint_str
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.causes.unanswered.silent_hosts import SilentHost
    from wiretale.analyzer.findings.model import Words
    from wiretale.analyzer.rows import ExchangeRow, FlowRow

NAMED_NS = 2_000_000_000  # from the last answer before it to the first attempt
ATTEMPTS_MIN, SERVERS_MAX = 2, 1_000
LDAP_PORTS = frozenset((389, 636, 3268, 3269))
PARTITIONS = ("forestdnszones.", "domaindnszones.")


class Product(NamedTuple):
    """Servers that tell their clients where to connect, and the setting that has the address."""

    name: str
    setting: str


KAFKA = Product("Kafka", "advertised.listeners")
MONGODB = Product("MongoDB", "members[n].host of rs.conf()")
REDIS = Product("Redis Cluster", "cluster-announce-ip")
PRODUCTS = {
    **dict.fromkeys((9092, 9093, 9094, 29092), KAFKA),
    **dict.fromkeys((27017, 27018, 27019), MONGODB),
    **dict.fromkeys(range(7002, 7006), REDIS),  # 7000 and 7001 are those of Cassandra, too
}


class Named(NamedTuple):
    """An address that cannot be reached, and the server that probably names it."""

    host: str
    port: int
    by: FlowRow
    rivals: str  # of the attempts
    fields: Words


def answering(case: Case, product: Product) -> list[FlowRow]:
    """Returns the first connections to servers of a product that carried data both ways."""
    ports = {port for port, of in PRODUCTS.items() if of == product}
    numbers = [flow for flow, port in enumerate(case.transfers.ports) if port in ports][:SERVERS_MAX]
    rows = [case.flow(flow) for flow in numbers if case.transfers.attempts.is_connection(flow)]
    sides = {row["flow"]: (case.direction(row["flow"], 0), case.direction(row["flow"], 1)) for row in rows}
    return [row for row in rows if all(side["payload_bytes"] for side in sides[row["flow"]])]


def named_by(case: Case, attempts: list[int], host: str, product: Product) -> FlowRow | None:
    """Returns the connection that had begun shortly before the first attempt, at another server of the product."""
    rows = [case.flow(flow) for flow in attempts[:ATTEMPTS_MAX]]
    begins, client = rows[0]["first_ns"], rows[0]["source"]
    is_own, members = ip_address(host).is_loopback, answering(case, product) if begins is not None else []
    if not is_own and len({row["destination"] for row in members}) > 1:
        return None  # of a cluster that the client reaches, one member is down
    for row in members:
        is_same = is_own or row["source"] == client
        is_before = 0 <= (begins or 0) - (row["first_ns"] or 0) <= NAMED_NS
        if is_same and is_before and row["destination"] != host:
            return row
    return None


def unreachable(case: Case) -> Iterator[Named]:
    """Yields the addresses of this kind that refuse, or answer nothing."""
    for server in refused_servers(case):
        product = PRODUCTS.get(server.port)
        if product and not server.opened and len(server.flows) >= ATTEMPTS_MIN and ip_address(server.host).is_loopback:
            by = named_by(case, server.flows, server.host, product)
            if by:
                yield Named(server.host, server.port, by, "refused", fields_of(case, server, len(server.flows)))
    for host in silent_hosts(case):
        port = host.ports[0]
        product = PRODUCTS.get(port)
        if product and len(host.ports) == 1 and not host.is_heard and host.syns >= ATTEMPTS_MIN:
            by = named_by(case, host.flows, host.address, product)
            if by:
                yield Named(host.address, port, by, "host-down", attempt_fields(case, host, "syn-unanswered"))


@cause(
    code="named-elsewhere",
    title="A cluster names an address that the client cannot reach",
    sentence="{by} answers, but the client then tries {server}, which {what}: {product} names the addresses that its clients "
    "shall use, {probably}this one, and {why}.",
    advice="Let the server name an address that its clients reach ({setting}); `{look}` shows what it names. If it is that of "
    "a member that is down, start that.",
    shows="A client talks to a server on a port of Kafka, MongoDB or Redis Cluster. Within 2 s of that connection it begins to "
    "try such a port at its own loopback address, which refuses, or at a host of which nothing is heard, and reaches no other "
    "member.",
    rivals={
        "refused": "no client of another host wants its own loopback address",
        "host-down": "a server of the same cluster answers",
    },
    unknown="What the server names, which is not read; or whether a member of the cluster is down.",
    explains=("connection-refused", "syn-unanswered"),
)
def named_elsewhere(case: Case) -> Matches:
    for each in unreachable(case):
        product, flows = PRODUCTS[each.port], each.fields["flows"]
        is_own = each.rivals == "refused"
        case.claimed.update(flows)
        by = endpoint_str(each.by["destination"], each.by["destination_port"])
        yield Match(
            certainty="likely",
            place="server",
            proof=f"{plural(len(flows), 'attempt')} failed, the first right after {by} had answered",
            excluded={"refused": "it is the client's own loopback address"} if is_own else {},
            undecided={"host-down": f"`{look_of(product, by)}`: which addresses does it name?"},
            **each.fields,
            by=by,
            server=endpoint_str(each.host, each.port),
            product=product.name,
            setting=product.setting,
            look=look_of(product, by),
            what=f"{'refused' if is_own else 'left'} {plural(len(flows), 'connection')}{'' if is_own else ' unanswered'}",
            why="there the client meets itself" if is_own else "nothing is heard of it here",
        )


def look_of(product: Product, server: str) -> str:
    """Returns the command that shows the addresses of a cluster."""
    host = server.rsplit(":", 1)[0]
    commands = {KAFKA: f"kcat -L -b {server}", MONGODB: f"mongosh {host} --eval 'db.hello()'"}
    return commands.get(product, f"redis-cli -h {host} cluster nodes")


def referred_names(case: Case) -> dict[tuple[str, str], ExchangeRow]:
    """Returns the DNS questions for partitions of Active Directory, which clients know from referrals, by who asked and the
    addresses of the answer."""
    return {
        (row["client"], address): row
        for row in case.exchanges("kind", "dns")
        if (row["name"] or "").lower().startswith(PARTITIONS) and row["client"] and row["addresses"]
        for address in row["addresses"].split()
    }


def both_str(words: list[str]) -> str:
    """`a`, `a and b`, `a and 2 more`."""
    distinct = list(dict.fromkeys(words))
    return listed(distinct, "and") if len(distinct) <= 2 else named(distinct, 1)


def referring(case: Case, client: str, before_ns: int) -> FlowRow | None:
    """Returns the last LDAP connection of a client that carried data both ways and had begun before a time."""
    flows = [flow for flow, port in enumerate(case.transfers.ports) if port in LDAP_PORTS][:SERVERS_MAX]
    rows = [case.flow(flow) for flow in flows if case.transfers.attempts.is_connection(flow)]
    begun = [row for row in rows if row["source"] == client and (row["first_ns"] or 0) < before_ns]
    sides = {row["flow"]: (case.direction(row["flow"], 0), case.direction(row["flow"], 1)) for row in begun}
    talks = [row for row in begun if all(side["payload_bytes"] for side in sides[row["flow"]])]
    return max(talks, key=lambda row: row["first_ns"] or 0, default=None)


@cause(
    code="ldap-referral",
    title="A directory refers its client to servers that do not answer",
    sentence="The LDAP server {server} {probably}refers its client to {names}: {count:connection} that follow it to {hosts} "
    "({syns:SYN}) got no answer, for {waited}.",
    advice="Let the program not follow referrals (`ldapsearch` follows none; JNDI `java.naming.referral=ignore`, OpenLDAP "
    "`REFERRALS off`), search below a narrower base than the whole domain, or ask the global catalog (port 3268), which refers "
    "nowhere; or let {names} resolve to domain controllers that {client} reaches.",
    shows="A client has talked to an LDAP server, asks for the address of ForestDnsZones or DomainDnsZones of the domain, which "
    "Active Directory names in referrals, and tries LDAP there, which no host answers.",
    rivals={
        "host-down": "the client knows these hosts from a referral only, and another LDAP server answers it",
        "dns-silent": "the names resolve",
    },
    unknown="The referral itself, which is not read.",
    explains=("syn-unanswered",),
)
def ldap_referral(case: Case) -> Matches:
    hosts = [host for host in silent_hosts(case) if LDAP_PORTS.issuperset(host.ports)]
    questions = referred_names(case) if hosts else {}
    groups: dict[tuple[str, str], list[SilentHost]] = defaultdict(list)
    for host in hosts:
        question = questions.get((host.client, host.address))
        by = referring(case, host.client, question["asked_ns"] or 0) if question else None
        if by is not None and by["destination"] != host.address:
            groups[host.client, endpoint_str(by["destination"], by["destination_port"])].append(host)
    for (client, server), of in groups.items():
        yield referral_match(case, client, server, of, [questions[client, host.address] for host in of])


def referral_match(
    case: Case, client: str, server: str, hosts: list[SilentHost], questions: list[ExchangeRow]
) -> Match:
    """Returns the match of the hosts to which one server refers one client."""
    flows, syns = [flow for host in hosts for flow in host.flows], sum(host.syns for host in hosts)
    waited = union_ns(span for host in hosts for span in host.spans)
    case.claimed.update(flows)
    return Match(
        certainty="likely",
        place="server",
        findings=about(case, flows, "syn-unanswered"),
        flows=flows,
        failed=len(flows),
        attempts=len(flows),
        waited_ns=waited,
        frames=packets_of(questions),
        packets=syns,
        filter=any_filter([case.flow(flow) for flow in flows[:ATTEMPTS_MAX]]),
        proof=f"{client} asks for the names, which it knows from a referral only, and tries LDAP at once",
        excluded={"dns-silent": "the names resolve", "host-down": f"{server} answers the same client"},
        undecided={"host-down": f"`nc -vz {hosts[0].address} 389` from elsewhere: whether that host runs"},
        client=client,
        server=server,
        names=both_str([str(row["name"]) for row in questions]),
        hosts=both_str([host.address for host in hosts]),
        count=len(flows),
        syns=syns,
        waited=show_duration(waited) if waited else "long",
    )
