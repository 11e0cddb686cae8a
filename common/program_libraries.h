// SPDX-License-Identifier: Apache-2.0
/* Opens the libraries of a program before main() begins. If the dynamic linker opened them, a
 * missing library would end the program with the linker's message and status 127; here all that are
 * missing are named in one line with the packages to install, and the exit code is 5.
 *
 * program.mk lists the functions that the program calls in each library (library_calls.h). For each
 * a symbol with its name is defined, which jumps to the address that dlsym() returned, so that
 * sources call library functions as usual. The table of addresses is filled before main(), in the
 * same order as the list. */
#ifndef PROGRAM_LIBRARIES_H
#define PROGRAM_LIBRARIES_H

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TOOL_MISSING = 5, PACKAGE_SIZE = 64 };

#define LIBRARY(file)      {file, true},
#define CALL(offset, name) {#name, false},
static const struct {
    const char *name;
    bool is_library;
} wanted[] = {
#include <library_calls.h>
};
#undef LIBRARY
#undef CALL

/* An address of 8 bytes for each row of wanted[]; that of a library itself is unused. */
__attribute__((used, visibility("hidden"))) void *library_calls[sizeof wanted / sizeof wanted[0]];

#if defined __x86_64__
#define JUMP(offset) "endbr64\n jmp *library_calls+" #offset "(%rip)\n"
#elif defined __aarch64__
#define JUMP(offset)                                                                               \
    "hint #34\n adrp x16, library_calls+" #offset "\n"                                             \
    " ldr x16, [x16, :lo12:library_calls+" #offset "]\n br x16\n"
#endif
#define LIBRARY(file)
#define CALL(offset, name)                                                                         \
    __asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ", %function\n" #name              \
            ":\n " JUMP(offset) ".size " #name ", .-" #name "\n");
#include <library_calls.h>

/* Debian names the package of a library after its file: libpcap.so.0.8 is in libpcap0.8,
 * liblz4.so.1 in liblz4-1. If Debian 13 appended t64, apt-get still accepts the name without it. */
static void package_of(const char *file, char package[static PACKAGE_SIZE]) {
    const char *suffix = strstr(file, ".so.");
    int stem = suffix ? (int)(suffix - file) : (int)strlen(file);
    bool ends_in_digit = stem && strchr("0123456789", file[stem - 1]);

    if (!strcmp(file, "libz.so.1"))
        snprintf(package, PACKAGE_SIZE, "zlib1g");
    else
        snprintf(package, PACKAGE_SIZE, "%.*s%s%s", stem, file, ends_in_digit ? "-" : "",
                 suffix ? suffix + strlen(".so.") : "");
}

/* `reason` is a message of dlerror(), which begins with the missing file: the library, or one that
 * it needs. */
static bool is_absent(const char *reason, char missing[static PACKAGE_SIZE]) {
    const char *named = strstr(reason, ": cannot open shared object file: No such file");
    if (named)
        snprintf(missing, PACKAGE_SIZE, "%.*s", (int)(named - reason), reason);
    return named != NULL;
}

__attribute__((noreturn)) static void stop_unusable(const char *library, const char *reason) {
    char package[PACKAGE_SIZE];
    package_of(library, package);
    fprintf(stderr, "%s: %s cannot be used (%s): apt-get install --reinstall %s\n",
            program_invocation_short_name, library, reason, package);
    _exit(TOOL_MISSING);
}

/* dnf finds a package by the name of a library. */
__attribute__((noreturn)) static void stop_absent(char (*missing)[PACKAGE_SIZE], unsigned count) {
    bool is_dnf = access("/usr/bin/apt-get", X_OK) && !access("/usr/bin/dnf", X_OK);
    char package[PACKAGE_SIZE];

    fprintf(stderr, "%s: %s", program_invocation_short_name, missing[0]);
    for (unsigned i = 1; i < count; i++)
        fprintf(stderr, "%s%s", i + 1 == count ? " and " : ", ", missing[i]);
    fprintf(stderr, " %s missing: %s", count > 1 ? "are" : "is",
            is_dnf ? "dnf install" : "apt-get install");
    for (unsigned i = 0; i < count; i++) {
        package_of(missing[i], package);
        fprintf(stderr, is_dnf ? " '%s()(64bit)'" : " %s", is_dnf ? missing[i] : package);
    }
    fputc('\n', stderr);
    _exit(TOOL_MISSING);
}

/* Runs before main(). It must not use any function of the libraries that it opens. */
__attribute__((constructor)) static void open_libraries(void) {
    char missing[sizeof wanted / sizeof wanted[0]][PACKAGE_SIZE];
    const char *library = NULL, *reason;
    void *handle = NULL;
    unsigned absent = 0;

    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        if (wanted[i].is_library) {
            library = wanted[i].name;
            handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        } else if (handle) {
            library_calls[i] = dlsym(handle, wanted[i].name);
        }
        if (wanted[i].is_library ? handle != NULL : !handle || library_calls[i])
            continue;
        reason = dlerror();
        if (!is_absent(reason, missing[absent]))
            stop_unusable(library, reason);
        unsigned known = 0; /* two libraries may lack the same third one */
        while (strcmp(missing[known], missing[absent]))
            known++;
        absent += known == absent;
    }
    if (absent)
        stop_absent(missing, absent);
}

#endif
