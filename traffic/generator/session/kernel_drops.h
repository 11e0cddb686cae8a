/* SPDX-License-Identifier: Apache-2.0 */
/* What this host's UDP dropped for want of room, of all sockets together: RcvbufErrors in
 * /proc/net/snmp and Udp6RcvbufErrors in /proc/net/snmp6. -1: unknown. */
#ifndef WIRETALE_KERNEL_DROPS_H
#define WIRETALE_KERNEL_DROPS_H

#include <stdint.h>

int64_t kernel_udp_drops(void);

#endif
