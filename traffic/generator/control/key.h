/* SPDX-License-Identifier: Apache-2.0 */
/* A key that both ends have keeps strangers from making a receiver work: each end answers the
 * other's challenge with keyed BLAKE2b (libsodium's crypto_generichash) of both. */
#ifndef WIRETALE_KEY_H
#define WIRETALE_KEY_H

#include <stdbool.h>
#include <stdint.h>

#define KEY_BYTES     32u
#define NONCE_BYTES   32u
#define NONCE_HEX     (2 * NONCE_BYTES + 1)
#define KEY_FILE_MOST 4096u

enum key_side { KEY_OF_SENDER, KEY_OF_RECEIVER };

struct key {
    uint8_t bytes[KEY_BYTES];
};

/* Reads a file of 32 to 4096 bytes that only its owner (or group) may read; all of it counts, and
 * so does a line feed at its end. False: said on stderr. */
bool key_read(struct key *key, const char *path);

void key_make_nonce(char nonce[NONCE_HEX]);
bool key_is_nonce(const char *text);

/* The proof of having the key, in hexadecimal. No side can hand back what the other said. */
void key_prove(const struct key *key, enum key_side side, const char *sender_nonce,
               const char *receiver_nonce, char proof[NONCE_HEX]);
/* In constant time. */
bool key_is_proof(const char *proof, const char *expected);

#endif
