/* SPDX-License-Identifier: Apache-2.0 */
/* The walk over the bytes of a file that a killed run left. */
#ifndef WIRETALE_CAPTURE_WALK_H
#define WIRETALE_CAPTURE_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "buffer/interfaces.h"

struct recovered_interface {
    uint64_t packets;
    int64_t first_ns, last_ns;
};

/* Result of a walk over the bytes of a file. */
struct recovered {
    uint64_t whole; /* bytes up to the end of the last whole block or record */
    uint64_t packets;
    bool classic;      /* pcap, not pcapng */
    bool closed;       /* statistics follow the last packet: nothing is missing */
    bool ours;         /* begins as the files of this program do */
    int error;         /* errno of a read that ended the walk; ENODATA: the file shrank; 0: none */
    uint64_t readable; /* bytes before the read error */
    uint32_t interfaces;
    struct recovered_interface of[DESCRIPTIONS_MAX];
};

/* Walks the `size` bytes of an open file. */
void recover_walk(struct recovered *found, int fd, uint64_t size);

#endif
