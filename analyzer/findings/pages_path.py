# SPDX-License-Identifier: Apache-2.0
"""Pages of findings about packets, their spacing, and the path."""

from __future__ import annotations

from wiretale.analyzer.findings import connection as connection_rules
from wiretale.analyzer.findings import fragmentation as fragment_rules
from wiretale.analyzer.findings import queueing as queue_rules
from wiretale.analyzer.findings.catalogue import Page
from wiretale.analyzer.findings.retransmission import verdicts

PAGES = (
    Page(
        "fragmentation",
        "The overhead of IP fragments",
        fragment_rules.fragmentation_overhead,
        "Wire bytes of the headers, preambles and gaps of each fragment after the first of its datagram "
        "(docs/theory.md has the sizes), and the share of payload with and without them. A warning from 2% of the "
        "wire bytes, if datagrams that fit would save 0.5 points. The largest payload without fragments is that of the "
        "fullest fragment seen, less the UDP header.",
        "The path's MTU beyond this point; fragments made by a router before it look as if the sender had made them.",
    ),
    Page(
        "small-packets",
        "Mostly headers",
        connection_rules.small_blocks,
        "1,000 packets or more with 200 bytes of payload or less on average: payload of the wire bytes, against that "
        "of full packets.",
        "Whether the application could send more at a time. Voice cannot.",
    ),
    Page(
        "bursty-sender",
        "Bursts that overflow queues",
        queue_rules.bursts,
        "Transfers that last 1 s and lose six packets or more: the rate of the fullest 1% of the time bins (20 ms or "
        "less each) is four times the mean or more.",
        "Bursts shorter than a bin.",
    ),
    Page(
        "jitter",
        "Uneven delay",
        queue_rules.jitter,
        "RFC 3550 interarrival jitter of numbered packets that carry their sending time, and the span of their delays "
        "(no clocks need agree for that). Told from 5 ms, a warning from 30 ms.",
        "Whether the sender's own stamps are steady.",
    ),
    Page(
        "congestion-marks",
        "Congestion marks (ECN)",
        verdicts,
        "IP packets marked Congestion Experienced (RFC 3168).",
        "Which router marked them.",
    ),
    Page(
        "ecn-ignored",
        "Congestion marks without echo",
        connection_rules.ecn_ignored,
        "A TCP direction holds packets marked Congestion Experienced, and the other end sent no ECE.",
        "Whether ECN was agreed on, when the SYNs were not captured; AccECN echoes otherwise.",
    ),
)
