/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a packet the analysis reads: headers, and of the payload what numbers, blocks and
 * application/ may need. */
#ifndef WIRETALE_PAYLOAD_H
#define WIRETALE_PAYLOAD_H

#include "decode/headers.h"

struct payload_window;

/* Returns NULL without memory. */
struct payload_window *payload_window_open(void);
/* `window` may be NULL. */
void payload_window_close(struct payload_window *window);

/* Returns how many captured bytes must be kept so that the packet is analyzed as the whole one.
 * `headers` are those of the packet; sets `*cut` if TCP payload is left out. Packets must be given
 * in file order. */
uint32_t payload_kept(struct payload_window *window, const struct packet *packet,
                      const struct headers *headers, bool *cut);

#endif
