/* SPDX-License-Identifier: Apache-2.0 */
#include "index/records.h"

#include <errno.h>
#include <stdlib.h>

#include "buffer/pcapng.h"
#include "buffer/record.h"

#define BLOCK_LEAST     12u
#define PCAP_HEADER     24u
#define PCAP_MAGIC_US   0xA1B2C3D4u
#define RESOLUTION_US   6u
#define RESOLUTION_NS   9u
#define IF_TSOFFSET     14u
#define POWER_OF_TWO    0x80u
#define DIGITS_MOST     19u
#define BITS_MOST       63u
#define STATISTICS_BODY 20u

bool records_open(struct records *records, int fd) {
    *records = (struct records){0};
    if (!window_open(&records->window, fd))
        return false;
    const uint8_t *first = window_at(&records->window, 0, PCAP_HEADER);
    uint32_t magic = first ? get_u32(first) : 0;
    records->classic = magic == PCAP_MAGIC_NS || magic == PCAP_MAGIC_US;
    records->classic_resolution = magic == PCAP_MAGIC_NS ? RESOLUTION_NS : RESOLUTION_US;
    bool known = records->classic ||
                 (magic == BLOCK_SECTION && get_u32(first + 8) == PCAPNG_BYTE_ORDER_MAGIC);
    if (!known) {
        records_close(records);
        errno = EPROTO;
    }
    return known;
}

void records_close(struct records *records) {
    window_close(&records->window);
    free(records->interfaces);
    records->interfaces = NULL;
}

const uint8_t *record_option(const uint8_t *at, const uint8_t *end, unsigned code, size_t *size) {
    while (end - at >= 4) {
        uint32_t head = get_u32(at);
        size_t length = head >> 16, step = (length + 3) & ~(size_t)3;
        at += 4;
        if (!head || step > (size_t)(end - at))
            return NULL;
        *size = length;
        if ((head & 0xFFFF) == code)
            return at;
        at += step;
    }
    return NULL;
}

/* Returns the time in ns; INT64_MAX if it does not fit. */
static int64_t time_of(uint64_t ticks, const struct record_interface *interface) {
    unsigned digits = interface->resolution & ~POWER_OF_TWO;
    unsigned __int128 ns = ticks;
    if (interface->resolution & POWER_OF_TWO)
        ns = digits > BITS_MOST ? 0 : (ns * RECORD_SECOND_NS) >> digits;
    else if (digits > DIGITS_MOST)
        ns = 0;
    else
        for (; digits != RESOLUTION_NS; digits += digits < RESOLUTION_NS ? 1 : -1)
            ns = digits < RESOLUTION_NS ? ns * 10 : ns / 10;
    if (ns > INT64_MAX)
        return INT64_MAX;
    int64_t sum;
    return __builtin_add_overflow((int64_t)ns, interface->offset_ns, &sum) ? INT64_MAX : sum;
}

static bool add_interface(struct records *records, struct record_interface interface) {
    if (records->interface_count == RECORD_INTERFACES_MAX)
        return false;
    if (records->interface_count == records->interface_room) {
        uint32_t room = 2 * records->interface_room + 4;
        struct record_interface *interfaces =
            realloc(records->interfaces, room * sizeof *interfaces);
        if (!interfaces)
            return false;
        records->interfaces = interfaces;
        records->interface_room = room;
    }
    interface.number = RECORD_UNNUMBERED;
    records->interfaces[records->interface_count++] = interface;
    return true;
}

static enum record_kind take_interface(struct records *records, const struct record *record) {
    if (record->size < 20)
        return RECORD_END;
    const uint8_t *options = record->bytes + 16, *end = record->bytes + record->size - 4;
    struct record_interface interface = {.offset = record->offset,
                                         .link_type = (uint16_t)get_u32(record->bytes + 8),
                                         .resolution = RESOLUTION_US};
    size_t size;
    const uint8_t *value = record_option(options, end, IF_TSRESOL, &size);
    if (value && size == 1)
        interface.resolution = *value;
    value = record_option(options, end, IF_TSOFFSET, &size);
    if (value && size == 8) {
        int64_t seconds;
        memcpy(&seconds, value, sizeof seconds);
        if (__builtin_mul_overflow(seconds, (int64_t)RECORD_SECOND_NS, &interface.offset_ns))
            interface.offset_ns = 0;
    }
    return add_interface(records, interface) ? RECORD_INTERFACE : RECORD_END;
}

static enum record_kind take_packet(const struct records *records, struct record *record) {
    if (record->size < RECORD_EPB_FIXED)
        return RECORD_END;
    const uint8_t *at = record->bytes;
    record->interface = get_u32(at + 8);
    record->captured = get_u32(at + 20);
    record->length = get_u32(at + 24);
    record->data = at + 28;
    if (record->interface >= records->interface_count ||
        record->captured > record->size - RECORD_EPB_FIXED)
        return RECORD_END;
    const struct record_interface *interface = &records->interfaces[record->interface];
    record->link_type = interface->link_type;
    record->time_ns = time_of((uint64_t)get_u32(at + 12) << 32 | get_u32(at + 16), interface);
    return RECORD_PACKET;
}

static enum record_kind take_block(struct records *records, struct record *record) {
    switch (get_u32(record->bytes)) {
    case RECORD_PACKET_TYPE: return take_packet(records, record);
    case BLOCK_INTERFACE: return take_interface(records, record);
    case BLOCK_STATISTICS:
        return record->size < STATISTICS_BODY + 4 ? RECORD_END : RECORD_STATISTICS;
    case BLOCK_SECTION:
        if (record->size < 28 || get_u32(record->bytes + 8) != PCAPNG_BYTE_ORDER_MAGIC)
            return RECORD_END;
        records->sections++;
        records->interface_count = 0;
        return RECORD_SECTION;
    default: return RECORD_OTHER;
    }
}

static enum record_kind next_block(struct records *records, struct record *record) {
    const uint8_t *head = window_at(&records->window, records->at, BLOCK_LEAST);
    record->size = head ? get_u32(head + 4) : 0;
    if (record->size < BLOCK_LEAST || record->size % 4)
        return RECORD_END;
    record->bytes = window_at(&records->window, records->at, record->size);
    if (!record->bytes || get_u32(record->bytes + record->size - 4) != record->size)
        return RECORD_END;
    return take_block(records, record);
}

/* The header of a classic file counts as a section with one interface. */
static enum record_kind begin_classic(struct records *records, struct record *record) {
    record->bytes = window_at(&records->window, 0, PCAP_HEADER);
    record->size = PCAP_HEADER;
    if (!record->bytes)
        return RECORD_END;
    records->sections = 1;
    records->interface_count = 0;
    struct record_interface interface = {.link_type = (uint16_t)get_u32(record->bytes + 20),
                                         .resolution = records->classic_resolution};
    return add_interface(records, interface) ? RECORD_SECTION : RECORD_END;
}

static enum record_kind next_classic(struct records *records, struct record *record) {
    const uint8_t *head = window_at(&records->window, records->at, RECORD_PCAP_HEADER);
    if (!head || !records->interface_count)
        return RECORD_END;
    uint64_t unit = records->classic_resolution == RESOLUTION_NS ? 1 : 1000;
    uint64_t seconds = get_u32(head), fraction = get_u32(head + 4) * unit;
    record->captured = get_u32(head + 8);
    record->length = get_u32(head + 12);
    if (fraction >= RECORD_SECOND_NS || record->captured > WINDOW_MOST - RECORD_PCAP_HEADER)
        return RECORD_END;
    record->size = RECORD_PCAP_HEADER + record->captured;
    record->bytes = window_at(&records->window, records->at, record->size);
    if (!record->bytes)
        return RECORD_END;
    record->data = record->bytes + RECORD_PCAP_HEADER;
    record->interface = 0;
    record->link_type = records->interfaces[0].link_type;
    record->time_ns = (int64_t)(seconds * RECORD_SECOND_NS + fraction);
    return RECORD_PACKET;
}

enum record_kind records_next(struct records *records, struct record *record) {
    *record = (struct record){.offset = records->at};
    if (!records->classic)
        record->kind = next_block(records, record);
    else if (!records->at)
        record->kind = begin_classic(records, record);
    else
        record->kind = next_classic(records, record);
    if (record->kind != RECORD_END)
        records->at += record->size;
    return record->kind;
}
