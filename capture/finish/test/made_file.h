/* SPDX-License-Identifier: Apache-2.0 */
/* A file as the writing thread makes it, in memory. */
#ifndef WIRETALE_MADE_FILE_H
#define WIRETALE_MADE_FILE_H

#include "buffer/interfaces.h"
#include "buffer/pcapng.h"
#include "buffer/record.h"

struct made_file {
    struct pcapng_buffer bytes;
    size_t head;      /* end of section and interfaces */
    size_t ends[256]; /* of each packet */
    unsigned packets;
};

static inline size_t made_record(uint8_t *to, uint32_t interface, uint64_t time_ns, uint32_t size) {
    static const uint8_t data[2048];
    size_t length = record_epb_size(size, size % 3);
    record_put_epb(to, length, interface, time_ns, size, size + 10, data, size % 3);
    return length;
}

/* Replaces the file, which begins as zeros. */
static inline void make_file(struct made_file *made, unsigned interfaces, unsigned packets) {
    uint8_t record[4096];
    pcapng_free(&made->bytes);
    pcapng_section(&made->bytes, NULL);
    for (unsigned i = 0; i < interfaces; i++) {
        struct description described = {
            .device = i, .link_type = 1, .snaplen = 262144, .name = "eth0"};
        pcapng_interface(&made->bytes, &described);
    }
    made->head = made->bytes.fill;
    for (unsigned i = 0; i < packets; i++) {
        size_t size = made_record(record, i % interfaces, 1000000000 + i, 40 + 7 * i);
        made->bytes.data = realloc(made->bytes.data, made->bytes.fill + size);
        memcpy(made->bytes.data + made->bytes.fill, record, size);
        made->bytes.fill = made->bytes.capacity = made->ends[i] = made->bytes.fill + size;
    }
    made->packets = packets;
}

#endif
