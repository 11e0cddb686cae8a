# SPDX-License-Identifier: Apache-2.0
"""The open questions of the studies: a sentence for each, from what was measured, or that it stays open."""

from __future__ import annotations

from typing import Any

from studies.runs import BLOCKS_BYTES

OPEN = "Open: the tests that would answer it could not be run here."


def same_host(rows: list[tuple[Any, ...]]) -> str:
    """The same question where there is no network."""
    if not rows:
        return ""
    if any(row[4] or None in (row[6], row[7]) for row in rows):
        return " Of the same host nothing can be said from this run."
    parts = [
        f"{row[2] - row[6]:,} of {row[2]:,} with {row[1]:,} bytes, where its kernel dropped {row[7]:,} datagrams"
        for row in rows
    ]
    return f" On the same host, with no network between the two, the receiver lost as well: {'; '.join(parts)}."


def at_full_speed(rows: list[tuple[Any, ...]]) -> str:
    """What was lost of UDP over 1 Gb/s, and who dropped it."""
    lost = [row for row in rows if row[0] == "UDP" and row[4]]
    if not lost:
        return ""
    return (
        f" At full speed over 1 Gb/s {sum(row[4] for row in lost):,} blocks were lost: {sum(row[5] or 0 for row in lost):,} "
        f"dropped by the receiver's host, {lost[0][7]:,} packets by the link."
    )


def who_loses(found: dict[str, Any]) -> str:
    """UDP losses without congestion."""
    rows = [row for row in found.get("who") or [] if row[0] == "same-switch"]
    if not rows:
        return OPEN
    _, buffer, sent, _, link_lost, captured, got, dropped = rows[0]
    large = rows[-1]
    if None in (got, large[6]):
        return "Open: the receiver did not report in this run."
    if link_lost or captured != sent:
        return (
            f"Open: of {sent:,} blocks the link lost {link_lost:,} and the tracer saw {captured:,}, so that the network was "
            "not without loss in this run."
        )
    told = f", and its kernel says that it dropped {dropped:,} datagrams" if dropped is not None else ""
    fast = at_full_speed(found.get("blocks") or [])
    here = same_host([row for row in found["who"] if row[0] == "same-host"])
    return (
        f"In these runs the receiver. Of {sent:,} blocks the link delivered every one, and the tracer near the receiver saw "
        f"{captured:,}; with a receive buffer of {buffer:,} bytes the program got {got:,}{told}; with {large[1]:,} bytes it got "
        f"{large[6]:,}.{fast}{here} So a network without any loss is enough to lose blocks, and a tracer near the receiver "
        "tells. Which it was in the studies stays open: this link was told to lose nothing, and their switches are not here."
    )


def retransmitted(found: dict[str, Any]) -> str:
    """TCP's losses."""
    rows = {row[0]: row for row in found.get("retransmitted") or []}
    if len(rows) < 2:
        return OPEN
    clean, lossy = rows["same-switch"], rows["wan"]
    return (
        f"Where the link lost {clean[2]} segments ({clean[0]}) {clean[3]} were sent again, and where it lost {lossy[2]:,} "
        f"({lossy[0]}) {lossy[3]:,} were, with {lossy[4] or 0:.0f} % of the blocks received: TCP hides losses by "
        "retransmitting them, and a capture before the loss shows each. On a switch without loss there are none."
    )


def udp_slower(found: dict[str, Any]) -> str:
    """Fragmentation, or what else."""
    rows = {(row[1], row[2]): row[1:] for row in found.get("shares") or [] if row[0] == "same-switch"}
    sizes = {row[0]: row for row in (found.get("sweep27") or {}).get("same-switch", [])}
    try:
        tcp, whole, cut, small = rows["TCP", 8192], rows["UDP", 1472], rows["UDP", 8192], sizes[64]
    except KeyError:
        return OPEN
    if None in (tcp[3], whole[3], cut[3], small[1], small[3]):
        return OPEN
    return (
        f"Not by what fragmentation adds to the wire: blocks of 8192 bytes in six fragments each arrived at {cut[3]:.1f} Mbit/s "
        f"({cut[4]:.0f} % received), unfragmented ones of 1472 bytes at {whole[3]:.1f} ({whole[4]:.0f} %), TCP at {tcp[3]:.1f}. "
        f"With small blocks UDP is slower: of 64 bytes it carried {small[3]:.1f} Mbit/s and TCP {small[1]:.1f}, because each "
        "block is a packet with 66 bytes of headers and framing, and TCP joins them. Fragments cost where packets are lost: a "
        "block is gone with any of its fragments. Whether the studies' hosts were slowed by reassembly stays open: it cannot "
        "be told from figures without captures."
    )


def share_words(row: tuple[Any, ...]) -> str:
    """A protocol's share of the wire, and what takes the rest."""
    _, protocol, size, _, _, _, payload, headers, responses, before, between, after = row
    return (
        f"{protocol} with {size}-byte blocks: payload {payload:.1f} %, headers and framing {headers:.1f} %, idle "
        f"{before + between + after:.1f} % ({before:.1f} connection set-up, {between:.1f} slow start and pauses, {after:.1f} the "
        f"end), and responses took {responses:.1f} % of the way back"
    )


def shares(found: dict[str, Any]) -> str:
    """Who gets the bandwidth."""
    rows = found.get("shares")
    if not rows:
        return OPEN
    near = [share_words(row) for row in rows if row[0] == "same-switch"]
    far = [share_words(row) for row in rows if row[0] != "same-switch"]
    return (
        "Of 100 Mb/s on one switch, "
        + "; ".join(near)
        + ". Of 45 Mb/s with 20 ms each way, for 4 MB, "
        + "; ".join(far)
        + ". So "
        "on a switch headers take most of what is not payload, and over a distance set-up and slow start do, the more the "
        "shorter the transfer."
    )


def sending_and_receiving(found: dict[str, Any]) -> str:
    """How far apart the rates are: UDP's of the wire, and what the program got of it."""
    rows = [row for row in found.get("blocks") or [] if row[2] and row[3] and row[4] is not None]
    apart = {name: [100 * abs(row[2] - row[3]) / row[2] for row in rows if row[0] == name] for name in ("TCP", "UDP")}
    if not all(apart.values()):
        return OPEN
    tcp, udp = apart["TCP"], apart["UDP"]
    got = [100 - 100 * row[4] / (BLOCKS_BYTES // row[1]) for row in rows if row[0] == "UDP"]
    return (
        f"At full speed over 1 Gb/s they differ by {min(tcp):.1f} to {max(tcp):.1f} % for TCP, which counts what its own buffer "
        f"took as sent. UDP's differ by {min(udp):.1f} to {max(udp):.1f} % at the two ends of the link, but the program got "
        f"{min(got):.0f} to {max(got):.0f} % of the blocks: what its host drops was received, and never arrived."
    )


def small_and_large(found: dict[str, Any]) -> str:
    """The same number of packets."""
    rows = {(row[0], row[1], row[2]): row for row in found.get("transfers") or []}
    parts = []
    for network in ("LAN", "WLAN", "WAN"):
        small, large = rows.get((network, "TCP", 4096)), rows.get((network, "TCP", 60000))
        if small and large and small[5] and large[5]:
            ratio = large[5] / small[5]
            parts.append(f"{small[5]:,.0f} ms and {large[5]:,.0f} ms on the {network} ({ratio:.1f} times)")
    if not parts:
        return OPEN
    return (
        "100 blocks over TCP of 4096 and of 60 000 bytes, 14.6 times as much, took "
        + ", ".join(parts)
        + ": where the rate is what "
        "limits, bytes are what costs; where round trips do, large blocks cost much less than so many times."
    )


QUESTIONS = (
    (
        "Why does UDP lose blocks on a switch with no congestion: the network, or a receiver that was overrun? Did a dedicated "
        "tracer machine near the receiver see them all? What about the same host?",
        who_loses,
    ),
    ("Are TCP's losses on that path retransmitted, or were there none?", retransmitted),
    ("Why is UDP slower than TCP on the same switch: fragmentation at the IP layer?", udp_slower),
    (
        "How much of the network's bandwidth does each protocol get, and what takes the rest: connection set-up, headers, "
        "responses, slow start?",
        shares,
    ),
    ("How far apart are the sending rate and the receiving rate?", sending_and_receiving),
    ("What does the same number of packets cost at a small and at a large size?", small_and_large),
)


def answers(found: dict[str, Any]) -> str:
    """All questions, each with its answer."""
    return "\n".join(f"**{question}** {answer(found)}\n" for question, answer in QUESTIONS)
