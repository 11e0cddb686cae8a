/* SPDX-License-Identifier: Apache-2.0 */
/* The captures in the folders that are searched. */
#ifndef WIRETALE_CAPTURE_FOLDER_H
#define WIRETALE_CAPTURE_FOLDER_H

#include "find/found_file.h"

struct file_list {
    struct folder folders[FOLDERS_MAX];
    struct found_file *files;
    size_t count, room;
};

/* Lists the regular files of each folder without hidden ones, but with the open file of a capture.
 * An operand that is a file stands for itself. Exits with one line if a folder cannot be read. */
void file_list_read(struct file_list *list, const struct query *query);

#endif
