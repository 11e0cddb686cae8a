/* SPDX-License-Identifier: Apache-2.0 */
/* All words of columns of type WORD. Their numbers are internal and may change; the words are a
 * public interface. */
#ifndef WIRETALE_VOCABULARY_H
#define WIRETALE_VOCABULARY_H

#include <stdint.h>

#define VOCABULARY(X)                                                                              \
    X(NONE, "")                                                                                    \
    /* protocols (flows.protocol) */                                                               \
    X(TCP, "tcp")                                                                                  \
    X(UDP, "udp")                                                                                  \
    X(ICMP, "icmp")                                                                                \
    X(ICMPV6, "icmpv6")                                                                            \
    X(SCTP, "sctp")                                                                                \
    X(DCCP, "dccp")                                                                                \
    X(UDPLITE, "udplite")                                                                          \
    X(IGMP, "igmp")                                                                                \
    X(ESP, "esp")                                                                                  \
    X(AH, "ah")                                                                                    \
    X(GRE, "gre")                                                                                  \
    X(OSPF, "ospf")                                                                                \
    X(PIM, "pim")                                                                                  \
    X(VRRP, "vrrp")                                                                                \
    X(L2TP, "l2tp")                                                                                \
    X(OTHER_IP, "ip")                                                                              \
    /* states of a TCP conversation as far as captured (flows.state) */                            \
    X(SYN_SENT, "syn_sent")         /* SYN, no answer seen */                                      \
    X(SYN_RECEIVED, "syn_received") /* SYN and SYN-ACK, no ACK of it seen */                       \
    X(ESTABLISHED, "established")   /* handshake complete, still open at the end */                \
    X(MIDSTREAM, "midstream")       /* no handshake seen, still open at the end */                 \
    X(HALF_CLOSED, "half_closed")   /* one FIN seen */                                             \
    X(CLOSED, "closed")             /* FINs of both directions seen */                             \
    X(RESET, "reset")               /* ended by RST; of events: an RST */                          \
    X(REFUSED, "refused")           /* RST in reply to the SYN */                                  \
    /* what came of a request (exchanges.outcome), beside the three before */                      \
    X(ANSWERED, "answered")                                                                        \
    X(ERROR, "error")         /* the answer is one */                                              \
    X(ABANDONED, "abandoned") /* by the client */                                                  \
    X(UNANSWERED, "unanswered")                                                                    \
    X(CUT_OFF, "cut_off")   /* the capture ended before an answer was due */                       \
    X(FAREWELL, "farewell") /* wants no answer */                                                  \
    /* evidence of the initiator (flows.initiator_evidence) */                                     \
    X(SYN, "syn")                                                                                  \
    X(SYN_ACK, "syn_ack")                                                                          \
    X(FIRST_PACKET, "first_packet")                                                                \
    /* why a row was finished (flows.end) */                                                       \
    X(END_OF_CAPTURE, "end_of_capture")                                                            \
    X(IDLE, "idle")                                                                                \
    X(EVICTED, "evicted")                                                                          \
    X(PORTS_REUSED, "ports_reused")                                                                \
    /* how payload alternates (flows.exchange) */                                                  \
    X(TURNS, "turns")                                                                              \
    X(PIPELINED, "pipelined")                                                                      \
    X(STREAMING, "streaming")                                                                      \
    /* why a server's waits are no answer times (flows.server_talk) */                             \
    X(PUSHED, "pushed")                                                                            \
    X(HELD, "held")                                                                                \
    X(TYPED, "typed")                                                                              \
    /* parts of the time of a flow (time_spans.part), and idle */                                  \
    X(PART_CONNECTING, "connecting")                                                               \
    X(PART_CLIENT, "client")                                                                       \
    X(PART_SERVER, "server")                                                                       \
    X(PART_LOSS, "loss")                                                                           \
    X(PART_QUEUE, "queue")                                                                         \
    X(PART_PATH, "path")                                                                           \
    X(PART_TRANSFER, "transfer")                                                                   \
    X(PART_UNKNOWN, "unknown")                                                                     \
    /* both these and kinds of waits (waits.kind) */                                               \
    X(SEND_BUFFER, "send_buffer")                                                                  \
    X(WINDOW, "window")                                                                            \
    /* further kinds of waits, and idle */                                                         \
    X(DELAYED_ACK, "delayed_ack")                                                                  \
    X(TIMEOUT, "timeout")                                                                          \
    X(SLOW_START, "slow_start")                                                                    \
    X(NETWORK, "network")                                                                          \
    X(RTT, "rtt")                                                                                  \
    X(SLOWEST, "slowest")                                                                          \
    /* kinds of endings, and reset */                                                              \
    X(FIN, "fin")                                                                                  \
    /* fragmented datagrams (datagrams.state) */                                                   \
    X(COMPLETE, "complete")                                                                        \
    X(INCOMPLETE, "incomplete")                                                                    \
    /* how decoding stopped (decode_stops.outcome) */                                              \
    X(CUT, "cut")                                                                                  \
    X(NOT_UNDERSTOOD, "not_understood")                                                            \
    X(MALFORMED, "malformed")                                                                      \
    /* kinds of events (events.kind) */                                                            \
    X(RETRANSMISSION, "retransmission") /* of unknown cause */                                     \
    X(FAST_RETRANSMISSION, "fast_retransmission")                                                  \
    X(TIMEOUT_RETRANSMISSION, "timeout_retransmission")                                            \
    X(PROBE_RETRANSMISSION, "probe_retransmission") /* TLP (RFC 8985 section 7) */                 \
    X(SUSPECTED_TIMEOUT, "suspected_timeout")                                                      \
    X(IDLE_GAP, "idle_gap")                                                                        \
    X(OUT_OF_ORDER, "out_of_order")                                                                \
    X(AMBIGUOUS, "ambiguous") /* fills a gap, reordered or retransmitted */                        \
    X(NETWORK_DUPLICATE, "network_duplicate")                                                      \
    X(MIRROR_DUPLICATE, "mirror_duplicate")                                                        \
    X(WLAN_RETRY, "wlan_retry")               /* a station repeated an 802.11 frame */             \
    X(UNKNOWN_DUPLICATE, "unknown_duplicate") /* by the network or the capture */                  \
    X(DUPLICATE_ACK, "duplicate_ack")                                                              \
    X(SACK_GAP, "sack_gap")                                                                        \
    X(GAP, "gap")                                                                                  \
    X(ACKED_UNSEEN_SEGMENT, "acked_unseen_segment")                                                \
    X(CAPTURED_OUT_OF_ORDER, "captured_out_of_order")                                              \
    X(KEEP_ALIVE, "keep_alive")                                                                    \
    X(KEEP_ALIVE_ACK, "keep_alive_ack")                                                            \
    X(WINDOW_PROBE, "window_probe")                                                                \
    X(WINDOW_FULL, "window_full")                                                                  \
    X(ZERO_WINDOW, "zero_window")                                                                  \
    X(ICMP_ERROR, "icmp_error")                                                                    \
    X(CONGESTION_MARK, "congestion_mark") /* the first of a direction */                           \
    X(FRAGMENT_OVERLAP, "fragment_overlap")                                                        \
    X(CHECKSUM_ERROR, "checksum_error") /* also a cause (V14.4) */                                 \
    X(TIME_BACKWARD, "time_backward")                                                              \
    X(ACK_OUT_OF_RANGE, "ack_out_of_range")                                                        \
    X(BLOCK_LOST, "block_lost")                                                                    \
    X(BLOCK_GAP, "block_gap") /* all of it arrived later */                                        \
    X(BLOCK_OUT_OF_ORDER, "block_out_of_order")                                                    \
    X(BLOCK_DUPLICATE, "block_duplicate")                                                          \
    X(BLOCK_LATE, "block_late") /* too old to distinguish a duplicate from reordering */           \
    X(BLOCK_CORRUPT, "block_corrupt")                                                              \
    X(BLOCK_RESTART, "block_restart") /* the sender restarted its numbers */                       \
    /* applications (flows.application) */                                                         \
    X(BLOCKS, "blocks")                                                                            \
    X(IPERF2, "iperf2")                                                                            \
    X(IPERF3, "iperf3")                                                                            \
    X(RTP, "rtp")                                                                                  \
    X(DNS, "dns")                                                                                  \
    X(MDNS, "mdns")                                                                                \
    X(LLMNR, "llmnr")                                                                              \
    X(TLS, "tls")                                                                                  \
    X(HTTP, "http")                                                                                \
    X(HTTP2, "http2")                                                                              \
    X(QUIC, "quic")                                                                                \
    /* kinds of exchanges (exchanges.kind), beside those of applications */                        \
    X(CONNECT, "connect")                                                                          \
    X(TURN, "turn")                                                                                \
    X(ARP, "arp")                                                                                  \
    X(ND, "nd")                                                                                    \
    X(DHCP, "dhcp")                                                                                \
    X(RADIUS, "radius")                                                                            \
    X(SIP, "sip")                                                                                  \
    X(EAPOL, "eapol")                                                                              \
    X(WLAN, "wlan")                                                                                \
    X(SERVICE, "service")                                                                          \
    /* kinds of announcers (announcers.kind), and vrrp */                                          \
    X(ROUTER, "router")                                                                            \
    X(ROUTER_NA, "router_na")                                                                      \
    X(PAUSE, "pause")                                                                              \
    X(BRIDGE, "bridge")                                                                            \
    X(BRIDGE_CHANGE, "bridge_change")                                                              \
    X(SIP_ACK, "sip_ack")                                                                          \
    X(DAD, "dad")                                                                                  \
    X(ICMP_ECHO, "icmp_echo")                                                                      \
    /* verdicts on blocks (blocks.verdict) */                                                      \
    X(DELIVERED, "delivered")                                                                      \
    X(HEAD_OF_LINE, "head_of_line") /* delivered, but delayed by missing bytes before it */        \
    X(CORRUPT, "corrupt")                                                                          \
    X(DUPLICATE, "duplicate")                                                                      \
    X(LATE, "late")                                                                                \
    X(UNFINISHED, "unfinished") /* the capture or the stream ended first */                        \
    /* places (events.place) */                                                                    \
    X(UPSTREAM, "upstream")     /* between the sender and the capture point */                     \
    X(DOWNSTREAM, "downstream") /* between the capture point and the receiver */                   \
    X(CAPTURE, "capture")       /* in the capture alone */                                         \
    /* evidence (events.evidence) */                                                               \
    X(DSACK, "dsack")                                                                              \
    X(TIMESTAMPS, "timestamps")                                                                    \
    X(IP_ID, "ip_id")                                                                              \
    X(ACKS, "acks")                                                                                \
    X(ACKNOWLEDGED, "acknowledged") /* the receiver had acknowledged it */                         \
    X(SIGNATURE, "signature")       /* the same header except for fields that routers change */    \
    X(CHECKSUM, "checksum")                                                                        \
    X(TIME, "time")                                                                                \
    /* causes (events.cause): of retransmissions and reordering, also WORD_LIMITED_RECOVERY */     \
    X(GO_BACK_N, "go_back_n") /* V5.2 */                                                           \
    X(RECOVERY, "recovery")                                                                        \
    X(CARRIED_DUPLICATE_ACKS, "carried_duplicate_acks") /* V5.6 */                                 \
    X(LATE_REPORT, "late_report")                       /* V5.7 */                                 \
    X(RACK, "rack")                                     /* V5.8 */                                 \
    X(TAIL, "tail")                                     /* V5.10 */                                \
    X(LOST_ACK, "lost_ack")                             /* V6.7 */                                 \
    X(AFTER_HANDSHAKE, "after_handshake")               /* V5.12 */                                \
    X(AFTER_RETRANSMISSION, "after_retransmission")     /* V4.3 */                                 \
    X(BEFORE_CAPTURE, "before_capture") /* the first transmission precedes the capture */          \
    /* of ICMP errors (RFC 792, RFC 4443) */                                                       \
    X(NETWORK_UNREACHABLE, "network_unreachable")                                                  \
    X(HOST_UNREACHABLE, "host_unreachable")                                                        \
    X(PROTOCOL_UNREACHABLE, "protocol_unreachable")                                                \
    X(PORT_UNREACHABLE, "port_unreachable")                                                        \
    X(FRAGMENTATION_NEEDED, "fragmentation_needed")                                                \
    X(NETWORK_PROHIBITED, "network_prohibited")                                                    \
    X(HOST_PROHIBITED, "host_prohibited")                                                          \
    X(PROHIBITED, "prohibited")                                                                    \
    X(DESTINATION_UNREACHABLE, "destination_unreachable")                                          \
    X(SOURCE_QUENCH, "source_quench")                                                              \
    X(REDIRECT, "redirect")                                                                        \
    X(TTL_EXCEEDED, "ttl_exceeded")                                                                \
    X(REASSEMBLY_TIME_EXCEEDED, "reassembly_time_exceeded")                                        \
    X(PARAMETER_PROBLEM, "parameter_problem")                                                      \
    X(NO_ROUTE, "no_route")                                                                        \
    X(ADDRESS_UNREACHABLE, "address_unreachable")                                                  \
    X(PACKET_TOO_BIG, "packet_too_big")                                                            \
    X(HOP_LIMIT_EXCEEDED, "hop_limit_exceeded")                                                    \
    /* packets that show a finding (finding_frames.role), beside retransmission */                 \
    X(FIRST, "first") /* ends of the span in which it shows */                                     \
    X(LAST, "last")                                                                                \
    X(BEFORE, "before") /* a wait */                                                               \
    X(AFTER, "after")                                                                              \
    X(LOST, "lost") /* the lost segment, or the nearest packet */                                  \
    X(REQUEST, "request")                                                                          \
    X(RESPONSE, "response")                                                                        \
    X(CITED, "cited") /* any other */                                                              \
    /* kinds of relations between flows (relations.kind) */                                        \
    X(COPY, "copy")                                                                                \
    X(TUNNEL, "tunnel")                                                                            \
    X(TRANSLATION, "translation")                                                                  \
    X(HALF, "half")                                                                                \
    X(REUSE, "reuse")                                                                              \
    X(SUBFLOW, "subflow")

enum word {
#define X(symbol, text) WORD_##symbol,
    VOCABULARY(X)
#undef X
        WORD_COUNT
};

/* Returns the static text of a word, which ends with a NUL. */
const char *word_text(enum word word);

/* All words without a separator; word i is [word_offsets[i], word_offsets[i + 1]). */
extern const char word_texts[];
extern const int32_t word_offsets[WORD_COUNT + 1];

#endif
