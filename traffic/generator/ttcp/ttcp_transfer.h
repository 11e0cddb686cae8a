/* SPDX-License-Identifier: Apache-2.0 */
/* ttcp: one transfer over TCP or UDP with a peer that speaks as ttcp and PCATTCP do.
 *
 * TCP carries the bytes and nothing else; the end of the stream ends the transfer. Over UDP a
 * datagram of at most MARK_BYTES is a mark: one before the data starts the receiver's clock,
 * several after the data end the transfer. A classic receiver hangs if all of them are lost; this
 * one also ends after --idle of silence. */
#ifndef WIRETALE_TTCP_TRANSFER_H
#define WIRETALE_TTCP_TRANSFER_H

#include <sys/resource.h>

#include "stream/stream.h"
#include "transfer/endpoint.h"

#define MARK_BYTES 4u

struct ttcp_options {
    bool transmit, receive, udp;
    bool pattern; /* sink mode: send a pattern, drop received data; otherwise stdin and stdout */
    bool no_delay, debug, touch, verbose, json;
    bool full_blocks; /* -B: write blocks of `length` */
    bool concurrent;  /* -R */
    bool continuous;  /* -c */
    uint64_t family;  /* AF_UNSPEC, AF_INET, AF_INET6 */
    uint64_t port;
    uint64_t length, align, offset, buffer; /* bytes; a `buffer` of 0 is the system's */
    uint64_t count;                         /* buffers of a pattern */
    uint64_t idle_ns;                       /* 0: wait forever */
    uint64_t pause_ns;                      /* before the marks that end a transfer over UDP */
    char unit;                              /* of rates, one of kKmMgG */
    const char *host;
};

struct ttcp_transfer {
    union endpoint peer;
    uint64_t bytes, calls;
    struct stream_times times;
    uint64_t cut_datagrams;    /* longer than -l: the kernel dropped the rest */
    uint64_t retries, refused; /* sends that found no buffer, or a closed port */
    struct rusage usage;       /* at the start */
    const char *ended_by; /* "count", "close", "end mark", "idle", "signal", "peer gone", ... */
    bool complete;
};

/* Writes one line to standard error that begins with "ttcp-t: " or "ttcp-r: ". */
#define ttcp_log(options, format, ...)                                                             \
    log_plain("ttcp%s: " format, (options)->transmit ? "-t" : "-r", __VA_ARGS__)

/* Sets -d, -D and -b on a socket. Returns 0, or the exit code after a message. */
int ttcp_set_socket(int fd, const struct ttcp_options *options);

/* ttcp_transmit.c, ttcp_receive.c: each runs its role with `data`, a buffer of `length` and
 * MARK_BYTES + 1 more, and returns the exit code. */
int ttcp_transmit(const struct ttcp_options *options, uint8_t *data);
int ttcp_receive(const struct ttcp_options *options, uint8_t *data);

/* Starts the clocks from which rates and CPU times are computed. */
void ttcp_start_clock(struct ttcp_transfer *transfer);
void ttcp_print_settings(const struct ttcp_options *options, const uint8_t *data);
/* Prints the lines of ttcp, or one JSON object. Returns whether they could be written. */
bool ttcp_report(const struct ttcp_options *options, struct ttcp_transfer *transfer,
                 const char *ended_by, bool complete);

#endif
