/* SPDX-License-Identifier: Apache-2.0 */
/* Wireless stations: the frames and retries of each sender, and the signal at the monitor. */
#ifndef WIRETALE_LOCAL_STATIONS_H
#define WIRETALE_LOCAL_STATIONS_H

#include "decode/headers.h"
#include "rows/row_sink.h"

#define STATIONS_MOST 64u

/* A sender of 802.11 data frames. */
struct station {
    uint8_t mac[6];
    uint64_t frames, retries;
    uint64_t signals;  /* frames with a signal (radiotap) */
    int64_t dbm_total; /* of these */
};

/* The first STATIONS_MOST senders of an interface. */
struct stations {
    struct station *list; /* NULL at first */
    uint32_t count;
};

/* Counts a data frame. Without memory it is not counted. */
void station_count(struct stations *stations, const struct packet *packet,
                   const struct headers *headers);
/* Sets the columns of the station with the most retries. */
void stations_put(struct row_sink *sink, struct row *row, const struct stations *stations);
void stations_free(struct stations *stations);

#endif
