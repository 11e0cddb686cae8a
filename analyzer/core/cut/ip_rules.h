/* SPDX-License-Identifier: Apache-2.0 */
/* The draft of an anonymized packet, and the rules for IP and the headers inside it. Each rule
 * checks that its bytes were captured; bytes without a rule stay 0. */
#ifndef WIRETALE_IP_RULES_H
#define WIRETALE_IP_RULES_H

#include "cut/address_map.h"
#include "decode/decode.h"

struct draft {
    struct address_map *map;
    const uint8_t *in; /* the packet, `captured` bytes */
    uint8_t *out;      /* as many; NULL: only `kept` is computed */
    uint32_t captured;
    uint32_t kept; /* offset behind the last byte that a rule kept */
};

static inline bool has(const struct draft *draft, uint64_t at, uint32_t size) {
    return at + size <= draft->captured;
}

/* Keeps the bytes from `at` that were captured, at most `size`. Returns how many. */
static inline uint32_t put(struct draft *draft, uint32_t at, uint32_t size) {
    uint32_t left = at < draft->captured ? draft->captured - at : 0;
    size = left < size ? left : size;
    if (size && at + size > draft->kept)
        draft->kept = at + size;
    if (size && draft->out)
        memcpy(draft->out + at, draft->in + at, size);
    return size;
}

/* Sets kept bytes to 0, as far as they were captured. */
static inline void clear(struct draft *draft, uint32_t at, uint32_t size) {
    if (at < draft->captured && draft->out)
        memset(draft->out + at, 0, has(draft, at, size) ? size : draft->captured - at);
}

/* Writes the pseudonym of an address of 4, 6 or 16 bytes; one that was cut becomes 0. */
static inline void put_address(struct draft *draft, uint32_t at, uint32_t size) {
    if (put(draft, at, size) < size)
        clear(draft, at, size);
    else if (draft->out)
        address_map_replace(draft->map, draft->out + at, size);
}

/* Writes a header of NEXT_IPV4, NEXT_IPV6, NEXT_TRANSPORT or NEXT_ICMP. */
void put_ip_step(struct draft *draft, const struct decode_step *step);
/* Writes the bytes behind an ICMP header: the packet that an error quotes, or the addresses of
 * neighbor discovery. */
void put_icmp_body(struct draft *draft, const struct decode_step *icmp);
/* Returns the offset behind a transport header that decoding did not pass; step->offset for other
 * headers. It can exceed the captured bytes. */
uint32_t transport_end(const struct draft *draft, const struct decode_step *step);
/* Computes the checksum of header `i`, if it has one, from the bytes of the output. */
void put_checksum(struct draft *draft, const struct decode_step *steps, size_t i);

#endif
