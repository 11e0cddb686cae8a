# SPDX-License-Identifier: Apache-2.0
"""TLS handshakes that fail: the port speaks no TLS, or an end refused, by the meaning of its alert (RFC 8446 section 6.2), or
without one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import filter_of, largest_groups, of_connections, server_str
from wiretale.analyzer.causes.ended.answer_ends import is_all_seen
from wiretale.analyzer.causes.services.dialogs import hellos_in_words
from wiretale.analyzer.causes.services.refusal_words import PROTOCOLS
from wiretale.analyzer.findings.evidence import SHOWN, Cited
from wiretale.analyzer.findings.exchanges.exchange_rows import exchanges_of, packets_of
from wiretale.analyzer.units import plural, show_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.causes.connections import Connection, End
    from wiretale.analyzer.findings.model import Words
    from wiretale.analyzer.rows import DirectionRow, ExchangeRow, HandshakeRow

ROWS_MAX = 20_000
AT_ONCE_NS = 5_000_000_000  # from the server's first message to the last packet of a client that turns away
ALERT_WAIT_NS = 1_500_000_000  # for an alert behind the handshake: a server that closes later had waited for a request
ALERT_BYTES = 24  # an alert of TLS 1.3, which is encrypted: header, two bytes, type, tag
#: alert: what the end that sent it, {end}, means; what to do
MEANINGS = {
    "handshake_failure": (
        "{End} found no common cipher or parameters",
        "Compare what both ends offer (`openssl s_client -connect {where} -cipher ALL`, `nmap --script ssl-enum-ciphers`).",
    ),
    "insufficient_security": (
        "{End} demands stronger ciphers than the other end offers",
        "Let the older end offer stronger ciphers, or update it.",
    ),
    "bad_certificate": ("{End} cannot read or verify {other} certificate", "Check the certificate and its chain."),
    "unsupported_certificate": (
        "{End} does not support the kind of {other} certificate",
        "Use a usual kind of certificate.",
    ),
    "certificate_revoked": ("{Other} certificate is revoked", "Install a new certificate."),
    "certificate_expired": (
        "{Other} certificate has expired, or a clock is wrong",
        "Renew the certificate, and check the clocks of both ends (`openssl s_client -connect {where}` shows the dates).",
    ),
    "certificate_unknown": (
        "{End} does not accept {other} certificate",
        "Check the certificate, its name and its chain.",
    ),
    "unknown_ca": (
        "{End} does not trust {other} certificate",
        "Install the issuer's CA certificate at the end that refused, or let the other end send the whole chain "
        "(`openssl s_client -connect {where} -showcerts`).",
    ),
    "protocol_version": (
        "{End} does not support the TLS version that the other end offers",
        "Update the older end, or allow its TLS version (`openssl s_client -connect {where} -tls1_2`).",
    ),
    "unrecognized_name": (
        "{End} has no certificate for the name that was asked for",
        "Check the name (SNI) and the server's sites.",
    ),
    "certificate_required": (
        "{End} demands a client certificate, and none came",
        "Give the client a certificate and its key.",
    ),
    "no_application_protocol": (
        "{End} supports none of the application protocols offered (ALPN)",
        "Compare the ALPN lists of both ends.",
    ),
    "access_denied": (
        "{End} denies access to a valid certificate",
        "Look at the access rules of the end that refused.",
    ),
    "decrypt_error": (
        "{End} could not verify a signature or key of the handshake",
        "Compare keys and certificates of both ends.",
    ),
    "internal_error": ("{End} failed by itself", "Look at the log of the end that sent the alert."),
    "inappropriate_fallback": (
        "{End} refuses that the client falls back to an older version",
        "Let the client offer its newest version.",
    ),
    "encrypted": (
        "{End} probably refused, in an alert that is encrypted",
        "Look at the log of the end that sent the alert, or analyze with its keys (SSLKEYLOGFILE).",
    ),
}
OTHER = ("{End} ended the handshake", "Look at the log of the end that sent the alert.")
#: the same after a ServerHello, which chose the parameters
CHOSEN = (
    "{End} probably demands a client certificate, and none came that it accepts",
    "Give the client a certificate and its key (`curl --cert`, a keystore): a CertificateRequest comes before the alert. The "
    "log of the server has its reason.",
)

#: services of lines that go over to TLS by a command
UPGRADED = ("SMTP command", "POP3 command", "FTP command", "IMAP login")
#: refusals of a server that may be to a ClientHello without its name
NAMELESS_ALERTS = ("handshake_failure", "internal_error", "unrecognized_name", "access_denied", "missing_extension")
NAMELESS = (
    "{End} probably serves no client that does not name it (SNI), which {hellos} did not",
    "Let the client send the server's name (SNI; `openssl s_client -connect {where} -servername NAME`, `curl --resolve` in place "
    "of an address in the URL).",
)


def answered_otherwise(case: Case) -> list[ExchangeRow]:
    """Returns the ClientHellos that were answered by something without a ServerHello or an alert, from the first byte on, in
    captures of whole packets."""
    if any(row["truncated_packets"] for row in case.trace.interfaces.rows()):
        return []
    flows = {
        row["flow"]
        for row in case.trace.handshakes.rows(0, ROWS_MAX)
        if row["protocol"] == "tls"
        and row["client_hello_frame"] is not None
        and row["server_hello_frame"] is None
        and (row["alert"] is None or row["alert_direction"] == case.connections[row["flow"]].client_side)
    }
    rows = exchanges_of(case.transfers, "tls") if flows else []
    return [row for row in rows if row["flow"] in flows and row["response_bytes"] and ended_at_once(case, row)]


def ended_at_once(case: Case, row: ExchangeRow) -> bool:
    """Returns whether all bytes of the server are that answer, in the capture from the first on, and it closed or was refused,
    or the client left at once."""
    connection = case.connections[row["flow"] or 0]
    client, server = (connection.directions[side] for side in (connection.client_side, connection.server_side))
    is_whole = server["unique_bytes"] == row["response_bytes"] and connection.flow["initiator_evidence"] == "syn"
    return is_whole and bool(
        server["fins"] or row["outcome"] == "error" or (is_left(client, row) and is_all_seen(connection))
    )


def is_left(client: DirectionRow, row: ExchangeRow) -> bool:
    """Returns whether a client ended the connection right after the answer to its ClientHello, without another byte."""
    is_last = client["unique_bytes"] == row["request_bytes"] and bool(client["fins"] or client["resets"])
    return is_last and (client["last_ns"] or 0) - (row["answered_ns"] or 0) <= AT_ONCE_NS


@cause(
    code="not-tls",
    title="The port does not speak TLS",
    sentence="{server} does not speak TLS{from_start}: it answered {hellos} of {client} with {size} of {protocol}{refusal}.",
    advice="{todo}",
    shows="A ClientHello is the first data of a connection, and its answer is neither a ServerHello nor an alert. Then the "
    "server closes, the client sends an alert, or it closes within 5 s without another byte. If the answer is a refusal of mail "
    "or FTP, the sentence names that protocol.",
    rivals={
        "tls-refused": "no ServerHello and no alert of the server came, so no version or cipher was refused",
        "closed-unanswered": "the server sent data",
    },
    unknown="Which protocol it speaks, unless the answer is a refusal of mail or FTP: the bytes of the answer say that.",
    explains=("tls-alert", "reset"),
)
def not_tls(case: Case) -> Matches:
    rows = answered_otherwise(case)
    alerts = {row["flow"]: row["alert"] for row in case.trace.handshakes.rows(0, ROWS_MAX)} if rows else {}
    in_words = hellos_in_words(case) if rows else {}
    for (host, port), group in largest_groups(rows, lambda row: case.connections[row["flow"] or 0].server):
        connections = [case.connections[row["flow"] or 0] for row in group]
        refusal = next((row for each in connections if (row := in_words.get(each.number))), None)
        yield Match(
            certainty="proven",
            place="server",
            failed=len(group),
            attempts=max(len(case.connections.to_server((host, port))), len(group)),
            frames=packets_of(group),
            proof="the answer to the ClientHello is neither a ServerHello nor an alert",
            excluded={
                "tls-refused": "the server sent no alert, and no ServerHello that a client could refuse",
                "closed-unanswered": "it answered",
            },
            size=sizes_str(group),
            **who_words(connections, {str(alert) for each in connections if (alert := alerts[each.number])}),
            **plain_words(refusal, host, port),
            **of_connections(connections),
        )


def who_words(connections: Sequence[Connection], alerts: set[str]) -> Words:
    """Returns the words about the clients whose ClientHellos got another answer, and the alerts by which they ended."""
    clients = {each.end(each.client_side)[0] for each in connections}
    return {
        "hellos": "the ClientHello" if len(connections) == 1 else f"all {len(connections):,} ClientHellos",
        "client": min(clients) if len(clients) == 1 else plural(len(clients), "client"),
        "refusal": f", and the client ended the handshake with alert {min(alerts)}" if alerts else "",
    }


def plain_words(refusal: ExchangeRow | None, host: str, port: int | None) -> Words:
    """Returns the words about the protocol that a port speaks in place of TLS; `refusal`: its answer in a protocol of lines."""
    if refusal is None or refusal["type"] not in UPGRADED:
        return {
            "from_start": "",
            "protocol": "another protocol, such as plain HTTP",
            "todo": f"Let the client speak plain text to port {port} (`http://` instead of `https://`), or use the port that has "
            f"TLS; `curl -v http://{host}:{port}/` shows what it speaks.",
        }
    name, answer = PROTOCOLS[refusal["type"] or ""].name, refusal["code"] or ""
    return {
        "from_start": " from the first byte on",
        "protocol": f'plain {name} ("{answer}")',
        "todo": f"Let the client begin in plain text and ask for TLS (STARTTLS, AUTH TLS of FTP) at port {port}, or use the port "
        f"that has TLS from the start (SMTP 465, IMAP 993, POP3 995, FTP 990).",
    }


def sizes_str(rows: Sequence[ExchangeRow]) -> str:
    """Returns `272 B`, or `180 to 272 B`."""
    sizes = sorted(row["response_bytes"] or 0 for row in rows)
    return show_bytes(sizes[0]) if sizes[0] == sizes[-1] else f"{show_bytes(sizes[0])} to {show_bytes(sizes[-1])}"


@cause(
    code="tls-refused",
    title="TLS handshake refused",
    sentence="{meaning}: {who} ended {handshakes}{server} with {alert}.",
    advice="{todo}",
    shows="The handshake has an alert other than close_notify (handshakes.alert). RFC 8446 section 6.2 has the meaning.",
    rivals={
        "reset-by-device": "an alert came, and no RST right after the ClientHello",
        "hung-server": "an answer came",
    },
    unknown="Details that only the log of the end that refused has. An encrypted alert has no name.",
    explains=("tls-alert", "reset"),
)
def tls_refused(case: Case) -> Matches:
    findings = case.findings("tls-alert")
    if not findings:
        return
    handshakes = case.transfers.without_legs(case.trace.handshakes.rows(0, ROWS_MAX))
    rows = [row for row in handshakes if row["protocol"] == "tls" and row["alert"]]

    def who(row: HandshakeRow) -> tuple[object, ...]:
        connection = case.connections[row["flow"]]
        return connection.server, row["alert"], row["alert_direction"] == connection.client_side

    explained = case.flows_of("not-tls")
    rows = [row for row in rows if row["flow"] not in explained]
    for (_, alert, by_client), group in largest_groups(rows, who):
        connections = [case.connections[row["flow"]] for row in group]
        named = [
            each for each in findings if {flow for flow, _ in each.finding.flows} & {c.number for c in connections}
        ]
        if named:
            yield refused_match(case, str(alert), bool(by_client), group, connections)


def is_chosen(alert: str, by_client: bool, group: Sequence[HandshakeRow]) -> bool:
    """Returns whether a server refuses after its own hello, so that versions and ciphers were agreed upon."""
    return (
        alert == "handshake_failure" and not by_client and all(row["server_hello_frame"] is not None for row in group)
    )


def are_nameless(
    case: Case, alert: str, by_client: bool, group: Sequence[HandshakeRow], connections: Sequence[Connection]
) -> bool:
    """Returns whether a server refuses all ClientHellos without its name, and none that has it."""
    if by_client or alert not in NAMELESS_ALERTS or any(row["server_name"] for row in group):
        return False
    refused = {row["flow"] for row in group}
    rows = [row for row in case.trace.handshakes.rows(0, ROWS_MAX) if row["flow"] not in refused]
    beside = [row for row in rows if case.connections[row["flow"]].server == connections[0].server]
    return bool(beside) and all(row["server_name"] and row["server_hello_frame"] is not None for row in beside)


def words_of(alert: str, by_client: bool, reason: tuple[str, str] | None, connections: Sequence[Connection]) -> Words:
    """Returns the words of the sentence and the advice; `reason`: what the handshakes show beside the alert."""
    host, port = connections[0].server
    meaning, todo = reason or MEANINGS.get(alert, OTHER)
    count = len(connections)
    client = connections[0].end(connections[0].client_side)[0]
    other = "the server's" if by_client else "the client's"
    end = f"The client {client}" if by_client else f"The server {server_str(connections)}"
    is_named = not by_client and meaning.startswith("{End}")
    return {
        "meaning": meaning.format(
            End=end, other=other, Other=other.capitalize(), hellos="this one" if count == 1 else f"these {count:,}"
        ),
        "who": "it" if meaning.startswith("{End}") else end[0].lower() + end[1:],
        "server": "" if is_named or not by_client else f" with {server_str(connections)}",
        "alert": "an encrypted alert" if alert == "encrypted" else f"alert {alert}",
        "todo": todo.format(where=f"{host}:{port}"),
    }


def handshakes_str(refused: int, total: int) -> str:
    """Returns `the TLS handshake`, `all 6 TLS handshakes`, `3 of 8 TLS handshakes`."""
    if refused < total:
        return f"{refused:,} of {plural(total, 'TLS handshake')}"
    return "the TLS handshake" if refused == 1 else f"all {refused:,} TLS handshakes"


def refused_match(
    case: Case, alert: str, by_client: bool, group: Sequence[HandshakeRow], connections: Sequence[Connection]
) -> Match:
    """Returns the match of the handshakes with one server that one end refused alike."""
    handshakes = case.trace.handshakes.rows(0, ROWS_MAX)
    total = sum(case.connections[row["flow"]].server == connections[0].server for row in handshakes)
    capture, is_encrypted = connections[0].flow["first_capture"], alert == "encrypted"
    is_late, is_nameless = is_chosen(alert, by_client, group), are_nameless(case, alert, by_client, group, connections)
    reason = CHOSEN if is_late else NAMELESS if is_nameless else None
    frames = [Cited(row["alert_frame"], row["alert_ns"], row["flow"], capture) for row in group[:SHOWN]]
    return Match(
        certainty="likely" if is_encrypted or reason else "proven",
        place="client" if by_client else "server",
        flows=[connection.number for connection in connections],
        failed=len(group),
        attempts=max(total, len(group)),
        frames=frames if case.transfers.has_one_file else [],
        filter=filter_of(connections),
        proof=f"alert {alert} of {'the client' if by_client else 'the server'}"
        + (", after each ClientHello without a server name and after no other" if is_nameless else ""),
        excluded={"hung-server": "an answer came"},
        undecided={"reset-by-device": "Look at the log of that end: was it an alert?"} if is_encrypted else {},
        handshakes=handshakes_str(len(group), total),
        **words_of(alert, by_client, reason, connections),
    )


def ends_of(case: Case, row: HandshakeRow) -> tuple[End, str]:
    """Returns the server of a handshake, and the address of its client."""
    connection = case.connections[row["flow"]]
    return connection.server, connection.end(connection.client_side)[0]


def turned_away(case: Case) -> list[HandshakeRow]:
    """Returns the handshakes that the client closed soon after the server's messages, without an alert or another byte."""
    rows = case.transfers.without_legs(case.trace.handshakes.rows(0, ROWS_MAX))
    open_ones = [
        row
        for row in rows
        if row["protocol"] == "tls"
        and row["server_hello_frame"] is not None
        and row["finished_frame"] is None
        and row["alert"] is None
    ]
    hellos = {row["flow"]: row for row in exchanges_of(case.transfers, "tls")} if open_ones else {}
    explained = case.flows_of()
    return [
        row
        for row in open_ones
        if row["flow"] in hellos and row["flow"] not in explained and is_turned_away(case, hellos[row["flow"]])
    ]


def is_turned_away(case: Case, hello: ExchangeRow) -> bool:
    """Returns whether a client sent only its ClientHello, got an answer, and closed first within 5 s of it."""
    connection = case.connections[hello["flow"] or 0]
    client, server = (connection.directions[side] for side in (connection.client_side, connection.server_side))
    if client["unique_bytes"] != hello["request_bytes"] or hello["answered_ns"] is None or client["last_ns"] is None:
        return False
    is_first = not server["fins"] or client["last_ns"] > (server["last_ns"] or 0)
    is_whole = not server["timeouts"] and not server["gaps"]  # else its certificate may be lost
    is_closed = bool(client["resets"] or client["fins"]) and not server["resets"] and is_first and is_whole
    return is_closed and client["last_ns"] - hello["answered_ns"] <= AT_ONCE_NS


@cause(
    code="tls-turned-away",
    title="A client leaves the TLS handshake",
    sentence="The client {client} closed {handshakes} with {server} right after the server's messages, without an alert: it "
    "{probably}does not accept the certificate.",
    advice="See the log of the program on {client}, and what it is told of the certificate: its name, dates, chain and issuer "
    "(`openssl s_client -connect {where} -showcerts`).",
    shows="The client sends its ClientHello alone, the server answers with a ServerHello, and within 5 s the client closes "
    "first, by FIN or RST, without an alert. It is a note if other handshakes with this server are completed.",
    rivals={
        "tls-refused": "no alert came",
        "client-gave-up": "the server had answered at once",
        "closed-unanswered": "the client closes, the server does not",
    },
    unknown="Whether it is a probe (health check, scanner, a test of certificates), which also closes here.",
    explains=("reset",),
)
def tls_turned_away(case: Case) -> Matches:
    rows = turned_away(case)
    done = {
        case.connections[row["flow"]].server
        for row in (case.trace.handshakes.rows(0, ROWS_MAX) if rows else ())
        if row["finished_frame"] is not None
    }

    for (server, client), group in largest_groups(rows, lambda row: ends_of(case, row)):
        connections = [case.connections[row["flow"]] for row in group]
        yield Match(
            certainty="likely",
            place="client",
            failed=None if server in done else len(group),
            attempts=None if server in done else len(group),
            severity="info" if server in done else None,
            proof="no byte of the client behind its ClientHello, and its FIN or RST first",
            excluded={"client-gave-up": "the server had answered"},
            undecided={
                "tls-refused": f"Look at the log of {client}: did it refuse the certificate, or only want to see it?"
            },
            client=client,
            handshakes=handshakes_str(len(group), len(group)),
            where=f"{connections[0].server[0]}:{connections[0].server[1]}",
            **of_connections(connections),
        )


def refused_late(case: Case) -> list[HandshakeRow]:
    """Returns the handshakes of TLS 1.3 behind whose end the server sent an alert alone, and closed."""
    rows = case.transfers.without_legs(case.trace.handshakes.rows(0, ROWS_MAX))
    ended = [row for row in rows if row["protocol"] == "tls" and row["version"] == "1.3" and row["finished_frame"]]
    if not ended:
        return []
    messages, explained = exchanges_of(case.transfers, "turn", "tls"), case.flows_of()
    last = {row["flow"]: row for row in messages if row["turn"] is not None}
    return [
        row
        for row in ended
        if row["flow"] in last
        and row["flow"] not in explained
        and is_alert(last[row["flow"]])
        and closes_first(case.connections[row["flow"]])
    ]


def is_alert(turn: ExchangeRow) -> bool:
    """Returns whether the answer to a client's Finished has the size of an alert, and came soon."""
    return turn["turn"] == 1 and turn["response_bytes"] == ALERT_BYTES and (turn["waited_ns"] or 0) <= ALERT_WAIT_NS


def closes_first(connection: Connection) -> bool:
    """Returns whether the server closed, and has the last word: the end that closes first sends the last ACK."""
    client, server = (connection.directions[side] for side in (connection.client_side, connection.server_side))
    is_last = (server["last_ns"] or 0) > (client["last_ns"] or 0)
    return bool(server["fins"]) and (is_last or not client["fins"])


@cause(
    code="tls-late-refusal",
    title="A server refuses behind the TLS handshake",
    sentence="The server {server} {probably}refused {count} of {client} in an encrypted alert, right behind the handshake: it "
    "demands a client certificate, as a rule, and got none that it accepts.",
    advice="Give the client a certificate and its key (`curl --cert`, a keystore), or see the log of {host} for its reason.",
    shows="In TLS 1.3, all that the server sends behind the client's Finished is a record of the size of an alert (24 bytes), "
    "within 1.5 s, and its FIN. There a server judges the client's certificate.",
    rivals={
        "tls-refused": "the handshake was complete for the client",
        "closed-unanswered": "a record of the size of an alert comes first",
        "idle-timeout": "it comes at once",
    },
    unknown="What the alert says: a server that only closes in place of an answer (close_notify) looks alike.",
)
def tls_late_refusal(case: Case) -> Matches:
    for (server, client), group in largest_groups(refused_late(case), lambda row: ends_of(case, row)):
        connections = [case.connections[row["flow"]] for row in group]
        yield Match(
            certainty="likely",
            place="server",
            failed=len(group),
            attempts=max(len(case.connections.to_server(server)), len(group)),
            proof=f"{ALERT_BYTES} bytes of the server behind the handshake, and its FIN",
            excluded={"tls-refused": "the handshake was complete"},
            undecided={"closed-unanswered": f"Look at the log of {server[0]}: an alert, or just a close?"},
            count="the connection" if len(group) == 1 else f"all {len(group):,} connections",
            client=client,
            host=server[0],
            **of_connections(connections),
        )
