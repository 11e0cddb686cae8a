/* SPDX-License-Identifier: Apache-2.0 */
/* A connection has the place of its hash; another of the same place waits until that one has been
 * judged. So the sample is bounded, and goes on with the traffic. Several reading threads do not
 * keep the order of packets: the two ports of a tap come in blocks of up to 0.1 s, so that a
 * handshake shows one direction first. Therefore a connection waits for SETTLE_ROUNDS. A copy is a
 * segment with the IP ID, numbers and checksum of one of the last few: what a host repeats has
 * another ID. */
#include "mirror/mirror.h"

#include <string.h>

#include "common/clock.h"
#include "common/hash.h"

#define BATCH_PACKETS   512 /* more than one acknowledgment covers */
#define COPY_NS         (20 * NS_PER_MS)
#define MISSES_MOST     64
#define SETTLE_ROUNDS   2 /* more than a second */
#define LEAST_JUDGED    5
#define LEAST_SEGMENTS  100
#define ONE_SIDED_PART  2 /* half of the connections */
#define COPIES_PART     5 /* a fifth of the segments */
#define ETHERNET_HEADER 14
#define TCP             6

enum { TAG_NONE = 1, TAG_VLAN = 2 };
enum { FLAG_SYN = 2, FLAG_RST = 4, FLAG_ACK = 16 };

/* What is needed of a TCP segment. */
struct segment {
    const uint8_t *addresses, *tcp;
    unsigned address_size; /* of one */
    uint16_t id;           /* of IPv4 */
    bool is_tagged;
};

void mirror_open(struct mirror *mirror) {
    memset(mirror, 0, sizeof *mirror);
    pthread_mutex_init(&mirror->lock, NULL);
    hash_seed_fill(mirror->seed, 2);
}

static uint16_t get_16(const uint8_t *at) {
    return (uint16_t)(at[0] << 8 | at[1]);
}

static bool read_ip4(const uint8_t *ip, const uint8_t *end, struct segment *segment) {
    size_t header = (size_t)(ip[0] & 15) * 4;
    bool is_fragment = get_16(ip + 6) & 0x1fff;
    if (end - ip < 20 || header < 20 || ip[9] != TCP || is_fragment)
        return false;
    segment->addresses = ip + 12;
    segment->address_size = 4;
    segment->id = get_16(ip + 4);
    segment->tcp = ip + header;
    return true;
}

static bool read_ip6(const uint8_t *ip, const uint8_t *end, struct segment *segment) {
    if (end - ip < 40 || ip[6] != TCP)
        return false;
    segment->addresses = ip + 8;
    segment->address_size = 16;
    segment->tcp = ip + 40;
    return true;
}

/* Reads a TCP segment behind up to two VLAN tags. */
static bool read_segment(const uint8_t *frame, const uint8_t *end, struct segment *segment) {
    const uint8_t *at = frame + ETHERNET_HEADER;
    *segment = (struct segment){.id = 0};
    for (unsigned tags = 0; tags < 2 && at < end; tags++) {
        uint16_t type = get_16(at - 2);
        if (type != 0x8100 && type != 0x88a8)
            break;
        segment->is_tagged = true;
        at += 4;
    }
    if (end - at < 20)
        return false;
    uint16_t type = get_16(at - 2);
    bool is_tcp = (type == 0x0800 && read_ip4(at, end, segment)) ||
                  (type == 0x86dd && read_ip6(at, end, segment));
    return is_tcp && end - segment->tcp >= 20;
}

/* Returns whether the segment is a copy of a recent one, and remembers it. */
static bool is_copy(struct mirror *mirror, const struct segment *segment, int64_t time_ns) {
    uint64_t hash = hash_bytes(segment->id, mirror->seed, segment->tcp, 20);
    hash = hash_bytes(hash, mirror->seed, segment->addresses, 2 * segment->address_size);
    struct mirror_segment *recent = &mirror->recent[hash % MIRROR_PLACES];
    if (recent->hash == hash && time_ns - recent->time_ns < COPY_NS &&
        mirror->next - recent->number <= MIRROR_RECENT)
        return true;
    *recent = (struct mirror_segment){hash, time_ns, mirror->next++};
    return false;
}

/* Returns the key of the connection, the same for both sides, and sets the side. */
static uint32_t key_of(const struct mirror *mirror, const struct segment *segment, unsigned *side) {
    uint8_t ends[2][18];
    unsigned size = segment->address_size + 2;
    for (unsigned i = 0; i < 2; i++) {
        memcpy(ends[i], segment->addresses + i * segment->address_size, segment->address_size);
        memcpy(ends[i] + segment->address_size, segment->tcp + 2 * i, 2);
    }
    *side = memcmp(ends[0], ends[1], size) > 0;
    uint64_t hash = hash_bytes(0, mirror->seed, ends[*side], size);
    return (uint32_t)hash_bytes(hash, mirror->seed, ends[!*side], size) | 1;
}

static void judge_flow(struct mirror *mirror, struct mirror_flow *flow) {
    bool is_both = flow->packets[0] && flow->packets[1];
    mirror->counts.judged++;
    mirror->counts.one_sided += !is_both;
    mirror->counts.split_tags += is_both && flow->tags[0] != flow->tags[1];
    *flow = (struct mirror_flow){.key = flow->key};
}

/* Returns the place of a connection, or NULL while that is another's. */
static struct mirror_flow *place_of(struct mirror *mirror, uint32_t key) {
    struct mirror_flow *flow = &mirror->flows[(key >> 1) % MIRROR_FLOWS];
    bool is_free = !flow->key || !(flow->packets[0] || flow->packets[1]);
    if (flow->key == key)
        return flow;
    if (!is_free && (flow->is_due || flow->misses++ < MISSES_MOST))
        return NULL;
    *flow = (struct mirror_flow){.key = key};
    return flow;
}

/* A SYN begins again: ports are used again. */
static void take_segment(struct mirror *mirror, const struct segment *segment) {
    unsigned side;
    uint32_t key = key_of(mirror, segment, &side);
    struct mirror_flow *flow = place_of(mirror, key);
    uint8_t flags = segment->tcp[13];
    if (!flow)
        return;
    if (flags & FLAG_SYN && !flow->packets[!side])
        flow->is_beginning = true;
    if (flags & FLAG_RST && !flow->is_due) {
        *flow = (struct mirror_flow){.key = 0}; /* a refusal needs no acknowledgment */
        return;
    }
    flow->packets[side]++;
    flow->tags[side] |= segment->is_tagged ? TAG_VLAN : TAG_NONE;
    bool acknowledges = flags & FLAG_ACK && !(flags & FLAG_SYN);
    if (!flow->is_due && ((flow->is_beginning && acknowledges) ||
                          flow->packets[0] + flow->packets[1] >= BATCH_PACKETS)) {
        flow->is_due = true;
        flow->round = mirror->round;
    }
}

void mirror_settle(struct mirror *mirror) {
    pthread_mutex_lock(&mirror->lock);
    mirror->round++;
    for (struct mirror_flow *flow = mirror->flows; flow < mirror->flows + MIRROR_FLOWS; flow++)
        if (flow->is_due && mirror->round - flow->round >= SETTLE_ROUNDS)
            judge_flow(mirror, flow);
    pthread_mutex_unlock(&mirror->lock);
}

void mirror_take(struct mirror *mirror, const uint8_t *frame, size_t captured, int64_t time_ns,
                 const uint8_t own[6]) {
    struct segment segment;
    if (captured < ETHERNET_HEADER)
        return;
    bool is_foreign = !(frame[0] & 1) && memcmp(frame, own, 6) && memcmp(frame + 6, own, 6);
    pthread_mutex_lock(&mirror->lock);
    mirror->counts.packets++;
    mirror->counts.foreign += is_foreign;
    if (read_segment(frame, frame + captured, &segment)) {
        mirror->counts.segments++;
        if (is_copy(mirror, &segment, time_ns))
            mirror->counts.copies++;
        else
            take_segment(mirror, &segment);
    }
    pthread_mutex_unlock(&mirror->lock);
}

struct mirror_counts mirror_counts_of(struct mirror *mirror) {
    pthread_mutex_lock(&mirror->lock);
    struct mirror_counts counts = mirror->counts;
    pthread_mutex_unlock(&mirror->lock);
    return counts;
}

enum mirror_fault mirror_judge(const struct mirror_counts *before,
                               const struct mirror_counts *now) {
    uint64_t judged = now->judged - before->judged, segments = now->segments - before->segments;
    if (!now->packets)
        return MIRROR_SILENT;
    if (!now->foreign)
        return MIRROR_OWN;
    if (segments >= LEAST_SEGMENTS && (now->copies - before->copies) * COPIES_PART >= segments)
        return MIRROR_COPIES;
    if (judged < LEAST_JUDGED)
        return MIRROR_UNKNOWN;
    if ((now->one_sided - before->one_sided) * ONE_SIDED_PART >= judged)
        return MIRROR_ONE_DIRECTION;
    if ((now->split_tags - before->split_tags) * ONE_SIDED_PART >= judged)
        return MIRROR_TAGS;
    return MIRROR_GOOD;
}

const char *mirror_fault_word(enum mirror_fault fault) {
    static const char *const words[] = {
        [MIRROR_UNKNOWN] = NULL,
        [MIRROR_GOOD] = "none",
        [MIRROR_SILENT] = "silent",
        [MIRROR_OWN] = "own_traffic",
        [MIRROR_ONE_DIRECTION] = "one_direction",
        [MIRROR_COPIES] = "copies",
        [MIRROR_TAGS] = "tags",
    };
    return words[fault];
}

const char *mirror_advice(enum mirror_fault fault) {
    static const char *const advice[] = {
        [MIRROR_SILENT] = "no packet came: at the switch, check that the session is active and "
                          "that this cable is its destination port",
        [MIRROR_OWN] = "only packets of this host, broadcasts and multicasts came: at the switch, "
                       "make this port the destination of the session",
        [MIRROR_ONE_DIRECTION] = "TCP connections show one direction only: at the switch, mirror "
                                 "receive and transmit (`both`), or add the other port of the tap "
                                 "(-i); or the other direction takes another path",
        [MIRROR_COPIES] = "packets come twice: at the switch, mirror one port in both directions, "
                          "or several ports or a VLAN in receive only (`rx`)",
        [MIRROR_TAGS] = "one direction has VLAN tags and the other has none: at the switch, let "
                        "the destination port keep tags (`encapsulation replicate`), or mirror "
                        "ports of one kind",
    };
    return fault < sizeof advice / sizeof *advice ? advice[fault] : NULL;
}
