/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRETALE_EXIT_CODES_H
#define WIRETALE_EXIT_CODES_H

#define EXIT_CODE_USAGE       2
#define EXIT_CODE_CUT_SHORT   3
#define EXIT_CODE_INPUT       4 /* a file, the other end or the output cannot be had */
#define EXIT_CODE_TOOL        5 /* a permission or resource is missing */
#define EXIT_CODE_INTERRUPTED 130
#define EXIT_CODE_TERMINATED  143 /* by SIGTERM */

#endif
