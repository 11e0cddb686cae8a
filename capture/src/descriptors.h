/* SPDX-License-Identifier: Apache-2.0 */
/* What a process keeps of what its parent has open. */
#ifndef WIRETALE_DESCRIPTORS_H
#define WIRETALE_DESCRIPTORS_H

#include <stddef.h>

/* Closes all others above the standard streams. */
void descriptors_keep(const int *kept, size_t count);

#endif
