/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a capture of interleaved TCP transfers. The same options give the same bytes.
 *
 * Each flow has a handshake with the options of Linux, sends segments with timestamps in trains of
 * one or two, and retransmits 1% of them; the receiver acknowledges every --ack-every segments.
 * Flows start in the first quarter of the capture and are chosen at random; four in five close at
 * its end. So almost all flows are open at any time, and adjacent packets rarely belong to the same
 * flow, which must defeat caches. Payload is zero: the TCP checksum then covers headers alone.
 *
 * The state of a flow is 20 bytes and all flows are allocated at once, so memory is proportional to
 * --flows. If a write fails, the program exits with status 1. */
#include <arpa/inet.h>
#include <err.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ETHERNET = 14, IPV4 = 20, TCP = 20, MSS = 1448, FRAME_MAX = ETHERNET + 1500 };
enum { FIN = 1, SYN = 2, PSH = 8, ACK = 16 };
enum { START_SECONDS = 1768478400 }; /* 2026-01-15 12:00:00 UTC */

struct plan {
    uint64_t packets;
    uint32_t flows;
    uint32_t snaplen;
    uint32_t ack_every; /* segments per ACK */
    uint32_t gap_ns;    /* mean time between packets */
    const char *path;
};

/* State of a flow. Each stage but OPEN sends one packet; FIN_SEEN is the stage of the last ACK. */
enum stage { NEW, SYN_SEEN, SYN_ACK_SEEN, OPEN, CLOSING, FIN_SEEN, CLOSED };

struct flow {
    uint32_t next;     /* SND.NXT of the data sender, as an offset from its first byte */
    uint32_t acked;    /* SND.UNA, likewise */
    uint32_t stamp[2]; /* last TSval of client and server, ms */
    uint16_t ip_id[2];
    uint8_t stage; /* enum stage */
};

struct writer {
    FILE *file;
    const struct plan *plan;
    struct flow *flows;
    uint64_t written;
    uint64_t time_ns; /* since the start */
    uint64_t random;
};

struct segment {
    int from; /* 0: client, 1: server */
    uint32_t sequence, acknowledgment;
    uint16_t payload;
    uint8_t flags;
};

/* Returns a number in [0, below), by xorshift64*. */
static uint32_t draw(struct writer *w, uint32_t below) {
    w->random ^= w->random >> 12;
    w->random ^= w->random << 25;
    w->random ^= w->random >> 27;
    return (uint32_t)((w->random * 0x2545F4914F6CDD1DULL) >> 32) % below;
}

/* put16() and put32() write in network byte order. */
static void put16(uint8_t *p, uint32_t v) {
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static void put32(uint8_t *p, uint32_t v) {
    put16(p, v >> 16);
    put16(p + 2, v & 0xFFFF);
}

/* Adds 16-bit words to a sum for fold(). `length` must be even. */
static uint32_t sum16(const uint8_t *p, size_t length, uint32_t sum) {
    for (size_t i = 0; i < length; i += 2)
        sum += (uint32_t)(p[i] << 8 | p[i + 1]);
    return sum;
}

/* Returns the Internet checksum of a sum of 16-bit words (RFC 1071). */
static uint16_t fold(uint32_t sum) {
    sum = (sum & 0xFFFF) + (sum >> 16);
    sum += sum >> 16;
    return (uint16_t)~sum;
}

/* Returns the data sender of a flow (0: client, 1: server). Three in ten flows are uploads. */
static int sender_of(uint32_t number) {
    return number % 10 < 3 ? 0 : 1;
}

/* Writes an IPv4 header of 20 bytes with DF set, and its checksum. Clients are numbered in 10/8,
 * servers in 198.51.100/24. `length` is the total length in bytes. */
static void put_ipv4(uint8_t *ip, uint32_t number, const struct segment *s, uint16_t id,
                     uint16_t length) {
    uint32_t client = 0x0A000000 + number % 60013 + 1, server = 0xC6336400 + number % 250 + 1;
    ip[0] = 0x45;
    put16(ip + 2, length);
    put16(ip + 4, id);
    put16(ip + 6, 0x4000); /* DF */
    ip[8] = s->from ? 57 : 64;
    ip[9] = 6;
    put32(ip + 12, s->from ? server : client);
    put32(ip + 16, s->from ? client : server);
    put16(ip + 10, fold(sum16(ip, IPV4, 0)));
}

/* Writes the TCP options that Linux sends: MSS, SACK permitted, timestamps and window scale in a
 * SYN, timestamps (RFC 7323) in other segments. Returns their length in bytes. */
static size_t put_options(uint8_t *p, const struct flow *f, const struct segment *s) {
    static const uint8_t syn[] = {2, 4, 5, 0xB4, 4, 2, 8, 10};
    static const uint8_t scale[] = {1, 3, 3, 7};
    static const uint8_t plain[] = {1, 1, 8, 10};
    bool opening = s->flags & SYN;
    size_t before = opening ? sizeof syn : sizeof plain;
    memcpy(p, opening ? syn : plain, before);
    put32(p + before, f->stamp[s->from]);
    put32(p + before + 4, f->stamp[!s->from]);
    if (opening)
        memcpy(p + before + 8, scale, sizeof scale);
    return before + 8 + (opening ? sizeof scale : 0);
}

/* Writes a TCP header without its checksum, which needs the length of the whole segment. Returns
 * the length of the header in bytes. */
static size_t put_tcp(uint8_t *tcp, const struct flow *f, uint32_t number,
                      const struct segment *s) {
    uint32_t client = 1024 + number % 60013, server = 443;
    put16(tcp, s->from ? server : client);
    put16(tcp + 2, s->from ? client : server);
    put32(tcp + 4, s->sequence);
    put32(tcp + 8, s->flags & ACK ? s->acknowledgment : 0);
    size_t length = TCP + put_options(tcp + TCP, f, s);
    tcp[12] = (uint8_t)(length / 4 << 4);
    tcp[13] = s->flags;
    put16(tcp + 14, s->flags & SYN ? 64240 : 501 + number % 1000);
    return length;
}

/* Writes a pcap record, cut to the snap length, and advances the clock by half to one and a half
 * times the mean gap. */
static void write_record(struct writer *w, const uint8_t *frame, uint32_t length) {
    uint32_t captured = length < w->plan->snaplen ? length : w->plan->snaplen;
    uint32_t header[4] = {START_SECONDS + (uint32_t)(w->time_ns / 1000000000),
                          (uint32_t)(w->time_ns % 1000000000 / 1000), captured, length};
    if (fwrite(header, sizeof header, 1, w->file) != 1 || fwrite(frame, captured, 1, w->file) != 1)
        err(1, "writing %s", w->plan->path);
    w->written++;
    w->time_ns += w->plan->gap_ns / 2 + draw(w, w->plan->gap_ns + 1);
}

/* Writes a frame. The buffer is static and its payload is never written, so that it stays zero; the
 * end of the headers must be cleared again for the next, shorter header. */
static void write_segment(struct writer *w, uint32_t number, const struct segment *s) {
    static const uint8_t link[ETHERNET] = {0, 0, 0x5E, 0, 0x53, 1, 0, 0, 0x5E, 0, 0x53, 2, 8, 0};
    static uint8_t frame[FRAME_MAX];
    struct flow *f = &w->flows[number];
    uint8_t *ip = frame + ETHERNET, *tcp = ip + IPV4;
    memset(frame, 0, ETHERNET + IPV4 + 60);
    memcpy(frame, link, sizeof link);
    f->stamp[s->from] = number * 977 + (uint32_t)(w->time_ns / 1000000);
    size_t header = put_tcp(tcp, f, number, s);
    put_ipv4(ip, number, s, f->ip_id[s->from]++, (uint16_t)(IPV4 + header + s->payload));
    uint32_t pseudo = sum16(ip + 12, 8, 6 + (uint32_t)header + s->payload);
    put16(tcp + 16, fold(sum16(tcp, header, pseudo)));
    write_record(w, frame, (uint32_t)(ETHERNET + IPV4 + header + s->payload));
    memset(tcp + header, 0, 40);
}

/* Returns the initial sequence number of a side, which depends on the flow alone. */
static uint32_t isn(uint32_t number, int from) {
    return number * 2654435761U + (from ? 0x5A5A5A : 1);
}

/* Writes a segment of the data sender at a stream offset. write_ack() writes the ACK of one. */
static void write_data(struct writer *w, uint32_t number, uint32_t offset, uint16_t payload,
                       uint8_t flags) {
    int from = sender_of(number);
    struct segment s = {from, isn(number, from) + 1 + offset, isn(number, !from) + 1, payload,
                        flags};
    write_segment(w, number, &s);
}

static void write_ack(struct writer *w, uint32_t number, uint32_t offset, uint8_t flags) {
    int from = !sender_of(number);
    struct segment s = {from, isn(number, from) + 1, isn(number, !from) + 1 + offset, 0, flags};
    write_segment(w, number, &s);
}

/* Writes the next of the three packets of the handshake. */
static void shake_hands(struct writer *w, uint32_t number) {
    struct flow *f = &w->flows[number];
    int from = f->stage == SYN_SEEN; /* the SYN-ACK is the server's */
    bool last = f->stage == SYN_ACK_SEEN;
    struct segment s = {from, isn(number, from) + last, isn(number, !from) + 1, 0, ACK};
    if (!last)
        s.flags = from ? SYN | ACK : SYN;
    write_segment(w, number, &s);
    f->stage++;
}

/* Writes the next packets of an open flow: an ACK if --ack-every segments are outstanding, a
 * retransmission in 1% of the turns, else a train of one or two segments. */
static void transfer(struct writer *w, uint32_t number) {
    struct flow *f = &w->flows[number];
    if (f->next - f->acked >= w->plan->ack_every * MSS) {
        f->acked = f->next;
        write_ack(w, number, f->acked, ACK);
        return;
    }
    if (f->next > f->acked && draw(w, 100) == 0) {
        write_data(w, number, f->next - MSS, MSS, ACK | PSH);
        return;
    }
    for (uint32_t train = 1 + draw(w, 2); train > 0 && w->written < w->plan->packets; train--) {
        write_data(w, number, f->next, MSS, ACK);
        f->next += MSS;
    }
}

/* Writes the next packet of an orderly close: FIN, FIN with ACK, ACK. */
static void close_flow(struct writer *w, uint32_t number) {
    struct flow *f = &w->flows[number];
    if (f->stage == OPEN)
        write_data(w, number, f->next, 0, FIN | ACK);
    if (f->stage == CLOSING)
        write_ack(w, number, f->next + 1, FIN | ACK);
    if (f->stage == FIN_SEEN) {
        int from = sender_of(number);
        struct segment s = {from, isn(number, from) + 2 + f->next, isn(number, !from) + 2, 0, ACK};
        write_segment(w, number, &s);
    }
    f->stage++;
}

/* Returns the number of flows that may send: it grows linearly over the first quarter. */
static uint32_t flows_started(const struct writer *w) {
    uint64_t started = 1 + w->written * w->plan->flows * 4 / w->plan->packets;
    return started < w->plan->flows ? (uint32_t)started : w->plan->flows;
}

/* Writes open flows in random order until the packets that closing needs are left, then closes four
 * flows in five in turn. If a flow has not completed its handshake by then, it does so first. */
static void write_packets(struct writer *w) {
    uint64_t closing = (uint64_t)w->plan->flows * 12 / 5; /* three packets of four flows in five */
    uint64_t open_until =
        w->plan->packets > 4 * closing ? w->plan->packets - closing : w->plan->packets * 3 / 4;
    while (w->written < open_until) {
        uint32_t number = draw(w, flows_started(w));
        if (w->flows[number].stage < OPEN)
            shake_hands(w, number);
        else
            transfer(w, number);
    }
    for (uint32_t turn = 0; w->written < w->plan->packets; turn = (turn + 1) % w->plan->flows) {
        uint8_t stage = w->flows[turn].stage;
        if (stage < OPEN)
            shake_hands(w, turn);
        else if (stage < CLOSED && turn % 5 != 0)
            close_flow(w, turn);
        else
            transfer(w, turn);
    }
}

/* Writes the file header (little-endian pcap with microseconds) and all packets. The random numbers
 * start from a constant, so that two runs write the same bytes. */
static void write_capture(const struct plan *plan) {
    struct writer w = {.plan = plan, .random = 0x9E3779B97F4A7C15ULL};
    const uint32_t header[6] = {0xA1B2C3D4, 4 << 16 | 2, 0, 0, plan->snaplen, 1};
    w.flows = calloc(plan->flows, sizeof *w.flows);
    w.file = fopen(plan->path, "wb");
    if (!w.flows || !w.file)
        err(1, "opening %s", plan->path);
    setvbuf(w.file, NULL, _IOFBF, 1 << 20);
    if (fwrite(header, sizeof header, 1, w.file) != 1)
        err(1, "writing %s", plan->path);
    write_packets(&w);
    if (fclose(w.file) != 0)
        err(1, "writing %s", plan->path);
    free(w.flows);
}

/* Returns an option's number. If it is not in [least, most], the program exits with status 2. */
static uint64_t number_of(const char *text, uint64_t least, uint64_t most) {
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    if (*end || value < least || value > most)
        errx(2, "%s: a number from %llu to %llu is needed", text, (unsigned long long)least,
             (unsigned long long)most);
    return value;
}

/* Parses the options. If one is unknown, getopt_long() has printed it, and the exit status is 2. */
int main(int argc, char **argv) {
    static const struct option options[] = {
        {"packets", required_argument, NULL, 'p'},   {"flows", required_argument, NULL, 'f'},
        {"snaplen", required_argument, NULL, 's'},   {"gap", required_argument, NULL, 'g'},
        {"ack-every", required_argument, NULL, 'a'}, {NULL, 0, NULL, 0},
    };
    struct plan plan = {
        .packets = 1000000, .flows = 1000, .snaplen = 96, .ack_every = 2, .gap_ns = 2000};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        switch (option) {
        case 'p': plan.packets = number_of(optarg, 1, 1000000000); break;
        case 'f': plan.flows = (uint32_t)number_of(optarg, 1, 10000000); break;
        case 's': plan.snaplen = (uint32_t)number_of(optarg, 66, 65535); break;
        case 'g': plan.gap_ns = (uint32_t)number_of(optarg, 1, 1000000000); break;
        case 'a': plan.ack_every = (uint32_t)number_of(optarg, 1, 1000); break;
        default: return 2;
        }
    if (optind != argc - 1)
        errx(2, "usage: make_captures [--packets N] [--flows N] [--snaplen N] [--ack-every N] "
                "[--gap NS] FILE");
    plan.path = argv[optind];
    write_capture(&plan);
    return 0;
}
