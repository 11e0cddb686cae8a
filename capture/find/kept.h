/* SPDX-License-Identifier: Apache-2.0 */
/* The spans that captures keep (keep/spans.h): listed, searched, and let go. */
#ifndef WIRETALE_CAPTURE_KEPT_H
#define WIRETALE_CAPTURE_KEPT_H

#include "find/folder.h"

/* Limits the time to that of a span. Exits with one line if there is none. */
void kept_limit(struct query *query, const struct file_list *list);
/* Lists the spans of the folders. */
void kept_list(const struct query *query, const struct file_list *list);
/* Removes the marks of the files that belong to no other span. */
void kept_release(const struct query *query, const struct file_list *list);

#endif
