/* SPDX-License-Identifier: Apache-2.0 */
/* Memory in huge pages: state that is met in random order then costs few address look-ups, and its
 * first use few page faults. The kernel may give small pages instead. */
#ifndef WIRETALE_HUGE_PAGES_H
#define WIRETALE_HUGE_PAGES_H

#include <stddef.h>

#define HUGE_PAGE ((size_t)2 << 20) /* bytes */

/* `size` zero bytes, aligned to a huge page, or NULL. Given back with munmap(). */
void *huge_pages_map(size_t size);

#endif
