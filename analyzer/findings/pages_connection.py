# SPDX-License-Identifier: Apache-2.0
"""Pages of findings about how connections begin, rest and end."""

from __future__ import annotations

from wiretale.analyzer.findings import connection as connection_rules
from wiretale.analyzer.findings import flow_rules
from wiretale.analyzer.findings.catalogue import Page

PAGES = (
    Page(
        "syn-unanswered",
        "Connection attempts without answer",
        flow_rules.handshake_failed,
        "Flows in the state syn_sent: SYNs and nothing else until the end.",
        "Whether an answer took another path, and whether the capture ended just then.",
    ),
    Page(
        "connection-refused",
        "Connection attempts refused",
        flow_rules.handshake_failed,
        "A RST answered the SYN.",
        "Whether the host or a firewall in its name refused: compare TTLs.",
    ),
    Page(
        "syn-lost",
        "Handshakes that needed a second try",
        connection_rules.syn_lost,
        "Connections that came about though a SYN or SYN-ACK had been sent again after a timeout. The cost is the "
        "silence before those (directions.limit_timeout_ns).",
        "Whether the SYN or its answer was lost, unless the capture lies at the server; a listener with a full "
        "backlog drops SYNs and looks the same.",
    ),
    Page(
        "reset",
        "Connections reset",
        flow_rules.resets,
        "Flows that ended by RST after they had begun.",
        "Why: many applications end so on purpose.",
    ),
    Page(
        "idle-reset",
        "Reset after a long silence",
        connection_rules.idle_reset,
        "Flows in the state reset, both directions of which were silent for 30 s or more until one end spoke again, and a RST "
        "came within 5 s. An end that resets out of its own silence is none.",
        "Who sent the RST in truth: a middlebox forges both ends. Compare the TTL of the RST (directions.ttl_min) "
        "with the others.",
    ),
    Page(
        "keep-alive-unanswered",
        "Keep-alives without answer",
        connection_rules.keep_alives_unanswered,
        "Three keep-alives or more, and the other end's last packet lies before them.",
        "Whether the other end is gone or the path forgot the connection.",
    ),
    Page(
        "path-mtu-black-hole",
        "Large segments never arrive",
        connection_rules.path_mtu_black_hole,
        "Segments of 1,200 bytes or more sent three times or more, two timeouts or more, nothing as long ever "
        "acknowledged, and the other end answers small packets. Outstanding bytes are those of the last time bin.",
        "Where the small MTU is. A receiver that drops large packets for another reason looks the same.",
    ),
    Page(
        "path-mtu",
        "Path-MTU discovery at work",
        connection_rules.fragmentation_needed,
        "ICMP errors 'fragmentation needed' (RFC 1191) or 'packet too big' (RFC 8201) that quote a flow.",
        "Errors that passed elsewhere.",
    ),
    Page(
        "mss-small",
        "Small maximum segment size",
        connection_rules.mss_clamped,
        "The MSS in the receiver's SYN is 1,400 bytes or less, in a transfer of 1 MB or more. The cost is the share "
        "of header bytes more than with 1,460.",
        "Who set it: the end itself, or a router that clamps. Compare captures on both sides.",
    ),
    Page(
        "icmp-errors",
        "ICMP errors about flows",
        flow_rules.icmp_errors,
        "ICMP and ICMPv6 errors whose quoted header is that of a flow in the capture; their types in words.",
        "Errors that passed elsewhere or were filtered.",
    ),
)
