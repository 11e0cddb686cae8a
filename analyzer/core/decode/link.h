/* SPDX-License-Identifier: Apache-2.0 */
/* What the link decoders share: 802.2, the hash of addresses, and the entries of 802.11. */
#ifndef WIRETALE_LINK_DECODE_H
#define WIRETALE_LINK_DECODE_H

#include "decode/decode.h"

#define LINKTYPE_WLAN     105
#define LINKTYPE_PRISM    119
#define LINKTYPE_RADIOTAP 127
#define LINKTYPE_AVS      163
#define LINKTYPE_PPI      192

/* Of two addresses of 6 bytes. The odd factors are those of splitmix64 and xxHash. */
static inline uint32_t link_hash(const uint8_t *addresses) {
    uint64_t mixed = load_le64(addresses) * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ load_le32(addresses + 8)) * 0xc2b2ae3d27d4eb4fu;
    return (uint32_t)(mixed >> 32);
}

layer_decoder decode_llc;

layer_decoder decode_wlan; /* wlan_decode.c */
layer_decoder decode_radiotap;
layer_decoder decode_ppi;
layer_decoder decode_prism;

#endif
