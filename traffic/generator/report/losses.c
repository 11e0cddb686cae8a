/* SPDX-License-Identifier: Apache-2.0 */
/* The places where datagrams were lost: blocks that were sent less blocks that were received,
 * divided by the counters of both hosts.
 *
 * Exact counters come first: blocks that the receiving program did not count, and datagrams that
 * its sockets had no buffer for. Those of an interface include other traffic, so they take at most
 * the losses that are left. The path has the rest, if all counters are known; else the rest is
 * undetermined, because a host with an unknown counter may have dropped it. */
#include "report/report.h"

/* Moves at most `count` of the rest to a part. Returns -1 if the count is unknown. */
static int64_t take(int64_t *rest, int64_t count) {
    if (count < 0)
        return -1;
    int64_t part = count < *rest ? count : *rest;
    *rest -= part;
    return part;
}

/* Both counts are stored plus 1. Returns -1 if one of them is unknown. */
static int64_t sum_of(uint64_t one_plus_1, uint64_t other_plus_1) {
    if (!one_plus_1 || !other_plus_1)
        return -1;
    return (int64_t)bounded_add(one_plus_1 - 1, other_plus_1 - 1);
}

struct losses losses_of(const struct direction *direction, const struct direction_totals *totals) {
    const struct host_losses *own = &direction->own_losses, *peer = &direction->peer_losses;
    const struct host_losses *sender = direction->is_sending ? own : peer,
                             *receiver = direction->is_sending ? peer : own;
    int64_t rest = totals->lost;
    if (rest <= 0)
        return (struct losses){.lost = rest, .undetermined = rest};
    struct losses losses = {.lost = rest};
    losses.receiver_program = take(&rest, (int64_t)totals->receiver.late);
    int64_t by_sockets = take(&rest, (int64_t)totals->receiver.dropped_plus_1 - 1);
    int64_t by_interface = take(&rest, (int64_t)receiver->interface_plus_1 - 1);
    losses.receiver_host = by_sockets < 0 || by_interface < 0 ? -1 : by_sockets + by_interface;
    if (losses.receiver_host < 0) /* a known part alone is not that of the host */
        rest += (by_sockets > 0 ? by_sockets : 0) + (by_interface > 0 ? by_interface : 0);
    losses.sender_host = take(&rest, sum_of(sender->queue_plus_1, sender->interface_plus_1));
    bool known = losses.receiver_host >= 0 && losses.sender_host >= 0;
    losses.path = known ? rest : -1;
    losses.undetermined = known ? 0 : rest;
    return losses;
}

/* A negative part is unknown. */
static void put_part(FILE *out, const char *name, int64_t part, const char *end) {
    if (part < 0)
        fprintf(out, "%s unknown%s", name, end);
    else
        fprintf(out, "%s %lld%s", name, (long long)part, end);
}

void report_losses_table(FILE *out, const struct losses *losses) {
    if (losses->lost < 0)
        return;
    fprintf(out, "  lost in   ");
    put_part(out, "sender's queues", losses->sender_host, ", ");
    put_part(out, "path", losses->path, ", ");
    put_part(out, "receiver's kernel", losses->receiver_host, ", ");
    put_part(out, "receiver's program", losses->receiver_program, "");
    if (losses->undetermined)
        put_part(out, "; undetermined", losses->undetermined, "");
    fputc('\n', out);
}

void report_losses_json(struct json *json, const char *name, const struct losses *losses,
                        const struct direction *direction) {
    const struct host_losses *own = &direction->own_losses, *peer = &direction->peer_losses;
    const struct host_losses *sender = direction->is_sending ? own : peer,
                             *receiver = direction->is_sending ? peer : own;
    if (losses->lost < 0) {
        json_text(json, name, NULL);
        return;
    }
    json_open(json, name, '{');
    json_count(json, "blocks_lost", losses->lost);
    json_count(json, "sender_host", losses->sender_host);
    json_count(json, "path", losses->path);
    json_count(json, "receiver_host", losses->receiver_host);
    json_count(json, "receiver_program", losses->receiver_program);
    json_count(json, "undetermined", losses->undetermined);
    json_count(json, "sender_queue_drops", (int64_t)sender->queue_plus_1 - 1);
    json_count(json, "sender_interface_drops", (int64_t)sender->interface_plus_1 - 1);
    json_count(json, "receiver_interface_drops", (int64_t)receiver->interface_plus_1 - 1);
    json_close(json, '}');
}
