/* SPDX-License-Identifier: Apache-2.0 */
/* Memory in huge pages: state that is met in random order then costs few address look-ups, and its
 * first use few page faults. The kernel may give small pages instead. */
#ifndef WIRETALE_HUGE_PAGES_H
#define WIRETALE_HUGE_PAGES_H

#include <stdbool.h>
#include <stddef.h>

#define HUGE_PAGE ((size_t)2 << 20) /* bytes */

/* `size` zero bytes, or NULL; to be released with munmap(). If `huge`, they are aligned to a huge
 * page; otherwise the pages are small until huge_pages_ask(), so that a little used range costs
 * little. */
void *huge_pages_map(size_t size, bool huge);

/* Asks for huge pages wherever a whole one of the range has not been touched yet. */
void huge_pages_ask(void *memory, size_t size);

#endif
