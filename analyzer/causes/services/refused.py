# SPDX-License-Identifier: Apache-2.0
"""Services that say no: logins, shares, mail, boot files and tunnels that a server refuses, and a time server without time."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, Severity, cause
from wiretale.analyzer.causes.services.dialogs import facts_of, hellos_in_words
from wiretale.analyzer.causes.services.refusal_words import (
    ABORTED,
    FTP_DATA,
    FTP_FAILURES,
    INSTEAD,
    INTERMEDIATE,
    NEEDED,
    PROTOCOLS,
    REASONS,
    Protocol,
)
from wiretale.analyzer.findings.exchanges.exchange_rows import named
from wiretale.analyzer.findings.shared.servers import family
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import ExchangeRow

NTP = "NTP"
BOOT_FILES = ("TFTP read", "TFTP write")
SMB_1, SMB_PORT = "SMB 1 negotiation", 445
RATE = "RATE"
KISSES = (RATE, "DENY", "RSTR")
TIMES_MIN = 2  # answers of a server without time
CLIENT_SAYS = "client: "
NO_SERVICE_NAME = "KDC_ERR_S_PRINCIPAL_UNKNOWN"
TEXT_MOST = 63  # bytes of an answer that the core keeps


class Refusals(NamedTuple):
    """The refusals of one kind that a client got from a server, with one answer."""

    client: str
    server: str
    type: str
    answer: str
    rows: list[ExchangeRow]
    accepted: int  # requests of this kind that the server accepted, of whomever

    @property
    def protocol(self) -> Protocol:
        return PROTOCOLS[self.type]

    @property
    def names(self) -> list[str]:
        """Who or what was refused."""
        return sorted({name_of(row) for row in self.rows if row["name"]})


def name_of(row: ExchangeRow) -> str:
    """Returns the name of a request with its spaces and backslashes; other bytes stay escaped."""
    return (row["name"] or "").replace("\\032", " ").replace("\\092", "\\")


def is_command(row: ExchangeRow) -> bool:
    """Returns whether a request is a line of mail or FTP, of which a connection has several."""
    return row["type"] in NEEDED


def word_of(row: ExchangeRow) -> str:
    """Returns the first word of a command."""
    return name_of(row).partition(" ")[0].upper()


def is_refusal(row: ExchangeRow) -> bool:
    """Returns whether an answer refuses what the client cannot do without."""
    answer = row["code"] or ""
    if row["outcome"] != "refused":
        return False
    if row["type"] in NEEDED:
        is_of_data = word_of(row) in FTP_DATA and answer.startswith("5")
        is_failure = row["type"] != "FTP command" or answer[:3] in FTP_FAILURES or is_of_data
        return is_failure and word_of(row) in NEEDED[row["type"] or ""]
    return not answer.startswith(ABORTED)


def is_success(row: ExchangeRow) -> bool:
    """Returns whether a request was granted."""
    return row["outcome"] == "answered" and (row["code"] or "") not in INTERMEDIATE


def enough_of(row: ExchangeRow) -> list[tuple[str | None, ...]]:
    """Returns what makes a refusal harmless if it succeeds later: the same, or what goes on without it."""
    instead = INSTEAD.get(word_of(row), ()) if is_command(row) else ()
    return [whom_of(row), *((*whom_of(row)[:3], word) for word in instead)]


def whom_of(row: ExchangeRow) -> tuple[str | None, ...]:
    """Returns what must not have succeeded for a refusal to matter. Whoever boots asks for one file after another."""
    protocol = PROTOCOLS.get(row["type"] or "")
    who = name_of(row) if protocol and protocol.by_name else None
    return row["client"], row["server"], row["type"], who


def alike(row: ExchangeRow) -> tuple[str | None, ...]:
    """Returns what requests of one kind have in common, whoever asks: of commands, the first word."""
    return row["server"], row["type"] or "", word_of(row) if is_command(row) else None


def refusals(case: Case) -> list[Refusals]:
    """Returns the refusals of each client and server, without those of whom the server accepts later."""
    rows = [row for row in case.exchanges("kind", "service") if row["type"] in PROTOCOLS]
    granted: dict[tuple[str | None, ...], int] = {}  # the last time, by name and to anybody of the client
    accepted: dict[tuple[str | None, ...], int] = defaultdict(int)
    for number, row in enumerate(rows):
        if is_success(row):
            granted[whom_of(row)] = number
            if is_command(row):
                granted[(*whom_of(row)[:3], word_of(row))] = number
            else:  # a login without a name may be anybody's
                granted[(*whom_of(row)[:3], "")] = number
            accepted[alike(row)] += 1
    refused: dict[tuple[str, str, str, str], list[ExchangeRow]] = defaultdict(list)
    for number, row in enumerate(rows):
        if is_refusal(row) and not any(granted.get(key, -1) > number for key in enough_of(row)):
            refused[row["client"] or "?", row["server"] or "?", row["type"] or "", row["code"] or ""].append(row)
    return [Refusals(*ends, refusing, accepted[alike(refusing[0])]) for ends, refusing in refused.items()]


def whom_str(each: Refusals) -> str:
    """` of alice, bob and 3 more`; empty without names."""
    return " ".join(("", *filter(None, (each.protocol.of, named(each.names))))) if each.names else ""


def whole_words(answer: str) -> str:
    """Returns an answer without a last word that was cut."""
    return f"{answer.rsplit(' ', 1)[0]} …" if len(answer) >= TEXT_MOST and " " in answer else answer


def means(answer: str, words: str) -> bool:
    """Returns whether an answer has these words, or begins with this number."""
    return answer.startswith(words) if words.endswith(" ") else words in answer


def reason_str(answer: str) -> str:
    """` (it wants signing, StartTLS or LDAPS)`; empty if the answer says it all."""
    reason = next((text for words, text in REASONS.items() if means(answer, words)), "")
    return f" ({reason})" if reason else ""


@cause(
    code="service-refused",
    title="A service refuses",
    sentence='{who} refuses {what}{whom}: it answered {asker} "{answer}"{times}{reason}.',
    advice="{advice}",
    shows="The first bytes of an answer say no: LDAP, SMB, Kerberos, RDP, MQTT, MySQL, PostgreSQL, Redis, SMTP, POP3, FTP, TFTP "
    "and IKE, unless the same is granted later. Steps of a login, words that a server does not know, and an end of a boot file "
    "that the client wants do not count. A single refusal is a note if the server accepts others.",
    rivals={
        "reset-by-peer": "the server answered before it closed",
        "turned-away": "the answer itself says it",
        "error-answers": "it is no answer of DNS or HTTP",
    },
    unknown="Why, beyond what the answer says: the log of the service has it.",
    explains=("reset", "one-way"),
)
def service_refused(case: Case) -> Matches:
    explained = case.flows_of("ftp-active-blocked", "host-blocked")
    to_hellos = {(row["client"], row["server"]) for row in hellos_in_words(case).values()}  # not-tls has these
    for each in refusals(case):
        if (each.client, each.server) in to_hellos and not each.names:
            continue
        if each.type != NTP and not explained.intersection(facts_of(case, each.rows, each.protocol.ports)["flows"]):
            yield refused_match(case, each)


def is_usual(each: Refusals) -> bool:
    """Returns whether clients go on without what was refused: without a service name, Windows turns to NTLM."""
    return each.type == "Kerberos ticket" and each.answer == NO_SERVICE_NAME


def severity_of(each: Refusals) -> Severity | None:
    """Returns the severity, None for an error: a single refusal beside requests that are accepted is a note, and so are some
    beside as much mail that is, or as many files of which a client asks for each once: phones try for those that it may lack."""
    if is_usual(each):
        return "warning"
    are_several = each.type == "SMTP command" or (each.type in BOOT_FILES and len(each.names) == len(each.rows))
    some = len(each.rows) if are_several else 1
    return "info" if len(each.rows) <= some <= each.accepted else None


def refused_match(case: Case, each: Refusals) -> Match:
    """Returns the match of requests that a service refuses."""
    protocol, count = each.protocol, len(each.rows)
    by_client = each.answer.startswith(CLIENT_SAYS)
    who = f"The {protocol.name} client {each.client}" if by_client else f"The {protocol.name} server {each.server}"
    answer = each.answer.removeprefix(CLIENT_SAYS)
    return Match(
        certainty="proven",
        place="client" if by_client else "server",
        failed=None if is_usual(each) else count,
        attempts=None if is_usual(each) else count + each.accepted,
        severity=severity_of(each),
        filter=f"{protocol.filter} && ip.addr == {each.server}",
        proof=f'{plural(count, "answer")} "{answer}"',
        excluded={"reset-by-peer": "the answer came", "turned-away": "the answer says it"},
        who=who,
        what=f"what {each.server} offers{' for' if each.names else ''}"
        if by_client
        else protocol.what
        if each.names
        else protocol.unnamed,
        whom=whom_str(each),
        asker=each.server if by_client else each.client,
        times="" if count == 1 else f" {count:,} times",
        answer=whole_words(answer),
        reason=reason_str(answer),
        advice=protocol.advice.format(server=each.server, client=each.client),
        **facts_of(case, each.rows, protocol.ports),
    )


@cause(
    code="time-refused",
    title="A time server has no time",
    sentence="The NTP server {server} {says}: {count} to {clients} {is_so}, so that nobody takes its time.",
    advice="{advice}",
    shows="All answers of a time server, at least two, say that it is not synchronized (leap 3 or stratum 16), or are a kiss "
    "of death (stratum 0).",
    rivals={"udp-silent": "it answers"},
    unknown="Why it has no time: its own servers may not answer, or it was just started.",
)
def time_refused(case: Case) -> Matches:
    by_server: dict[str, list[ExchangeRow]] = defaultdict(list)
    for row in case.exchanges("kind", "service"):
        if row["type"] == NTP and row["outcome"] in ("answered", "refused"):
            by_server[row["server"] or "?"].append(row)
    for server, rows in by_server.items():
        answers = [row["code"] or "" for row in rows]
        if len(rows) >= TIMES_MIN and not any(row["outcome"] == "answered" for row in rows):
            yield time_match(case, server, rows, max(set(answers), key=answers.count))


def time_match(case: Case, server: str, rows: Sequence[ExchangeRow], answer: str) -> Match:
    """Returns the match of a server that gives no time."""
    clients, is_kiss = sorted({row["client"] or "?" for row in rows}), answer in KISSES
    facts = facts_of(case, rows, PROTOCOLS[NTP].ports)
    return Match(
        certainty="proven",
        place="server",
        failed=len(clients),
        attempts=len(clients),
        filter=f"ntp && {family(server)}.src == {server}",
        proof=f'{plural(len(rows), "answer")}, the last "{rows[-1]["code"]}"',
        excluded={"udp-silent": "it answers"},
        server=server,
        says="sends its clients away" if is_kiss else "is not synchronized itself",
        count=f"all {plural(len(rows), 'answer')}",
        clients=named(clients),
        is_so=f'are a kiss of death ("{answer}")' if is_kiss else f'say "{answer}"',
        advice=f"Let {clients[0]} ask less often, or another server."
        if is_kiss
        else f"See on {server} whether its own servers answer (`ntpq -pn`, `chronyc sources`); after a start it takes minutes.",
        **facts,
    )


def gaps_of(rows: Sequence[ExchangeRow]) -> dict[int, int]:
    """Returns for each request of a client, by its number, the time since the one before it, ns."""
    times = [row["asked_ns"] or 0 for row in rows]
    return {number: times[number] - times[number - 1] for number in range(1, len(rows))}


@cause(
    code="time-limited",
    title="A time server sends away a client that asks too often",
    sentence="The NTP server {server} sends away {count} of {requests} of {client} by a kiss of death ({answer}): {why}.",
    advice="Let {client} ask less often (`minpoll`, or one program in place of several), or exempt it on {server} (ntpd: "
    "`restrict` "
    "without `limited`, chronyd: `ratelimit`). Let the program take such an answer for no time at all, and not for a fault.",
    shows="Of the answers of a time server to a client, at least two are a kiss of death (stratum 0 with RATE, DENY or RSTR), "
    "and "
    "others have the time. All of them say RATE, or come sooner after the request before than all others.",
    rivals={"time-refused": "it gives the time to other requests", "some-unanswered": "each request gets an answer"},
    unknown="How often the server lets a client ask.",
)
def time_limited(case: Case) -> Matches:
    by_ends: dict[tuple[str, str], list[ExchangeRow]] = defaultdict(list)
    for row in case.exchanges("kind", "service"):
        if row["type"] == NTP:
            by_ends[row["client"] or "?", row["server"] or "?"].append(row)
    for (client, server), of in by_ends.items():
        rows = sorted(of, key=lambda row: row["asked_ns"] or 0)
        kissed = [number for number, row in enumerate(rows) if row["outcome"] == "refused" and row["code"] in KISSES]
        match = limit_match(case, (client, server), rows, kissed) if len(kissed) >= TIMES_MIN else None
        if match and any(row["outcome"] == "answered" for row in rows):
            yield match


def limit_match(case: Case, ends: tuple[str, str], rows: Sequence[ExchangeRow], kissed: Sequence[int]) -> Match | None:
    """Returns the match of a client that a time server turns away now and then; `kissed`: the numbers of these requests.
    None if neither its words nor the times of the requests say that they were too many."""
    gaps, refused = gaps_of(rows), [rows[number] for number in kissed]
    short = [gaps[number] for number in kissed if number in gaps]
    granted_gaps = [gap for number, gap in gaps.items() if number not in kissed]
    is_shorter = len(short) == len(kissed) and bool(granted_gaps) and max(short) < min(granted_gaps)
    if not is_shorter and any(row["code"] != RATE for row in refused):
        return None
    return Match(
        certainty="proven",
        place="client",
        failed=len(kissed),
        attempts=len(rows),
        filter=f"ntp.stratum == 0 && {family(ends[1])}.src == {ends[1]}",
        proof=f"{plural(len(kissed), 'kiss', 'kisses')} of death among {plural(len(rows), 'answer')}",
        excluded={"time-refused": "it gives the time to other requests"},
        client=ends[0],
        server=ends[1],
        count=f"{len(kissed):,}",
        requests=plural(len(rows), "request"),
        answer=named(sorted({str(row["code"]) for row in refused})),
        why=f"they came within {show_duration(max(short))} of the one before, all others after "
        f"{show_duration(min(granted_gaps))} "
        f"or more"
        if is_shorter
        else "it asks more often than the server allows",
        **{**facts_of(case, refused, PROTOCOLS[NTP].ports), "waited_ns": None},
    )


@cause(
    code="only-smb1",
    title="A client speaks only SMB 1",
    sentence="{client} offers {server} no later version than SMB 1, and the server {ends} without an answer{times}: it "
    "probably has SMB 1 turned off.",
    advice="Let {client} use SMB 2 or later: a newer firmware or client, `vers=3.0` of mount.cifs.",
    shows="A negotiation that names SMB 1 dialects alone gets no answer, and the server closes or resets the connection.",
    rivals={
        "closed-unanswered": "the request names no version that servers still have",
        "reset-by-device": "the same server and client speak no later version with each other",
        "service-refused": "no answer came",
    },
    unknown="Whether the server has SMB 1 turned off, or a device in between forbids it.",
    explains=("reset",),
)
def only_smb1(case: Case) -> Matches:
    by_ends: dict[tuple[str, str], list[ExchangeRow]] = defaultdict(list)
    for row in case.exchanges("kind", "service"):
        if row["type"] == SMB_1 and not row["answered_frame"]:
            by_ends[row["client"] or "?", row["server"] or "?"].append(row)
    for (client, server), rows in by_ends.items():
        facts = facts_of(case, rows, (SMB_PORT,))
        if facts["flows"] and all(is_turned_down(case, flow) for flow in facts["flows"]):
            yield smb_1_match(case, client, server, facts)


def smb_1_match(case: Case, client: str, server: str, facts: dict[str, Any]) -> Match:
    """Returns the match of a client whose negotiations a server ends."""
    flows = facts["flows"]
    resets = any(case.direction(flow, 1)["resets"] for flow in flows)
    return Match(
        certainty="likely",
        place="client",
        failed=len(flows),
        attempts=len(flows),
        filter=f"smb && ip.addr == {server}",
        proof=f"{plural(facts['packets'], 'negotiation')} without an answer",
        excluded={"service-refused": "no answer came"},
        undecided={"reset-by-device": f"a capture on {server}: does it end the connection itself?"},
        client=client,
        server=server,
        ends="resets the connection" if resets else "closes",
        times="" if len(flows) == 1 else f" {len(flows)} times",
        **facts,
    )


def is_turned_down(case: Case, flow: int) -> bool:
    """Returns whether the server ended a connection without a word."""
    server = case.direction(flow, 1)
    return not server["payload_bytes"] and bool(server["fins"] or server["resets"])
