/* SPDX-License-Identifier: Apache-2.0 */
/* The file (or pipe) of a test, in place of the pattern. Its checksum is BLAKE2b of 256 bits:
 * `b2sum -l 256 FILE` says the same. */
#ifndef WIRETALE_CONTENT_H
#define WIRETALE_CONTENT_H

#include <sodium.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define CONTENT_DIGEST_HEX 65

/* Where a receiver puts files. */
struct content_target {
    const char *folder; /* NULL: nowhere, the bytes are only summed up */
    bool to_stdout;
    bool overwrite; /* a regular file of that name is replaced; else it is refused */
};

struct content {
    bool is_used, to_stdout, overwrite;
    int fd, folder; /* of the file; of the folder that it is written into, else -1 */
    uint64_t left;  /* bytes of a regular file not read yet */
    bool left_known;
    uint64_t bytes;    /* so far */
    uint64_t next;     /* offset that would be in order */
    bool in_order;     /* so far: the digest is right without reading the file again */
    _Atomic int error; /* errno of the first write or read that failed */
    char name[241], temporary[260];
    crypto_generichash_state digest;
    char own[CONTENT_DIGEST_HEX], peer[CONTENT_DIGEST_HEX]; /* "": unknown */
    bool kept;                                              /* under its name */
    bool has_settled;
};

/* The sender's end: "-" is standard input. False: said in `why`. */
bool content_open(struct content *content, const char *path, char *error, size_t room);
/* The next bytes; 0 at the end. */
size_t content_read(struct content *content, uint8_t *bytes, size_t count);

/* The receiver's end. Refuses a name that leaves the folder or that is taken there. */
bool content_receive(struct content *content, const struct content_target *target, const char *name,
                     uint32_t run, char *error, size_t room);
/* Removes what receivers of this user that were killed left in the folder. Those that are being
 * written are locked. */
void content_sweep(const char *folder);
/* Bytes of the file, that came for the first time. */
void content_take(struct content *content, uint64_t offset, const uint8_t *bytes, size_t count);

void content_finish_sum(struct content *content);
/* Gives the file its name if it is `complete` and its checksum is the sender's; else removes it.
 * The file and its folder are on the disk then, or `error` is set. */
void content_settle(struct content *content, bool complete);
void content_end(struct content *content);

#endif
