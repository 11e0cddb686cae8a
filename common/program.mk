# SPDX-License-Identifier: Apache-2.0
# Builds and tests one C program: make [PROGRAM=path] [BUILD=directory] [CFLAGS=…] [LDFLAGS=…], make test, make sanitize.
# A program's Makefile sets NAME, SOURCE (its sources' folder below its own; subfolders are compiled, too), MAIN (the file with
# main()), LIBRARIES, SHARED (folders of common/ that it needs), and HEADERS (headers that must exist, as header:package), and
# includes this file.
# Includes are written from SOURCE ("buffer/chunk_queue.h") or from the top of the repository ("common/units.h").

HERE := $(dir $(abspath $(firstword $(MAKEFILE_LIST))))
TOP := $(abspath $(dir $(lastword $(MAKEFILE_LIST)))..)/
BUILD ?= $(TOP)build/$(NAME)
PROGRAM ?= $(TOP)build/bin/$(NAME)

CC ?= cc
WARNINGS ?= -Wall -Wextra
VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' $(TOP)src/wiretale/version.py)
# Flags of the caller come last, such as -fsanitize=address.
COMPILE = $(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g $(WARNINGS) -pthread -I$(FOLDER) -I$(TOP) \
	-DWIRETALE_PROGRAM='"$(NAME)"' -DWIRETALE_VERSION='"$(VERSION)"' $(CPPFLAGS) $(CFLAGS)
SANITIZE = -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer

FOLDER := $(HERE)$(SOURCE)
SOURCES := $(filter-out $(FOLDER)test/% $(FOLDER)fuzz/%,$(wildcard $(FOLDER)*.c $(FOLDER)*/*.c))
OBJECTS = $(SOURCES:$(TOP)%.c=$(BUILD)/%.o)
COMMON = $(patsubst $(TOP)%.c,$(BUILD)/%.o,$(wildcard $(TOP)common/*.c $(SHARED:%=$(TOP)common/%/*.c)))
ARCHIVE = $(BUILD)/common.a
PARTS = $(filter-out $(FOLDER:$(TOP)%=$(BUILD)/%)$(MAIN).o,$(OBJECTS)) $(ARCHIVE)
TESTS = $(patsubst $(TOP)%.c,$(BUILD)/%,$(wildcard $(FOLDER)test/test_*.c $(FOLDER)*/test/test_*.c))

# Libraries that the program opens itself, so that a missing one is named with its package (program_libraries.h). Tests, and
# programs for other processors, are linked with them as usual.
OPENED = $(if $(filter x86_64-% aarch64-%,$(shell $(CC) -dumpmachine)),$(filter-out -lm -lpthread,$(LIBRARIES)))
OPENING = $(if $(OPENED),$(BUILD)/library_calls.o)

.DEFAULT_GOAL := all
.PHONY: all test sanitize clean
all: $(if $(MAIN),$(PROGRAM))

# An archive, because each program needs some of common/ only.
$(ARCHIVE): $(COMMON)
	@rm -f $@ && $(AR) rcs $@ $^

$(PROGRAM): $(OBJECTS) $(OPENING) $(ARCHIVE)
	@mkdir -p $(@D)
	@$(COMPILE) $^ -o $@ $(LDFLAGS) $(filter-out $(OPENED),$(LIBRARIES))

# Functions that the objects call in each library, and the offset of each in a table of 8-byte addresses.
$(BUILD)/library_calls.h: $(OBJECTS) $(COMMON)
	@nm -u $^ | awk '{ print $$NF }' | sort -u > $(BUILD)/undefined
	@for library in $(OPENED:-l%=%); do file=$$($(CC) -print-file-name=lib$$library.so); \
		readelf -d $$file | sed -n 's/.*Library soname: \[\(.*\)\]/\1/p'; \
		nm -D --defined-only $$file | sed -n 's/.* [TWi] \([^@]*\).*/\1/p' | sort -u | comm -12 - $(BUILD)/undefined; done | \
		awk '/\.so/ { print "LIBRARY(\"" $$0 "\")"; next } { print "CALL(" 8 * (NR - 1) ", " $$0 ")" }' > $@

$(BUILD)/library_calls.c: $(BUILD)/library_calls.h
	@echo '#include "common/program_libraries.h"' > $@

$(BUILD)/library_calls.o: $(BUILD)/library_calls.c $(TOP)common/program_libraries.h
	@$(COMPILE) -I$(BUILD) -c $< -o $@

# The program linked with its libraries as usual, from which dpkg-shlibdeps reads the packages that it needs.
$(BUILD)/linked: $(OBJECTS) $(ARCHIVE)
	@$(COMPILE) $^ -o $@ $(LDFLAGS) $(LIBRARIES)

# If the flags change, all objects are compiled again. A missing header is reported with its package.
$(BUILD)/flags: FORCE
	@mkdir -p $(BUILD)
	@echo '$(COMPILE) $(LDFLAGS)' | cmp -s - $@ || { for needed in $(HEADERS); do \
		echo "#include <$${needed%:*}>" | $(CC) $(CPPFLAGS) $(CFLAGS) -E -x c - >/dev/null 2>&1 || \
		{ echo "$(NAME) needs $${needed%:*}: apt-get install $${needed#*:}" >&2; exit 1; }; done; \
		echo '$(COMPILE) $(LDFLAGS)' > $@; }
FORCE:

$(BUILD)/%.o: $(TOP)%.c $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "    compiling $(<:$(TOP)%=%)"
	@$(COMPILE) -MMD -MP -c $< -o $@

test: $(TESTS)
	@for program in $^; do echo "==> running $$program"; $$program || exit 1; done

$(TESTS): $(BUILD)/%: $(TOP)%.c $(PARTS)
	@mkdir -p $(@D)
	@echo "    compiling $(<:$(TOP)%=%)"
	@$(COMPILE) -MMD -MP $< $(PARTS) -o $@ $(LDFLAGS) $(LIBRARIES)

sanitize:
	@$(MAKE) -s -f $(firstword $(MAKEFILE_LIST)) all test BUILD=$(BUILD)/sanitize PROGRAM=$(BUILD)/sanitize/$(NAME) \
		CFLAGS="$(SANITIZE)" LDFLAGS="$(SANITIZE)"

clean:
	@rm -rf $(BUILD) $(PROGRAM)

-include $(shell find $(BUILD) -name "*.d" 2>/dev/null)
