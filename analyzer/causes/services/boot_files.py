# SPDX-License-Identifier: Apache-2.0
"""TFTP transfers that never begin, because the server's first packet is not acknowledged or no server answers, and transfers that
are slow, because each block waits for the ACK of the one before."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.unanswered.host_down import answering_hosts
from wiretale.analyzer.causes.unanswered.silent_hosts import spans_of
from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.cost import union_ns
from wiretale.analyzer.findings.exchanges.exchange_rows import exchanges_of
from wiretale.analyzer.findings.shared.servers import family, first_packets
from wiretale.analyzer.findings.transfers import variation
from wiretale.analyzer.units import plural, show_bytes, show_duration, show_rate

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import DirectionRow, FlowRow

PORT, FLOWS_MAX = 69, 1_000
REPEATS_MIN = 3
ACK_BYTES = 4
BLOCKS_LEAST, EACH_NS, LONG_NS = 100, 2_000_000, 3_000_000_000  # a block and its ACK; the transfer
EVEN, BINS_LEAST, UNPAIRED = 0.5, 5, 0.02  # variation of the blocks in a time bin; more blocks than ACKs
OPTIONS_MOST = 256  # bytes of an OACK (RFC 2347); a first block has 516 as a rule


def read_requests(case: Case) -> list[FlowRow]:
    """Returns the flows to port 69 that got no answer from this port."""
    ports = case.transfers.ports
    numbers = [flow for flow in case.transfers.flows_where("protocol", "udp") if ports[flow] == PORT]
    return [row for row in map(case.flow, numbers[:FLOWS_MAX]) if row["one_way"]]


def transfers_of(case: Case, requests: list[FlowRow]) -> dict[int, list[FlowRow]]:
    """Returns by request the flows from its server, or another host, to the port that asked."""
    asking = {(row["source"], row["source_port"]): row["flow"] for row in requests}
    by_request: dict[int, list[FlowRow]] = defaultdict(list)
    flows = case.trace.flows
    ends = (
        zip(flows.column("source"), flows.column("source_port"), strict=True),
        zip(flows.column("destination"), flows.column("destination_port"), strict=True),
    )
    for number, (source, target) in enumerate(zip(*ends, strict=True)):
        request = asking.get(target, asking.get(source))
        if request is not None and request != number:
            by_request[request].append(case.flow(number))
    return by_request


def ignored_answers(transfers: dict[int, list[FlowRow]]) -> dict[tuple[str, str], list[FlowRow]]:
    """Returns by server and client the flows in which one packet comes again and again, and nothing goes back."""
    ignored: dict[tuple[str, str], list[FlowRow]] = defaultdict(list)
    for row in (row for rows in transfers.values() for row in rows):
        if row["one_way"] and row["packets"] >= REPEATS_MIN and (row["payload_bytes"] or 0) % row["packets"] == 0:
            ignored[row["source"], row["destination"]].append(row)
    return ignored


@cause(
    code="tftp-not-begun",
    title="A TFTP transfer never begins",
    sentence="{what}.",
    advice="{advice}",
    shows="A request goes to UDP 69, and the server sends at least three packets, all of one size, to the port that asked. "
    "None comes back, so the client acknowledges nothing. Or a client sends at least three requests and no packet comes to "
    "its port.",
    rivals={
        "one-direction": "requests of the client are in the capture, and packets to it",
        "udp-silent": "the server answers, from another port, as TFTP does",
    },
    unknown="Whether the client got the packet and rejected it, or it was dropped on the way.",
    explains=("one-way",),
)
def tftp_not_begun(case: Case) -> Matches:
    requests = read_requests(case)
    if not requests:
        return
    transfers = transfers_of(case, requests)
    silent: dict[tuple[str, str], list[FlowRow]] = defaultdict(list)
    for request in requests:
        answers = transfers.get(request["flow"], [])
        if not answers:
            silent[request["source"], request["destination"]].append(request)
    yield from (ignored_match(case, *ends, rows) for ends, rows in ignored_answers(transfers).items())
    for (client, server), rows in silent.items():
        sent = sum(row["packets"] for row in rows)
        leases = leases_of(case, client)
        is_heard = bool(leases) or answering_hosts(case, client) > 0
        if sent >= REPEATS_MIN and is_heard and not any(row["icmp_errors"] for row in rows):
            yield deaf_match(case, client, server, rows, server in leases)


def leases_of(case: Case, client: str) -> set[str]:
    """Returns the DHCP servers that confirmed the address of a client: what they send may go to all, so that no flow has it."""
    rows = exchanges_of(case.transfers, "dhcp")
    return {row["server"] for row in rows if row["client"] == client and row["code"] == "ACK" and row["server"]}


def ignored_match(case: Case, server: str, client: str, rows: list[FlowRow]) -> Match:
    """Returns the match of a server whose first packet the client does not acknowledge."""
    flows, sent, waited = [row["flow"] for row in rows], sum(row["packets"] for row in rows), union_ns(spans_of(rows))
    is_option = (rows[0]["payload_bytes"] or 0) <= OPTIONS_MOST * rows[0]["packets"]
    refused = sum(row["icmp_errors"] for row in rows)
    first = "the server's option reply (OACK)" if is_option else "the first block"
    case.claimed.update(flows)
    return Match(
        certainty="proven",
        place="client",
        flows=flows,
        failed=len(rows),
        attempts=len(rows),
        waited_ns=waited,
        frames=first_packets(case.transfers, flows),
        packets=sent,
        filter=flow_filter(rows[0]),
        proof=f"{plural(sent, 'datagram')} of one size, and none back",
        excluded={"one-direction": "the requests of the client are in the capture", "udp-silent": "the server answers"},
        what=f"The TFTP client {client} never acknowledges {first}: {server} sent it {plural(sent, 'time')} in "
        f"{show_duration(waited or 0)}, so {'no transfer began' if len(rows) > 1 else 'the transfer never began'}"
        + (", and ICMP errors came back" if refused else ""),
        advice=f"The server answers from a new port ({rows[0]['source_port']}), as TFTP does: allow it in at {client} and at "
        "firewalls (a TFTP helper)"
        + (
            ", or turn options off at the server (blksize, tsize) if the boot ROM does not know them."
            if is_option
            else "."
        ),
    )


def deaf_match(case: Case, client: str, server: str, rows: list[FlowRow], is_dhcp: bool) -> Match:
    """Returns the match of a server that answers no request; `is_dhcp`: the client has its address of it."""
    flows, sent, waited = [row["flow"] for row in rows], sum(row["packets"] for row in rows), union_ns(spans_of(rows))
    case.claimed.update(flows)
    return Match(
        certainty="proven",
        place="server",
        flows=flows,
        failed=1,
        attempts=1,
        waited_ns=waited,
        frames=first_packets(case.transfers, flows),
        packets=sent,
        filter=f"udp.dstport == {PORT} && {family(client)}.src == {client}",
        proof=f"{plural(sent, 'request')} without a packet or an ICMP error for the port that asked",
        excluded={"one-direction": "other packets come to the client"},
        what=f"{server} answers no TFTP request of {client}: {plural(sent, 'request')} got neither a block nor an error"
        + (
            ". It is the client's DHCP server, too, which a client asks that knows no other boot server"
            if is_dhcp
            else ""
        ),
        advice=(
            f"Let {server} name the host with the boot files (next-server, option 66), or check" if is_dhcp else "Check"
        )
        + f" that a TFTP server runs on {server} (`ss -lun`), and that firewalls allow UDP {PORT} in and the answer from "
        "another port out.",
    )


class Lockstep(NamedTuple):
    """A transfer of which each block waits for the ACK of the one before."""

    blocks: DirectionRow
    acks: DirectionRow
    each_ns: float  # for a block and its ACK
    life_ns: float


def lockstep_of(case: Case, row: FlowRow) -> Lockstep | None:
    """Returns what a flow of blocks and ACKs shows, if none waited for a timer; None if it is no such transfer."""
    sides = (case.direction(row["flow"], 0), case.direction(row["flow"], 1))
    acks, blocks = sorted(sides, key=lambda each: each["payload_bytes"] or 0)
    count, life_ns = blocks["packets"] or 0, (row["last_ns"] or 0) - (row["first_ns"] or 0)
    are_acks = (acks["payload_bytes"] or 0) == ACK_BYTES * acks["packets"] > 0
    if count < BLOCKS_LEAST or not are_acks or abs(count - acks["packets"]) > UNPAIRED * count:
        return None
    inside = case.transfers.bins_at(row["flow"], blocks["direction"]).packets[1:-1]
    if len(inside) < BINS_LEAST or variation(inside) > EVEN or min(inside) <= 0 or life_ns / count < EACH_NS:
        return None
    return Lockstep(blocks, acks, life_ns / count, life_ns)


@cause(
    code="tftp-lockstep",
    title="TFTP sends one block per round trip",
    sentence="TFTP waits for the ACK of each block: {server} sent {client} {blocks} of {size} one at a time, one each {each}, "
    "so {all} took {time}, {rate}.",
    advice="Load large files by HTTP (iPXE, UEFI HTTP boot), or negotiate larger blocks (`blksize`, 1428 fit an Ethernet "
    "frame in a tunnel) and several at once (`windowsize`, RFC 7440) at {client} and {server}; put the boot server near its "
    "clients.",
    shows="After a request to UDP 69, a flow from its server to the port that asked has at least 100 blocks and as many ACKs "
    "of 4 bytes. A block takes at least 2 ms and all take 3 s, evenly (their number in a time bin varies by half at most): no "
    "timer of a lost block.",
    rivals={
        "random-loss": "a lost block waits for a timer of a second or more, and no such pause is there",
        "slow-server": "a ping of the server takes as long as a block",
    },
    unknown="Whether the round trip, or one of both ends, takes the time of a block, if no other packets show it.",
)
def tftp_lockstep(case: Case) -> Matches:
    requests = read_requests(case)
    for rows in transfers_of(case, requests).values() if requests else ():
        for row in rows:
            steps = lockstep_of(case, row)
            if steps is None or steps.life_ns < LONG_NS:
                continue
            blocks, server, client = steps.blocks, steps.blocks["source"], steps.blocks["destination"]
            sent = blocks["payload_bytes"] or 0
            yield Match(
                certainty="proven",
                place="path",
                flows=[row["flow"]],
                waited_ns=steps.life_ns,
                frames=first_packets(case.transfers, [row["flow"]]),
                filter=flow_filter(row),
                proof=f"{plural(blocks['packets'], 'block')} and {plural(steps.acks['packets'], 'ACK')} in turn, without a pause",
                excluded={"random-loss": "no block waited for a timer"},
                undecided={
                    "slow-server": f"ping {server} from {client}: is the round trip {show_duration(steps.each_ns)}?"
                },
                server=server,
                client=client,
                blocks=plural(blocks["packets"] or 0, "block"),
                size=show_bytes(round(sent / max(blocks["packets"] or 1, 1)) - ACK_BYTES),
                each=show_duration(steps.each_ns),
                all=show_bytes(sent),
                time=show_duration(steps.life_ns),
                rate=show_rate(8e9 * sent / steps.life_ns),
            )
