/* SPDX-License-Identifier: Apache-2.0 */
/* The tables: every column's name, type, unit and meaning, in one place.
 *
 * docs/tables.md is made from this file. Types: INT int64, TIME int64 ns since the epoch, DURATION
 * int64 ns, REAL float64, BOOL, WORD (one of vocabulary.h), TEXT (UTF-8), PATH (bytes), ADDRESS (an
 * IP address as text). Sizes are bytes, rates bit/s. A value that cannot be known from the capture
 * is null, never 0.
 */
#ifndef WIRETALE_SCHEMA_H
#define WIRETALE_SCHEMA_H

#include <stddef.h>
#include <stdint.h>

#define INTERFACES_COLUMNS(X)                                                                      \
    X(capture, INT, "", "number of this input interface, from 0")                                  \
    X(file, PATH, "", "path as given, - for standard input")                                       \
    X(format, TEXT, "", "pcap, pcapng, ... as told by the first bytes")                            \
    X(compression, TEXT, "", "none, gzip, zstd or lz4")                                            \
    X(interface, INT, "", "index of the interface within the file")                                \
    X(name, TEXT, "", "interface name; null when the file has none")                               \
    X(link_type, INT, "", "LINKTYPE_ number")                                                      \
    X(link_type_name, TEXT, "", "its name as libpcap gives it; null when libpcap has none")        \
    X(snaplen, INT, "bytes", "snap length; null when unlimited or not told")                       \
    X(time_resolution_ns, DURATION, "ns", "time stamp resolution; 0 when finer than 1 ns")         \
    X(packets, INT, "packets", "packets analyzed (after --filter, --start, --end)")                \
    X(bytes, INT, "bytes", "their lengths on the wire, link header included, without FCS")         \
    X(captured_bytes, INT, "bytes", "bytes of them in the file")                                   \
    X(filtered_packets, INT, "packets", "packets left out by --filter, --start or --end")          \
    X(first_ns, TIME, "ns", "time of the first packet (the least time)")                           \
    X(last_ns, TIME, "ns", "time of the last packet (the greatest time)")                          \
    X(received, INT, "packets",                                                                    \
      "packets that the capturing system says it received, behind a filter those that passed it;"  \
      " null when the file does not tell")                                                         \
    X(dropped_kernel, INT, "packets",                                                              \
      "packets that the capturing kernel dropped; null when the file does not tell")               \
    X(dropped_interface, INT, "packets",                                                           \
      "packets that the capturing interface dropped; null when the file does not tell")            \
    X(dropped_program, INT, "packets",                                                             \
      "packets that passed the filter, were not dropped by the kernel, and that the capturing"     \
      " program did not deliver: its queue was full, or its disk; null when the file does not"     \
      " tell")                                                                                     \
    X(truncated_packets, INT, "packets", "packets cut by the snap length")                         \
    X(time_unknown, INT, "packets", "packets without a time stamp (simple packet blocks)")         \
    X(backward_steps, INT, "packets", "packets stamped earlier than the one before them")          \
    X(backward_ns_max, DURATION, "ns", "the largest such step; null without one")                  \
    X(backward_frame, INT, "frame", "the first frame with such a step; null without one")          \
    X(mirror_duplicates, INT, "packets",                                                           \
      "copies of TCP packets made by a mirror port; null where only the interfaces table was "     \
      "made")                                                                                      \
    X(super_segments, INT, "packets",                                                              \
      "IP packets longer than the path can carry: taken before segmentation or after receive "     \
      "offload")                                                                                   \
    X(super_segment_frame, INT, "frame", "the first of them; null without one")                    \
    X(not_ip, INT, "packets", "packets of link-layer protocols other than IP")                     \
    X(not_understood, INT, "packets", "packets of a kind that is not read, non-IP aside")          \
    X(cut_headers, INT, "packets", "packets whose headers the snap length cut")                    \
    X(malformed, INT, "packets", "packets that break their own format")                            \
    X(malformed_frame, INT, "frame", "the first of them; null without one")                        \
    X(reasons, TEXT, "",                                                                           \
      "why packets were not decoded: name=count, most first; null when all were")                  \
    X(damage, TEXT, "", "what ended the reading of the file before its end; null when whole")      \
    X(damage_offset, INT, "bytes", "where in the uncompressed file; null when whole")              \
    X(damage_frame, INT, "frame", "the last whole frame before it; null when whole")               \
    X(hardware, TEXT, "", "capturing hardware, as the file says")                                  \
    X(system, TEXT, "", "capturing system, as the file says")                                      \
    X(capture_application, TEXT, "", "capturing program, as the file says")                        \
    X(capture_filter, TEXT, "", "filter used when capturing, as the file says")                    \
    X(comment, TEXT, "", "comments of the section and the interface")                              \
    X(packet_comments, INT, "packets", "packets that carry a comment")

#define FLOWS_COLUMNS(X)                                                                           \
    X(flow, INT, "", "number of the conversation, from 0, in the order of first packets")          \
    X(protocol, WORD, "", "transport protocol")                                                    \
    X(protocol_number, INT, "", "IP protocol number")                                              \
    X(ip_version, INT, "", "4 or 6")                                                               \
    X(source, ADDRESS, "", "the initiator's address")                                              \
    X(source_port, INT, "",                                                                        \
      "the initiator's port; null where the protocol has none or no first fragment told it")       \
    X(destination, ADDRESS, "", "the responder's address")                                         \
    X(destination_port, INT, "", "the responder's port; null as above")                            \
    X(path, TEXT, "",                                                                              \
      "encapsulations around it, outermost first, as in `vlan 10 / vxlan 7`; null without one")    \
    X(initiator_known, BOOL, "",                                                                   \
      "whether the handshake told who began; else the first packet's sender is taken")             \
    X(initiator_evidence, WORD, "", "syn, syn_ack or first_packet")                                \
    X(state, WORD, "", "TCP: how far the conversation came; null for other protocols")             \
    X(end, WORD, "", "why the row ends: end_of_capture, idle, evicted, ports_reused")              \
    X(application, WORD, "",                                                                       \
      "blocks, iperf2, iperf3 or rtp, by what its packets say; null: not recognised")              \
    X(first_ns, TIME, "ns", "time of the first packet; null where the file has no times")          \
    X(last_ns, TIME, "ns", "time of the last packet")                                              \
    X(first_capture, INT, "", "interfaces row of the first packet")                                \
    X(first_frame, INT, "frame", "frame of the first packet in that file")                         \
    X(last_frame, INT, "frame", "frame of the last packet in its file")                            \
    X(packets, INT, "packets", "IP packets, both directions")                                      \
    X(wire_bytes, INT, "bytes", "both directions; see directions.wire_bytes")                      \
    X(payload_bytes, INT, "bytes", "both directions; see directions.payload_bytes")                \
    X(handshake_rtt_ns, DURATION, "ns",                                                            \
      "TCP: from the last SYN to the ACK of the SYN-ACK, the whole path's round trip whatever "    \
      "the capture point; null without all three or after a repeated SYN-ACK")                     \
    X(one_way, BOOL, "", "only one direction was captured")                                        \
    X(icmp_errors, INT, "packets", "ICMP errors that quote a packet of this flow")

#define DIRECTIONS_COLUMNS(X)                                                                      \
    X(flow, INT, "", "flows row")                                                                  \
    X(direction, INT, "", "0 from the initiator, 1 to it")                                         \
    X(source, ADDRESS, "", "sender of this direction")                                             \
    X(source_port, INT, "", "its port; null where there is none")                                  \
    X(destination, ADDRESS, "", "receiver of this direction")                                      \
    X(destination_port, INT, "", "its port; null where there is none")                             \
    X(packets, INT, "packets", "IP packets; each fragment is one")                                 \
    X(wire_bytes, INT, "bytes",                                                                    \
      "bytes of link time: for Ethernet header, padding to 60, FCS, preamble and gap (24 more "    \
      "than the frame); other links as captured")                                                  \
    X(ip_bytes, INT, "bytes", "IP packets with their headers")                                     \
    X(payload_bytes, INT, "bytes",                                                                 \
      "transport payload, everything sent, repeated or not, but for the text that a RST may "      \
      "carry "                                                                                     \
      "(RFC 9293 section 3.5.3); null when a header before it could not be read")                  \
    X(unique_bytes, INT, "bytes",                                                                  \
      "TCP: different bytes of the stream seen here; null for other protocols")                    \
    X(data_packets, INT, "packets",                                                                \
      "TCP segments or datagrams with payload; a fragmented one counts once")                      \
    X(retransmissions, INT, "packets",                                                             \
      "TCP: segments with bytes, SYN or FIN sent again: seen here before, or filling a gap that "  \
      "was lost upstream; the sum of the four kinds and those of unknown cause")                   \
    X(fast_retransmissions, INT, "packets",                                                        \
      "TCP: after three duplicate ACKs (RFC 5681), SACKs of three segments above (RFC 6675), one " \
      "a round trip after (RFC 8985), or in the recovery that follows; null when the other "       \
      "direction was not captured")                                                                \
    X(timeout_retransmissions, INT, "packets",                                                     \
      "TCP: after a retransmission timeout without news (RFC 6298), and go-back-N behind it; "     \
      "null as above")                                                                             \
    X(timeouts, INT, "", "TCP: timeouts that they came of; null as above")                         \
    X(suspected_timeouts, INT, "",                                                                 \
      "TCP: new data in order after a pause, with a packet of the sender missing before it: lost " \
      "upstream, it seems, and sent again")                                                        \
    X(probe_retransmissions, INT, "packets",                                                       \
      "TCP: tail-loss probes (RFC 8985 section 7); null as above")                                 \
    X(spurious_retransmissions, INT, "packets",                                                    \
      "TCP: of all, proven needless: by DSACK (RFC 2883), an echoed timestamp (RFC 3522), or "     \
      "acknowledged here before; null as above")                                                   \
    X(retransmitted_bytes, INT, "bytes",                                                           \
      "TCP: payload bytes sent again whose place in the stream had been seen here before; copies " \
      "and probes left out")                                                                       \
    X(duplicate_bytes, INT, "bytes",                                                               \
      "TCP: payload bytes of copies made by the network or a mirror port")                         \
    X(probe_bytes, INT, "bytes", "TCP: payload bytes of keep-alives and window probes")            \
    X(out_of_order, INT, "packets",                                                                \
      "TCP: segments that the network reordered: they fill a gap and were sent before the one "    \
      "that opened it")                                                                            \
    X(ambiguous, INT, "packets",                                                                   \
      "TCP: segments that fill a gap, late or sent again: nothing tells which")                    \
    X(gaps, INT, "", "TCP: gaps in the stream opened by a segment ahead of the highest byte seen") \
    X(gaps_filled, INT, "", "TCP: of them, filled by a later segment")                             \
    X(network_duplicates, INT, "packets", "TCP: copies of a packet made by the network")           \
    X(mirror_duplicates, INT, "packets",                                                           \
      "TCP: copies of a packet stored by the capture itself (two mirror ports, or both "           \
      "directions of one)")                                                                        \
    X(unknown_duplicates, INT, "packets",                                                          \
      "TCP: copies of a packet within 1 ms, few, that nobody reported or could report: the "       \
      "network's or the capture's, not known")                                                     \
    X(lost_upstream, INT, "packets",                                                               \
      "TCP: segments lost between the sender and this point, known by what was sent again in "     \
      "their place")                                                                               \
    X(lost_downstream, INT, "packets",                                                             \
      "TCP: segments, or their acknowledgments, lost between this point and the receiver: sent "   \
      "again, and not needlessly as far as is known; null when the other direction was not "       \
      "captured")                                                                                  \
    X(sack_gaps, INT, "",                                                                          \
      "TCP: gaps that the receiver told by SACK where the data itself was not captured")           \
    X(unseen_bytes, INT, "bytes",                                                                  \
      "TCP: bytes acknowledged by the receiver and never seen here: missed by the capture, or "    \
      "another path; null when the other direction was not captured")                              \
    X(capture_reordered, INT, "packets",                                                           \
      "TCP: segments stored after their acknowledgment, by a capture with several queues")         \
    X(gap_bytes, INT, "bytes",                                                                     \
      "TCP: bytes below the highest seen, neither seen nor acknowledged when the flow ended")      \
    X(unknown_bytes, INT, "bytes",                                                                 \
      "TCP: bytes of gaps given up because too many were open at once")                            \
    X(duplicate_acks, INT, "packets",                                                              \
      "TCP acknowledgments sent in this direction that repeat the one before (RFC 5681)")          \
    X(sack_acks, INT, "packets",                                                                   \
      "TCP acknowledgments sent in this direction with SACK blocks; null where options were cut")  \
    X(zero_windows, INT, "packets",                                                                \
      "TCP segments sent in this direction with a receive window of 0 (not SYN, FIN, RST)")        \
    X(zero_window_ns, DURATION, "ns",                                                              \
      "TCP: how long the receive window announced in this direction was 0")                        \
    X(window_full, INT, "packets",                                                                 \
      "TCP: segments that fill the window that the receiver announced; null when its scale is "    \
      "not known")                                                                                 \
    X(window_probes, INT, "packets", "TCP: probes of a closed window")                             \
    X(keep_alives, INT, "packets",                                                                 \
      "TCP: keep-alives (0 or 1 byte below what is acknowledged); null when the other direction "  \
      "was not captured")                                                                          \
    X(fragments, INT, "packets", "IP fragments")                                                   \
    X(fragmented_datagrams, INT, "", "datagrams that came in fragments")                           \
    X(incomplete_datagrams, INT, "", "of them, not complete at the end")                           \
    X(fragment_overhead_bytes, INT, "bytes",                                                       \
      "wire bytes spent on the headers, preambles and gaps of every fragment after the first of "  \
      "its datagram")                                                                              \
    X(blocks, INT, "",                                                                             \
      "different numbered units of the application (see flows.application) that came: UDP "        \
      "packets, or "                                                                               \
      "blocks of a TCP stream that were delivered; null where none was recognised")                \
    X(blocks_lost, INT, "", "of those expected, from the first number to the highest, not seen")   \
    X(blocks_out_of_order, INT, "",                                                                \
      "with a number below one seen before (RFC 4737), and no duplicate")                          \
    X(blocks_duplicate, INT, "", "of a number seen before")                                        \
    X(blocks_late, INT, "", "too old to tell a duplicate from one out of order")                   \
    X(blocks_corrupt, INT, "", "whose content is not what its header says")                        \
    X(block_loss_runs, INT, "", "groups of lost numbers side by side")                             \
    X(block_loss_run_max, INT, "", "the longest of them")                                          \
    X(block_restarts, INT, "", "beginnings of the sender after the first")                         \
    X(blocks_head_of_line, INT, "", "TCP: blocks that waited for bytes before their own")          \
    X(head_of_line_ns_max, DURATION, "ns", "TCP: the longest such wait")                           \
    X(rtt_samples, INT, "",                                                                        \
      "TCP: round trips measured from data of this direction to its acknowledgment (Karn's rule)") \
    X(rtt_ns_min, DURATION, "ns",                                                                  \
      "TCP: the least of them, from the capture point to the receiver and back; null without one") \
    X(rtt_ns_median, DURATION, "ns", "exact to 64 samples, then within 1.6%")                      \
    X(rtt_ns_p99, DURATION, "ns", "exact to 64 samples, then within 1.6%")                         \
    X(rtt_ns_max, DURATION, "ns", "the greatest")                                                  \
    X(jitter_ns, DURATION, "ns",                                                                   \
      "interarrival jitter of the numbered units (RFC 3550 section 6.4.1), as iperf has it; null " \
      "where they carry no time")                                                                  \
    X(delay_variation_ns, DURATION, "ns",                                                          \
      "greatest less least transit time of them; null as above")                                   \
    X(throughput_bps, INT, "bit/s",                                                                \
      "ip_bytes over last_ns - first_ns, without what a mirror port stored twice; null when that " \
      "is 0")                                                                                      \
    X(goodput_bps, INT, "bit/s",                                                                   \
      "useful payload over the same time: unique bytes (TCP), payload less that of incomplete "    \
      "datagrams (others)")                                                                        \
    X(mss, INT, "bytes",                                                                           \
      "TCP: maximum segment size that this sender announced for what it receives; null when not "  \
      "seen")                                                                                      \
    X(window_scale, INT, "", "TCP: shift that this sender announced; null when not seen")          \
    X(sack_permitted, BOOL, "", "TCP: announced in its SYN; null when no SYN was seen")            \
    X(timestamps, BOOL, "", "TCP: segments carry RFC 7323 timestamps; null without segments")      \
    X(initial_sequence, INT, "",                                                                   \
      "TCP: sequence number of the SYN, else of the first segment's first byte")                   \
    X(window_min, INT, "bytes",                                                                    \
      "TCP: least receive window this sender announced, scaled; null when the scale is not known") \
    X(window_max, INT, "bytes", "TCP: greatest, as above")                                         \
    X(flight_max, INT, "bytes",                                                                    \
      "TCP: most bytes sent beyond the highest acknowledgment; null when the other direction was " \
      "not captured")                                                                              \
    X(segment_max, INT, "bytes", "largest payload of one packet")                                  \
    X(syns, INT, "packets", "TCP segments with SYN")                                               \
    X(fins, INT, "packets", "TCP segments with FIN")                                               \
    X(resets, INT, "packets", "TCP segments with RST")                                             \
    X(acks_out_of_range, INT, "packets", "TCP acknowledgments far outside what was sent; ignored") \
    X(ecn_ce, INT, "packets", "IP packets marked Congestion Experienced")                          \
    X(ecn_echo, INT, "packets", "TCP segments with ECE (not SYN)")                                 \
    X(ecn_cwr, INT, "packets", "TCP segments with CWR (not SYN)")                                  \
    X(unusual_options, INT, "packets",                                                             \
      "TCP segments with options of multipath TCP, MD5 or AO signatures, or unknown ones; null "   \
      "where options were cut")                                                                    \
    X(ttl_min, INT, "hops", "least TTL or hop limit")                                              \
    X(ttl_max, INT, "hops", "greatest")                                                            \
    X(dscp, INT, "", "DSCP of the first packet")                                                   \
    X(first_ns, TIME, "ns", "time of the first packet of this direction")                          \
    X(last_ns, TIME, "ns", "time of the last")                                                     \
    X(idle_ns_max, DURATION, "ns",                                                                 \
      "longest time between two packets of this direction; null with fewer than two")              \
    X(limit_idle_ns, DURATION, "ns",                                                               \
      "TCP: of the time from the 8th packet to the last data, while the sender had nothing to"     \
      " send: all was acknowledged, or the last segment was short; null with fewer packets or"     \
      " one direction")                                                                            \
    X(limit_delayed_ack_ns, DURATION, "ns",                                                        \
      "TCP: while a short segment waited for an acknowledgment that the receiver held back "       \
      "(Nagle's algorithm and the delayed-ACK timer); null as above")                              \
    X(limit_window_ns, DURATION, "ns",                                                             \
      "TCP: while the receiver's window was full or closed; null as above")                        \
    X(limit_recovery_ns, DURATION, "ns",                                                           \
      "TCP: while a loss was being mended by fast recovery or go-back-N; null as above")           \
    X(limit_timeout_ns, DURATION, "ns",                                                            \
      "TCP: silence that ended with a retransmission by the timer, also one that is only"          \
      " suspected, the whole life long")                                                           \
    X(stall_frames, TEXT, "",                                                                      \
      "TCP: the frames before and after each of these silences, as in `340-341, 90-120`: the five" \
      " longest, longest first; null without one")                                                 \
    X(limit_slow_start_ns, DURATION, "ns",                                                         \
      "TCP: data under way, until what was in flight last doubled before any loss; null as "       \
      "above")                                                                                     \
    X(limit_network_ns, DURATION, "ns",                                                            \
      "TCP: data under way otherwise: the congestion window, or the rate of the path; null as"     \
      " above")

#define EVENTS_COLUMNS(X)                                                                          \
    X(flow, INT, "", "flows row; null for an event of the capture itself")                         \
    X(direction, INT, "", "of the packet; null for an event of the capture itself")                \
    X(capture, INT, "", "interfaces row")                                                          \
    X(frame, INT, "frame", "the packet, in that capture's file")                                   \
    X(time_ns, TIME, "ns", "its time; null where the file has none")                               \
    X(kind, WORD, "", "the verdict; for TCP by the numbered rules of docs/verdicts.md")            \
    X(bytes, INT, "bytes", "payload bytes concerned; null if there are none")                      \
    X(related_frame, INT, "frame",                                                                 \
      "the frame that it answers, repeats or waited for; null if none was seen")                   \
    X(detail, TEXT, "",                                                                            \
      "details, such as the cause of a retransmission (rules V5); null if the kind is "            \
      "sufficient")                                                                                \
    X(place, WORD, "",                                                                             \
      "where data was lost or reordered (rules V7): upstream (between sender and capture "         \
      "point), downstream (between capture point and receiver) or capture (in the capture "        \
      "alone); null if unknown or if nothing was lost")                                            \
    X(evidence, WORD, "",                                                                          \
      "the evidence that decided: dsack (V6.3, V8.5), timestamps (V3.2, V6.4), ip_id (V3.3, "      \
      "V8.1), acks (V5.3 to V5.8), acknowledged (V6.1, V6.2), signature (V8.2), time (V3.4, "      \
      "V3.5, V5.9, V5.10, V6.5); null if the kind is sufficient, or without evidence")             \
    X(spurious, BOOL, "",                                                                          \
      "whether a retransmission is proven spurious (rules V6); null for other kinds")

#define SERIES_COLUMNS(X)                                                                          \
    X(flow, INT, "", "flows row")                                                                  \
    X(direction, INT, "", "directions row of the flow")                                            \
    X(start_ns, TIME, "ns", "start of the bin; bins in which nothing was seen have no row")        \
    X(width_ns, DURATION, "ns",                                                                    \
      "its width: 1 ms doubled as often as was needed, the same for the direction")                \
    X(packets, INT, "packets", "IP packets in it")                                                 \
    X(wire_bytes, INT, "bytes", "as in directions")                                                \
    X(bytes, INT, "bytes", "IP bytes")                                                             \
    X(payload_bytes, INT, "bytes", "transport payload")                                            \
    X(unique_bytes, INT, "bytes",                                                                  \
      "TCP: stream bytes seen for the first time; null for other protocols")                       \
    X(retransmitted_bytes, INT, "bytes", "TCP: payload sent again; null for other protocols")      \
    X(lost, INT, "packets",                                                                        \
      "TCP: segments taken for lost, by what was sent in their place then; those proven needless " \
      "later included; null for other protocols")                                                  \
    X(rtt_ns, DURATION, "ns", "TCP: least round trip sampled in it; null without one")             \
    X(flight_bytes, INT, "bytes",                                                                  \
      "TCP: most bytes sent beyond the highest acknowledgment; null when not known")               \
    X(window_bytes, INT, "bytes",                                                                  \
      "TCP: least receive window offered to this direction when it sent, or was acknowledged; "    \
      "null when not known")                                                                       \
    X(throughput_bps, INT, "bit/s", "IP bytes of the bin over its width")                          \
    X(cumulative_throughput_bps, INT, "bit/s",                                                     \
      "all IP bytes so far over all time so far (to the end of the bin, or the last packet)")      \
    X(goodput_bps, INT, "bit/s", "useful payload of the bin over its width")

#define DATAGRAMS_COLUMNS(X)                                                                       \
    X(flow, INT, "", "flows row")                                                                  \
    X(direction, INT, "", "direction of the flow")                                                 \
    X(capture, INT, "", "interfaces row of the first fragment seen")                               \
    X(source, ADDRESS, "", "sender")                                                               \
    X(destination, ADDRESS, "", "receiver")                                                        \
    X(protocol_number, INT, "", "IP protocol number")                                              \
    X(identification, INT, "", "IP identification")                                                \
    X(state, WORD, "", "complete or incomplete (when the capture or the reassembly time ended)")   \
    X(fragments, INT, "packets", "fragments seen, copies included")                                \
    X(bytes, INT, "bytes",                                                                         \
      "IP payload of the whole datagram; null when its last fragment was not seen")                \
    X(received_bytes, INT, "bytes", "different bytes of it seen")                                  \
    X(overhead_bytes, INT, "bytes",                                                                \
      "wire bytes of headers, preambles and gaps of every fragment after the first")               \
    X(missing_bytes, INT, "bytes",                                                                 \
      "not seen, as far as the end is known; null when the last fragment was not seen")            \
    X(missing, TEXT, "", "the ranges not seen, as in `1480-2959, 5920-`; null when complete")      \
    X(out_of_order, INT, "packets", "fragments that came after one with a higher offset")          \
    X(duplicates, INT, "packets", "fragments of which every byte had been seen")                   \
    X(overlaps, INT, "packets",                                                                    \
      "fragments that overlap others in part (RFC 5722 forbids it for IPv6)")                      \
    X(late, INT, "packets",                                                                        \
      "fragments that came after the datagram was complete or its reassembly time (30 s; IPv6 60 " \
      "s) was over")                                                                               \
    X(first_frame, INT, "frame", "first fragment seen")                                            \
    X(last_frame, INT, "frame", "last fragment seen")                                              \
    X(first_ns, TIME, "ns", "its time")                                                            \
    X(last_ns, TIME, "ns", "time of the last")

#define PACKETS_COLUMNS(X)                                                                         \
    X(flow, INT, "", "flows row")                                                                  \
    X(direction, INT, "", "direction of the flow")                                                 \
    X(capture, INT, "", "interfaces row")                                                          \
    X(frame, INT, "frame", "frame in that capture's file")                                         \
    X(time_ns, TIME, "ns", "its time")                                                             \
    X(ip_bytes, INT, "bytes", "IP packet with its headers")                                        \
    X(payload_bytes, INT, "bytes", "transport payload in this packet")                             \
    X(sequence, INT, "bytes",                                                                      \
      "TCP: stream position of the first byte, 0 the first byte after the SYN, unwrapped; null "   \
      "for other protocols")                                                                       \
    X(acknowledged, INT, "bytes",                                                                  \
      "TCP: stream position in the other direction acknowledged by it; null without ACK or when "  \
      "not known")                                                                                 \
    X(window, INT, "bytes",                                                                        \
      "TCP: receive window announced by it, scaled; null when the scale is not known")             \
    X(sack_start, INT, "bytes",                                                                    \
      "TCP: the first SACK block's first byte, as a stream position of the other direction; null " \
      "without one")                                                                               \
    X(sack_end, INT, "bytes", "TCP: the byte after that block's last")                             \
    X(flags, INT, "",                                                                              \
      "TCP: flag bits as in the header (FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR "  \
      "128)")                                                                                      \
    X(unique_bytes, INT, "bytes", "TCP: of the payload, seen for the first time")                  \
    X(rtt_ns, DURATION, "ns",                                                                      \
      "TCP: round trip of the other direction's data that this acknowledgment completes; null "    \
      "without one")                                                                               \
    X(fragment_offset, INT, "bytes",                                                               \
      "place of a fragment in its datagram; null when not fragmented")

#define BLOCKS_COLUMNS(X)                                                                          \
    X(flow, INT, "", "flows row")                                                                  \
    X(direction, INT, "", "direction of the flow")                                                 \
    X(capture, INT, "", "interfaces row of the last packet")                                       \
    X(stream, INT, "",                                                                             \
      "stream of the run, as its header says; null for a length given by --block-size")            \
    X(sequence, INT, "", "number of the block in its stream; lost ones have no row but an event")  \
    X(bytes, INT, "bytes", "whole block with its header")                                          \
    X(sent_ns, TIME, "ns",                                                                         \
      "when the sender says that it sent it; null where its header was not read")                  \
    X(first_ns, TIME, "ns", "when its first packet passed here")                                   \
    X(complete_ns, TIME, "ns",                                                                     \
      "when all its bytes, and in TCP all before them, had passed here; null: unfinished")         \
    X(latency_ns, DURATION, "ns", "complete_ns - sent_ns: with the offset of the two clocks")      \
    X(head_of_line_ns, DURATION, "ns",                                                             \
      "TCP: how long it waited, complete, for bytes before its own; null for UDP")                 \
    X(first_frame, INT, "frame", "first packet")                                                   \
    X(last_frame, INT, "frame", "packet that completed it; null: unfinished")                      \
    X(verdict, WORD, "",                                                                           \
      "delivered, head_of_line, out_of_order, duplicate, late, corrupt or unfinished")

#define FINDINGS_COLUMNS(X)                                                                        \
    X(code, TEXT, "", "name of the rule")                                                          \
    X(severity, TEXT, "", "error, warning or info")                                                \
    X(scope, TEXT, "", "capture, flow or datagrams: what it is about")                             \
    X(flow, INT, "", "flows row; null when it is about the capture or many flows")                 \
    X(sentence, TEXT, "", "what was found, with its figures")                                      \
    X(cost, REAL, "", "what it costs, in cost_unit; null when that cannot be said")                \
    X(cost_unit, TEXT, "", "bytes, packets, seconds or percent")                                   \
    X(impact, REAL, "",                                                                            \
      "share of the trace's wire bytes that it affects, 0 to 1: the order of findings of equal "   \
      "severity; null: it may affect all of them, and comes first")                                \
    X(evidence, TEXT, "", "frames or rows that show it; null when the whole table does")           \
    X(advice, TEXT, "", "what to do")                                                              \
    X(filter, TEXT, "", "Wireshark display filter that shows it; null without one")

#define TABLES(X)                                                                                  \
    X(interfaces, INTERFACES_COLUMNS, "an input interface of an input file")                       \
    X(flows, FLOWS_COLUMNS, "a conversation")                                                      \
    X(directions, DIRECTIONS_COLUMNS, "one direction of a flow; both have a row, seen or not")     \
    X(events, EVENTS_COLUMNS, "one thing that happened to one packet or span")                     \
    X(series, SERIES_COLUMNS, "one direction in one time bin; at most 2,000 a direction")          \
    X(datagrams, DATAGRAMS_COLUMNS, "one fragmented IP datagram")                                  \
    X(blocks, BLOCKS_COLUMNS, "one of wiretale's blocks")                                          \
    X(packets, PACKETS_COLUMNS, "one IP packet of a flow; made only when asked for")               \
    X(findings, FINDINGS_COLUMNS, "one explanation of what is odd or costs most")

enum table_number {
#define X(name, columns, meaning) TABLE_##name,
    TABLES(X)
#undef X
        TABLE_COUNT
};

/* A path is bytes, any but NUL; a text is UTF-8. */
enum column_type {
    TYPE_INT,
    TYPE_TIME,
    TYPE_DURATION, /* up to this one a value is an integer */
    TYPE_REAL,
    TYPE_BOOL,
    TYPE_WORD,
    TYPE_TEXT,
    TYPE_ADDRESS,
    TYPE_PATH
};

struct column {
    const char *name;
    const char *unit; /* "" for none */
    const char *meaning;
    uint8_t type; /* enum column_type */
};

struct schema {
    const char *name;
    const char *meaning; /* the meaning of a row */
    const struct column *columns;
    size_t column_count;
};

extern const struct schema schemas[TABLE_COUNT];

/* Column numbers: interfaces_file, directions_packets, ... */
#define X(name, type, unit, meaning) interfaces_##name,
enum { INTERFACES_COLUMNS(X) interfaces_column_count };
#undef X
#define X(name, type, unit, meaning) flows_##name,
enum { FLOWS_COLUMNS(X) flows_column_count };
#undef X
#define X(name, type, unit, meaning) directions_##name,
enum { DIRECTIONS_COLUMNS(X) directions_column_count };
#undef X
#define X(name, type, unit, meaning) events_##name,
enum { EVENTS_COLUMNS(X) events_column_count };
#undef X
#define X(name, type, unit, meaning) series_##name,
enum { SERIES_COLUMNS(X) series_column_count };
#undef X
#define X(name, type, unit, meaning) datagrams_##name,
enum { DATAGRAMS_COLUMNS(X) datagrams_column_count };
#undef X
#define X(name, type, unit, meaning) packets_##name,
enum { PACKETS_COLUMNS(X) packets_column_count };
#undef X
#define X(name, type, unit, meaning) blocks_##name,
enum { BLOCKS_COLUMNS(X) blocks_column_count };
#undef X
#define X(name, type, unit, meaning) findings_##name,
enum { FINDINGS_COLUMNS(X) findings_column_count };
#undef X

#define COLUMNS_MAX 128 /* of a table; a row's null mask has that many bits */

#endif
