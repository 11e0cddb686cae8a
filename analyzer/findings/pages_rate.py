# SPDX-License-Identifier: Apache-2.0
"""Pages of findings about what set the rate of a transfer."""

from __future__ import annotations

from wiretale.analyzer.findings import queueing as queue_rules
from wiretale.analyzer.findings import throughput_limit as limit_rules
from wiretale.analyzer.findings import wire_rules
from wiretale.analyzer.findings.catalogue import Page
from wiretale.analyzer.findings.retransmission import verdicts

LIMITS = (
    "A transfer's time, from its 8th packet to its last data, is parted packet by packet by what it waited for "
    "(directions.limit_*): the receiver's window when one more segment would not fit it; recovery while a loss is "
    "being mended; a timeout when only the timer ended the silence; the sender when all was acknowledged, or its last "
    "segment was short, and no acknowledgment let the next one go; slow start until the flight last doubled before "
    "any loss; else the network. "
)
POINT = (
    "Seen from the capture point: near the receiver neither the flight nor a full window is seen, and the time counts "
    "as the network's. "
)

PAGES = (
    Page(
        "receive-window-limited",
        "The receiver's window held it back",
        limit_rules.receive_window,
        LIMITS
        + "Told from 10% of the time on, a warning from 25%, with the cause: closed, not scaled, or simply small.",
        POINT + "The window's scale is known only when both SYNs were captured.",
    ),
    Page(
        "window-per-round-trip",
        "One window a round trip",
        limit_rules.window_by_rate,
        "Goodput times the path's round trip (of the handshake) is the greatest window announced, within 20%, without "
        "loss, and the capture is nearer to the receiver.",
        "A congestion window of just that size looks the same.",
    ),
    Page(
        "window-scaling-off",
        "Windows without scaling",
        limit_rules.scaling_missing,
        "Both SYNs were seen, one of them offered no window scale (RFC 7323), and the transfer had half of 64 KiB "
        "under way or more.",
        "Which end or middlebox took the option away.",
    ),
    Page(
        "zero-window",
        "Full receive buffer announced",
        verdicts,
        "Segments with window 0 after the handshake, and the time until it opened (directions.zero_window_ns).",
        "Why the application did not read.",
    ),
    Page(
        "window-full",
        "The window was filled",
        verdicts,
        "Data whose last byte is the last that the window allows (directions.window_full).",
        POINT,
    ),
    Page(
        "delayed-ack",
        "Small writes, Nagle and delayed acknowledgments",
        limit_rules.delayed_acks,
        "Waits of 30 ms or more for the acknowledgment of a short segment, right after which the next data went "
        "(directions.limit_delayed_ack_ns): Nagle's algorithm holds it back until then. Told from 120 ms and 10% of "
        "the time on.",
        "A receiver that is slow for another reason at just those times.",
    ),
    Page(
        "recovery-limited",
        "Time spent mending losses",
        limit_rules.recovery,
        LIMITS + "Told from 10% of the time on, a warning from 25%.",
        "How fast it would have been without the losses.",
    ),
    Page(
        "loss-limited-window",
        "A congestion window kept small by loss",
        limit_rules.path_or_window,
        "Most of the time data was on its way, segments were lost, round trips did not grow, and the goodput is "
        "within a factor of 3 of what the formula of Mathis et al. (1997), 1.22 MSS / (RTT sqrt(p)), allows Reno with "
        "that loss.",
        "CUBIC and BBR follow other laws: they get more on long paths. Which loss was of which cause.",
    ),
    Page(
        "path-limited",
        "The path's rate was the limit",
        limit_rules.path_or_window,
        "70% of the time or more data was on its way, in a transfer of 1 MB and 1 s or more, without loss that would "
        "explain it. That is what a healthy bulk transfer looks like. The series throughput_bps and flight_bytes show it.",
        POINT + "A congestion window that the sender holds down (pacing, BBR, a small send buffer) looks the same.",
    ),
    Page(
        "slow-start",
        "Over before it was up to speed",
        limit_rules.slow_start,
        LIMITS + "Told from 30% on.",
        POINT,
    ),
    Page(
        "sender-idle",
        "The sender had nothing to send",
        limit_rules.sender_idle,
        LIMITS + "Told from half of the time on, for 1 MB or more.",
        "Why: disk, processor, pacing, or an answer that it waited for. A small send buffer (SO_SNDBUF) looks like "
        "the network.",
    ),
    Page(
        "bufferbloat",
        "A queue that stands",
        queue_rules.bufferbloat,
        "With 30 round trips or more: the median less the least is 5 ms or more (a warning from 30 ms) and at least "
        "the path's own round trip. The queue in bytes is throughput times that delay.",
        "Queues before this point; a receiver that acknowledges late; a least round trip measured when the queue "
        "already stood.",
    ),
    Page(
        "udp-above-path",
        "More offered than the path carries",
        queue_rules.offered_above_rate,
        "2% of the numbered packets or more are missing, half of the time bins or more hold losses, and what comes through "
        "is level: it varies by less than 25%, and (below 25% of loss) by less than half of what losses by chance would make of "
        "a steady offer. The offer is what came, plus the numbers missing.",
        "Losses after this point. A policer and a full queue look the same, but for the delay.",
    ),
    Page(
        "unfair-share",
        "Transfers that share unevenly",
        queue_rules.fairness,
        "Transfers of 1 MB or more between the same two hosts that ran together for half of the shorter's life: their "
        "rates while all lasted, and Jain's index (sum x)^2 / (n sum x^2). Told below 0.8.",
        "Whether they share a bottleneck at all, and what else uses it.",
    ),
    Page(
        "wire-full",
        "A wire that is full",
        wire_rules.wire_full,
        "Frames of all transfers (1% of the capture's bytes or more each) from one host to another, while all of them "
        "lasted, with preambles, checksums and gaps: together 98.5% to 101% of a speed that Ethernet has (10 Mbit/s to "
        "100 Gbit/s), in 20 time bins or more. Of one transfer alone it is the mean of the middle half of its time bins, "
        "which must be level.",
        "Whether the wire has that speed: what is paced to just such a rate looks the same. Frames of others on that wire; "
        "frames that an offload joined, which are counted once.",
    ),
)
