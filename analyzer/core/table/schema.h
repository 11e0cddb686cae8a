/* SPDX-License-Identifier: Apache-2.0 */
/* The tables: every column's name, type, unit and meaning, in one place.
 *
 * docs/tables.md is made from this file. Types: INT int64, TIME int64 ns since the epoch, DURATION
 * int64 ns, REAL float64, BOOL, WORD (one of vocabulary.h), TEXT (UTF-8), PATH (bytes), ADDRESS (an
 * IP address as text). Sizes are bytes, rates bit/s. A value that cannot be known from the capture
 * is null, never 0. Columns of type KNOWN(type) are never null, because rows/ sets them in each
 * row.
 *
 * A column is added here and filled in rows/; the schemas in Python, all exports and the
 * documentation follow. Names are a public interface: a column must not be renamed or change its
 * unit without an entry in the changelog. Columns that most readers need should come first,
 * because a row is unpacked only up to the last column that a reader asks for. A table has at
 * most COLUMNS_MAX columns. */
#ifndef WIRETALE_SCHEMA_H
#define WIRETALE_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One row per interface of each file, also if it has no packets. Ungrouped. */
#define INTERFACES_COLUMNS(X)                                                                      \
    X(capture, KNOWN(INT), "", "number of this input interface, from 0")                           \
    X(file, KNOWN(PATH), "", "path as given, - for standard input")                                \
    X(format, KNOWN(TEXT), "", "pcap, pcapng, ..., detected by the first bytes")                   \
    X(compression, KNOWN(TEXT), "", "none, gzip, zstd or lz4")                                     \
    X(interface, KNOWN(INT), "", "index of the interface within the file")                         \
    X(name, TEXT, "", "interface name; null if the file has none")                                 \
    X(link_type, KNOWN(INT), "", "LINKTYPE_ number")                                               \
    X(link_type_name, TEXT, "", "libpcap's name for it; null if it has none")                      \
    X(snaplen, INT, "bytes", "snap length; null if unlimited or not in the file")                  \
    X(time_resolution_ns, KNOWN(DURATION), "ns", "time stamp resolution; 0 if finer than 1 ns")    \
    X(clock_tick_ns, DURATION, "ns",                                                               \
      "tick of the clock: the least time between two packets, once eight had the time of "         \
      "the packet before and eight came one tick later. Null if it is not known, or if "           \
      "times are missing")                                                                         \
    X(packets, KNOWN(INT), "packets", "packets analyzed (after --filter, --start, --end)")         \
    X(bytes, KNOWN(INT), "bytes", "their lengths on the wire, link header included, without FCS")  \
    X(captured_bytes, KNOWN(INT), "bytes", "bytes of them in the file")                            \
    X(filtered_packets, KNOWN(INT), "packets", "packets skipped by --filter, --start or --end")    \
    X(first_ns, TIME, "ns", "earliest time of a packet")                                           \
    X(last_ns, TIME, "ns", "latest time of a packet")                                              \
    X(received, INT, "packets",                                                                    \
      "packets that the capturing system received, after a filter only those that passed; "        \
      "null if the file has no count")                                                             \
    X(dropped_kernel, INT, "packets",                                                              \
      "packets that the capturing kernel dropped; null if the file has no count")                  \
    X(dropped_interface, INT, "packets",                                                           \
      "packets that the capturing interface dropped; null if the file has no count")               \
    X(dropped_program, INT, "packets",                                                             \
      "packets that passed the filter, were not dropped by the kernel, and were not delivered "    \
      "by the capturing program, because its queue or disk was full; null if the file has no "     \
      "count")                                                                                     \
    X(truncated_packets, KNOWN(INT), "packets", "packets truncated by the snap length")            \
    X(wlan_frames, INT, "packets", "802.11 data frames; null without one")                         \
    X(wlan_retries, INT, "packets", "of them, frames that their sender repeats (retry bit)")       \
    X(wlan_station, TEXT, "", "MAC address of the sender with the most retries; null without any") \
    X(wlan_station_frames, INT, "packets", "data frames of this sender; null likewise")            \
    X(wlan_station_retries, INT, "packets", "of them, retries; null likewise")                     \
    X(wlan_station_signal_dbm, INT, "dBm",                                                         \
      "mean signal of its data frames at the monitor (radiotap); null if unknown")                 \
    X(time_unknown, KNOWN(INT), "packets",                                                         \
      "packets without a time stamp (simple packet blocks), or with one out of range")             \
    X(time_unknown_frame, INT, "frame", "the first without a time stamp; null without one")        \
    X(time_out_of_range, KNOWN(INT), "packets",                                                    \
      "of them, packets with a time stamp before 1896 or after 2116, which is no time")            \
    X(time_out_of_range_frame, INT, "frame", "the first of them; null without one")                \
    X(backward_steps, KNOWN(INT), "packets",                                                       \
      "packets with an earlier time stamp than the packet before")                                 \
    X(backward_ns_max, DURATION, "ns", "the largest such step; null without one")                  \
    X(backward_frame, INT, "frame", "the first frame with such a step; null without one")          \
    X(backward_frame_ns, TIME, "ns", "its time; null without one")                                 \
    X(burst_10us_bytes, INT, "bytes",                                                              \
      "bytes of the fullest 10 µs: of all packets from one packet on, in both directions. A "     \
      "packet with an earlier time than the one before it counts at the latest time. Null "        \
      "if a time is missing, if the clock's tick or a step back is longer, or if 1 ms has "        \
      "more than 262,144 packets")                                                                 \
    X(burst_100us_bytes, INT, "bytes", "the same of 100 µs")                                       \
    X(burst_1ms_bytes, INT, "bytes", "the same of 1 ms")                                           \
    X(burst_ns, TIME, "ns", "first packet of that 1 ms; null if burst_1ms_bytes is")               \
    X(burst_last_ns, TIME, "ns", "the last packet of that 1 ms")                                   \
    X(burst_frame, INT, "frame", "the same")                                                       \
    X(mirror_duplicates, INT, "packets",                                                           \
      "duplicates of TCP packets that the capture made; null if only the interfaces table was"     \
      " made")                                                                                     \
    X(second_port_duplicates, INT, "packets",                                                      \
      "of them, those that another port stored than the original: other link addresses, or"        \
      " another TTL because a router is between; null if only the interfaces table was made")      \
    X(second_port_ns_max, DURATION, "ns",                                                          \
      "the longest time between both ports; null without such a packet")                           \
    X(super_segments, KNOWN(INT), "packets",                                                       \
      "IP packets longer than a link can carry: captured before segmentation offload (TSO) or "    \
      "after receive offload (GRO, LRO)")                                                          \
    X(super_segment_frame, INT, "frame", "the first of them; null without one")                    \
    X(super_segment_frame_ns, TIME, "ns", "its time; null if unknown")                             \
    X(lengths_cut, KNOWN(INT), "packets",                                                          \
      "IP packets longer than their record says that they were on the wire: a tool or a mirror "   \
      "port cut them and wrote the shorter length; analyzed by their IP length")                   \
    X(length_cut_frame, INT, "frame", "the first of them; null without one")                       \
    X(length_cut_frame_ns, TIME, "ns", "its time; null if unknown")                                \
    X(not_ip, KNOWN(INT), "packets", "packets of link-layer protocols other than IP")              \
    X(not_understood, KNOWN(INT), "packets",                                                       \
      "packets of a kind that is not decoded, other than non-IP")                                  \
    X(not_understood_frame, INT, "frame",                                                          \
      "the first of them that undecoded_packets does not count; null without one")                 \
    X(not_understood_frame_ns, TIME, "ns", "its time; null if unknown")                            \
    X(undecoded_packets, KNOWN(INT), "packets",                                                    \
      "packets of protocols that are not decoded and may carry IP: link types, EtherTypes, PPP "   \
      "and "                                                                                       \
      "IP protocols, and UDP ports of encapsulations if the datagram contains an IP header")       \
    X(undecoded_frame, INT, "frame", "the first of them; null without one")                        \
    X(undecoded_frame_ns, TIME, "ns", "its time; null if unknown")                                 \
    X(cut_headers, KNOWN(INT), "packets",                                                          \
      "packets whose headers were truncated by the snap length")                                   \
    X(cut_headers_frame, INT, "frame", "the first of them; null without one")                      \
    X(cut_headers_frame_ns, TIME, "ns", "its time; null if unknown")                               \
    X(malformed, KNOWN(INT), "packets", "packets that violate their own format")                   \
    X(malformed_frame, INT, "frame", "the first of them; null without one")                        \
    X(malformed_frame_ns, TIME, "ns", "its time; null if unknown")                                 \
    X(no_flow_bytes, KNOWN(INT), "bytes",                                                          \
      "wire bytes, as in directions, of packets in no flow: no IP header of them was read")        \
    X(damage, TEXT, "", "why reading ended before the end of the file; null if it did not")        \
    X(damage_offset, INT, "bytes",                                                                 \
      "offset of the damage in the uncompressed file; null without damage")                        \
    X(damage_frame, INT, "frame", "the last whole frame before it; null without damage")           \
    X(damage_frame_ns, TIME, "ns",                                                                 \
      "its time, in the row of its interface; null in other rows, or if it was not analyzed")      \
    X(hardware, TEXT, "", "capturing hardware, from the file")                                     \
    X(system, TEXT, "", "capturing operating system, from the file")                               \
    X(capture_application, TEXT, "", "capturing program, from the file")                           \
    X(capture_filter, TEXT, "", "capture filter, from the file")                                   \
    X(comment, TEXT, "", "comments of the section and the interface")                              \
    X(packet_comments, KNOWN(INT), "packets", "packets with a comment")                            \
    X(speed_bps, INT, "bit/s", "speed of the interface, from the file")                            \
    X(duplex, TEXT, "",                                                                            \
      "full or half. This and the following are what wiretale-capture wrote into its file; null "  \
      "if the file is of another program or the driver told nothing")                              \
    X(mtu, INT, "bytes", "MTU of the interface")                                                   \
    X(promiscuous, BOOL, "", "packets to other hosts were asked for")                              \
    X(receive_offload, BOOL, "",                                                                   \
      "GRO or LRO was on: received segments may be merged before they are captured")               \
    X(send_offload, BOOL, "",                                                                      \
      "TSO or GSO was on: sent segments may be captured before they are split")                    \
    X(time_stamps, TEXT, "", "who stamped the packets: host (the kernel's clock), adapter, ...")   \
    X(carrier_losses, INT, "",                                                                     \
      "times that the interface lost its carrier in the time of the file")                         \
    X(carrier_down_ns, DURATION, "ns", "time without a carrier, of losses that ended in the file") \
    X(carrier_lost_ns, TIME, "ns", "when the carrier was first lost; null without a loss")         \
    X(carrier_back_ns, TIME, "ns",                                                                 \
      "when it last came back; null without a loss, or if it did not")                             \
    X(clock_synchronized, BOOL, "",                                                                \
      "the clock was synchronized by NTP or PTP all the time of the file")                         \
    X(clock_error_ns, DURATION, "ns",                                                              \
      "greatest error of that clock in that time, as the program that sets it states; null if "    \
      "it states none, or if the clock was not synchronized")                                      \
    X(clock_steps, INT, "", "times that the clock was set in the time of the file")                \
    X(clock_step_size_ns, DURATION, "ns", "the largest step, negative if the clock was set back")  \
    X(clock_step_ns, TIME, "ns", "the first step, by the clock after it; null without one")        \
    X(clock_step_last_ns, TIME, "ns", "the last step; null without one")

/* One row per pair of ports, the two most frequent of each interface. Ungrouped. */
#define SECOND_PORTS_COLUMNS(X)                                                                    \
    X(capture, KNOWN(INT), "", "interfaces row of the second packet")                              \
    X(rank, KNOWN(INT), "", "1 for the most frequent pair of the interface, else 2")               \
    X(packets, KNOWN(INT), "packets", "duplicates that this pair of ports stored")                 \
    X(first_capture, INT, "",                                                                      \
      "interfaces row of the first port; null if several ports have its number")                   \
    X(first_source, TEXT, "",                                                                      \
      "link address from which the packets came there; null if unknown, or not Ethernet")          \
    X(first_destination, TEXT, "", "link address to which they went there; null likewise")         \
    X(first_ttl_min, KNOWN(INT), "hops", "least TTL there")                                        \
    X(first_ttl_max, KNOWN(INT), "hops", "greatest TTL there")                                     \
    X(second_capture, INT, "", "interfaces row of the second port; null likewise")                 \
    X(second_source, TEXT, "", "as first_source")                                                  \
    X(second_destination, TEXT, "", "as first_destination")                                        \
    X(second_ttl_min, KNOWN(INT), "hops", "least TTL there")                                       \
    X(second_ttl_max, KNOWN(INT), "hops", "greatest TTL there")

/* One row per reason and protocol of an interface, the most frequent first. The packets of a
 * reason, of all protocols and of none, are those whose decoding ended so; those with a protocol
 * sum to interfaces.undecoded_packets. Ungrouped. */
#define DECODE_STOPS_COLUMNS(X)                                                                    \
    X(capture, KNOWN(INT), "", "interfaces row")                                                   \
    X(outcome, WORD, "",                                                                           \
      "cut by the snap length, not_understood or malformed; null if only the protocol within the " \
      "last header is not decoded")                                                                \
    X(reason, TEXT, "", "why decoding stopped: ip-length, wlan-protected, ...; null likewise")     \
    X(protocol, TEXT, "",                                                                          \
      "protocol at which it stopped, if it may carry IP (interfaces.undecoded_packets): "          \
      "EtherType "                                                                                 \
      "0x8847, UDP port 4789, ...; `others` beyond eight of an interface; null for packets that "  \
      "cannot carry IP")                                                                           \
    X(packets, KNOWN(INT), "packets", "packets of this reason and protocol")

/* One row per flow, grouped: row n is flow n. A flow that is evicted and continues later has a
 * second row. */
#define FLOWS_COLUMNS(X)                                                                           \
    X(flow, KNOWN(INT), "", "number of the conversation, from 0, in the order of first packets")   \
    X(protocol, KNOWN(WORD), "",                                                                   \
      "transport protocol; ip for one that is not decoded, without ports")                         \
    X(protocol_number, KNOWN(INT), "", "IP protocol number")                                       \
    X(ip_version, KNOWN(INT), "", "4 or 6")                                                        \
    X(source, KNOWN(ADDRESS), "", "the initiator's address")                                       \
    X(source_port, INT, "",                                                                        \
      "the initiator's port, which may be 0; null if the protocol has none or no first fragment "  \
      "was captured")                                                                              \
    X(destination, KNOWN(ADDRESS), "", "the responder's address")                                  \
    X(destination_port, INT, "", "the responder's port; null as above")                            \
    X(path, TEXT, "",                                                                              \
      "encapsulations around it, outermost first, as in `vlan 10 / vxlan 7`; null if there is "    \
      "none")                                                                                      \
    X(path_back, TEXT, "",                                                                         \
      "the same of the packets to the initiator if they have others, `none` without any; null if " \
      "both directions have the same, as most have")                                               \
    X(initiator_known, KNOWN(BOOL), "",                                                            \
      "whether the handshake identified the initiator; if not, it is the sender of the first "     \
      "packet")                                                                                    \
    X(initiator_evidence, KNOWN(WORD), "", "syn, syn_ack or first_packet")                         \
    X(state, WORD, "", "TCP: state of the connection at its end; null for other protocols")        \
    X(end, KNOWN(WORD), "", "why the row ended: end_of_capture, idle, evicted, ports_reused")      \
    X(multipath_join, BOOL, "",                                                                    \
      "TCP: whether its SYN joined a multipath connection (MP_JOIN); false if it began one "       \
      "(MP_CAPABLE with a key); null without either")                                              \
    X(application, WORD, "",                                                                       \
      "blocks, iperf2, iperf3, rtp, dns, mdns, llmnr, tls, http, http2 or quic, by the content "   \
      "of its packets; null if none was recognized")                                               \
    X(server_name, TEXT, "",                                                                       \
      "name of the server: SNI of TLS and QUIC, Host of the first HTTP request, name of the "      \
      "first DNS question; other bytes than printable ASCII are \\DDD; null without one")          \
    X(proxy_header, BOOL, "",                                                                      \
      "true if a header of the PROXY protocol precedes the application; null otherwise")           \
    X(process_id, INT, "",                                                                         \
      "number of the process that had the connection on the host that captured, if the file "      \
      "names it for packets (process blocks of macOS and Wireshark); null without, or if they "    \
      "name several")                                                                              \
    X(process_name, TEXT, "", "its name; null likewise, or if the file has only the number")       \
    X(first_ns, TIME, "ns", "time of the first packet; null if the file has no times")             \
    X(last_ns, TIME, "ns", "time of the last packet")                                              \
    X(first_capture, KNOWN(INT), "", "interfaces row of the first packet")                         \
    X(first_frame, KNOWN(INT), "frame", "frame of the first packet in its file")                   \
    X(last_frame, KNOWN(INT), "frame", "frame of the last packet in its file")                     \
    X(packets, KNOWN(INT), "packets", "IP packets, both directions")                               \
    X(wire_bytes, KNOWN(INT), "bytes", "both directions; see directions.wire_bytes")               \
    X(payload_bytes, INT, "bytes", "both directions; see directions.payload_bytes")                \
    X(handshake_rtt_ns, DURATION, "ns",                                                            \
      "TCP: from the last SYN to the ACK of the SYN-ACK, which is the RTT of the whole path "      \
      "at any capture point. Null unless all three were captured and the SYN-ACK once. "           \
      "QUIC: the sum of handshakes.server_rtt_ns and client_rtt_ns")                               \
    X(one_way, KNOWN(BOOL), "", "only one direction was captured")                                 \
    X(icmp_errors, KNOWN(INT), "packets", "ICMP errors that quote a packet of this flow")          \
    X(client, INT, "",                                                                             \
      "TCP: direction of the client, which sends the requests, by the handshake, the "             \
      "messages of HTTP or TLS, or the only port that is a service's "                             \
      "(base/service_ports.h). Null if none of them shows it, and for other protocols")            \
    X(exchange, WORD, "",                                                                          \
      "TCP: turns if payload alternates between requests and responses (exchanges.turn), "         \
      "pipelined if an endpoint mostly sends while data to it is under way, streaming if "         \
      "only one direction has payload. Null without payload, if one direction was captured, "      \
      "and for other protocols")                                                                   \
    X(server_talk, WORD, "",                                                                       \
      "TCP: why the server's waits of 200 ms and more are no answer times. pushed: it sends "      \
      "by its own clock or when something happens, and the client replies. held: it keeps "        \
      "requests for a fixed time (long polls). typed: a person acts at the client (ports of "      \
      "SSH, RDP, ...), whose pauses are idle time, too. Null if they may be answer times, "        \
      "or without turns")                                                                          \
    X(time_connecting_ns, DURATION, "ns",                                                          \
      "TCP: of last_ns - first_ns, from the SYN until the handshake was complete, or to the "      \
      "last attempt. Null for other protocols, without times, and if one direction was "           \
      "captured. The parts of the time sum to it")                                                 \
    X(time_client_ns, DURATION, "ns",                                                              \
      "the client, which sends the requests, let pass: before a request and within it; null as "   \
      "above")                                                                                     \
    X(time_server_ns, DURATION, "ns",                                                              \
      "the server let pass: before a response and within it; null as above")                       \
    X(time_loss_ns, DURATION, "ns",                                                                \
      "recovering from losses, and waiting for retransmission timeouts; null as above")            \
    X(time_queue_ns, DURATION, "ns", "round trips above the least; null as above")                 \
    X(time_path_ns, DURATION, "ns", "least round trips; null as above")                            \
    X(time_window_ns, DURATION, "ns", "the receive window was full; null as above")                \
    X(time_send_buffer_ns, DURATION, "ns", "the send buffer had no room; null as above")           \
    X(time_transfer_ns, DURATION, "ns",                                                            \
      "the bottleneck was busy with data of this flow; null as above")                             \
    X(time_idle_ns, DURATION, "ns", "nobody waited; null as above")                                \
    X(time_unknown_ns, DURATION, "ns", "cannot be told; null as above")                            \
    X(reduced_path_ns, DURATION, "ns",                                                             \
      "of time_path_ns, with less in flight than before the last loss; null as above")             \
    X(pause_ns, DURATION, "ns",                                                                    \
      "the last time of 1 s or more without a packet of the flow, before a packet that was no "    \
      "retransmission and followed no attempt without an answer; null without one")                \
    X(pause_until_ns, TIME, "ns", "time of the packet that ended it")                              \
    X(pause_direction, INT, "", "direction of that packet")                                        \
    X(pause_capture, INT, "", "interfaces row of it")                                              \
    X(pause_frame, INT, "frame", "that packet")                                                    \
    X(pause_before_ns, DURATION, "ns", "the longest such time before; null without one")           \
    X(clock_jump_ns, DURATION, "ns",                                                               \
      "by which the capture's clock jumped forward: the timestamps of both ends advanced by so "   \
      "much less, 200 ms or more; null if they show no jump")                                      \
    X(clock_jump_after_ns, TIME, "ns", "time of the last packet before it")                        \
    X(clock_jump_until_ns, TIME, "ns", "time of the first packet after it")                        \
    X(clock_jump_frame, INT, "frame", "the packet after it")

/* Two rows per flow, grouped: rows 2n and 2n + 1 belong to flow n, the initiator's direction
 * first. The widest table. Most columns are 0 or null in most flows, which costs two bits each. */
#define DIRECTIONS_COLUMNS(X)                                                                      \
    X(flow, KNOWN(INT), "", "flows row")                                                           \
    X(direction, KNOWN(INT), "", "0 from the initiator, 1 to it")                                  \
    X(source, KNOWN(ADDRESS), "", "sender of this direction")                                      \
    X(source_port, INT, "", "its port; null without one")                                          \
    X(destination, KNOWN(ADDRESS), "", "receiver of this direction")                               \
    X(destination_port, INT, "", "its port; null without one")                                     \
    X(packets, KNOWN(INT), "packets", "IP packets; each fragment counts")                          \
    X(wire_bytes, KNOWN(INT), "bytes",                                                             \
      "bytes of link time: Ethernet frames with padding to 60 bytes, FCS, preamble and gap (24 "   \
      "bytes more than the frame); on other links as captured")                                    \
    X(ip_bytes, KNOWN(INT), "bytes", "IP packets with their headers")                              \
    X(payload_bytes, INT, "bytes",                                                                 \
      "transport payload, retransmissions included, without the text that a RST may contain "      \
      "(RFC 9293 section 3.5.3); null if a header before it could not be read")                    \
    X(unique_bytes, INT, "bytes",                                                                  \
      "TCP: different bytes of the stream seen at the capture point, without those of segments "   \
      "whose IP fragments did not all arrive; null for other protocols")                           \
    X(data_packets, INT, "packets",                                                                \
      "TCP segments or datagrams with payload; a fragmented one counts once")                      \
    X(retransmissions, INT, "packets",                                                             \
      "TCP: retransmitted segments with data, SYN or FIN: seen before, or filling a gap that "     \
      "was lost upstream; the sum of the four kinds and those of unknown cause")                   \
    X(fast_retransmissions, INT, "packets",                                                        \
      "TCP: after three duplicate ACKs (RFC 5681), SACK of three segments above (RFC 6675), "      \
      "a segment one RTT later (RACK, RFC 8985), or in the recovery that follows. Null if "        \
      "the other direction was not captured")                                                      \
    X(timeout_retransmissions, INT, "packets",                                                     \
      "TCP: after an RTO without a loss signal (RFC 6298), and go-back-N after it; null as "       \
      "above")                                                                                     \
    X(timeouts, INT, "", "TCP: RTOs that caused them; null as above")                              \
    X(suspected_timeouts, INT, "",                                                                 \
      "TCP: new data in order after a pause while a packet of the sender is missing before it: "   \
      "probably lost upstream and retransmitted")                                                  \
    X(probe_retransmissions, INT, "packets",                                                       \
      "TCP: tail loss probes (RFC 8985 section 7); null as above")                                 \
    X(spurious_retransmissions, INT, "packets",                                                    \
      "TCP: retransmissions proven unnecessary by DSACK (RFC 2883), an echoed timestamp "          \
      "(RFC 3522), or an earlier acknowledgment. Null as above, and if TCP options of the "        \
      "ACKs were truncated and a retransmission has no known place")                               \
    X(unplaced_retransmissions, INT, "packets",                                                    \
      "TCP: retransmissions that are neither lost at a known place nor proven spurious (rule "     \
      "V7.8); lost_upstream and lost_downstream are too small by up to this number")               \
    X(checksum_retransmissions, INT, "packets",                                                    \
      "TCP: retransmissions of data that had arrived damaged at the capture point (rule V14.4), "  \
      "lost on neither side")                                                                      \
    X(retransmitted_bytes, INT, "bytes",                                                           \
      "TCP: retransmitted payload bytes that had been seen before at the capture point, without"   \
      " duplicates and probes")                                                                    \
    X(duplicate_bytes, INT, "bytes",                                                               \
      "TCP: payload bytes of duplicates made by the network or a mirror port, and of fragments "   \
      "that came again alone")                                                                     \
    X(probe_bytes, INT, "bytes", "TCP: payload bytes of keep-alives and window probes")            \
    X(out_of_order, INT, "packets",                                                                \
      "TCP: segments reordered by the network: they fill a gap and were sent before the segment"   \
      " that opened it")                                                                           \
    X(ambiguous, INT, "packets",                                                                   \
      "TCP: segments that fill a gap, reordered or retransmitted: no evidence decides")            \
    X(gaps, INT, "", "TCP: gaps opened by a segment ahead of the highest byte seen")               \
    X(gaps_filled, INT, "", "TCP: gaps filled by a later segment")                                 \
    X(network_duplicates, INT, "packets", "TCP: duplicates of a packet made by the network")       \
    X(mirror_duplicates, INT, "packets",                                                           \
      "TCP: duplicates of a packet made by the capture (two ports, such as both sides of a"        \
      " router, or both directions of one)")                                                       \
    X(unknown_duplicates, INT, "packets",                                                          \
      "TCP: a few duplicates within 1 ms that no DSACK reported or could report: made by the "     \
      "network or by the capture")                                                                 \
    X(lost_upstream, INT, "packets",                                                               \
      "TCP: segments lost between the sender and the capture point, known by their "               \
      "retransmissions")                                                                           \
    X(lost_downstream, INT, "packets",                                                             \
      "TCP: segments, or their ACKs, lost between the capture point and the receiver: "            \
      "retransmitted, and not proven spurious; a SYN only if one was acknowledged; null as "       \
      "spurious_retransmissions")                                                                  \
    X(lost_upstream_bytes, INT, "bytes", "TCP: payload of lost_upstream")                          \
    X(lost_downstream_bytes, INT, "bytes", "TCP: payload of lost_downstream; null as there")       \
    X(syn_fin_retransmissions, INT, "packets",                                                     \
      "TCP: of retransmissions, SYNs, and FINs without data; the others are segments with "        \
      "payload, as in data_packets")                                                               \
    X(syn_fin_spurious, INT, "packets",                                                            \
      "TCP: the same of spurious_retransmissions; null as there")                                  \
    X(syn_fin_lost_upstream, INT, "packets", "TCP: the same of lost_upstream")                     \
    X(syn_fin_lost_downstream, INT, "packets", "TCP: the same of lost_downstream; null as there")  \
    X(wire_mss, INT, "bytes",                                                                      \
      "TCP: largest payload of a segment on the wire: the lesser MSS of both SYNs, less 12 "       \
      "bytes of timestamps, or what the path carries if it is less (rule V13.3). Without "         \
      "the SYNs, it is the unit of the captured sizes (rule V13.2). Null if that is not "          \
      "proven, or without data")                                                                   \
    X(wire_segments, INT, "segments",                                                              \
      "TCP: data_packets on the wire, less duplicates of the network or a mirror port. If the "    \
      "capture has super-segments (TSO, GSO, GRO, LRO), each is as many segments as it needs of "  \
      "wire_mss. Null if wire_mss is unknown and the capture has them")                            \
    X(wire_retransmissions, INT, "segments", "TCP: retransmissions on the wire; null as above")    \
    X(wire_spurious, INT, "segments",                                                              \
      "TCP: spurious_retransmissions on the wire; null as above, and as there")                    \
    X(wire_unplaced, INT, "segments", "TCP: unplaced_retransmissions on the wire; null as above")  \
    X(wire_lost_upstream, INT, "segments", "TCP: lost_upstream on the wire; null as above")        \
    X(wire_lost_downstream, INT, "segments",                                                       \
      "TCP: lost_downstream on the wire; null as above, and as there")                             \
    X(sack_gaps, INT, "",                                                                          \
      "TCP: gaps reported by the receiver's SACK if the data itself was not captured")             \
    X(unseen_bytes, INT, "bytes",                                                                  \
      "TCP: bytes acknowledged or SACKed by the receiver but never seen: missed by the capture, "  \
      "or "                                                                                        \
      "sent "                                                                                      \
      "on another path; null if the other direction was not captured")                             \
    X(missing_bytes, INT, "bytes",                                                                 \
      "TCP: data that never arrived. At the end of the flow the receiver reported data "           \
      "above it by SACK and lacked these bytes, and the capture has not seen them (rule "          \
      "V7.12). Null as above, and without SACK or if its options were truncated")                  \
    X(missing_ns, DURATION, "ns",                                                                  \
      "TCP: time from the first packet that showed such a hole to the last packet of the flow; "   \
      "null "                                                                                      \
      "without one")                                                                               \
    X(capture_reordered, INT, "packets",                                                           \
      "TCP: segments that the capture stored after their ACKs (an adapter with several queues)")   \
    X(gap_bytes, INT, "bytes",                                                                     \
      "TCP: bytes below the highest seen that were neither seen nor acknowledged when the flow "   \
      "ended")                                                                                     \
    X(unacked_bytes, INT, "bytes",                                                                 \
      "TCP: payload below the highest seen that was not acknowledged when the flow ended; null "   \
      "if "                                                                                        \
      "no ACK was captured")                                                                       \
    X(sacked_bytes, INT, "bytes",                                                                  \
      "TCP: of these, what the last ACKs reported by SACK; null as there")                         \
    X(unacked_first_ns, TIME, "ns",                                                                \
      "TCP: when the first of unacked_bytes was first sent; null without, and if too much was "    \
      "sent since")                                                                                \
    X(unknown_bytes, INT, "bytes",                                                                 \
      "TCP: bytes of gaps that were given up because too many were open")                          \
    X(duplicate_acks, INT, "packets",                                                              \
      "TCP acknowledgments sent in this direction that repeat the one before (RFC 5681)")          \
    X(acks_lost_downstream, INT, "packets",                                                        \
      "TCP acknowledgments sent in this direction that were lost between the capture point "       \
      "and their receiver, at least. It repeated the data, and its timestamps show that it "       \
      "had received none of them (rule V6.7). Null without timestamps of both ends")               \
    X(sack_acks, INT, "packets",                                                                   \
      "TCP acknowledgments sent in this direction with SACK blocks; null if options were "         \
      "truncated")                                                                                 \
    X(sacks_outside, INT, "packets",                                                               \
      "TCP acknowledgments sent in this direction whose first SACK block is outside of the data "  \
      "that was sent; null if options were truncated, or if the other direction was not captured") \
    X(sack_shift_spread, INT, "bytes",                                                             \
      "their greatest distance from the acknowledged byte to the first block minus the least: "    \
      "within a receive window if all are shifted by one constant; null without them")             \
    X(zero_windows, INT, "packets",                                                                \
      "TCP segments sent in this direction with a receive window of 0 (not SYN, FIN, RST)")        \
    X(window_openings, INT, "", "TCP: how often such a window opened again")                       \
    X(probed_openings, INT, "",                                                                    \
      "TCP: of these, in answer to a probe: 1.25 round trips and 5 ms behind it at most")          \
    X(zero_window_ns, DURATION, "ns",                                                              \
      "TCP: time during which this direction announced a receive window of 0")                     \
    X(low_window_ns, DURATION, "ns",                                                               \
      "TCP: time during which this direction announced a receive window below one full "           \
      "segment of the other end, and below half of its largest, 0 included. It ends when "         \
      "the window opened or the flow ended. Null if the scale is unknown")                         \
    X(window_shut_ns, DURATION, "ns",                                                              \
      "TCP: time from the packet that announced such a window, or one of 0, to the end of "        \
      "the flow, if the window did not open again. Null if it did, or was never low")              \
    X(window_full, INT, "packets",                                                                 \
      "TCP: segments that fill the receive window; null if its scale is unknown")                  \
    X(window_probes, INT, "packets", "TCP: zero-window probes")                                    \
    X(keep_alives, INT, "packets",                                                                 \
      "TCP: keep-alives (0 or 1 byte below the acknowledged ones); null if the other direction "   \
      "was not captured")                                                                          \
    X(fragments, KNOWN(INT), "packets", "IP fragments")                                            \
    X(fragmented_datagrams, KNOWN(INT), "", "datagrams that were fragmented")                      \
    X(incomplete_datagrams, KNOWN(INT), "", "of them, those incomplete at the end")                \
    X(fragment_overhead_bytes, KNOWN(INT), "bytes",                                                \
      "wire bytes of headers, preambles and gaps of all fragments but the first of each "          \
      "datagram")                                                                                  \
    X(blocks, INT, "",                                                                             \
      "different numbered units of the application (see flows.application) that arrived: UDP "     \
      "packets, or blocks delivered by a TCP stream; null if none was recognized")                 \
    X(blocks_lost, INT, "", "numbers not seen between the first and the highest")                  \
    X(blocks_out_of_order, INT, "",                                                                \
      "units with a lower number than one seen before (RFC 4737), duplicates excluded")            \
    X(blocks_duplicate, INT, "", "units with a number seen before")                                \
    X(blocks_late, INT, "", "units too old to distinguish a duplicate from reordering")            \
    X(blocks_corrupt, INT, "", "units whose content contradicts their header")                     \
    X(block_loss_runs, INT, "", "runs of lost numbers")                                            \
    X(block_loss_run_max, INT, "", "the longest run")                                              \
    X(block_restarts, INT, "", "restarts of the sender's numbers")                                 \
    X(comfort_noise, INT, "packets",                                                               \
      "RTP: comfort noise (payload types 13 and 19), after which a sender sends nothing while "    \
      "nobody speaks; null for others")                                                            \
    X(answered_datagrams, INT, "",                                                                 \
      "UDP: datagrams after which the next one of the flow came from the other end")               \
    X(unanswered_datagrams, INT, "",                                                               \
      "UDP: datagrams followed by another one of this end, although one as large was answered, "   \
      "or before the slowest answer would have come")                                              \
    X(answered_max, INT, "bytes", "UDP: largest payload that was answered; null without one")      \
    X(unanswered_large, INT, "",                                                                   \
      "UDP: how often a datagram larger than any that was answered got no answer, while its "      \
      "sender waited for longer than for the slowest answer; several in a row count once")         \
    X(unanswered_large_min, INT, "bytes", "UDP: least payload of these; null without one")         \
    X(blocks_head_of_line, INT, "", "TCP: blocks delayed by missing bytes before their own")       \
    X(head_of_line_ns_max, DURATION, "ns", "TCP: the longest such delay")                          \
    X(rtt_samples, INT, "",                                                                        \
      "TCP: RTT samples from data of this direction and its ACKs (Karn's rule); null if one "      \
      "direction or the times were not captured")                                                  \
    X(rtt_ns_min, DURATION, "ns",                                                                  \
      "TCP: the least of them, from the capture point to the receiver and back, at least a tick "  \
      "of the capture's clock; null without one")                                                  \
    X(rtt_ns_median, DURATION, "ns", "exact up to 64 samples, then within 1.6%")                   \
    X(rtt_ns_p99, DURATION, "ns", "exact up to 64 samples, then within 1.6%")                      \
    X(rtt_ns_max, DURATION, "ns", "the greatest")                                                  \
    X(jitter_ns, DURATION, "ns",                                                                   \
      "interarrival jitter of the numbered units (RFC 3550 section 6.4.1), as in iperf; null if"   \
      " they carry no time")                                                                       \
    X(jitter_mean_ns, DURATION, "ns",                                                              \
      "mean difference of the transit times of two packets in a row, over the whole stream: "      \
      "jitter_ns is of its end; null as above")                                                    \
    X(delay_variation_ns, DURATION, "ns",                                                          \
      "their greatest minus their least transit time; null as above")                              \
    X(throughput_bps, INT, "bit/s",                                                                \
      "ip_bytes over last_ns - first_ns, without mirror duplicates; null if that time is 0")       \
    X(goodput_bps, INT, "bit/s",                                                                   \
      "useful payload over the same time: unique bytes (TCP), payload without that of "            \
      "incomplete datagrams (others)")                                                             \
    X(mss, INT, "bytes",                                                                           \
      "TCP: maximum segment size that this sender announced for segments that it receives; null"   \
      " if it was not seen")                                                                       \
    X(window_scale, INT, "", "TCP: shift that this sender announced; null if it was not seen")     \
    X(syn_nops, INT, "",                                                                           \
      "TCP: most NOP options in a row in its SYN. Ends write at most two to align the next "       \
      "option, so from three on a device wrote them over an option. Null if no SYN was seen "      \
      "whole, or one without an MSS")                                                              \
    X(sack_permitted, BOOL, "", "TCP: announced in its SYN; null if no SYN was seen")              \
    X(timestamps, BOOL, "", "TCP: segments have RFC 7323 timestamps; null without segments")       \
    X(initial_sequence, INT, "",                                                                   \
      "TCP: sequence number of the SYN, else of the first segment's first byte")                   \
    X(first_tsval, INT, "",                                                                        \
      "TCP: TSval of the first segment with timestamps (RFC 7323); null without any")              \
    X(multipath_token, INT, "",                                                                    \
      "TCP: the sender's token of a multipath connection (RFC 8684): the begin of a digest of "    \
      "its key, or that of the peer's MP_JOIN; null without either")                               \
    X(window_min, INT, "bytes",                                                                    \
      "TCP: least receive window that this sender announced, scaled; null if the scale is "        \
      "unknown")                                                                                   \
    X(window_max, INT, "bytes", "TCP: greatest, as above")                                         \
    X(flight_max, INT, "bytes",                                                                    \
      "TCP: greatest number of bytes above the highest acknowledgment; null if the other "         \
      "direction was not captured")                                                                \
    X(segment_max, INT, "bytes", "largest payload of one packet")                                  \
    X(acked_segment_max, INT, "bytes",                                                             \
      "TCP: largest payload of a segment that the other end acknowledged, by ACK or SACK, at "     \
      "most wire_mss; 0 if none was. Of a retransmission in smaller segments, theirs counts. "     \
      "Null if no ACK was captured, without wire_mss, or if a larger segment may have passed: "    \
      "one that the capture missed, or stored behind later data")                                  \
    X(syns, INT, "packets", "TCP segments with SYN")                                               \
    X(fins, INT, "packets", "TCP segments with FIN")                                               \
    X(resets, INT, "packets", "TCP segments with RST")                                             \
    X(acks_out_of_range, INT, "packets",                                                           \
      "TCP acknowledgments far outside the data sent, and those of RSTs that answer a SYN "        \
      "without "                                                                                   \
      "acknowledging it: they are ignored")                                                        \
    X(ecn_ce, KNOWN(INT), "packets", "IP packets marked Congestion Experienced")                   \
    X(ecn_echo, INT, "packets", "TCP segments with ECE (not SYN)")                                 \
    X(ecn_cwr, INT, "packets", "TCP segments with CWR (not SYN)")                                  \
    X(unusual_options, INT, "packets",                                                             \
      "TCP segments with options of multipath TCP, MD5 or AO signatures, or unknown ones; null "   \
      "if options were truncated")                                                                 \
    X(signed_segments, INT, "packets",                                                             \
      "TCP segments with a signature: MD5 (RFC 2385) or AO (RFC 5925); null if options were "      \
      "truncated")                                                                                 \
    X(checksum_errors, INT, "packets",                                                             \
      "TCP, UDP, ICMP: packets that had been damaged before the capture point. Their "             \
      "checksum is wrong, and those of more others are right (rules V14). Null if none was "       \
      "verified, or if wrong ones show no damage")                                                 \
    X(checksums_verified, KNOWN(INT), "packets",                                                   \
      "packets whose checksum was verified: captured whole, and no fragments")                     \
    X(checksums_offloaded, KNOWN(INT), "packets",                                                  \
      "packets whose checksum had not been filled in when they were captured (offload), or is "    \
      "wrong without showing damage")                                                              \
    X(checksums_ignored, INT, "packets",                                                           \
      "TCP: packets whose checksum is wrong, or that of a tunnel around them, of which the "       \
      "receiver acknowledged no SYN and no payload. Null if it acknowledged one, and if the "      \
      "other direction was not captured")                                                          \
    X(ttl_min, INT, "hops", "least TTL or hop limit")                                              \
    X(ttl_max, INT, "hops", "greatest")                                                            \
    X(dscp, INT, "", "DSCP of the first packet")                                                   \
    X(last_dscp, INT, "", "DSCP of the last packet")                                               \
    X(first_ns, TIME, "ns", "time of the first packet of this direction")                          \
    X(last_ns, TIME, "ns", "time of the last")                                                     \
    X(idle_ns_max, DURATION, "ns",                                                                 \
      "longest time between two packets of this direction; null if there are fewer than two")      \
    X(time_pause_ns, DURATION, "ns",                                                               \
      "TCP: of the flow's time, what the data of the direction waited for the sender's "           \
      "application; null if it has fewer than 8 packets, or only one direction was captured")      \
    X(time_delayed_ack_ns, DURATION, "ns",                                                         \
      "TCP: the same for an ACK of a short segment that its receiver delayed (Nagle's "            \
      "algorithm): time of the other end in flows.time_*_ns; null as above")                       \
    X(time_window_ns, DURATION, "ns",                                                              \
      "TCP: part of flows.time_window_ns: the receive window was full or closed in the view of "   \
      "the sender, which TSecr shows at any capture point; null as above")                         \
    X(time_send_buffer_ns, DURATION, "ns",                                                         \
      "TCP: part of flows.time_send_buffer_ns: the sender's host released no more data than a "    \
      "certain number of bytes in flight; null as above")                                          \
    X(time_loss_ns, DURATION, "ns", "TCP: part of flows.time_loss_ns; null as above")              \
    X(time_network_ns, DURATION, "ns",                                                             \
      "TCP: part of flows.time_path_ns, time_queue_ns and time_transfer_ns together, without the " \
      "round trips between requests and responses: data was in flight; null as above")             \
    X(time_unknown_ns, DURATION, "ns", "TCP: part of flows.time_unknown_ns; null as above")        \
    X(slow_start_ns, DURATION, "ns",                                                               \
      "TCP: of time_network_ns, until the flight doubled for the last time before any loss; null " \
      "as above")                                                                                  \
    X(timeout_ns, DURATION, "ns",                                                                  \
      "TCP: of time_loss_ns, until an RTO that was needed, or at the end of a flow that never "    \
      "acknowledged its last data; null as above")                                                 \
    X(suspected_ns, DURATION, "ns",                                                                \
      "TCP: of time_unknown_ns, until a suspected RTO; null as above")                             \
    X(recovery_ns, DURATION, "ns",                                                                 \
      "TCP: of time_network_ns, while the sender recovered from losses and the bottleneck was "    \
      "busy; null as above")                                                                       \
    X(rto_idle_ns, DURATION, "ns",                                                                 \
      "TCP: idle time that ended with an RTO, suspected ones included, over the whole life")       \
    X(send_buffer_bytes, INT, "bytes",                                                             \
      "TCP: the bytes in flight that time_send_buffer_ns means, in the view of the sender; null "  \
      "if there was no such time")

/* In the order of packets. Rows are written when their flow ends, because a DSACK or a late
 * original can change a verdict (tcp/segment.h). The flow must be the first column. */
#define EVENTS_COLUMNS(X)                                                                          \
    X(flow, INT, "", "flows row; null for an event of the capture itself")                         \
    X(direction, INT, "", "of the packet; null for an event of the capture itself")                \
    X(capture, KNOWN(INT), "", "interfaces row")                                                   \
    X(frame, KNOWN(INT), "frame", "the packet, in that capture's file")                            \
    X(time_ns, TIME, "ns", "its time; null where the file has none")                               \
    X(kind, KNOWN(WORD), "", "the verdict; for TCP by the numbered rules of docs/verdicts.md")     \
    X(bytes, INT, "bytes", "payload bytes concerned; null if there are none")                      \
    X(related_frame, INT, "frame",                                                                 \
      "the frame that it answers, repeats or waited for; null if none was seen")                   \
    X(detail, TEXT, "",                                                                            \
      "details for people: `cause` in words, and numbers of other columns; null if the kind is "   \
      "sufficient")                                                                                \
    X(place, WORD, "",                                                                             \
      "where data was lost or reordered (rules V7): upstream (between sender and capture "         \
      "point), downstream (between capture point and receiver) or capture (in the capture "        \
      "alone); null if unknown or if nothing was lost")                                            \
    X(evidence, WORD, "",                                                                          \
      "the evidence that decided: dsack (V6.3, V8.5), timestamps (V3.2, V6.4), ip_id (V3.3, "      \
      "V8.1), acks (V5.3 to V5.8), acknowledged (V6.1, V6.2), signature (V8.2), checksum (V14), "  \
      "time (V3.4, "                                                                               \
      "V3.5, V5.9, V5.10, V6.5); null if the kind is sufficient, or without evidence")             \
    X(spurious, BOOL, "",                                                                          \
      "whether a retransmission is proven spurious (rules V6); null if neither that nor a place "  \
      "is known (rule V7.8), and for other kinds")                                                 \
    X(cause, WORD, "",                                                                             \
      "of a retransmission: go_back_n (V5.2), recovery (V5.5), carried_duplicate_acks (V5.6), "    \
      "late_report (V5.7), rack (V5.8), tail (V5.10: of the last data sent), after_handshake "     \
      "(V5.12), lost_ack (V6.7: its ACK had passed and did not reach the sender), "                \
      "checksum_error (V14.4) or before_capture (the first transmission precedes the capture); "   \
      "of reordering: "                                                                            \
      "after_retransmission (V4.3); of an ICMP error: its meaning (RFC 792, RFC 4443), such as "   \
      "packet_too_big; null if the kind is sufficient")                                            \
    X(mtu, INT, "bytes",                                                                           \
      "ICMP error: MTU of the next hop (RFC 1191, RFC 8201); null if it has none")                 \
    X(router, ADDRESS, "", "ICMP error: router or host that sent it; null for other kinds")        \
    X(blocks, INT, "", "block_lost and block_gap: missing numbers in a row; null for other kinds") \
    X(due_ns, TIME, "ns",                                                                          \
      "when the data should have passed: of a retransmission, its last transmission before, "      \
      "or the packet that showed the loss upstream; of reordering, the packet that overtook "      \
      "it. Null for other kinds, or if unknown")                                                   \
    X(due_bytes, INT, "bytes",                                                                     \
      "of a retransmission: payload of its direction that had passed before due_ns, "              \
      "retransmissions included; null likewise")

/* Grouped by flow. Bins are stored as records, which store a direction's bins in the narrowest
 * form that holds them (series_rows.c) and are computed when they are read. */
#define SERIES_COLUMNS(X)                                                                          \
    X(flow, KNOWN(INT), "", "flows row")                                                           \
    X(direction, KNOWN(INT), "", "directions row of the flow")                                     \
    X(start_ns, KNOWN(TIME), "ns", "start of the bin; bins without packets have no row")           \
    X(width_ns, KNOWN(DURATION), "ns",                                                             \
      "its width: 1 ms, doubled as often as necessary, the same for the whole direction")          \
    X(packets, KNOWN(INT), "packets", "IP packets in it")                                          \
    X(wire_bytes, KNOWN(INT), "bytes", "as in directions")                                         \
    X(bytes, KNOWN(INT), "bytes", "IP bytes")                                                      \
    X(payload_bytes, INT, "bytes", "transport payload")                                            \
    X(unique_bytes, INT, "bytes",                                                                  \
      "TCP: stream bytes seen for the first time; null for other protocols")                       \
    X(retransmitted_bytes, INT, "bytes", "TCP: retransmitted payload; null for other protocols")   \
    X(lost, INT, "packets",                                                                        \
      "TCP: segments judged lost, at the time of their retransmissions, later proven spurious "    \
      "ones included; null for other protocols")                                                   \
    X(rtt_ns, DURATION, "ns", "TCP: least RTT sample; null without one")                           \
    X(flight_bytes, INT, "bytes",                                                                  \
      "TCP: greatest number of bytes above the highest acknowledgment; null if unknown")           \
    X(window_bytes, INT, "bytes",                                                                  \
      "TCP: least receive window available to this direction when it sent or was acknowledged; "   \
      "null if unknown")                                                                           \
    X(throughput_bps, KNOWN(INT), "bit/s", "IP bytes of the bin over its width")                   \
    X(cumulative_throughput_bps, INT, "bit/s",                                                     \
      "all IP bytes so far over the time so far (to the end of the bin, or the last packet)")      \
    X(goodput_bps, INT, "bit/s", "useful payload of the bin over its width")

/* Grouped by flow; of a direction by kind and rank. Columns of directions have the sums
 * (time_*_ns), these rows the longest parts: at most MAX_STALLS of timeout and one of each other
 * kind. */
#define WAITS_COLUMNS(X)                                                                           \
    X(flow, KNOWN(INT), "", "flows row")                                                           \
    X(direction, KNOWN(INT), "", "direction of the data that waited")                              \
    X(kind, KNOWN(WORD), "",                                                                       \
      "timeout: idle time that ended with an RTO (rto_idle_ns). The others took a tenth of "       \
      "the time of the direction or more: idle, delayed_ack and send_buffer, between data and "    \
      "data; window and network, the longest time of data after data with this limit; "            \
      "slow_start, before the data that ended it; rtt, from data to its ACK. Numbered packets: "   \
      "slowest, the one with the greatest transit time")                                           \
    X(rank, KNOWN(INT), "", "1 for the longest of its kind in the direction")                      \
    X(waited_ns, DURATION, "ns",                                                                   \
      "the part of the time between both packets that counts; null for slowest")                   \
    X(before_capture, INT, "",                                                                     \
      "interfaces row of the packet that began it; null without one, or if packets of the flow "   \
      "are of several captures and it may be of another")                                          \
    X(before_frame, INT, "frame", "this packet, in that capture's file; null for slowest")         \
    X(before_ns, TIME, "ns", "its time; null for slowest, or if it has none")                      \
    X(after_capture, KNOWN(INT), "", "interfaces row of the packet that ended it")                 \
    X(after_frame, KNOWN(INT), "frame", "this packet, in that capture's file")                     \
    X(after_ns, TIME, "ns", "its time; null if it has none")

/* Grouped: at most one row for the FIN and one for the RST of each direction. */
#define ENDINGS_COLUMNS(X)                                                                         \
    X(flow, KNOWN(INT), "", "flows row")                                                           \
    X(direction, KNOWN(INT), "", "of the end that sent it")                                        \
    X(kind, KNOWN(WORD), "",                                                                       \
      "fin or reset. A FIN has a row only if the other end had sent payload that it does not "     \
      "acknowledge, sent payload after it, or sent neither FIN nor RST")                           \
    X(capture, KNOWN(INT), "", "interfaces row")                                                   \
    X(frame, KNOWN(INT), "frame", "the first FIN or RST of this end")                              \
    X(time_ns, TIME, "ns", "its time; null if it has none")                                        \
    X(idle_ns, DURATION, "ns", "since the packet of the flow before it; null without one")         \
    X(reply_ns, DURATION, "ns", "since the last packet of the other end; null without one")        \
    X(unacked_bytes, INT, "bytes",                                                                 \
      "payload of the other end that had passed, and that neither it nor a packet before it "      \
      "acknowledged; null if unknown")                                                             \
    X(late_bytes, KNOWN(INT), "bytes", "new payload of the other end that passed after it")        \
    X(late_ns, DURATION, "ns", "from it to the first of these; null without one")                  \
    X(acknowledged, BOOL, "",                                                                      \
      "whether the other end acknowledged the FIN; null if unknown, and of a RST")                 \
    X(packets_after, INT, "packets",                                                               \
      "of a RST: other packets that this end sent after it; null of a FIN")                        \
    X(ttl, KNOWN(INT), "hops", "its TTL or hop limit")                                             \
    X(ttl_before_min, INT, "hops",                                                                 \
      "least TTL of the packets of this end before it; null without one")                          \
    X(ttl_before_max, INT, "hops", "greatest of them")                                             \
    X(ip_id, INT, "", "its IPv4 identification; null for IPv6")                                    \
    X(ip_id_step, INT, "",                                                                         \
      "its identification less the one before from this end; null unless this end's "              \
      "identifications rise by small steps")                                                       \
    X(window, KNOWN(INT), "", "its receive window, not scaled")                                    \
    X(with_ack, KNOWN(BOOL), "",                                                                   \
      "whether it has the ACK flag: a host without the socket resets without it, one that aborts " \
      "a socket with it (RFC 9293 section 3.10.7)")                                                \
    X(timestamps, KNOWN(BOOL), "",                                                                 \
      "whether it has timestamps (RFC 7323): a RST of a live socket does if the connection uses "  \
      "them")

/* Grouped: at most one row per direction. */
#define LOOPS_COLUMNS(X)                                                                           \
    X(flow, KNOWN(INT), "", "flows row")                                                           \
    X(direction, KNOWN(INT), "", "direction of the packets")                                       \
    X(packets, KNOWN(INT), "packets",                                                              \
      "packets that passed five times or more, each time with a lower TTL")                        \
    X(passes_max, KNOWN(INT), "", "the most passes of one of them, at least")                      \
    X(ttl_step, KNOWN(INT), "hops",                                                                \
      "by how much its TTL fell from pass to pass: the routers between two passes")                \
    X(first_capture, KNOWN(INT), "", "interfaces row of the fifth pass of the first")              \
    X(first_frame, KNOWN(INT), "frame", "the fifth pass of the first")                             \
    X(first_ns, TIME, "ns", "its time; null if it has none")                                       \
    X(last_ns, TIME, "ns", "time of the last pass; null if it has none")

/* One row per fragmented datagram, when it is complete, expires or is evicted. */
#define DATAGRAMS_COLUMNS(X)                                                                       \
    X(flow, INT, "", "flows row")                                                                  \
    X(direction, INT, "", "direction of the flow")                                                 \
    X(capture, KNOWN(INT), "", "interfaces row of the first fragment seen")                        \
    X(source, KNOWN(ADDRESS), "", "sender")                                                        \
    X(destination, KNOWN(ADDRESS), "", "receiver")                                                 \
    X(protocol_number, KNOWN(INT), "", "IP protocol number")                                       \
    X(identification, KNOWN(INT), "", "IP identification")                                         \
    X(state, KNOWN(WORD), "",                                                                      \
      "complete, or incomplete (when the capture or the reassembly time ended)")                   \
    X(fragments, KNOWN(INT), "packets", "fragments seen, duplicates included")                     \
    X(bytes, INT, "bytes",                                                                         \
      "IP payload of the whole datagram; null if its last fragment was not seen")                  \
    X(received_bytes, KNOWN(INT), "bytes", "different bytes of it seen")                           \
    X(overhead_bytes, KNOWN(INT), "bytes",                                                         \
      "wire bytes of headers, preambles and gaps of all fragments but the first")                  \
    X(missing_bytes, INT, "bytes", "bytes not seen; null if the last fragment was not seen")       \
    X(missing_ranges, INT, "", "ranges of bytes not seen; null if they are too many to count")     \
    X(missing_from, INT, "bytes", "first byte not seen; null if complete")                         \
    X(missing, TEXT, "",                                                                           \
      "the ranges not seen, as in `1480-2959, 5920-`, for people: no part of wiretale reads it; "  \
      "null if complete")                                                                          \
    X(out_of_order, KNOWN(INT), "packets", "fragments after one with a higher offset")             \
    X(duplicates, KNOWN(INT), "packets", "fragments whose bytes had all been seen")                \
    X(overlaps, KNOWN(INT), "packets",                                                             \
      "fragments that partly overlap others (RFC 5722 forbids it for IPv6)")                       \
    X(late, KNOWN(INT), "packets",                                                                 \
      "fragments after the datagram was complete or its reassembly time (30 s; IPv6 60 s) was "    \
      "over")                                                                                      \
    X(first_frame, KNOWN(INT), "frame", "first fragment seen")                                     \
    X(last_frame, KNOWN(INT), "frame", "last fragment seen")                                       \
    X(first_ns, TIME, "ns", "its time")                                                            \
    X(last_ns, TIME, "ns", "time of the last")                                                     \
    X(complete_ns, TIME, "ns",                                                                     \
      "time at which the last missing byte arrived; null if it is incomplete")                     \
    X(payload_bytes, INT, "bytes",                                                                 \
      "transport payload of the whole datagram, by its UDP header or its last fragment; null if "  \
      "it is unknown")

/* Filled only on request, up to packet_rows_most rows. packet_pack.c and of_flows() read these
 * columns by number. */
#define PACKETS_COLUMNS(X)                                                                         \
    X(flow, KNOWN(INT), "", "flows row")                                                           \
    X(direction, KNOWN(INT), "", "direction of the flow")                                          \
    X(capture, KNOWN(INT), "", "interfaces row")                                                   \
    X(frame, KNOWN(INT), "frame", "frame in its file")                                             \
    X(time_ns, TIME, "ns", "its time")                                                             \
    X(ip_bytes, KNOWN(INT), "bytes", "IP packet with its headers")                                 \
    X(payload_bytes, INT, "bytes", "transport payload in this packet")                             \
    X(sequence, INT, "bytes",                                                                      \
      "TCP: stream position of the first byte, unwrapped; 0 is the first byte after the SYN; "     \
      "null for other protocols")                                                                  \
    X(acknowledged, INT, "bytes",                                                                  \
      "TCP: stream position in the other direction that it acknowledges; null without ACK or if"   \
      " unknown")                                                                                  \
    X(window, INT, "bytes",                                                                        \
      "TCP: receive window that it announces, scaled; null if the scale is unknown")               \
    X(sack_start, INT, "bytes",                                                                    \
      "TCP: first byte of the first SACK block, as a stream position of the other direction; "     \
      "null if there is none")                                                                     \
    X(sack_end, INT, "bytes", "TCP: the byte after the end of that block")                         \
    X(sack2_start, INT, "bytes", "TCP: start of the second SACK block; null if there is none")     \
    X(sack2_end, INT, "bytes", "TCP: its end")                                                     \
    X(sack3_start, INT, "bytes", "TCP: start of the third SACK block; null if there is none")      \
    X(sack3_end, INT, "bytes", "TCP: its end")                                                     \
    X(sack4_start, INT, "bytes", "TCP: start of the fourth SACK block; null if there is none")     \
    X(sack4_end, INT, "bytes", "TCP: its end")                                                     \
    X(flags, INT, "",                                                                              \
      "TCP: flag bits as in the header (FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR"   \
      " 128)")                                                                                     \
    X(unique_bytes, INT, "bytes",                                                                  \
      "TCP: bytes of the payload that were not seen before; of a segment in IP fragments, the "    \
      "packet that completes it has those of all, and its flags, window and SACK blocks")          \
    X(rtt_ns, DURATION, "ns",                                                                      \
      "TCP: RTT sample of the other direction's data that this ACK completes; null if there is "   \
      "none")                                                                                      \
    X(flight_bytes, INT, "bytes",                                                                  \
      "TCP: bytes of its direction that were sent and not acknowledged after it, at the capture "  \
      "point; null if unknown")                                                                    \
    X(opposite_flight_bytes, INT, "bytes", "TCP: the same of the other direction")                 \
    X(fragment_offset, INT, "bytes",                                                               \
      "offset of a fragment in its datagram; null if not fragmented")                              \
    X(datagram_capture, INT, "",                                                                   \
      "of a fragment: interfaces row of the first fragment seen of its datagram, whose row of "    \
      "datagrams has it too; null if not fragmented")                                              \
    X(datagram_frame, INT, "frame", "that fragment's frame")

/* Further columns of packets, if a reading asks for them (identity/): they identify a packet in a
 * capture from another point. Null in fragments but the first one of a datagram. */
#define IDENTITY_COLUMNS(X)                                                                        \
    X(packet, INT, "", "number in the order of all files, from 0")                                 \
    X(ttl, INT, "hops", "TTL or hop limit")                                                        \
    X(ip_id, INT, "", "IPv4 identification; null for IPv6")                                        \
    X(captured_bytes, INT, "bytes", "transport payload in the file")                               \
    X(digest, INT, "",                                                                             \
      "of the first 128 bytes of the payload; of a TCP segment without payload, of flags, window " \
      "and options; 0 if nothing was captured. Comparable between captures on one machine")        \
    X(digest_short, INT, "", "of the first 16 bytes, for captures with a snap length")             \
    X(tcp_sequence, INT, "", "TCP: sequence number as in the header")                              \
    X(tcp_acknowledgment, INT, "", "TCP: acknowledgment number as in the header")                  \
    X(timestamp, INT, "", "TCP: TSval; null without timestamps")                                   \
    X(mss, INT, "bytes", "TCP: MSS option; null without one")                                      \
    X(run, INT, "", "run of the block with which the payload begins; null without one")            \
    X(stream, INT, "", "stream of that block")                                                     \
    X(block, INT, "", "number of that block in its stream")                                        \
    X(blocks, INT, "",                                                                             \
      "blocks with successive numbers in it: several if it was captured before UDP segmentation "  \
      "offload")                                                                                   \
    X(block_bytes, INT, "bytes", "length of the first of them; the last may be shorter")

/* In the order of packets. The flow must be the first column. */
#define BLOCKS_COLUMNS(X)                                                                          \
    X(flow, KNOWN(INT), "", "flows row")                                                           \
    X(direction, KNOWN(INT), "", "direction of the flow")                                          \
    X(capture, KNOWN(INT), "", "interfaces row of the last packet")                                \
    X(stream, INT, "",                                                                             \
      "stream of the run, from the header; null for a length given by --block-size")               \
    X(sequence, KNOWN(INT), "",                                                                    \
      "number of the block in its stream; lost blocks have an event instead of a row")             \
    X(bytes, KNOWN(INT), "bytes", "whole block with its header")                                   \
    X(sent_ns, TIME, "ns",                                                                         \
      "time at which it was sent, from its header; null if the header was not read")               \
    X(first_ns, TIME, "ns", "time of its first packet at the capture point")                       \
    X(complete_ns, TIME, "ns",                                                                     \
      "time at which all its bytes, and in TCP all bytes before them, had passed the capture "     \
      "point; null if unfinished")                                                                 \
    X(latency_ns, DURATION, "ns", "complete_ns - sent_ns, including the offset of the two clocks") \
    X(head_of_line_ns, DURATION, "ns",                                                             \
      "TCP: delay of the complete block by missing bytes before its own; null for UDP")            \
    X(first_frame, INT, "frame", "first packet")                                                   \
    X(last_frame, INT, "frame", "packet that completed it; null if unfinished")                    \
    X(verdict, KNOWN(WORD), "",                                                                    \
      "delivered, head_of_line, out_of_order, duplicate, late, corrupt or unfinished")

/* One row per flow with a TLS or QUIC handshake, grouped. Times are those of the packets that
 * completed a message in order. */
#define HANDSHAKES_COLUMNS(X)                                                                      \
    X(flow, KNOWN(INT), "", "flows row")                                                           \
    X(protocol, KNOWN(WORD), "", "tls or quic")                                                    \
    X(version, TEXT, "",                                                                           \
      "version that the server chose, as in 1.3 or SSL 3.0; null if its answer was not captured. " \
      "QUIC: 1, 2, draft-29 or a number as 0x51303530; without the answer that of the client")     \
    X(server_name, TEXT, "",                                                                       \
      "SNI of the ClientHello, of the outer one if it has ECH; null without one")                  \
    X(alpn, TEXT, "",                                                                              \
      "application protocol: that of the server's answer, else the client's offers, separated "    \
      "by commas, because TLS 1.3 encrypts the answer; null without one")                          \
    X(resumed, BOOL, "",                                                                           \
      "whether the server resumed a session: it accepted a PSK or echoed the session id; null "    \
      "without its answer")                                                                        \
    X(alert, TEXT, "",                                                                             \
      "first alert of the handshake that is no close_notify, by its name in RFC 8446; encrypted "  \
      "if it cannot be read; null without one. QUIC: the error with which the server closes in "   \
      "an Initial, of RFC 8446 or RFC 9000: no_application_protocol, connection_refused, ...")     \
    X(alert_direction, INT, "", "direction of the flow that sent the alert; null without one")     \
    X(alert_frame, INT, "frame", "packet with the alert; null without one")                        \
    X(alert_ns, TIME, "ns", "its time; null without one, or if it has none")                       \
    X(duration_ns, DURATION, "ns",                                                                 \
      "from the ClientHello to the Finished that ends the handshake: the client's, or the "        \
      "server's in a full handshake of TLS 1.2. Null if it is not within the first 16 kB of "      \
      "its direction, or if early data was offered, which looks like it. QUIC: from the "          \
      "client's first Initial to its first 1-RTT packet")                                          \
    X(round_trips, INT, "", "round trips of the handshake; null if it did not end")                \
    X(server_ns, DURATION, "ns",                                                                   \
      "time in which the client waited for the server's messages, without the least RTT to the "   \
      "server; null if one of both is unknown")                                                    \
    X(client_ns, DURATION, "ns",                                                                   \
      "time from the server's last message to the client's answer, without the least RTT to the "  \
      "client; null if one of both is unknown")                                                    \
    X(client_hello_frame, INT, "frame",                                                            \
      "packet that completed the ClientHello; null if it was not captured. QUIC: the client's "    \
      "first Initial")                                                                             \
    X(server_hello_frame, INT, "frame",                                                            \
      "the same of the ServerHello. QUIC: the server's first packet")                              \
    X(finished_frame, INT, "frame",                                                                \
      "the same of the Finished that ends the handshake; null with an alert. QUIC: the client's "  \
      "first 1-RTT packet")                                                                        \
    X(server_rtt_ns, DURATION, "ns",                                                               \
      "QUIC: least time from a packet of the client's handshake to the server's answer, at the "   \
      "capture point; null if it was retransmitted before the answer, and for TLS")                \
    X(client_rtt_ns, DURATION, "ns",                                                               \
      "QUIC: the same from a packet of the server's handshake to the client's answer")             \
    X(spin_rtt_ns, DURATION, "ns",                                                                 \
      "QUIC: RTT by the spin bit, the lesser of both directions' medians; null unless both have "  \
      "two samples or more and a median within a factor of three of the handshake's RTT")          \
    X(spin_samples, INT, "", "QUIC: times between two edges of the spin bit, both directions")     \
    X(version_negotiation, BOOL, "", "QUIC: whether the server refused the client's version")      \
    X(retry, BOOL, "", "QUIC: whether the server sent a Retry")                                    \
    X(zero_rtt, BOOL, "", "QUIC: whether the client sent 0-RTT packets")                           \
    X(client_direction, INT, "", "QUIC: direction of the flow that the client sends")              \
    X(ech, BOOL, "",                                                                               \
      "whether the ClientHello has an encrypted one inside (ECH), so that "                        \
      "server_name may be a public name in place of the server's; browsers send the extension "    \
      "without it, too; null without the ClientHello")

/* In the order of flows, and of a flow in order of time; those without a flow come first. The flow
 * must be the first column. The columns from `turn` on are those of TCP (tracker/turns.c). */
#define EXCHANGES_COLUMNS(X)                                                                       \
    X(flow, INT, "", "flows row; null if the messages have none, or several")                      \
    X(direction, INT, "", "direction of the request; null without a flow")                         \
    X(kind, KNOWN(WORD), "",                                                                       \
      "dns: a question; connect: the handshake of TCP, which opens a connection; http: the "       \
      "first request of HTTP/1 of a connection, and its response; tls: the first message of the "  \
      "client, and its answer; turn: any other request and response of a TCP connection; arp; "    \
      "nd: neighbor discovery; dad: a duplicate address detection that another host answered; "    \
      "dhcp; icmp_echo: a ping; radius; sip: a request over UDP; "                                 \
      "sctp: an association, or its end by ABORT; sip_ack: "                                       \
      "a final response to INVITE that waits for its ACK; eapol: a message of 802.1X; wlan: a "    \
      "station of 802.11 that joins or leaves; service: a login or command that a service "        \
      "accepts or refuses in its first bytes")                                                     \
    X(within, INT, "",                                                                             \
      "flows row of the connection whose handshake (its row connect) is the parent of this "       \
      "row: a request in it, or a DNS question that its client asked before it connected to "      \
      "an address of the answer. Null for connect, and if no such handshake is known")             \
    X(capture, KNOWN(INT), "",                                                                     \
      "interfaces row of the first request; of a flow, that of its first packet")                  \
    X(client, ADDRESS, "", "who asked; null if it has no address yet")                             \
    X(server, ADDRESS, "",                                                                         \
      "who was asked; of ARP and neighbor discovery, the address that was asked for; of DHCP, "    \
      "who answered; null if nobody in particular was asked")                                      \
    X(name, TEXT, "",                                                                              \
      "EAPOL, DAD: MAC address that asks; WLAN: those of the station and of its access point; "    \
      "DNS: "                                                                                      \
      "name of the question, without the final dot; HTTP: the Host, or that of the target "        \
      "if it has one (CONNECT, proxies); TLS: SNI; DHCP: MAC address and host name of the "        \
      "client; RADIUS: the user; SIP: the target without its scheme; service: user, share, file "  \
      "or command; 63 bytes of these at most. "                                                    \
      "Other bytes than printable ASCII are \\DDD")                                                \
    X(type, TEXT, "",                                                                              \
      "DNS: type of the question: A, AAAA, ..., or TYPE and its number; HTTP: method; DHCP: "      \
      "Discover, Request, Decline or Inform; RADIUS: Access-Request or Accounting-Request; "       \
      "SIP: method; sip_ack: 2xx or error; SCTP: INIT, COOKIE ECHO or association: what was "      \
      "answered or aborted; EAPOL: Start, Request or Login; WLAN: "                                \
      "Association, Authentication, Removal or Departure; service: LDAP bind, SMB login, NTP, "    \
      "...; null for others")                                                                      \
    X(id, INT, "", "DNS: transaction id; icmp_echo: sequence number; null for others")             \
    X(asked_ns, TIME, "ns",                                                                        \
      "first packet of the request at the capture point; null if the file has no times")           \
    X(asked_frame, INT, "frame",                                                                   \
      "this packet; null if its number exceeds 32 bits, or if it was not captured")                \
    X(attempts, KNOWN(INT), "",                                                                    \
      "number of times that the client asked: SYNs, queries; 1 for a request in a TCP "            \
      "connection")                                                                                \
    X(answered_ns, TIME, "ns",                                                                     \
      "first packet of the answer; connect: the ACK that completes the handshake; null without "   \
      "one")                                                                                       \
    X(answered_frame, INT, "frame",                                                                \
      "first packet of the answer; null without one, if its number exceeds 32 bits, and for "      \
      "connect")                                                                                   \
    X(waited_ns, DURATION, "ns",                                                                   \
      "from the first packet of the request to the answer. Without one, to the last query "        \
      "of DNS, the last packet of a handshake or the end of the connection. Null without "         \
      "times, if the connection stayed open, and of services that speak first")                    \
    X(outcome, KNOWN(WORD), "",                                                                    \
      "answered; error: the answer is an error, which code names (HTTP from 500 on); refused: "    \
      "RST in reply to the SYN; reset or closed: the server did that instead; abandoned: the "     \
      "client closed or reset the connection first, or never completed the handshake; "            \
      "unanswered; cut_off: the capture ended or the row of the flow was evicted before 5 s had "  \
      "passed and the client had asked three times (arp, nd and icmp_echo: 1 s, sip: 2 s, dhcp, "  \
      "radius and "                                                                                \
      "service: 3 s), or SIP waited for its final response; "                                      \
      "farewell: the last message of a client that "                                               \
      "closed within 50 ms, or that had received the FIN of the server, wants no answer")          \
    X(code, TEXT, "",                                                                              \
      "DNS: code of the answer: NOERROR, SERVFAIL, NXDOMAIN, ..., or WRONGCOOKIE if it has "       \
      "another client cookie than the query; HTTP: status of the first "                           \
      "response that is not 1xx, or 101, if it is within the first 4 kB; turn: status of HTTP/1 "  \
      "with which the response begins, from 200 on; TLS: first alert of "                          \
      "the handshake that is no close_notify; connect: cause of an ICMP error (events.cause); "    \
      "icmp_echo: its meaning; arp, nd, dad: MAC address that answered; dhcp: OFFER, ACK, NAK, "   \
      "FOREIGN NAK (of another server than the Request names) or "                                 \
      "DECLINE; sctp: COOKIE ACK, or the cause of an ABORT; wlan: its status or reason; "          \
      "radius: Access-Accept, ...; sip: status of the final response; service: what the service "  \
      "says, 63 bytes at most; null "                                                              \
      "without one")                                                                               \
    X(addresses, TEXT, "",                                                                         \
      "DNS: addresses in the answer, 16 at most, with spaces between; null without any, and for "  \
      "others")                                                                                    \
    X(syn_options, TEXT, "",                                                                       \
      "connect: what the first SYN offers beside the usual options, words with spaces between: "   \
      "fast_open, mptcp, signature (MD5 or AO), ecn; null without any, and for others")            \
    X(last_syn_options, TEXT, "", "connect: the same of the last SYN")                             \
    X(truncated, BOOL, "",                                                                         \
      "DNS: the answer was too long for its datagram (TC, RFC 1035 section 4.1.1), so that the "   \
      "client should ask again over TCP; null without an answer, and for others")                  \
    X(turn, INT, "",                                                                               \
      "number of the request in its TCP connection, from 0; the messages of a TLS handshake "      \
      "are turns, too. Null for connect and DNS, and for HTTP in a connection that does not "      \
      "alternate (flows.exchange)")                                                                \
    X(last_frame, INT, "frame",                                                                    \
      "last packet with data of the response, or of the request without one; null as asked_frame") \
    X(request_bytes, INT, "bytes",                                                                 \
      "unique payload of the request; RADIUS: payload of its datagram")                            \
    X(announced_bytes, INT, "bytes",                                                               \
      "HTTP: length of the request by its Content-Length, with the header and, of the first of "   \
      "a connection, what precedes it; null without one, or if a later header is not in one "      \
      "segment")                                                                                   \
    X(request_ns, DURATION, "ns",                                                                  \
      "request spread: from its first byte to its last, without retransmission_*_ns")              \
    X(request_pause_ns, DURATION, "ns",                                                            \
      "of request_ns: pauses in which the client had nothing more to send, and neither an ACK, "   \
      "the receive window nor a loss held it back; null if a suspected RTO may hide one")          \
    X(network_ns, DURATION, "ns",                                                                  \
      "round trip between capture point and server: the least sample of the flow, or the "         \
      "time to the response if that is less. If the time to the ACK of the request is 200 "        \
      "ms more, which no delayed-ACK timer explains, it is that. Null if there is no "             \
      "response, or if no ACK shows it: the handshake's, or one without data")                     \
    X(server_ns, DURATION, "ns",                                                                   \
      "server time: from the last byte of the request to the first captured of the "               \
      "response, less network_ns. Null as above, and if a hole before it, IPv4 IDs or an ACK "     \
      "without data show that its first transmission may be lost between server and capture "      \
      "point")                                                                                     \
    X(response_bytes, INT, "bytes", "unique payload of the response; null without one")            \
    X(response_announced_bytes, INT, "bytes",                                                      \
      "HTTP: length of the response by its header, with what precedes it; null without one, for "  \
      "HEAD and status 304, and if a later header is not in one segment")                          \
    X(response_ns, DURATION, "ns",                                                                 \
      "response spread: from its first byte to its last, without retransmission_*_ns; null "       \
      "without one")                                                                               \
    X(response_pause_ns, DURATION, "ns",                                                           \
      "of response_ns: pauses in which the server had nothing more to send, and neither an ACK, "  \
      "the receive window nor a loss held it back; null if a suspected RTO may hide one")          \
    X(pause_ns, DURATION, "ns",                                                                    \
      "client's pause before the request: since the last byte of the response before, less "       \
      "the least round trip between capture point and client. Null in the first turn, after "      \
      "one that could not be divided, or if that round trip is unknown. Null, too, if IPv4 "       \
      "IDs or an ACK without data show that the first transmission of the request may be "         \
      "lost between client and capture point")                                                     \
    X(client_network_ns, DURATION, "ns",                                                           \
      "round trip between capture point and client before the request: that which pause_ns is "    \
      "without, or the whole time if that is less; null as pause_ns")                              \
    X(retransmission_client_ns, DURATION, "ns",                                                    \
      "idle time before retransmissions in request and response, of data that was lost between "   \
      "capture point and client; null if the length of such a stall is unknown")                   \
    X(retransmission_network_ns, DURATION, "ns",                                                   \
      "the same of data whose place of loss is unknown, or which was not lost")                    \
    X(retransmission_server_ns, DURATION, "ns",                                                    \
      "the same of data that was lost between capture point and server; null likewise")            \
    X(expects_continue, BOOL, "",                                                                  \
      "HTTP: whether the client waits for 100 Continue before it sends the content (RFC 9110 "     \
      "section 10.1.1); null if its head was not read")                                            \
    X(upgrade_header, BOOL, "",                                                                    \
      "HTTP: whether the request of a WebSocket (Sec-WebSocket-Key) asks to switch to it "         \
      "(Upgrade, "                                                                                 \
      "RFC 6455 section 4.1), or a proxy removed that; null for other requests")                   \
    X(response_until_close, BOOL, "",                                                              \
      "HTTP: whether the response has neither a length nor chunks, so that only the end of its "   \
      "connection ends it (RFC 9112 section 6.3); null for HEAD, and if its header is not in one " \
      "segment")                                                                                   \
    X(closed_by, INT, "",                                                                          \
      "last request of a connection, if it was answered: direction of the first FIN; null "        \
      "without one, after a RST, and for others")                                                  \
    X(closed_ns, DURATION, "ns", "from the last byte of that response to this FIN; null as above")

/* Grouped by flow; in order of time. At most 1,024 of a flow. */
#define TIME_SPANS_COLUMNS(X)                                                                      \
    X(flow, KNOWN(INT), "", "flows row")                                                           \
    X(direction, INT, "",                                                                          \
      "direction of the data that was waited for; null while connecting, and at the end")          \
    X(part, KNOWN(WORD), "",                                                                       \
      "connecting, client, server, loss, queue, path, window, send_buffer, transfer, idle or "     \
      "unknown: the spans of a part sum to its column of flows (time_*_ns), but for packets that " \
      "ran backward, which are unknown")                                                           \
    X(start_ns, KNOWN(TIME), "ns",                                                                 \
      "when it began; in a gap between two segments, the time of an application comes last")       \
    X(end_ns, KNOWN(TIME), "ns", "when it ended")                                                  \
    X(merged, KNOWN(BOOL), "",                                                                     \
      "whether it is the sum of short spans of this part nearby, because there were too many, so " \
      "that its place is not exact")

/* One row per flow that another one repeats, continues or completes. Filled by the caller after
 * analysis_finish(), as the findings are. */
#define RELATIONS_COLUMNS(X)                                                                       \
    X(flow, KNOWN(INT), "",                                                                        \
      "flows row: of a copy, translation or tunnel the leg that is not judged, of a reuse the "    \
      "later flow, of halves the later one, of a subflow the one that joined")                     \
    X(other, KNOWN(INT), "", "flows row that it is related to")                                    \
    X(kind, KNOWN(WORD), "",                                                                       \
      "copy: the same packets at another place, under other tags; tunnel: the same inside a "      \
      "tunnel; translation: the same with addresses or ports that a NAT rewrote; half: each has "  \
      "one direction of a connection; reuse: the same addresses and ports, opened again; "         \
      "subflow: a further flow of a multipath connection (MPTCP), which carries other data")       \
    X(judged, INT, "",                                                                             \
      "flows row that totals and findings are about, the leg with the most packets; null if each " \
      "flow is judged")                                                                            \
    X(evidence, KNOWN(TEXT), "",                                                                   \
      "what both have in common, words with spaces between: sequence (first sequence numbers of "  \
      "each direction), range (of sequence numbers), tsval (the first), order (one leg has the "   \
      "first packet of a direction earlier, and that of the other later), size (packets and "      \
      "payload), time, hops (another TTL), direction (opposite ones), ends, syn, token (of "       \
      "multipath TCP)")                                                                            \
    X(delay_ns, DURATION, "ns",                                                                    \
      "from the first packet of `other` to that of `flow`, in the direction of the initiator of "  \
      "`other`; of a reuse since its last packet; null if unknown")                                \
    X(hops, INT, "hops",                                                                           \
      "TTL of `other` less that of `flow`, in the direction of the initiator of `other`; null if " \
      "a TTL varies, and for reuse, half and subflow")

/* These three are filled by the caller after analysis_finish(). */
#define FINDINGS_COLUMNS(X)                                                                        \
    X(finding, KNOWN(INT), "",                                                                     \
      "number of the finding, from 1, as in the report, its links and `wiretale cut`")             \
    X(code, KNOWN(TEXT), "", "name of the rule")                                                   \
    X(severity, KNOWN(TEXT), "", "error, warning or info")                                         \
    X(scope, KNOWN(TEXT), "", "subject of the finding: capture, flow or datagrams")                \
    X(flow, INT, "", "flows row; null unless it is about exactly one flow")                        \
    X(direction, INT, "", "direction of that flow; null if both or neither")                       \
    X(sentence, KNOWN(TEXT), "", "the finding, with its figures")                                  \
    X(headline, KNOWN(TEXT), "", "the finding in about 110 characters")                            \
    X(advice, KNOWN(TEXT), "", "what to do")                                                       \
    X(waited_ns, DURATION, "ns",                                                                   \
      "wall-clock time in which somebody waited because of it, overlapping waits counted once; "   \
      "null if unknown; at most the life of `flow`")                                               \
    X(saving_ns, DURATION, "ns",                                                                   \
      "time that its removal would have saved, for kinds of which pairs of runs with and without " \
      "it show that (docs/measured/savings.md); null for others, and if it is suspected only")     \
    X(cost, REAL, "",                                                                              \
      "time in which the transfer waited or bytes that it carried because of it, or a count of "   \
      "cost_unit; null if nothing can be determined")                                              \
    X(cost_unit, TEXT, "",                                                                         \
      "seconds, bytes (their layer: docs/findings.md), packets, segments, "                        \
      "connections, timeouts, blocks, gaps, queries or percent")                                   \
    X(bytes, INT, "bytes",                                                                         \
      "bytes that were carried twice, wasted or lost (their layer: docs/findings.md); "            \
      "null if unknown, or if it is not about bytes")                                              \
    X(failed, INT, "",                                                                             \
      "operations that never succeeded: connection attempts, DNS questions, TLS handshakes; null " \
      "if it is about none")                                                                       \
    X(members, INT, "", "number of flows or transfers that it is about; null if it is about none") \
    X(impact, REAL, "",                                                                            \
      "share of the trace's wire bytes that it affects, 0 to 1: the order of findings that cost "  \
      "the same time; null: it may affect all of them, and comes first")                           \
    X(first_ns, TIME, "ns", "time of the first packet that shows it; null if unknown")             \
    X(last_ns, TIME, "ns", "time of the last packet that shows it; null if unknown")               \
    X(explained_by, INT, "", "finding of which it is an effect; null without one")                 \
    X(packets, INT, "packets",                                                                     \
      "packets that show it, of which finding_frames has the first; null if it has none of them")  \
    X(figures, TEXT, "", "further figures that support it; null without any")                      \
    X(filter, TEXT, "", "Wireshark display filter that shows it; null without one")

/* In the order of findings; of a finding the ends of its span first. */
#define FINDING_FRAMES_COLUMNS(X)                                                                  \
    X(finding, KNOWN(INT), "", "findings row")                                                     \
    X(capture, KNOWN(INT), "", "interfaces row, whose file numbers the frame")                     \
    X(frame, KNOWN(INT), "frame", "a packet that shows the finding")                               \
    X(role, KNOWN(WORD), "",                                                                       \
      "first or last: an end of the span in which it shows, from findings.first_ns to last_ns; "   \
      "before or after a wait; lost: the lost segment, or the nearest packet; retransmission, "    \
      "request or response; cited: any other packet")

/* In the order of findings; of a finding the flow first in which it shows best. At most 200,000
 * of a finding. */
#define FINDING_FLOWS_COLUMNS(X)                                                                   \
    X(finding, KNOWN(INT), "", "findings row")                                                     \
    X(flow, KNOWN(INT), "",                                                                        \
      "flows row of a flow that the finding is about; of a finding about the capture, of an "      \
      "example")                                                                                   \
    X(direction, INT, "", "direction of that flow; null if both or neither")

/* Best explanation first, so that the order is that of the answer. */
#define CAUSES_COLUMNS(X)                                                                          \
    X(cause, KNOWN(INT), "", "number of the cause, from 1")                                        \
    X(code, KNOWN(TEXT), "", "name of the cause (docs/causes.md)")                                 \
    X(severity, KNOWN(TEXT), "", "error, warning or info")                                         \
    X(certainty, KNOWN(TEXT), "",                                                                  \
      "proven: each rival is excluded; likely or possible: cause_rivals has those that are not")   \
    X(place, KNOWN(TEXT), "",                                                                      \
      "where it lies: client, server, device (between them), before or after the capture point, "  \
      "path (side unknown), or capture")                                                           \
    X(flow, INT, "", "flows row; null unless it is about exactly one flow")                        \
    X(sentence, KNOWN(TEXT), "", "who did what, its price, and the proof")                         \
    X(proof, TEXT, "", "what shows it, in half a sentence; null if the sentence has it")           \
    X(advice, KNOWN(TEXT), "", "what to do")                                                       \
    X(failed, INT, "", "operations that never succeeded because of it; null if none failed")       \
    X(attempts, INT, "", "operations of that kind, failed or not; null if unknown")                \
    X(waited_ns, DURATION, "ns",                                                                   \
      "wall-clock time in which somebody waited because of it, overlapping waits counted once; "   \
      "null if unknown")                                                                           \
    X(saving_ns, DURATION, "ns", "time that its removal would have saved; null if unknown")        \
    X(bytes, INT, "bytes", "bytes carried twice, wasted or lost; null if unknown or none")         \
    X(members, INT, "", "flows, hosts or transfers that it is about; null if about none")          \
    X(share, REAL, "",                                                                             \
      "share of the time of its flows in which somebody waited because of it, or of their bytes, " \
      "0 to 1; null if unknown")                                                                   \
    X(unjudged, REAL, "",                                                                          \
      "share of the packets that a fault of the capture leaves unjudged, 0 to 1; null of others")  \
    X(first_ns, TIME, "ns", "time of the first packet that shows it; null if unknown")             \
    X(last_ns, TIME, "ns", "time of the last packet that shows it; null if unknown")               \
    X(packets, INT, "packets",                                                                     \
      "packets that show it, of which cause_frames has the first; null if unknown")                \
    X(filter, TEXT, "", "Wireshark display filter that shows it; null without one")

/* In the order of causes; of a cause the ends of its span first. */
#define CAUSE_FRAMES_COLUMNS(X)                                                                    \
    X(cause, KNOWN(INT), "", "causes row")                                                         \
    X(capture, KNOWN(INT), "", "interfaces row, whose file numbers the frame")                     \
    X(frame, KNOWN(INT), "frame", "a packet that shows the cause")                                 \
    X(role, KNOWN(WORD), "", "as in finding_frames")

/* In the order of causes; of a cause the flow first in which it shows best. At most 200,000. */
#define CAUSE_FLOWS_COLUMNS(X)                                                                     \
    X(cause, KNOWN(INT), "", "causes row")                                                         \
    X(flow, KNOWN(INT), "", "flows row of a flow that it is about")                                \
    X(direction, INT, "", "direction of that flow; null if both or neither")

#define CAUSE_FINDINGS_COLUMNS(X)                                                                  \
    X(cause, KNOWN(INT), "", "causes row")                                                         \
    X(finding, KNOWN(INT), "", "findings row that it explains; of one cause at most")

#define CAUSE_RIVALS_COLUMNS(X)                                                                    \
    X(cause, KNOWN(INT), "", "causes row")                                                         \
    X(rival, KNOWN(TEXT), "", "code of another cause that shows alike")                            \
    X(excluded, KNOWN(BOOL), "", "whether a fact excludes it")                                     \
    X(fact, KNOWN(TEXT), "", "the fact that excludes it, or the measurement that would decide")

/* One row per IP address, MAC address and VLAN at an interface, as ARP and neighbor discovery show
 * them. Ungrouped. */
#define NEIGHBORS_COLUMNS(X)                                                                       \
    X(capture, KNOWN(INT), "", "interfaces row")                                                   \
    X(address, KNOWN(ADDRESS), "", "IP address")                                                   \
    X(mac, KNOWN(TEXT), "", "MAC address that claims it")                                          \
    X(vlan, INT, "", "id of the innermost VLAN tag; null without one")                             \
    X(first_ns, TIME, "ns", "time of the first claim; null if it has none")                        \
    X(last_ns, TIME, "ns", "time of the last claim; null if it has none")                          \
    X(first_frame, KNOWN(INT), "frame", "the first claim")                                         \
    X(last_frame, KNOWN(INT), "frame", "the last claim")                                           \
    X(claims, KNOWN(INT), "packets",                                                               \
      "ARP packets of this sender, neighbor solicitations from it and advertisements of it")       \
    X(answers, KNOWN(INT), "packets", "of them, replies to a host that asked")                     \
    X(conflicts, KNOWN(INT), "", "requests that this and another MAC address answered within 1 s") \
    X(conflict_ns, TIME, "ns", "time of the first such answer; null without one")                  \
    X(conflict_frame, INT, "frame", "the first such answer; null without one")                     \
    X(other_frame, INT, "frame", "the answer of the other MAC address; null without one")

/* One row per multicast group of IPv4 and VLAN at an interface, of which a member reported.
 * Ungrouped. */
#define GROUPS_COLUMNS(X)                                                                          \
    X(capture, KNOWN(INT), "", "interfaces row")                                                   \
    X(address, KNOWN(ADDRESS), "", "address of the group")                                         \
    X(vlan, INT, "", "id of the innermost VLAN tag; null without one")                             \
    X(reports, KNOWN(INT), "packets", "membership reports of IGMP")                                \
    X(first_ns, TIME, "ns", "time of the first report; null if it has none")                       \
    X(last_ns, TIME, "ns", "time of the last report; null if it has none")                         \
    X(first_frame, KNOWN(INT), "frame", "the first report")                                        \
    X(last_frame, KNOWN(INT), "frame", "the last report")                                          \
    X(query_ns, TIME, "ns", "time of the last query for it, or general one; null without one")     \
    X(query_frame, INT, "frame", "that query; null without one")

/* One row per router or port that announces itself, and VLAN at an interface. Ungrouped. */
#define ANNOUNCERS_COLUMNS(X)                                                                      \
    X(capture, KNOWN(INT), "", "interfaces row")                                                   \
    X(kind, KNOWN(WORD), "",                                                                       \
      "vrrp: a master of a virtual router; router: router advertisements of IPv6; router_na: "     \
      "neighbor advertisements of such a router; pause: PAUSE frames of IEEE 802.3x; bridge: "     \
      "BPDUs of the spanning tree; bridge_change: those of them that tell one change of the "      \
      "topology, of the first 256")                                                                \
    X(vlan, INT, "", "id of the innermost VLAN tag; null without one")                             \
    X(source, ADDRESS, "", "address of the router; null for pause and bridges")                    \
    X(mac, TEXT, "", "pause, bridges: MAC address that sends them; null for others")               \
    X(number, INT, "", "vrrp: number of the virtual router; null for others")                      \
    X(value, KNOWN(INT), "",                                                                       \
      "the largest: vrrp: priority; router: lifetime in s; router_na: 1 with its router flag, "    \
      "0 without; pause: length in quanta of 512 bits. bridge: changes of the topology that it "   \
      "told, each of which several BPDUs tell")                                                    \
    X(address, ADDRESS, "",                                                                        \
      "vrrp: the first virtual address; router: the least prefix; null without one")               \
    X(prefix_length, INT, "bits", "router: of this prefix; null for others")                       \
    X(packets, KNOWN(INT), "packets", "announcements")                                             \
    X(withdrawals, KNOWN(INT), "packets",                                                          \
      "of them, with value 0: the router resigns, or the pause ends; bridge: those that tell no "  \
      "change")                                                                                    \
    X(first_ns, TIME, "ns", "time of the first; null if it has none")                              \
    X(last_ns, TIME, "ns", "time of the last; null if it has none")                                \
    X(first_frame, KNOWN(INT), "frame", "the first")                                               \
    X(last_frame, KNOWN(INT), "frame", "the last")

/* The order defines enum table_number and the order of schemas() in Python. */
#define TABLES(X)                                                                                  \
    X(interfaces, INTERFACES_COLUMNS, "an input interface of an input file")                       \
    X(decode_stops, DECODE_STOPS_COLUMNS,                                                          \
      "packets of an interface that were not decoded to their end, by reason and protocol")        \
    X(second_ports, SECOND_PORTS_COLUMNS,                                                          \
      "two ports at which an interface stored the same TCP packets")                               \
    X(neighbors, NEIGHBORS_COLUMNS, "an IP address and the MAC address that claims it")            \
    X(announcers, ANNOUNCERS_COLUMNS, "a router or port that announces itself")                    \
    X(groups, GROUPS_COLUMNS, "a multicast group with members")                                    \
    X(flows, FLOWS_COLUMNS, "a conversation")                                                      \
    X(directions, DIRECTIONS_COLUMNS, "one direction of a flow; both have a row, captured or not") \
    X(events, EVENTS_COLUMNS, "an event of one packet or span of a stream")                        \
    X(series, SERIES_COLUMNS, "one direction in one time bin; at most 2,000 a direction")          \
    X(waits, WAITS_COLUMNS, "one of the longest waits of a direction")                             \
    X(endings, ENDINGS_COLUMNS, "the first FIN or RST of an end of a TCP connection, if unusual")  \
    X(loops, LOOPS_COLUMNS, "a direction with packets that passed again and again")                \
    X(datagrams, DATAGRAMS_COLUMNS, "one fragmented IP datagram")                                  \
    X(blocks, BLOCKS_COLUMNS, "one of wiretale's blocks")                                          \
    X(handshakes, HANDSHAKES_COLUMNS, "the handshake of TLS or QUIC of a flow")                    \
    X(exchanges, EXCHANGES_COLUMNS, "who asked whom for what, and what came of it")                \
    X(packets, PACKETS_COLUMNS, "an IP packet of a flow; made only on request")                    \
    X(time_spans, TIME_SPANS_COLUMNS,                                                              \
      "time of a flow that went to one part; made only on request")                                \
    X(relations, RELATIONS_COLUMNS, "a flow that belongs together with another one")               \
    X(findings, FINDINGS_COLUMNS, "an explanation of an anomaly or a cost")                        \
    X(finding_frames, FINDING_FRAMES_COLUMNS, "a packet that shows a finding")                     \
    X(finding_flows, FINDING_FLOWS_COLUMNS, "a flow that a finding is about")                      \
    X(causes, CAUSES_COLUMNS, "what explains findings, and the cost of it")                        \
    X(cause_frames, CAUSE_FRAMES_COLUMNS, "a packet that shows a cause")                           \
    X(cause_flows, CAUSE_FLOWS_COLUMNS, "a flow that a cause is about")                            \
    X(cause_findings, CAUSE_FINDINGS_COLUMNS, "a finding that a cause explains")                   \
    X(cause_rivals, CAUSE_RIVALS_COLUMNS, "another cause that shows alike, and what decides")

enum table_number {
#define X(name, columns, meaning) TABLE_##name,
    TABLES(X)
#undef X
        TABLE_COUNT
};

/* The order matters: types up to TYPE_DURATION are integers, and those up to TYPE_WORD have
 * their value in the row, while the others have the number of an entry of the string table. A
 * path is bytes, any but NUL; a text is UTF-8. */
enum column_type {
    TYPE_INT,
    TYPE_TIME,
    TYPE_DURATION,
    TYPE_REAL,
    TYPE_BOOL,
    TYPE_WORD,
    TYPE_TEXT,
    TYPE_ADDRESS,
    TYPE_PATH
};

/* Static, so that exports may keep pointers to names. */
struct column {
    const char *name;
    const char *unit; /* "" for none */
    const char *meaning;
    uint8_t type; /* enum column_type */
    bool known;   /* never null */
};

struct schema {
    const char *name;
    const char *meaning; /* the meaning of a row */
    const struct column *columns;
    size_t column_count;
};

#define IDENTIFIED_PACKETS TABLE_COUNT /* packets with what identifies them */
#define SCHEMA_COUNT       (TABLE_COUNT + 1)
/* Indexed by enum table_number, and by IDENTIFIED_PACKETS. */
extern const struct schema schemas[SCHEMA_COUNT];

/* Column numbers: interfaces_file, directions_packets, ... They must be used in rows/ and
 * exports instead of names, so that a removed column is an error of the compiler. */
#define COLUMN_OF_interfaces(name, type, unit, meaning)     interfaces_##name,
#define COLUMN_OF_flows(name, type, unit, meaning)          flows_##name,
#define COLUMN_OF_directions(name, type, unit, meaning)     directions_##name,
#define COLUMN_OF_decode_stops(name, type, unit, meaning)   decode_stops_##name,
#define COLUMN_OF_second_ports(name, type, unit, meaning)   second_ports_##name,
#define COLUMN_OF_announcers(name, type, unit, meaning)     announcers_##name,
#define COLUMN_OF_groups(name, type, unit, meaning)         groups_##name,
#define COLUMN_OF_neighbors(name, type, unit, meaning)      neighbors_##name,
#define COLUMN_OF_events(name, type, unit, meaning)         events_##name,
#define COLUMN_OF_series(name, type, unit, meaning)         series_##name,
#define COLUMN_OF_waits(name, type, unit, meaning)          waits_##name,
#define COLUMN_OF_endings(name, type, unit, meaning)        endings_##name,
#define COLUMN_OF_loops(name, type, unit, meaning)          loops_##name,
#define COLUMN_OF_datagrams(name, type, unit, meaning)      datagrams_##name,
#define COLUMN_OF_packets(name, type, unit, meaning)        packets_##name,
#define COLUMN_OF_blocks(name, type, unit, meaning)         blocks_##name,
#define COLUMN_OF_handshakes(name, type, unit, meaning)     handshakes_##name,
#define COLUMN_OF_exchanges(name, type, unit, meaning)      exchanges_##name,
#define COLUMN_OF_time_spans(name, type, unit, meaning)     time_spans_##name,
#define COLUMN_OF_relations(name, type, unit, meaning)      relations_##name,
#define COLUMN_OF_findings(name, type, unit, meaning)       findings_##name,
#define COLUMN_OF_finding_frames(name, type, unit, meaning) finding_frames_##name,
#define COLUMN_OF_finding_flows(name, type, unit, meaning)  finding_flows_##name,
#define COLUMN_OF_causes(name, type, unit, meaning)         causes_##name,
#define COLUMN_OF_cause_frames(name, type, unit, meaning)   cause_frames_##name,
#define COLUMN_OF_cause_flows(name, type, unit, meaning)    cause_flows_##name,
#define COLUMN_OF_cause_findings(name, type, unit, meaning) cause_findings_##name,
#define COLUMN_OF_cause_rivals(name, type, unit, meaning)   cause_rivals_##name,

#define TABLE(name, columns, meaning) enum { columns(COLUMN_OF_##name) name##_column_count };
TABLES(TABLE)
#undef TABLE
enum {
    packets_last = packets_column_count - 1,
    IDENTITY_COLUMNS(COLUMN_OF_packets) packets_identified_count
};

/* Returns whether the caller fills a table after analysis_finish(). */
static inline bool is_after_pass(unsigned number) {
    return number >= TABLE_relations;
}

#define COLUMNS_MAX 192 /* of a table; a row's null mask has that many bits */

#endif
