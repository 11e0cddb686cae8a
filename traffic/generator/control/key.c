/* SPDX-License-Identifier: Apache-2.0 */
#include "control/key.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transfer/program_name.h"

static bool digest_file(struct key *key, int fd) {
    unsigned char bytes[KEY_FILE_MOST + 1];
    size_t have = 0;
    ssize_t got;
    while (have < sizeof bytes && (got = read(fd, bytes + have, sizeof bytes - have)) > 0)
        have += (size_t)got;
    bool right = have >= KEY_BYTES && have <= KEY_FILE_MOST;
    if (right)
        crypto_generichash(key->bytes, KEY_BYTES, bytes, have, NULL, 0);
    sodium_memzero(bytes, sizeof bytes);
    return right;
}

bool key_read(struct key *key, const char *path) {
    struct stat status;
    int fd = sodium_init() < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool right = false;
    if (fd < 0 || fstat(fd, &status))
        program_say("--key %s: %s", path, strerror(errno));
    else if (!S_ISREG(status.st_mode))
        program_say("--key %s: expected a regular file", path);
    else if (status.st_mode & (S_IROTH | S_IWOTH | S_IWGRP))
        program_say("--key %s: others may read or change it: chmod 600 %s", path, path);
    else if (!(right = digest_file(key, fd)))
        program_say("--key %s: expected 32 to 4096 bytes: head -c 32 /dev/urandom > %s", path,
                    path);
    if (fd >= 0)
        close(fd);
    return right;
}

void key_make_nonce(char nonce[NONCE_HEX]) {
    unsigned char bytes[NONCE_BYTES];
    if (sodium_init() < 0)
        memset(bytes, 0, sizeof bytes); /* never: it fails where there is no randomness at all */
    else
        randombytes_buf(bytes, sizeof bytes);
    sodium_bin2hex(nonce, NONCE_HEX, bytes, sizeof bytes);
}

bool key_is_nonce(const char *text) {
    return strlen(text) == NONCE_HEX - 1 && strspn(text, "0123456789abcdef") == NONCE_HEX - 1;
}

void key_prove(const struct key *key, enum key_side side, const char *sender_nonce,
               const char *receiver_nonce, char proof[NONCE_HEX]) {
    static const char *const labels[] = {"wiretale sender  ", "wiretale receiver"};
    unsigned char digest[KEY_BYTES];
    crypto_generichash_state state;
    crypto_generichash_init(&state, key->bytes, KEY_BYTES, sizeof digest);
    crypto_generichash_update(&state, (const unsigned char *)labels[side], strlen(labels[side]));
    crypto_generichash_update(&state, (const unsigned char *)sender_nonce, NONCE_HEX - 1);
    crypto_generichash_update(&state, (const unsigned char *)receiver_nonce, NONCE_HEX - 1);
    crypto_generichash_final(&state, digest, sizeof digest);
    sodium_bin2hex(proof, NONCE_HEX, digest, sizeof digest);
}

bool key_is_proof(const char *proof, const char *expected) {
    return key_is_nonce(proof) && !sodium_memcmp(proof, expected, NONCE_HEX - 1);
}
