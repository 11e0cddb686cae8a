/* SPDX-License-Identifier: Apache-2.0 */
/* What the link says when it ends. */
#ifndef WIRETALE_LINK_LINK_SUMMARY_H
#define WIRETALE_LINK_LINK_SUMMARY_H

#include "link_worker.h"

void link_summary_print(const struct link_worker workers[2], const uint64_t overruns[2],
                        bool real_time, bool json);

#endif
