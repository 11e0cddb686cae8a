/* SPDX-License-Identifier: Apache-2.0 */
/* The ClientHello of a connection, decrypted from the client's Initials (RFC 9001 section 5, RFC
 * 9369), and the error with which the server closes in its own.
 *
 * The keys of Initials come from a salt of the version and the connection ID that the client chose,
 * so that anyone on the path can read them. Parts of the ClientHello are placed by their offset, in
 * any order. All of it is hostile: a packet that does not decrypt is left out, and one whose frames
 * end early is read up to there. */
#ifndef WIRETALE_QUIC_HELLO_H
#define WIRETALE_QUIC_HELLO_H

#include "base/pool.h"
#include "quic/quic_header.h"

#define QUIC_HELLO_MAX 4096u /* bytes of a ClientHello that are kept */

struct quic_hello;

/* Takes an Initial whose bytes are all at hand. `*hello` is NULL until one was decrypted; without
 * memory it stays so. */
void quic_hello_take(struct quic_hello **hello, const struct quic_header *header,
                     const uint8_t *bytes, struct pool *pool);

/* Takes the frames of one that was decrypted. */
void quic_hello_take_frames(struct quic_hello **hello, const uint8_t *plain, size_t size,
                            struct pool *pool);

/* Reads the error of CONNECTION_CLOSE in an Initial of the server whose bytes are all at hand.
 * `first` is the connection ID that the client chose for it. Returns false without one. */
bool quic_read_close(const struct quic_header *header, const uint8_t *bytes,
                     const struct quic_id *first, uint64_t *error);

/* Returns whether no more bytes can come that are kept. */
bool quic_hello_is_whole(const struct quic_hello *hello);

/* Returns the bytes of the ClientHello behind the header of its message up to the first that is
 * missing, and sets `*bytes`; 0 if it is none. `hello` may be NULL. */
size_t quic_hello_body(const struct quic_hello *hello, const uint8_t **bytes);

/* Frees it; it may be NULL. */
void quic_hello_free(struct quic_hello *hello, struct pool *pool);

#endif
