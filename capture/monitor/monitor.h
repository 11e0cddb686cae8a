/* SPDX-License-Identifier: Apache-2.0 */
/* `wiretale status`: asks a running capture. */
#ifndef WIRETALE_CAPTURE_MONITOR_H
#define WIRETALE_CAPTURE_MONITOR_H

int monitor_main(int count, char **arguments);

#endif
