# SPDX-License-Identifier: Apache-2.0
"""Wi-Fi stations that an access point does not admit, or removes (IEEE 802.11 sections 9.4.1.7 and 9.4.1.9)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.findings.exchanges.exchange_rows import named, packets_of
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import ExchangeRow

ALL = "ff:ff:ff:ff:ff:ff"
JOINS, STATUS_MOST = ("Association", "Authentication"), 256
STEPS = ("76", "126", "127")  # of WPA3 (SAE): a token is wanted, a hash is used
FLOOD_MIN, FLOOD_NS = 20, 60_000_000_000  # removals of all stations, and the time in which they come
HANDSHAKE, LOGIN = "15", "23"
#: status of an association or authentication: what it means, and what to do
REFUSALS = {
    "1": "without a reason",
    "12": "for a reason outside of the standard, such as a list of MAC addresses",
    "13": "it does not allow this kind of authentication",
    "15": "a wrong key",
    "17": "it cannot take more stations",
    "18": "the station lacks a rate that it demands",
    "27": "the station lacks 802.11n, which it demands",
    "30": "for now: it checks whether an old association is alive (802.11w)",
    "31": "the station lacks protected management frames (802.11w), which it demands",
    "40": "an element of the request is wrong",
    "41": "it does not allow this group cipher",
    "42": "it does not allow this pairwise cipher",
    "43": "they have no key management (WPA2, WPA3) in common",
    "45": "the security capabilities (RSN) of the request are wrong",
    "46": "its policy does not allow this cipher",
    "53": "a PMKID that it does not know",
    "72": "the security element (RSN) of the request is wrong",
    "104": "the station lacks 802.11ac, which it demands",
}
#: reason of a removal: what it means
REMOVALS = {
    "2": "its authentication is no longer valid",
    "4": "it was silent for too long",
    "5": "it has too many stations",
    "6": "it sent frames before it was authenticated",
    "7": "it sent data without an association",
    "14": "a MIC of a frame is wrong",
    HANDSHAKE: "the 4-way handshake got no valid answer in time",
    "16": "the group key handshake got no answer in time",
    "17": "its security settings changed in the handshake",
    LOGIN: "802.1X refused its login",
    "34": "too many frames to it got no acknowledgment: its signal is weak, or it left",
}
#: without which a station has no network; 2 also follows a station's silence (hostapd)
FAILURES = ("14", HANDSHAKE, "17", LOGIN)


def reason_of(row: ExchangeRow) -> str:
    """Returns the number of a status or reason."""
    return (row["code"] or "").rpartition(" ")[2]


def ends_of(row: ExchangeRow) -> tuple[str, str]:
    """Returns station and access point."""
    station, _, point = (row["name"] or "").replace("\\032", " ").partition(" ")
    return station, point


def are_told(case: Case) -> bool:
    """Returns whether stations that join or leave say that something failed."""
    rows = case.exchanges("kind", "wlan")
    removals = [row for row in rows if row["type"] == "Removal"]
    return bool(refused_rows(rows)) or any(
        is_flooded(removed) or is_lasting(rows, number, removed) for (_, number), removed in by_point(removals).items()
    )


def is_lasting(rows: Sequence[ExchangeRow], number: str, removed: Sequence[ExchangeRow]) -> bool:
    """Returns whether stations that were removed have no network: a single one that joins again has."""
    if number not in FAILURES:
        return False
    station = ends_of(removed[0])[0]
    *_, last = (row for row in rows if ends_of(row)[0] == station)
    return len(removed) > 1 or last["type"] != "Association" or last["outcome"] == "refused"


def refused_rows(rows: Sequence[ExchangeRow]) -> list[ExchangeRow]:
    """Returns the refusals, with a status that exists, of stations that no access point admits afterwards."""
    joins = [row for row in rows if row["type"] in JOINS and reason_of(row) not in STEPS]
    last = {ends_of(row)[0]: row["outcome"] for row in joins}
    return [row for row in joins if last[ends_of(row)[0]] == "refused" and 0 < int(reason_of(row)) < STATUS_MOST]


def by_point(rows: Sequence[ExchangeRow]) -> dict[tuple[str, str], list[ExchangeRow]]:
    """Returns the rows of each access point and number."""
    groups: dict[tuple[str, str], list[ExchangeRow]] = defaultdict(list)
    for row in rows:
        groups[ends_of(row)[1], reason_of(row)].append(row)
    return groups


@cause(
    code="wlan-refused",
    title="An access point refuses stations",
    sentence="The access point {point} refuses {stations} {count} with status {number}: {meaning}.",
    advice="Compare what {point} demands (security, rates, number of stations, MAC addresses) with what the station offers; the "
    "log of the controller has the attempt.",
    shows="An 802.11 authentication or association is answered by another status than 0, and no access point admits the "
    "station afterwards.",
    rivals={"wlan-removed": "it is never admitted", "wifi-retries": "the answer came"},
    unknown="What encrypted management frames say.",
)
def wlan_refused(case: Case) -> Matches:
    rows = case.exchanges("kind", "wlan")
    for (point, number), refused in by_point(refused_rows(rows)).items():
        stations = sorted({ends_of(row)[0] for row in refused})
        yield Match(
            certainty="proven",
            place="device",
            failed=len(stations),
            attempts=len({ends_of(row)[0] for row in rows if row["type"] in JOINS and ends_of(row)[1] == point}),
            frames=packets_of(refused),
            packets=len(refused),
            filter=f"wlan.fixed.status_code == {number} && wlan.bssid == {point}",
            proof=plural(len(refused), "answer"),
            excluded={"wlan-removed": "it is never admitted", "wifi-retries": "the answer came"},
            point=point,
            stations=named(stations, 1),
            count=plural(len(refused), "time"),
            number=number,
            meaning=REFUSALS.get(number, "see the table of status codes of 802.11"),
        )


@cause(
    code="wlan-removed",
    title="An access point removes stations",
    sentence="The access point {point} removed {stations} {count} by deauthentication or disassociation with reason {number}: "
    "{meaning}.",
    advice="{advice}",
    shows="Deauthentications and disassociations of an access point that say that keys, logins or MICs were wrong, or that come "
    "for all stations at least 20 times within a minute. Other reasons are notes, because stations roam and rest, and so is one "
    "removal after which the station joins again.",
    rivals={"wlan-refused": "the station was admitted before", "wifi-retries": "the access point says why"},
    unknown="Whether the access point itself sent them: without 802.11w anybody can forge them.",
)
def wlan_removed(case: Case) -> Matches:
    rows = case.exchanges("kind", "wlan")
    for (point, number), removed in by_point([row for row in rows if row["type"] == "Removal"]).items():
        yield removed_match(point, number, removed, is_lasting(rows, number, removed))


def removed_match(point: str, number: str, removed: Sequence[ExchangeRow], lasting: bool) -> Match:
    """Returns the match of stations that an access point removed with one reason; `lasting`: they have no network then."""
    stations, is_flood = sorted({ends_of(row)[0] for row in removed}), is_flooded(removed)
    is_failure, is_unsure = is_flood or lasting, is_flood or (lasting and number == HANDSHAKE)
    meaning = REMOVALS.get(number, "it gives no clearer reason")
    if number == HANDSHAKE:
        meaning += ", so the password (PSK) is probably wrong" if lasting else ", and it joined again"
    forged = (
        f"so many within {show_duration(span_of(removed))} are probably forged, or of a system that keeps stations away"
    )
    return Match(
        certainty="likely" if is_unsure else "proven",
        place="device",
        failed=len(stations) if is_failure else None,
        severity=None if is_failure else "info",
        frames=packets_of(removed),
        packets=len(removed),
        filter=f"wlan.fixed.reason_code == {number} && wlan.bssid == {point}",
        proof=plural(len(removed), "frame"),
        excluded={} if is_unsure else {"wifi-retries": "the access point says why"},
        undecided={"wlan-refused": "the log of the access point"} if is_unsure else {},
        point=point,
        stations="all its stations" if stations == [ALL] else named(stations, 1),
        count=plural(len(removed), "time"),
        number=number,
        meaning=forged if is_flood else meaning,
        advice=advice_of(is_flood, number if lasting else "", stations[0], point),
    )


def is_flooded(removed: Sequence[ExchangeRow]) -> bool:
    """Returns whether all stations are removed again and again."""
    to_all = [row for row in removed if ends_of(row)[0] == ALL]
    return len(to_all) >= FLOOD_MIN and span_of(to_all) / len(to_all) <= FLOOD_NS / FLOOD_MIN


def span_of(rows: Sequence[ExchangeRow]) -> int:
    """Returns the time from the first to the last, ns."""
    times = [row["asked_ns"] or 0 for row in rows]
    return max(times) - min(times)


def advice_of(is_flood: bool, number: str, station: str, point: str) -> str:
    """Returns what to do."""
    if is_flood:
        return f"Demand 802.11w (WPA3) on {point}, and look for a device or a wireless IPS that sends such frames."
    if number == HANDSHAKE:
        return f"Enter the password (PSK) on {station} again, and compare WPA2, WPA3 and 802.11w of both."
    if number == LOGIN:
        return f"See the log of the RADIUS server for {station}."
    return f"See the log of {point} or its controller for {station}."
