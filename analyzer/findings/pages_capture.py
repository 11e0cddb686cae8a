# SPDX-License-Identifier: Apache-2.0
"""Pages of findings about the capture itself."""

from __future__ import annotations

from wiretale.analyzer.findings import capture as rules
from wiretale.analyzer.findings.catalogue import Page

PAGES = (
    Page(
        "capture-damaged",
        "The file is damaged or cut short",
        rules.capture_damaged,
        "The reader met a record that cannot be, or the file ended inside one. The sentence names the byte and what "
        "was expected there; all that came before is analyzed.",
        "What the rest held. Flows that were open then look unfinished.",
        "Whatever ends near the damage: states of connections, unanswered requests, the tail of every rate.",
    ),
    Page(
        "interrupted",
        "The reading was interrupted",
        rules.interrupted,
        "Ctrl-C or SIGTERM came before the end of the input.",
        "What the rest holds.",
        "Totals and everything that ends late.",
    ),
    Page(
        "capture-dropped",
        "The capture dropped packets",
        rules.capture_drops,
        "The drop counters in the file's interface statistics (pcapng blocks), of the kernel and of the interface, "
        "against the packets in the file.",
        "Which packets they were. Files without statistics (all pcap files) tell nothing: `drops not told` is not `no "
        "drops`.",
        "Loss upstream, gaps, unseen bytes and lost numbers: each may be a packet that only the capture missed. What "
        "was sent again, was lost or late in truth.",
    ),
    Page(
        "capture-missed",
        "Acknowledged data is not in the capture",
        rules.capture_missed,
        "A receiver acknowledged bytes of the stream that never passed here (directions.unseen_bytes): so they "
        "arrived, by another path or past a capture that was too slow.",
        "Which of the two; and for UDP nothing acknowledges, so that nothing is found.",
        "Loss upstream and rates: what is missing here was carried.",
    ),
    Page(
        "several-points",
        "Captures of several places read as one",
        rules.several_points,
        "Two files or interfaces whose packets are of the same time (half of the shorter's), and 10 packets or more, a "
        "fifth of those with data, that came again as copies (directions.network_duplicates, blocks_duplicate).",
        "Whether a network does copy a fifth of all packets. Places so near that a packet is at both within 1 ms: those "
        "are told as a mirror's copies.",
        "Duplicates, reordering, losses by place, rates and round trips of flows that both places saw.",
    ),
    Page(
        "time-backward",
        "Time stamps go back",
        rules.time_backward,
        "A packet of an interface is stamped earlier than the one before it in the file. A clock that was set back "
        "does it once and far; several capture queues written in turn do it often and by little: "
        "below 100 µs it is told as such, last and without a warning.",
        "Steps of the clock forward look like a pause, and are not found.",
        "Every duration, round trip and order near those frames; verdicts of reordering above all.",
    ),
    Page(
        "time-unknown",
        "Packets without time stamps",
        rules.time_unknown,
        "pcapng simple packet blocks carry none.",
        "All rates and delays of those packets.",
        "Rates, round trips, timeouts: they are null.",
    ),
    Page(
        "offload",
        "Packets longer than the link carries",
        rules.super_segments,
        "IP packets longer than any frame of the path: taken before the adapter cut them up (TSO, GSO) or after it "
        "joined them (GRO, LRO).",
        "The packets that really were on the wire, their number, spacing and headers.",
        "Packet counts, wire bytes, header overhead, bursts, reordering within one such packet, and round trips by "
        "some tens of microseconds. Bytes, goodput and losses stay right.",
    ),
    Page(
        "headers-cut",
        "The snap length cut headers",
        rules.headers_cut,
        "Packets whose IP, transport or tunnel header did not fit the snap length.",
        "What those packets carried: payload lengths, flags, options, and so verdicts of their flows.",
        "All verdicts of the flows concerned; their columns are null where a header was not read.",
    ),
    Page(
        "malformed",
        "Packets that break their format",
        rules.malformed,
        "Headers whose own lengths or versions contradict each other, by reason (interfaces.reasons).",
        "Checksums are not tested: offloading leaves them wrong in most captures.",
        "The flows that those packets would belong to.",
    ),
    Page(
        "not-understood",
        "Packets of unknown kind",
        rules.not_understood,
        "Link-layer or tunnel formats that are not read; by reason.",
        "What is in them.",
        "Totals of the capture against those of its flows.",
    ),
    Page(
        "filter-refused",
        "The filter does not fit the link type",
        rules.filter_refused,
        "libpcap could not compile the filter for the link type of some interface.",
        "Whether those packets would have passed.",
        "Totals.",
    ),
    Page(
        "flows-evicted",
        "Flows ended early for memory",
        rules.bounds_reached,
        "More conversations were open at a time than --max-flows allows; the longest silent ends first.",
        "Which rows belong together.",
        "Counts of flows, handshakes and states of those flows.",
    ),
    Page(
        "datagrams-evicted",
        "Datagrams ended early for memory",
        rules.bounds_reached,
        "More than 65,536 incomplete datagrams were open.",
        "Whether they would have become complete.",
        "Incomplete datagrams.",
    ),
    Page(
        "events-dropped",
        "Events beyond the bound",
        rules.bounds_reached,
        "4 million rows in all, 10,000 a flow; counters go on.",
        "Frames of the events that are not listed.",
        "Evidence and the pattern of losses, never counts.",
    ),
    Page(
        "blocks-dropped",
        "Blocks beyond the bound",
        rules.bounds_reached,
        "4 million rows; counters go on.",
        "Delays of the blocks that are not listed.",
        "Lists and graphs of blocks, never counts.",
    ),
    Page(
        "one-way",
        "Only one direction was captured",
        rules.one_way,
        "TCP flows of which every packet comes from one end, though the state shows that the other answered.",
        "Round trips, flight, windows, causes of retransmissions, what was unseen.",
        "Everything that needs acknowledgments is null; loss is told by gaps and repeats alone.",
    ),
)
