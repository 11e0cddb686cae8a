/* SPDX-License-Identifier: Apache-2.0 */
/* The lines before a transfer: both ends greet with a nonce, and if the receiver has a key, each
 * end proves that it has the same one (docs/traffic.md, Control protocol). */
#ifndef WIRETALE_HANDSHAKE_H
#define WIRETALE_HANDSHAKE_H

#include "control/control.h"

#define KEY_BYTES      32u
#define NONCE_BYTES    32u
#define NONCE_HEX_SIZE (2 * NONCE_BYTES + 1) /* with the terminating 0 */
#define MIN_KEY_FILE   32u                   /* bytes */
#define MAX_KEY_FILE   4096u

struct key {
    uint8_t bytes[KEY_BYTES]; /* BLAKE2b-256 of the key file */
};

/* Keys of the blocks of a run, one for each direction, so that a block cannot be reflected. */
struct data_keys {
    bool is_known;
    uint8_t bytes[2][KEY_BYTES]; /* forward, reverse */
};

enum key_side { KEY_OF_SENDER, KEY_OF_RECEIVER };

/* Each kind of line uses its own members; the others must be absent from the line. */
enum handshake_kind { HANDSHAKE_HELLO, HANDSHAKE_PROOF, HANDSHAKE_REFUSAL };

struct handshake {
    char nonce[NONCE_HEX_SIZE]; /* hello: 64 hexadecimal digits, new for each connection */
    uint64_t has_key;           /* hello: 1 if this end has a key */
    char proof[NONCE_HEX_SIZE]; /* proof */
    uint64_t is_busy;           /* refusal: 1 if a later attempt may succeed */
    char text[200];             /* refusal: the reason, printed by the sender */
};

/* Reads `line` as a line of `kind`. Returns NULL, or the reason why it is not one. */
const char *handshake_read(struct handshake *into, enum handshake_kind kind, const char *line);
/* Returns whether the line was handed to the kernel within a second. */
bool handshake_send(struct control *control, enum handshake_kind kind,
                    const struct handshake *from);
bool handshake_refuse(struct control *control, bool busy, const char *error);

/* Reads a regular file of 32 to 4096 bytes, which others must not be able to read or write. If that
 * is impossible, exits with EXIT_IO and one line on standard error. */
void key_read(struct key *key, const char *path);

/* Fills `nonce` with 64 random hexadecimal digits. */
void key_make_nonce(char nonce[NONCE_HEX_SIZE]);

/* Keyed BLAKE2b-256 of a label and both nonces, in hexadecimal. The label differs by side, so that
 * a proof cannot be reflected to the end that made it. */
void key_prove(const struct key *key, enum key_side side, const char *sender_nonce,
               const char *receiver_nonce, char proof[NONCE_HEX_SIZE]);
/* Derives the keys of the blocks from the key and both nonces: recorded blocks are of no later use.
 */
void key_derive(const struct key *key, const char *sender_nonce, const char *receiver_nonce,
                struct data_keys *keys);
/* Compares in constant time. */
bool key_proof_matches(const char *proof, const char *expected);

#endif
