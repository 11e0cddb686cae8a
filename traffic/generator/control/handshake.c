/* SPDX-License-Identifier: Apache-2.0 */
/* Challenge and response with a shared key: each end sends a nonce, then keyed BLAKE2b-256
 * (RFC 7693, libsodium's crypto_generichash) of both nonces. The proof keeps strangers from
 * starting transfers. Keys for the codes of authenticated blocks are derived in the same way;
 * blocks are never encrypted. The key file is hashed once and its bytes are erased from memory.
 *
 * A nonce is new for each connection, so a recorded proof is of no use later. Without a key on
 * either side the greeting only shows that both ends speak the same protocol. */
#include "control/handshake.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/utf8.h"

static const struct line_field fields[] = {
    {"nonce", offsetof(struct handshake, nonce), FIELD_TEXT, NONCE_HEX_SIZE, NULL},
    {"key", offsetof(struct handshake, has_key), FIELD_NUMBER, 1, NULL},
    {"proof", offsetof(struct handshake, proof), FIELD_TEXT, NONCE_HEX_SIZE, NULL},
    {"busy", offsetof(struct handshake, is_busy), FIELD_NUMBER, 1, NULL},
    {"text", offsetof(struct handshake, text), FIELD_TEXT, 200, NULL},
};

static const struct {
    const char *word;
    size_t first, count; /* of `fields` */
    const char *expected;
} kinds[] = {
    [HANDSHAKE_HELLO] = {"wiretale/1", 0, 2, "expected a greeting of protocol wiretale/1"},
    [HANDSHAKE_PROOF] = {"proof", 2, 1, "expected a proof of the key"},
    [HANDSHAKE_REFUSAL] = {"refused", 3, 2, "expected a refusal"},
};

static bool is_nonce(const char *text) {
    return strlen(text) == NONCE_HEX_SIZE - 1 &&
           strspn(text, "0123456789abcdef") == NONCE_HEX_SIZE - 1;
}

/* A nonce must have its full length, because key_prove() hashes a fixed number of its bytes. The
 * text of a refusal is shown on a terminal. */
const char *handshake_read(struct handshake *into, enum handshake_kind kind, const char *line) {
    *into = (struct handshake){0};
    if (!line_is(line, kinds[kind].word))
        return kinds[kind].expected;
    const char *error = line_read(line, fields + kinds[kind].first, kinds[kind].count, into);
    if (!error && kind == HANDSHAKE_HELLO && !is_nonce(into->nonce))
        return "the nonce must have 64 hexadecimal digits";
    char text[sizeof into->text];
    memcpy(text, into->text, sizeof text);
    utf8_copy_printable(into->text, sizeof into->text, text, sizeof text);
    return error;
}

bool handshake_send(struct control *control, enum handshake_kind kind,
                    const struct handshake *from) {
    char line[LINE_SIZE];
    line_write(line, kinds[kind].word, fields + kinds[kind].first, kinds[kind].count, from);
    return control_send(control, "%s", line);
}

bool handshake_refuse(struct control *control, bool busy, const char *error) {
    struct handshake refusal = {.is_busy = busy};
    snprintf(refusal.text, sizeof refusal.text, "%s", error);
    return handshake_send(control, HANDSHAKE_REFUSAL, &refusal);
}

/* Hashes all bytes of the file, a line feed at its end included. Returns false if it is too short
 * or too long. */
static bool hash_file(struct key *key, int fd) {
    unsigned char bytes[MAX_KEY_FILE + 1];
    size_t have = 0;
    ssize_t got;
    while (have < sizeof bytes && (got = read(fd, bytes + have, sizeof bytes - have)) > 0)
        have += (size_t)got;
    bool valid = have >= MIN_KEY_FILE && have <= MAX_KEY_FILE;
    if (valid)
        crypto_generichash(key->bytes, KEY_BYTES, bytes, have, NULL, 0);
    sodium_memzero(bytes, sizeof bytes);
    return valid;
}

/* The group may read the file, but not write it, so that a service can share a key. */
void key_read(struct key *key, const char *path) {
    struct stat status;
    /* O_NONBLOCK, because opening a FIFO must not wait for a writer. */
    int fd = sodium_init() < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &status))
        fail(EXIT_IO, "--key %s: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        fail(EXIT_IO, "--key %s: expected a regular file", path);
    if (status.st_mode & (S_IROTH | S_IWOTH | S_IWGRP))
        fail(EXIT_IO, "--key %s: others may read or change it: chmod 600 %s", path, path);
    if (!hash_file(key, fd))
        fail(EXIT_IO, "--key %s: expected 32 to 4096 bytes: head -c 32 /dev/urandom > %s", path,
             path);
    close(fd);
}

void key_make_nonce(char nonce[NONCE_HEX_SIZE]) {
    unsigned char bytes[NONCE_BYTES] = {0};
    if (sodium_init() >= 0) /* fails only on systems without a source of randomness */
        randombytes_buf(bytes, sizeof bytes);
    sodium_bin2hex(nonce, NONCE_HEX_SIZE, bytes, sizeof bytes);
}

/* Keyed BLAKE2b-256. The labels have one length, so that no label with the bytes after it can equal
 * another. */
static void hash_nonces(const struct key *key, const char *label, const char *sender_nonce,
                        const char *receiver_nonce, unsigned char digest[KEY_BYTES]) {
    crypto_generichash_state state;
    crypto_generichash_init(&state, key->bytes, KEY_BYTES, KEY_BYTES);
    crypto_generichash_update(&state, (const unsigned char *)label, strlen(label));
    crypto_generichash_update(&state, (const unsigned char *)sender_nonce, NONCE_HEX_SIZE - 1);
    crypto_generichash_update(&state, (const unsigned char *)receiver_nonce, NONCE_HEX_SIZE - 1);
    crypto_generichash_final(&state, digest, KEY_BYTES);
}

void key_prove(const struct key *key, enum key_side side, const char *sender_nonce,
               const char *receiver_nonce, char proof[NONCE_HEX_SIZE]) {
    static const char *const labels[] = {"wiretale sender  ", "wiretale receiver"};
    unsigned char digest[KEY_BYTES];
    hash_nonces(key, labels[side], sender_nonce, receiver_nonce, digest);
    sodium_bin2hex(proof, NONCE_HEX_SIZE, digest, sizeof digest);
}

void key_derive(const struct key *key, const char *sender_nonce, const char *receiver_nonce,
                struct data_keys *keys) {
    hash_nonces(key, "wiretale forward ", sender_nonce, receiver_nonce, keys->bytes[0]);
    hash_nonces(key, "wiretale reverse ", sender_nonce, receiver_nonce, keys->bytes[1]);
    keys->is_known = true;
}

bool key_proof_matches(const char *proof, const char *expected) {
    return is_nonce(proof) && !sodium_memcmp(proof, expected, NONCE_HEX_SIZE - 1);
}
