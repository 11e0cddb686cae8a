/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams of a flow, both directions: no header must be read beyond its bytes, and no time may be
 * negative. The same bytes are frames of a decrypted Initial. */
#include <stdlib.h>
#include <string.h>

#include "application/application.h"
#include "quic/quic.h"

#define DATAGRAM_HEAD                                                                              \
    3u /* of the input: direction and time; captured bytes; padding in units of 8 */

/* Frames have a buffer of their own, too, and so has the ClientHello that they make. */
static void check_hello(const uint8_t *data, size_t size, struct pool *pool) {
    struct application application = {.protocol = WORD_QUIC};
    struct arrival arrival = {.pool = pool, .time_ns = TIME_UNKNOWN};
    struct quic_hello *hello = NULL;
    const uint8_t *body;
    uint8_t *plain = malloc(size + 1);
    if (!plain)
        return;
    memcpy(plain, data, size);
    quic_hello_take_frames(&hello, plain, size, pool);
    size_t length = quic_hello_body(hello, &body);
    free(plain);
    if (length && (plain = malloc(length))) {
        memcpy(plain, body, length);
        tls_read_client_hello(&application, &arrival, plain, length);
        free(plain);
    }
    application_free(&application, pool);
    quic_hello_free(hello, pool);
}

static void check(struct quic *quic, struct pool *pool) {
    struct quic_summary summary;
    if (!quic_summary(quic, &summary, pool))
        return;
    if (summary.server_ns < -1 || summary.client_ns < -1 || summary.duration_ns < -1 ||
        summary.spin_ns < -1)
        abort();
}

/* The datagram has a buffer of its own, so that a sanitizer sees each byte that is read behind it.
 */
static const uint8_t *take(struct quic **quic, const uint8_t *data, size_t size, int64_t *now,
                           uint64_t frame, struct pool *pool) {
    size_t captured = data[1] < size - DATAGRAM_HEAD ? data[1] : size - DATAGRAM_HEAD;
    uint8_t *bytes = malloc(captured + 1);
    if (!bytes)
        return data + size;
    memcpy(bytes, data + DATAGRAM_HEAD, captured);
    *now += (int64_t)(data[0] >> 1) * 1000000;
    struct quic_datagram datagram = {.bytes = bytes,
                                     .captured = captured,
                                     .length = captured + 8u * data[2],
                                     .frame = frame,
                                     .time_ns = *now,
                                     .time_known = data[0] != 0xff,
                                     .keep_hello = true,
                                     .direction = data[0] & 1};
    quic_take(quic, &datagram, pool);
    free(bytes);
    return data + DATAGRAM_HEAD + captured;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct pool pool = {.own.most = 1 << 16, .chunks.small_pages = true};
    struct quic *quic = NULL;
    const uint8_t *end = data + size;
    check_hello(data, size, &pool);
    int64_t now = 1000000000;
    for (uint64_t frame = 1; (size_t)(end - data) > DATAGRAM_HEAD; frame++)
        data = take(&quic, data, (size_t)(end - data), &now, frame, &pool);
    check(quic, &pool);
    quic_free(quic, &pool);
    if (pool.own.used)
        abort();
    pool_close(&pool);
    return 0;
}
