# SPDX-License-Identifier: Apache-2.0
"""Pages of findings about loss, order and copies. docs/verdicts.md says how each segment is judged."""

from __future__ import annotations

from wiretale.analyzer.findings import fragmentation as fragment_rules
from wiretale.analyzer.findings import loss_pattern as loss_rules
from wiretale.analyzer.findings import throughput_limit as limit_rules
from wiretale.analyzer.findings.catalogue import Page
from wiretale.analyzer.findings.retransmission import verdicts

PAGES = (
    Page(
        "lost-downstream",
        "Lost between here and the receiver",
        verdicts,
        "Segments that passed here and were sent again, and not needlessly as far as DSACK, timestamps and "
        "acknowledgments tell (directions.lost_downstream). A warning from 1% of the segments.",
        "Whether the data or its acknowledgment was lost, unless later acknowledgments tell.",
    ),
    Page(
        "lost-upstream",
        "Lost between the sender and here",
        verdicts,
        "Gaps in the stream that a later sending filled (directions.lost_upstream).",
        "Losses whose resend has nothing behind it leave no gap: see suspected-timeout.",
    ),
    Page(
        "sent-again",
        "Sent again, place unknown",
        verdicts,
        "Retransmissions in a direction whose acknowledgments were not captured.",
        "Where they were lost, or whether.",
    ),
    Page(
        "suspected-timeout",
        "A pause like a timeout",
        verdicts,
        "New data in order after a pause as long as a retransmission timeout, with a packet of the sender missing "
        "before it by its IP ids.",
        "Whether the missing packet was data.",
    ),
    Page(
        "spurious",
        "Sent again needlessly",
        verdicts,
        "Retransmissions proven needless by DSACK (RFC 2883), by an echoed timestamp (RFC 3522) or by an "
        "acknowledgment that had passed here before.",
        "Needless ones that nothing proves.",
    ),
    Page(
        "retransmission-cost",
        "Bytes carried more than once",
        limit_rules.retransmission_cost,
        "directions.retransmitted_bytes against unique_bytes, from 10 kB and 1% on. Seconds that retransmissions cost "
        "are in timeout-stalls and recovery-limited.",
        "Bytes lost before this point are carried twice too, and pass here once.",
    ),
    Page(
        "timeout-stalls",
        "Standing still in timeouts",
        limit_rules.timeouts,
        "The silence before each retransmission that only the timer explains (directions.limit_timeout_ns): from the "
        "last sending of the segment, the last progress of acknowledgments or the opening of a closed window; of one that "
        "is only suspected, from the last data. A warning from 1 s, or a quarter of the time that limits part. The evidence is "
        "the frames with which the longest of them began and ended (directions.stall_frames); the filter selects these.",
        "How long the sender would have waited without the loss.",
    ),
    Page(
        "loss-pattern",
        "The pattern of losses",
        loss_rules.loss_pattern,
        "From six losses on, the first that fits. Tail drop by the ends of bursts: wiretale's blocks are missing around "
        "pauses, and of five bursts or more 90% begin with a multiple of their size, so that it is the end that is "
        "missing. Start-of-burst: 60% come within 10 ms (or two time bins) after 50 ms or "
        "more without a packet, and little of the traffic does. Tail drop: round trips just before losses are "
        "1.3 times the least and more, and rank among the highest (0.75 on average, where chance gives 0.5); for "
        "wiretale's blocks, their own delay is near the greatest; or more is offered than comes through "
        "(udp-above-path). Periodic: gaps between runs of losses vary by less than 20%, in time or in frames. Bursty: "
        "two packets or more a run on average, or gaps that vary twice as much as chance has it. Else random.",
        "Which end of a burst was lost, where bursts are of different sizes. Round trips need acknowledgments, and are "
        "those beyond this point: a queue before it is not seen. At most 5,000 losses are looked at; none where "
        "datagrams lack fragments, for whole datagrams do not show how those lie.",
    ),
    Page(
        "reordered",
        "Overtaken on the way",
        verdicts,
        "Segments that fill a gap and were sent before the one that opened it, by timestamps, IP ids or time "
        "(directions.out_of_order).",
        "Reordering beyond this point.",
    ),
    Page(
        "reordering-extent",
        "How far packets were overtaken",
        loss_rules.reordering_extent,
        "For each late segment the frames between it and the packet that overtook it: as much as the extent of RFC "
        "4737 section 4.2.1 can be, since frames of other flows and directions count too. Told from three late "
        "segments on, or when one is three frames late: three make TCP take it for lost (RFC 5681). Needless resends "
        "and duplicate ACKs of the transfer stand beside it.",
        "Which duplicate ACK came of which late segment.",
    ),
    Page(
        "undecided",
        "Late or lost: unknown",
        verdicts,
        "Gaps filled between a quarter and a whole round trip later, without timestamps or IP ids that tell.",
        "Just that.",
    ),
    Page(
        "network-duplicates",
        "Copies made by the network",
        verdicts,
        "The same packet (IP id, sequence, timestamps, checksum) again sooner than the sender could know of a loss.",
        "Copies of UDP packets without numbers.",
    ),
    Page(
        "mirror-duplicates",
        "Copies made by the mirror port",
        verdicts,
        "The same packet within 1 ms, or with a TTL one less or another VLAN: stored twice by the capture.",
        "Copies of packets with IP id 0 and no timestamps.",
    ),
    Page(
        "unknown-duplicates",
        "Copies of unknown origin",
        verdicts,
        "The same packet twice within 1 ms, and nothing (ports, TTL, VLAN, reports of the receiver) tells whether the "
        "network or the capture made the copy.",
        "Just that.",
    ),
    Page(
        "stored-late",
        "Stored behind its acknowledgment",
        verdicts,
        "Data that comes right after the ACK that covers it: the capture's queues were written in the wrong order.",
        "The true order.",
    ),
    Page(
        "sack-gaps",
        "Gaps reported by SACK",
        verdicts,
        "The receiver's SACK blocks leave gaps, and the data itself was not captured.",
        "Whether they were losses or reordering.",
    ),
    Page(
        "blocks-lost",
        "Numbered packets that did not come",
        verdicts,
        "Numbers between the first and the highest seen of wiretale's blocks, iperf or RTP that never came by here, "
        "and the runs they lie in.",
        "What was lost before the first or after the last one; compare with the sender's count.",
    ),
    Page(
        "blocks-reordered",
        "Numbered packets out of order",
        verdicts,
        "Numbers below one seen before (RFC 4737).",
        "Where it happened.",
    ),
    Page(
        "blocks-duplicate",
        "Numbered packets twice",
        verdicts,
        "A number seen before.",
        "Whether the sender or the network made it.",
    ),
    Page(
        "blocks-corrupt",
        "Corrupt blocks",
        verdicts,
        "The content of a block is not the pattern that its header announces.",
        "Blocks whose content was not captured.",
    ),
    Page(
        "head-of-line",
        "Blocks that waited for earlier bytes",
        verdicts,
        "Blocks of a TCP stream that were complete here before all bytes before them were.",
        "Waits caused beyond this point.",
    ),
    Page(
        "datagram-incomplete",
        "Fragmented datagrams that never became whole",
        fragment_rules.datagrams_incomplete,
        "Datagrams of which a byte range was still missing when the reassembly time (30 s; IPv6 60 s) or the capture "
        "was over. The cost is what came of them.",
        "Fragments that took another path.",
    ),
    Page(
        "loss-amplified",
        "Loss of fragments against loss of datagrams",
        fragment_rules.loss_amplified,
        "With three incomplete datagrams or more: p is the share of fragments missing (by the usual number of "
        "fragments of complete datagrams), against the share of datagrams lost and the 1-(1-p)^n that independent "
        "losses of n fragments give. A queue is named where, of six incomplete datagrams or more, half (and 1/n) lack "
        "nothing but their end: the fragments of a datagram come at once, and fill it.",
        "Datagrams of which no fragment came; datagrams of very different sizes blur p.",
    ),
)
