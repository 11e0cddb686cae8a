/* SPDX-License-Identifier: Apache-2.0 */
#include "quic/quic_hello.h"

#include <nettle/aes.h>
#include <nettle/gcm.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "quic/quic_reader.h"

#define PACKET_MAX     2048u /* bytes of an Initial that is decrypted */
#define SALT_BYTES     20u
#define KEY_BYTES      AES128_KEY_SIZE
#define IV_BYTES       GCM_IV_SIZE
#define SECRET_BYTES   SHA256_DIGEST_SIZE
#define TAG_BYTES      GCM_DIGEST_SIZE
#define SAMPLE_AT      4u /* bytes behind the packet number's first */
#define LABEL_MAX      16u
#define MESSAGE_HEADER 4u
#define CLIENT_HELLO   1
#define WORD_BITS      64u

enum frame { PADDING = 0, PING = 1, ACK = 2, ACK_ECN = 3, CRYPTO = 6, CLOSE = 0x1c };

/* The keys of one end, of one version and connection ID. */
struct keys {
    uint8_t packet[KEY_BYTES], header[KEY_BYTES], iv[IV_BYTES];
};

struct quic_hello {
    struct keys keys; /* of the first packet, which stay when the client learns the server's ID */
    uint32_t ready;   /* bytes from the first on that are there */
    uint64_t there[QUIC_HELLO_MAX / WORD_BITS]; /* a bit for each byte */
    uint8_t bytes[QUIC_HELLO_MAX];
};

/* --- keys ------------------------------------------------------------------------------------- */

/* Returns the salt of a version, NULL if it is not known (RFC 9001 section 5.2, RFC 9369 section
 * 3.3.1, drafts 23 and 29 section 5.2). */
static const uint8_t *salt_of(uint32_t version) {
    static const uint8_t first[SALT_BYTES] = {0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34,
                                              0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8,
                                              0x0c, 0xad, 0xcc, 0xbb, 0x7f, 0x0a},
                         second[SALT_BYTES] = {0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6,
                                               0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26,
                                               0x9d, 0xcb, 0xf9, 0xbd, 0x2e, 0xd9},
                         draft_29[SALT_BYTES] = {0xaf, 0xbf, 0xec, 0x28, 0x99, 0x93, 0xd2,
                                                 0x4c, 0x9e, 0x97, 0x86, 0xf1, 0x9c, 0x61,
                                                 0x11, 0xe0, 0x43, 0x90, 0xa8, 0x99},
                         draft_23[SALT_BYTES] = {0xc3, 0xee, 0xf7, 0x12, 0xc7, 0x2e, 0xbb,
                                                 0x5a, 0x11, 0xa7, 0xd2, 0x43, 0x2b, 0xb4,
                                                 0x63, 0x65, 0xbe, 0xf9, 0xf5, 0x02};
    unsigned draft = quic_draft_of(version);
    if (version == QUIC_1 || draft > 32)
        return first;
    if (version == QUIC_2)
        return second;
    if (draft >= 29)
        return draft_29;
    return draft >= 23 ? draft_23 : NULL;
}

static void hmac(const uint8_t *key, size_t key_size, const uint8_t *bytes, size_t size,
                 uint8_t digest[static SECRET_BYTES]) {
    struct hmac_sha256_ctx context;
    hmac_sha256_set_key(&context, key_size, key);
    hmac_sha256_update(&context, size, bytes);
    hmac_sha256_digest(&context, SECRET_BYTES, digest);
}

/* HKDF-Expand-Label (RFC 8446 section 7.1) for at most one block, without a context. */
static void expand(const uint8_t secret[static SECRET_BYTES], const char *prefix, const char *name,
                   uint8_t *key, size_t size) {
    char label[LABEL_MAX + 1];
    uint8_t info[2 + 1 + LABEL_MAX + 2], block[SECRET_BYTES];
    size_t length = (size_t)snprintf(label, sizeof label, "tls13 %s%s", prefix, name), used = 0;
    info[used++] = 0;
    info[used++] = (uint8_t)size;
    info[used++] = (uint8_t)length;
    memcpy(info + used, label, length);
    used += length;
    info[used++] = 0; /* bytes of the context */
    info[used++] = 1; /* number of the block */
    hmac(secret, SECRET_BYTES, info, used, block);
    memcpy(key, block, size);
}

/* `end`: "client in" or "server in"; `first`: the connection ID that the client chose for the
 * server. Returns false if the version is not known. */
static bool derive_keys(uint32_t version, const struct quic_id *first, const char *end,
                        struct keys *keys) {
    const uint8_t *salt = salt_of(version);
    const char *prefix = version == QUIC_2 ? "quicv2 " : "quic ";
    uint8_t initial[SECRET_BYTES], secret[SECRET_BYTES];
    if (!salt)
        return false;
    hmac(salt, SALT_BYTES, first->bytes, first->size, initial);
    expand(initial, "", end, secret, SECRET_BYTES);
    expand(secret, prefix, "key", keys->packet, KEY_BYTES);
    expand(secret, prefix, "iv", keys->iv, IV_BYTES);
    expand(secret, prefix, "hp", keys->header, KEY_BYTES);
    return true;
}

/* --- packets ---------------------------------------------------------------------------------- */

/* Removes the protection of the header (RFC 9001 section 5.4) and decrypts (section 5.3). Returns
 * the bytes at `plain`, 0 if the keys do not fit. */
static size_t decrypt(const struct keys *keys, const struct quic_header *header,
                      const uint8_t *bytes, uint8_t plain[static PACKET_MAX]) {
    size_t number_at = header->size - header->protected;
    uint8_t head[PACKET_MAX], mask[AES_BLOCK_SIZE], nonce[IV_BYTES], tag[TAG_BYTES];
    struct aes128_ctx cipher;
    struct gcm_aes128_ctx gcm;
    if (header->protected < SAMPLE_AT + AES_BLOCK_SIZE || header->size > PACKET_MAX)
        return 0;
    aes128_set_encrypt_key(&cipher, keys->header);
    aes128_encrypt(&cipher, AES_BLOCK_SIZE, mask, bytes + number_at + SAMPLE_AT);
    uint8_t first = bytes[0] ^ (mask[0] & 0x0F);
    size_t digits = (first & 3u) + 1, head_size = number_at + digits;
    memcpy(head, bytes, head_size);
    memcpy(nonce, keys->iv, IV_BYTES);
    head[0] = first;
    for (size_t i = 0; i < digits; i++) {
        head[number_at + i] ^= mask[1 + i];
        nonce[IV_BYTES - digits + i] ^= head[number_at + i];
    }
    size_t size = header->size - head_size - TAG_BYTES;
    gcm_aes128_set_key(&gcm, keys->packet);
    gcm_aes128_set_iv(&gcm, IV_BYTES, nonce);
    gcm_aes128_update(&gcm, head_size, head);
    gcm_aes128_decrypt(&gcm, size, plain, bytes + head_size);
    gcm_aes128_digest(&gcm, TAG_BYTES, tag);
    return memeql_sec(tag, bytes + head_size + size, TAG_BYTES) ? size : 0;
}

/* --- frames ----------------------------------------------------------------------------------- */

static bool is_there(const struct quic_hello *hello, size_t at) {
    return hello->there[at / WORD_BITS] >> at % WORD_BITS & 1;
}

static void place(struct quic_hello *hello, uint64_t offset, const uint8_t *bytes, size_t size) {
    if (offset >= QUIC_HELLO_MAX)
        return;
    if (size > QUIC_HELLO_MAX - offset)
        size = QUIC_HELLO_MAX - (size_t)offset;
    memcpy(hello->bytes + offset, bytes, size);
    for (size_t at = (size_t)offset; at < offset + size; at++)
        hello->there[at / WORD_BITS] |= UINT64_C(1) << at % WORD_BITS;
    while (hello->ready < QUIC_HELLO_MAX && is_there(hello, hello->ready))
        hello->ready++;
}

/* RFC 9000 section 19.3: ranges are pairs of a gap and a length. */
static bool pass_ack(struct cursor *cursor, bool ecn) {
    uint64_t ranges, number;
    bool there = read_varint(cursor, &number) && read_varint(cursor, &number) &&
                 read_varint(cursor, &ranges) && read_varint(cursor, &number);
    if (!there || ranges > cursor->left)
        return false;
    for (uint64_t i = 0; i < 2 * ranges + (ecn ? 3 : 0) && there; i++)
        there = read_varint(cursor, &number);
    return there;
}

static bool take_crypto(struct quic_hello *hello, struct cursor *cursor) {
    uint64_t offset, size;
    if (!read_varint(cursor, &offset) || !read_varint(cursor, &size) || size > cursor->left)
        return false;
    const uint8_t *bytes = cursor->at;
    read_bytes(cursor, (size_t)size);
    place(hello, offset, bytes, (size_t)size);
    return true;
}

/* Reads frames up to the first that an Initial cannot have, or that ends early. */
void quic_hello_take_frames(struct quic_hello **hello, const uint8_t *plain, size_t size,
                            struct pool *pool) {
    struct cursor cursor = {plain, size};
    uint64_t kind;
    bool valid = *hello || (*hello = pool_zeroed(pool, sizeof **hello));
    while (valid && read_varint(&cursor, &kind)) {
        if (kind == ACK || kind == ACK_ECN)
            valid = pass_ack(&cursor, kind == ACK_ECN);
        else if (kind == CRYPTO)
            valid = take_crypto(*hello, &cursor);
        else
            valid = kind == PADDING || kind == PING;
    }
}

/* Other keys than those of the first follow a Retry, or the first was of another version. */
void quic_hello_take(struct quic_hello **hello, const struct quic_header *header,
                     const uint8_t *bytes, struct pool *pool) {
    uint8_t plain[PACKET_MAX];
    struct keys keys = *hello ? (*hello)->keys : (struct keys){0};
    size_t size = *hello ? decrypt(&keys, header, bytes, plain) : 0;
    if (!size && derive_keys(header->version, &header->destination, "client in", &keys))
        size = decrypt(&keys, header, bytes, plain);
    if (!size)
        return;
    quic_hello_take_frames(hello, plain, size, pool);
    if (*hello)
        (*hello)->keys = keys;
}

static bool pass_crypto(struct cursor *cursor) {
    uint64_t offset, size;
    return read_varint(cursor, &offset) && read_varint(cursor, &size) && size <= cursor->left &&
           read_bytes(cursor, (size_t)size);
}

bool quic_read_close(const struct quic_header *header, const uint8_t *bytes,
                     const struct quic_id *first, uint64_t *error) {
    uint8_t plain[PACKET_MAX];
    struct keys keys;
    if (!derive_keys(header->version, first, "server in", &keys))
        return false;
    struct cursor cursor = {plain, decrypt(&keys, header, bytes, plain)};
    uint64_t kind;
    bool valid = true;
    while (valid && read_varint(&cursor, &kind)) {
        if (kind == CLOSE)
            return read_varint(&cursor, error);
        valid = kind == ACK || kind == ACK_ECN ? pass_ack(&cursor, kind == ACK_ECN)
                : kind == CRYPTO               ? pass_crypto(&cursor)
                                               : kind == PADDING || kind == PING;
    }
    return false;
}

/* --- the message ------------------------------------------------------------------------------ */

bool quic_hello_is_whole(const struct quic_hello *hello) {
    if (hello->ready < MESSAGE_HEADER)
        return false;
    size_t size = MESSAGE_HEADER + (load_be32(hello->bytes) & 0xFFFFFF);
    return hello->ready >= size || hello->ready == QUIC_HELLO_MAX;
}

size_t quic_hello_body(const struct quic_hello *hello, const uint8_t **bytes) {
    if (!hello || hello->ready <= MESSAGE_HEADER || hello->bytes[0] != CLIENT_HELLO)
        return 0;
    *bytes = hello->bytes + MESSAGE_HEADER;
    return hello->ready - MESSAGE_HEADER;
}

void quic_hello_free(struct quic_hello *hello, struct pool *pool) {
    if (hello)
        pool_free(pool, hello, sizeof *hello);
}
