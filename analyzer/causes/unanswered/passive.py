# SPDX-License-Identifier: Apache-2.0
"""Data connections of FTP that nobody answers, or that are refused: to an address or port of PASV, or to a client in active
mode."""

from __future__ import annotations

from collections import defaultdict
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.unanswered.silent_hosts import HOSTS_MAX, about, any_filter, attempt_fields, silent_hosts
from wiretale.analyzer.findings.model import endpoint_str
from wiretale.analyzer.findings.shared.servers import first_resets
from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.causes.unanswered.silent_hosts import SilentHost
    from wiretale.analyzer.rows import FlowRow

CONTROL_PORT, DATA_PORT, SYSTEM_PORTS = 21, 20, 1024
SOON_NS = 1_000_000_000  # from the answer to PASV to the first SYN
#: commands behind which a server in active mode opens a data connection
OPENING = ("PORT", "EPRT", "LIST", "NLST", "MLSD", "RETR", "STOR", "APPE")
TURNS_MAX, REFUSED_MAX = 5_000, 200


PRIVATE = tuple(map(ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))  # RFC 1918


def is_of_site(address: str) -> bool:
    """Returns whether an address has a meaning in one site alone."""
    return any(ip_address(address) in network for network in PRIVATE)


class Command(NamedTuple):
    """A command on a control connection, and when it was answered."""

    client: str
    server: str
    answered_ns: int


def commands_of(case: Case) -> list[Command]:
    """Returns the commands that FTP servers answered."""
    rows = [row for row in case.exchanges("kind", "turn")[:TURNS_MAX] if row["answered_ns"] is not None]
    flows = {row["flow"]: case.flow(row["flow"]) for row in rows if row["flow"] is not None}
    control = {flow for flow, row in flows.items() if row["destination_port"] == CONTROL_PORT}
    return [
        Command(str(row["client"]), str(row["server"]), row["answered_ns"] or 0)
        for row in rows
        if row["flow"] in control
    ]


def named_by(case: Case, host: SilentHost, commands: list[Command]) -> str | None:
    """Returns the FTP server after whose answers each of the attempts at a host began; None without one."""
    if host.is_heard or min(host.ports) < SYSTEM_PORTS:
        return None
    servers = {name for command in commands for name in (command.server,) if name != host.address}
    begins = [(case.flow(flow)["source"], case.flow(flow)["first_ns"] or 0) for flow in host.flows]
    for server in servers:
        answers = [(command.client, command.answered_ns) for command in commands if command.server == server]
        if all(any(client == of and 0 <= began - ns <= SOON_NS for of, ns in answers) for client, began in begins):
            return server
    return None


@cause(
    code="ftp-wrong-address",
    title="FTP server names an address that cannot be reached",
    sentence="The FTP server {server} {probably}names {a_private}address, {host}, in its answers to PASV: "
    "{count:data connection} to it ({syns}{time}) got no answer, while the control connection works.",
    advice="Set the external address of the server (vsftpd `pasv_address`, ProFTPD `MasqueradeAddress`, FileZilla Server: "
    "passive mode settings), or let the client use EPSV (`curl --ftp-skip-pasv-ip`).",
    shows="SYNs go to high ports of a host that is never heard from. Each follows within 1 s after an FTP server at another "
    "address answered a command of that client.",
    rivals={"host-down": "each attempt follows an answer of the FTP server, whose control connection works"},
    unknown="The address in the PASV answer itself, which the tables do not have.",
    explains=("syn-unanswered",),
)
def ftp_wrong_address(case: Case) -> Matches:
    hosts = silent_hosts(case)
    commands = commands_of(case) if hosts else []
    for host in hosts if commands else ():
        server = named_by(case, host, commands)
        if server:
            case.claimed.update(host.flows)
            is_private = is_of_site(host.address) and not is_of_site(server)
            yield Match(
                certainty="likely",
                place="server",
                undecided={"host-down": f"the PASV answer of {server}: which address it names"},
                proof=f"each attempt within 1 s after an answer of {endpoint_str(server, CONTROL_PORT)}",
                server=server,
                host=host.address,
                a_private="a private " if is_private else "an ",
                count=host.failed,
                syns=plural(host.syns, "SYN"),
                time=host.time,
                **attempt_fields(case, host, "syn-unanswered"),
            )


def passive_control(case: Case, host: SilentHost, commands: list[Command]) -> list[int]:
    """Returns the control connections of the clients that got no answer from high ports of an FTP server, each right after it
    answered a command; empty if another attempt is among them."""
    if min(host.ports) < SYSTEM_PORTS:
        return []
    begins = [(case.flow(flow)["source"], case.flow(flow)["first_ns"] or 0) for flow in host.flows]
    answers = [(command.client, command.answered_ns) for command in commands if command.server == host.address]
    are_all = all(any(client == of and 0 <= at - ns <= SOON_NS for of, ns in answers) for client, at in begins)
    if not answers or not are_all:
        return []
    clients = {client for client, _ in begins}
    flows = case.connections.to_server((host.address, CONTROL_PORT))
    return [flow for flow in flows if case.connections[flow].end(case.connections[flow].client_side)[0] in clients]


@cause(
    code="ftp-passive-blocked",
    title="Passive FTP is blocked",
    sentence="Passive FTP fails: {count:data connection} of {client} to {server} ({syns}{time}) got no answer, while the "
    "control connection works: a firewall or NAT {probably}drops {ports}.",
    advice="Open the passive ports of the server in its firewall and forward them (vsftpd `pasv_min_port` and `pasv_max_port`; "
    "with TLS no helper of a firewall can find them), and look whether its answers leave by the same way as those of port 21.",
    shows="SYNs to high ports of an FTP server get no answer. Each follows within 1 s after the server answered a command of "
    "that client on its control connection (port 21).",
    rivals={
        "hung-server": "the server waits for the data connection, which it answers with silence on the control connection",
        "host-down": "its control connection works",
        "filtered": "the ports are those that its commands ask for",
    },
    unknown="The port in the answer to PASV itself, which the tables do not have; which device drops them.",
    explains=("syn-unanswered", "request-unanswered", "one-way"),
)
def ftp_passive_blocked(case: Case) -> Matches:
    hosts = [host for host in silent_hosts(case) if host.is_heard]
    commands = commands_of(case) if hosts else []
    for host in hosts if commands else ():
        control = passive_control(case, host, commands)
        if control:
            case.claimed.update(host.flows)
            fields = attempt_fields(case, host, "syn-unanswered", "one-way")
            fields["flows"] = [*fields["flows"], *control]
            fields["findings"] = [*fields["findings"], *about(case, control, "request-unanswered")]
            yield Match(
                certainty="likely",
                place="device",
                excluded={"host-down": "its control connection works"},
                undecided={"filtered": f"a capture on {host.address}: do the SYNs arrive, and do answers leave?"},
                proof=f"{plural(host.syns, 'SYN')} without an answer, each within 1 s after an answer of "
                f"{endpoint_str(host.address, CONTROL_PORT)}",
                server=host.address,
                client=host.client,
                count=host.failed,
                syns=plural(host.syns, "SYN"),
                time=host.time,
                ports=f"port {host.ports[0]}" if len(host.ports) == 1 else "its passive ports",
                **fields,
            )


def refused_data(case: Case) -> dict[tuple[str, str], list[FlowRow]]:
    """Returns the refused attempts at high ports of an FTP server, each right after it answered a command of that client."""
    by_ends: dict[tuple[str, str], list[FlowRow]] = defaultdict(list)
    flows = case.transfers.attempts.flows_in("refused") if case.findings("connection-refused") else []
    rows = [case.flow(flow) for flow in flows[:REFUSED_MAX] if flow not in case.claimed]
    commands = commands_of(case) if rows else []
    for row in rows:
        client, server, began_ns = row["source"], row["destination"], row["first_ns"] or 0
        answers = (each.answered_ns for each in commands if (each.client, each.server) == (client, server))
        is_high = (row["destination_port"] or 0) >= SYSTEM_PORTS
        if is_high and any(0 <= began_ns - ns <= SOON_NS for ns in answers):
            by_ends[client, server].append(row)
    return by_ends


@cause(
    code="ftp-data-refused",
    title="FTP data connections are refused",
    sentence="Passive FTP fails: {server} refuses {count:data connection} of {client} to {ports}, right after it answered a "
    "command (PASV or EPSV), while the control connection works; the port {probably}leads nowhere.",
    advice="Publish and forward the passive ports of the server one to one, through NAT and containers (vsftpd `pasv_min_port` "
    "and `pasv_max_port`, Docker `-p 40000-40009:40000-40009`), or let it listen on the address that it names.",
    shows="A RST answers the SYN to a high port of an FTP server. Within 1 s before, the server answered a command of that "
    "client on its control connection (port 21).",
    rivals={
        "refused": "the attempt follows an answer of the FTP server, whose control connection works",
        "ftp-wrong-address": "the host answers, by RST",
    },
    unknown="The port in the answer to PASV itself, which the tables do not have.",
    explains=("connection-refused",),
)
def ftp_data_refused(case: Case) -> Matches:
    for (client, server), rows in list(refused_data(case).items())[:HOSTS_MAX]:
        flows = [row["flow"] for row in rows]
        ports = sorted({row["destination_port"] or 0 for row in rows})
        case.claimed.update(flows)
        yield Match(
            certainty="likely",
            place="server",
            findings=about(case, flows, "connection-refused"),
            flows=flows,
            failed=len(flows),
            attempts=len(flows),
            frames=first_resets(case.transfers, flows),
            packets=len(flows),
            filter=any_filter(rows),
            proof=f"a RST answers each SYN, within 1 s after an answer of {endpoint_str(server, CONTROL_PORT)}",
            excluded={"ftp-wrong-address": "the host answers, by RST"},
            undecided={"refused": "the answer to PASV: the port that it names"},
            server=server,
            client=client,
            count=len(flows),
            ports=f"port {ports[0]}" if len(ports) == 1 else f"ports {ports[0]} to {ports[-1]}",
        )


def asked_for_data(case: Case, rows: list[FlowRow]) -> bool:
    """Returns whether each attempt of an FTP server at a client began within 1 s after a command of that client that wants a
    data connection: a server that may not use port 20 takes a high one."""
    commands = [
        row
        for row in case.exchanges("kind", "service")
        if row["type"] == "FTP command" and (row["name"] or "").partition("\\")[0].upper() in OPENING
    ]
    return all(
        (row["destination_port"] or 0) >= SYSTEM_PORTS
        and any(
            (each["client"], each["server"]) == (row["destination"], row["source"])
            and 0 <= (row["first_ns"] or 0) - (each["asked_ns"] or 0) <= SOON_NS
            for each in commands
        )
        for row in rows
    )


def blocked_by(case: Case, host: SilentHost) -> tuple[str, list[int]] | None:
    """Returns the FTP server that tried to open data connections to a host, and the control connections on which this client was
    heard since the first attempt; None without one: the client may be down, or may have left."""
    rows = [case.flow(flow) for flow in host.flows]
    servers = {row["source"] for row in rows}
    if len(servers) != 1 or not (are_of_data_port(rows) or asked_for_data(case, rows)):
        return None
    server, since_ns = servers.pop(), min(row["first_ns"] or 0 for row in rows)
    control = [flow for flow in controlled(case, host, server) if (case.direction(flow, 0)["last_ns"] or 0) >= since_ns]
    return (server, control) if control else None


def are_of_data_port(rows: list[FlowRow]) -> bool:
    """Returns whether all attempts are from the data port of FTP."""
    return all(row["source_port"] == DATA_PORT for row in rows)


def controlled(case: Case, host: SilentHost, server: str) -> list[int]:
    """Returns the control connections of a client with an FTP server."""
    ends, attempts = enumerate(zip(host.facts.sources, host.facts.ports, strict=True)), case.transfers.attempts
    flows = [flow for flow, (source, port) in ends if port == CONTROL_PORT and source == host.address]
    return [flow for flow in flows if attempts.is_connection(flow) and case.flow(flow)["destination"] == server]


@cause(
    code="ftp-active-blocked",
    title="Active FTP is blocked",
    sentence="Active FTP fails: {count} of the server {server}{source} to {client} ({syns}{time}) got no answer, while the "
    "control connection works. A firewall or NAT before the client {probably}drops {them}.",
    advice="Let {client} use passive mode (PASV or EPSV), or let its firewall and NAT follow FTP (a helper, an ALG; not within "
    "TLS).",
    shows="SYNs of a host get no answer from a client: they are from port 20, or follow a command of that client (PORT, EPRT, "
    "LIST, RETR, STOR) within 1 s. Meanwhile or later, that client is heard on its control connection (port 21) to the host.",
    rivals={
        "host-down": "the client is there: its control connection works",
        "filtered": "they are of the server, from port 20 or right after a command for data",
    },
    unknown="Whether the client's own firewall or a device before it drops them.",
    explains=("syn-unanswered", "one-way"),
)
def ftp_active_blocked(case: Case) -> Matches:
    for host in silent_hosts(case):
        blocked = blocked_by(case, host)
        if blocked:
            server, control = blocked
            case.claimed.update(host.flows)
            fields = attempt_fields(case, host, "syn-unanswered", "one-way")
            fields["flows"] = [*fields["flows"], *control]
            source = " from port 20" if are_of_data_port([case.flow(flow) for flow in host.flows]) else ""
            yield Match(
                certainty="likely",
                place="client",
                excluded={"host-down": "its control connection works"},
                undecided={"filtered": f"a capture on {host.address}: do the SYNs arrive?"},
                proof=f"{plural(host.syns, 'SYN')}{source or ' after a command for data'} without an answer",
                source=source,
                server=server,
                client=host.address,
                count=plural(host.failed, "connection"),
                syns=plural(host.syns, "SYN"),
                time=host.time,
                them="it" if host.failed == 1 else "them",
                **fields,
            )
