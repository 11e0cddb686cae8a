# SPDX-License-Identifier: Apache-2.0
"""Answers to the open questions of the studies, from the measured rows; a question without rows stays open.

A sentence must claim no more than its rows show: if a counter is missing or the link lost packets, the answer is open.
"""

from __future__ import annotations

from typing import Any

from studies.runs import BLOCKS_BYTES

OPEN = "Open: the tests that would answer it could not be run."


def same_host(rows: list[tuple[Any, ...]]) -> str:
    if not rows:
        return ""
    if any(row[4] or None in (row[6], row[7]) for row in rows):
        return " This run does not answer it for one host."
    parts = [
        f"{row[2] - row[6]:,} of {row[2]:,} with {row[1]:,} bytes (its kernel dropped {row[7]:,} datagrams)"
        for row in rows
    ]
    return f" If both programs run on one host, without a network, the receiver loses blocks too: {'; '.join(parts)}."


def at_full_speed(rows: list[tuple[Any, ...]]) -> str:
    lost = [row for row in rows if row[0] == "UDP" and row[4]]
    if not lost:
        return ""
    return (
        f" At full speed over 1 Gb/s {sum(row[4] for row in lost):,} blocks were lost: {sum(row[5] or 0 for row in lost):,} "
        f"dropped by the receiver's host, {lost[0][7]:,} packets by the link."
    )


def who_loses(results: dict[str, Any]) -> str:
    rows = [row for row in results.get("who") or [] if row[0] == "same-switch"]
    if not rows:
        return OPEN
    _, buffer, sent, _, link_lost, captured, got, dropped = rows[0]
    large = rows[-1]
    if None in (got, large[6]):
        return "Open: the receiver did not report in this run."
    if link_lost or captured != sent:
        return (
            f"Open: of {sent:,} blocks the link lost {link_lost:,} and the tracer captured {captured:,}, so the network "
            "had losses in this run."
        )
    kernel = f", and its kernel dropped {dropped:,} datagrams" if dropped is not None else ""
    fast = at_full_speed(results.get("blocks") or [])
    one_host = same_host([row for row in results["who"] if row[0] == "same-host"])
    return (
        f"In these runs the receiver loses them. The link delivered all of {sent:,} blocks, and the tracer near the receiver "
        f"captured {captured:,}; with a receive buffer of {buffer:,} bytes the program received {got:,}{kernel}; with "
        f"{large[1]:,} bytes it received {large[6]:,}.{fast}{one_host} So blocks can be lost although the network loses none, "
        "and a tracer near the receiver shows it. The cause in the studies stays open, because this link was set to lose "
        "nothing and their switches cannot be tested."
    )


def retransmitted(results: dict[str, Any]) -> str:
    rows = {row[0]: row for row in results.get("retransmitted") or []}
    if len(rows) < 2:
        return OPEN
    clean, lossy = rows["same-switch"], rows["wan"]
    return (
        f"They are retransmitted: if the link lost {clean[2]} segments ({clean[0]}), {clean[3]} were retransmitted; if it lost "
        f"{lossy[2]:,} ({lossy[0]}), {lossy[3]:,} were, and {lossy[4] or 0:.0f} % of the blocks were received. A capture before "
        "the loss shows each retransmission."
    )


def udp_slower(results: dict[str, Any]) -> str:
    rows = {(row[1], row[2]): row[1:] for row in results.get("shares") or [] if row[0] == "same-switch"}
    sizes = {row[0]: row for row in (results.get("sweep27") or {}).get("same-switch", [])}
    try:
        tcp, full, cut, small = rows["TCP", 8192], rows["UDP", 1472], rows["UDP", 8192], sizes[64]
    except KeyError:
        return OPEN
    if None in (tcp[3], full[3], cut[3], small[1], small[3]):
        return OPEN
    return (
        f"The overhead of fragments is not the cause: blocks of 8192 bytes in six fragments each arrived at {cut[3]:.1f} Mbit/s "
        f"({cut[4]:.0f} % received), unfragmented ones of 1472 bytes at {full[3]:.1f} ({full[4]:.0f} %), TCP at {tcp[3]:.1f}. "
        f"UDP is slower with small blocks: with 64 bytes it carried {small[3]:.1f} Mbit/s and TCP {small[1]:.1f}, because each "
        "block is a packet with 66 bytes of headers and framing, while TCP joins blocks into full segments. Fragments have a "
        "cost if packets are lost, because a block is lost with any of its fragments. Whether reassembly slowed the hosts of the "
        "studies stays open, because it cannot be determined from figures without captures."
    )


def share_words(row: tuple[Any, ...]) -> str:
    _, protocol, size, _, _, _, payload, headers, responses, before, between, after = row
    return (
        f"{protocol} with {size}-byte blocks: payload {payload:.1f} %, headers and framing {headers:.1f} %, idle "
        f"{before + between + after:.1f} % ({before:.1f} connection set-up, {between:.1f} slow start and pauses, {after:.1f} at "
        f"the end), responses {responses:.1f} % of the reverse direction"
    )


def shares(results: dict[str, Any]) -> str:
    rows = results.get("shares")
    if not rows:
        return OPEN
    near = [share_words(row) for row in rows if row[0] == "same-switch"]
    far = [share_words(row) for row in rows if row[0] != "same-switch"]
    return (
        f"On one switch with 100 Mb/s, {'; '.join(near)}. Over 45 Mb/s with 20 ms each way, for 4 MB, {'; '.join(far)}. So "
        "headers are the largest overhead on a switch; over a distance it is set-up and slow start, and their share grows if the "
        "transfer is shorter."
    )


def sending_and_receiving(results: dict[str, Any]) -> str:
    rows = [row for row in results.get("blocks") or [] if row[2] and row[3] and row[4] is not None]
    apart = {name: [100 * abs(row[2] - row[3]) / row[2] for row in rows if row[0] == name] for name in ("TCP", "UDP")}
    if not all(apart.values()):
        return OPEN
    tcp, udp = apart["TCP"], apart["UDP"]
    got = [100 - 100 * row[4] / (BLOCKS_BYTES // row[1]) for row in rows if row[0] == "UDP"]
    return (
        f"At full speed over 1 Gb/s they differ by {min(tcp):.1f} to {max(tcp):.1f} % for TCP, because the sender counts bytes "
        f"as sent that are still in its socket buffer. For UDP they differ by {min(udp):.1f} to {max(udp):.1f} % at the "
        f"two ends of the link, but the program received {min(got):.0f} to {max(got):.0f} % of the blocks: its "
        "host dropped the others."
    )


def small_and_large(results: dict[str, Any]) -> str:
    rows = {(row[0], row[1], row[2]): row for row in results.get("transfers") or []}
    parts = []
    for network in ("LAN", "WLAN", "WAN"):
        small, large = rows.get((network, "TCP", 4096)), rows.get((network, "TCP", 60000))
        if small and large and small[5] and large[5]:
            ratio = large[5] / small[5]
            parts.append(f"{small[5]:,.0f} ms and {large[5]:,.0f} ms on the {network} ({ratio:.1f} times)")
    if not parts:
        return OPEN
    return (
        f"100 blocks over TCP of 4096 and of 60 000 bytes, which is 14.6 times as much, took {', '.join(parts)}. If the rate is "
        "the limit, the time grows with the bytes; if round trips are, large blocks take much less than 14.6 times as long."
    )


def ten_and_hundred(results: dict[str, Any]) -> str:
    """S3 prints no figure of 10 blocks, so only the order of TCP and UDP can be compared with its text."""
    rows = {(row[0], row[1], row[2]): row for row in results.get("ten") or []}
    parts = []
    for network, words in (("LAN", "much slower"), ("WLAN", "much faster")):
        tcp, udp = (rows.get((network, protocol, 4096)) for protocol in ("TCP", "UDP"))
        if tcp and udp and None not in (*tcp[3:5], *udp[3:5]):
            parts.append(
                f"on the {network} UDP had {udp[3] / tcp[3]:.2f} times TCP's rate with 10 blocks of 4096 bytes and "
                f"{udp[4] / tcp[4]:.2f} times with 100 (its text: {words} with both)"
            )
    if not parts:
        return OPEN
    measured = "; ".join(parts)
    return (
        f"The study shows the rates of 10 blocks only in pictures, so its figures cannot be compared. Here, {measured}."
    )


QUESTIONS = (
    (
        "Why does UDP lose blocks on a switch with no congestion: the network, or a receiver that was overrun? Did a dedicated "
        "tracer near the receiver capture them all? Is it the same on one host?",
        who_loses,
    ),
    ("Are TCP's losses on that path retransmitted, or were there none?", retransmitted),
    ("Why is UDP slower than TCP on the same switch: fragmentation at the IP layer?", udp_slower),
    (
        "How much of the bandwidth does each protocol get, and how much do connection set-up, headers, responses and slow "
        "start take?",
        shares,
    ),
    ("How far apart are the sending rate and the receiving rate?", sending_and_receiving),
    ("How long does the same number of blocks take at a small and at a large size?", small_and_large),
    ("How do 10 blocks compare with 100 (S3)?", ten_and_hundred),
)


def answers(results: dict[str, Any]) -> str:
    return "\n".join(f"**{question}** {answer(results)}\n" for question, answer in QUESTIONS)
