/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRETALE_EXCHANGE_PARENTS_H
#define WIRETALE_EXCHANGE_PARENTS_H

#include "table/table.h"

/* Sets the parents of all exchanges (exchanges.within), whose rows must be in order. Returns false
 * without memory. */
bool exchange_parents_set(struct table *exchanges);

#endif
