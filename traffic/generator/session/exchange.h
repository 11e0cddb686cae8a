/* SPDX-License-Identifier: Apache-2.0 */
/* A transfer from its start to the reports of both ends. Both run the same code: each sends a sign
 * of life every second, the report of each direction once its threads have ended, and stops if the
 * peer stops or is silent. */
#ifndef WIRETALE_EXCHANGE_H
#define WIRETALE_EXCHANGE_H

#include "report/report.h"
#include "transfer/transfer.h"

/* The peer is gone if neither a line nor a block arrived for so long. */
#define CONTROL_SILENCE_NS (10 * NS_PER_S)
/* All lines of a pattern must arrive within this time. */
#define LINES_NS (60 * NS_PER_S)
/* After a sender asked for datagrams in the reverse direction and fell silent, none must reach its
 * address for longer than this, because the address may belong to another host by then. */
#define FLOW_SILENCE_NS (900 * NS_PER_MS)

struct exchange_options {
    uint64_t max_bytes;        /* of all streams, which transfer->max_bytes may lower */
    double max_bps;            /* of all streams of a direction; 0: no limit */
    uint64_t max_ns;           /* of the plan's own duration; 0: no limit */
    uint64_t interval_ns;      /* between lines while the transfer runs; 0: no lines */
    struct report_style style; /* of these lines and the report */
};

/* Runs a transfer whose UDP sockets are open and for which "start" was sent. Returns when it is
 * over and all of its threads have ended; transfer->stopped_by is NULL if nothing cut it short. */
void exchange_run(struct transfer *transfer, const struct exchange_options *options);

/* The signal that asks all transfers to end; 0 if there was none. */
extern _Atomic int exchange_interrupted;

/* Installs a handler for SIGINT, SIGTERM and SIGHUP that sets exchange_interrupted. A second signal
 * after 2 s ends the program at once. */
void exchange_watch_signals(void);

/* The lines of a transfer, after the handshake. A receiver is the end that receives a direction.
 *
 *     line      from               fields
 *     port      receiver           way, stream, port: of a UDP socket; before "start"
 *     lines     end that asks      list: of a pattern, SIZE:GAP,...; before "start"
 *     clock     initiator, other   sent_ns; the answer adds received_ns, replied_ns, host
 *     offset    initiator          offset of the clocks: before "start", and before "end" or "done"
 *     progress  both, every 1 s; every 100 ms from an initiator that receives datagrams
 *     refused   end that was asked text: it does not run the test; before the start
 *     stop      both               reason, text: senders must stop and report
 *     sent      sender of a way    way, stream and counts: one line for each stream
 *     end       sender of a way    way, checksum, drops of its host: all blocks are sent
 *     received  receiver of a way  way, stream and counts: one line for each stream
 *     done      receiver of a way  the same: all blocks that will arrive have arrived
 *
 * The field "way" is the direction. Nothing in the data path marks its end; "end" does. */

/* Applies a line of the peer. Returns NULL, or the reason why it is wrong at this time. */
const char *exchange_take_line(struct transfer *transfer, const char *line);
/* Stores why the peer took no more lines before the start: its refusal may not have been read. */
void exchange_explain_end(struct transfer *transfer, char error[ERROR_SIZE]);

/* Measures the offset of the clocks, as the initiator of a transfer over UDP: before the start, and
 * when a direction has ended. Each returns false if the peer did not take a line. */
bool clock_measure_begin(struct transfer *transfer);
bool clock_measure_end(struct transfer *transfer);
/* Without a second measurement: widens the error by the drift since the start. */
void clock_estimate_end(struct transfer *transfer);
/* Returns bounds of the offset over the time between two measurements. */
struct clock_offset clock_combine(const struct clock_offset *begin, const struct clock_offset *end,
                                  uint64_t elapsed_ns);
/* Replaces the offset at the begin by that over the whole transfer in the delays of a report. */
void clock_correct(const struct transfer *transfer, struct stream_report *report);

/* Each returns false if the peer did not take the lines within a second. */

/* Sends the offset of the clocks to the end that was asked. */
bool exchange_send_clock(struct transfer *transfer);

/* Sends the own report of each stream of a direction, then "end" or "done". */
bool exchange_send_reports(struct transfer *transfer, struct direction *direction);
bool exchange_send_stop(struct transfer *transfer, const char *reason);
/* UDP: binds a socket for each stream of a direction that this end receives, and announces the
 * ports. Sets `error` if that fails. Does nothing over TCP or if the direction is not active. */
bool exchange_bind_udp(struct transfer *transfer, enum direction_name name, char error[ERROR_SIZE]);
/* Sends the lines of a pattern if the peer is to send by it. Returns false if they did not arrive
 * within LINES_NS. */
bool exchange_send_lines(struct transfer *transfer);
/* UDP: connects a socket for each stream of a direction that this end sends to the port that the
 * peer announced. */
bool exchange_connect_udp(struct transfer *transfer, enum direction_name name,
                          char error[ERROR_SIZE]);

#endif
