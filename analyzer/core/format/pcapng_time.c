/* SPDX-License-Identifier: Apache-2.0 */
/* Any resolution and any offset are computed in 128 bits; only the common case is quick. */
#include "format/pcapng_time.h"

#include "base/packet.h"

#define SECOND_NS       1000000000u
#define BINARY          0x80
#define BINARY_MOST     63
#define DECIMAL_MOST    19
#define DECIMAL_OF_NANO 9

static uint64_t power_of_ten(unsigned exponent) {
    uint64_t power = 1;
    while (exponent--)
        power *= 10;
    return power;
}

static void set_decimal(struct pcapng_time *time, unsigned exponent) {
    if (exponent > DECIMAL_OF_NANO)
        time->divide = power_of_ten(exponent - DECIMAL_OF_NANO);
    else
        time->multiply = power_of_ten(DECIMAL_OF_NANO - exponent);
}

bool pcapng_time_set(struct pcapng_time *time, uint8_t resolution, int64_t offset_s) {
    unsigned exponent = resolution & (BINARY - 1);
    bool binary = resolution & BINARY;
    if (exponent > (binary ? BINARY_MOST : DECIMAL_MOST))
        return false;
    *time = (struct pcapng_time){.multiply = 1, .divide = 1, .offset_s = offset_s};
    if (binary) {
        time->multiply = SECOND_NS;
        time->shift = exponent;
    } else {
        set_decimal(time, exponent);
    }
    time->resolution_ns = (int64_t)((time->multiply / time->divide) >> time->shift);
    if (!offset_s && !time->shift && time->divide == 1)
        time->plain_end = INT64_MAX / time->multiply;
    return true;
}

int64_t pcapng_time_slow(const struct pcapng_time *time, uint64_t ticks) {
    unsigned __int128 since = (unsigned __int128)ticks * time->multiply / time->divide;
    __int128 ns = (__int128)(since >> time->shift) + (__int128)time->offset_s * SECOND_NS;
    if (ns > INT64_MAX)
        return INT64_MAX;
    return ns <= TIME_UNKNOWN ? TIME_UNKNOWN + 1 : (int64_t)ns;
}
