/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/send_errors.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void count(struct send_errors *errors, int number) {
    char text[40];
    const char *name = strerrorname_np(number);
    snprintf(text, sizeof text, "%s:1", name ? name : "EUNKNOWN");
    error_counts_add(&errors->counts, text);
}

/* The send itself was in order: it waited for room until its time was over. */
static bool is_full(int number) {
    return number == EAGAIN || number == EWOULDBLOCK || number == EINTR;
}

/* Errors that another attempt may not meet: a queue that is full, a filter, an ICMP message that
 * an earlier datagram brought back. */
static bool may_pass(int number, bool udp) {
    static const int passing[] = {ENOBUFS,      ENOMEM,      EPERM,    ECONNREFUSED,
                                  EHOSTUNREACH, ENETUNREACH, ENETDOWN, EHOSTDOWN};
    for (unsigned i = 0; udp && i < sizeof passing / sizeof *passing; i++)
        if (passing[i] == number)
            return true;
    return false;
}

bool send_errors_take(struct send_errors *errors, struct stream *stream, int number) {
    struct transfer *transfer = stream->direction->transfer;
    uint64_t now = monotonic_ns();
    if (!is_full(number))
        count(errors, number);
    if (!is_full(number) && !may_pass(number, transfer_is_udp(transfer))) {
        transfer_fail(transfer, "stream %u: send: %s%s", stream->number, strerror(number),
                      number == EMSGSIZE ? " (a block must fit the path's MTU with --df do)" : "");
        return false;
    }
    if (now - errors->progress_ns > STALL_LIMIT_NS) {
        transfer_fail(transfer, "stream %u: nothing could be sent for 10 s: %s", stream->number,
                      strerror(number));
        return false;
    }
    if (number == ENOBUFS || number == ENOMEM)
        pacer_wait(now + NS_PER_MS / 10, &stream->direction->stop);
    else if (!is_full(number) && number != ECONNREFUSED)
        pacer_wait(now + NS_PER_MS, &stream->direction->stop);
    return true;
}

void send_errors_report(const struct send_errors *errors, struct stream_report *report) {
    error_counts_write(&errors->counts, report->errors);
}
