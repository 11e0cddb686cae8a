/* SPDX-License-Identifier: Apache-2.0 */
/* Wireless stations: the frames and retries of each sender, and the signal at the monitor. */

#include <stdlib.h>
#include <string.h>

#include "local/stations.h"

#define SENDER_OFFSET 10u /* of the second address, IEEE 802.11 section 9.3.2 */
#define MAC_BYTES     6u

/* Returns the entry of an address; NULL if it is one too many, or without memory. */
static struct station *station_of(struct stations *stations, const uint8_t *mac) {
    if (!stations->list)
        stations->list = calloc(STATIONS_MOST, sizeof *stations->list);
    if (!stations->list)
        return NULL;
    for (uint32_t i = 0; i < stations->count; i++)
        if (!memcmp(stations->list[i].mac, mac, MAC_BYTES))
            return &stations->list[i];
    if (stations->count == STATIONS_MOST)
        return NULL;
    struct station *station = &stations->list[stations->count++];
    memcpy(station->mac, mac, MAC_BYTES);
    return station;
}

void station_count(struct stations *stations, const struct packet *packet,
                   const struct headers *headers) {
    uint64_t at = (uint64_t)headers->wlan_offset + SENDER_OFFSET;
    if (at + MAC_BYTES > packet->captured)
        return;
    struct station *station = station_of(stations, packet->data + at);
    if (!station)
        return;
    station->frames++;
    station->retries += headers->wlan == WLAN_RETRY;
    station->signals += headers->wlan_dbm != 0;
    station->dbm_total += headers->wlan_dbm;
}

void stations_put(struct row_sink *sink, struct row *row, const struct stations *stations) {
    const struct station *worst = NULL;
    for (uint32_t i = 0; i < stations->count; i++)
        if (!worst || stations->list[i].retries > worst->retries)
            worst = &stations->list[i];
    if (!worst || !worst->retries)
        return;
    row_set_mac(sink, row, interfaces_wlan_station, worst->mac);
    row_set(row, interfaces_wlan_station_frames, (int64_t)worst->frames);
    row_set(row, interfaces_wlan_station_retries, (int64_t)worst->retries);
    row_set_if(row, interfaces_wlan_station_signal_dbm, worst->signals,
               worst->dbm_total / (int64_t)(worst->signals ? worst->signals : 1));
}

void stations_free(struct stations *stations) {
    free(stations->list);
    *stations = (struct stations){0};
}
