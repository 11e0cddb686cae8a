/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of Wireshark and tshark -Y, which many take for capture filters. */
#ifndef WIRETALE_DISPLAY_FILTER_H
#define WIRETALE_DISPLAY_FILTER_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the text names a field as they do: tcp.port, ip.addr. */
bool display_filter_is(const char *text);
/* The same as a capture filter; false when it has anything that such a one cannot be made of here.
 */
bool display_filter_rewrite(const char *text, char *capture, size_t size);

#endif
