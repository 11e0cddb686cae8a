# SPDX-License-Identifier: Apache-2.0
# How each C program is built and tested: make [PROGRAM=path] [BUILD=folder] [CFLAGS=…] [LDFLAGS=…], make test, make sanitize.
# A program's Makefile sets NAME, SOURCE (the folder below its own), MAIN (the file with main()), LIBRARIES, HEADERS (what is
# needed to compile, as header:package) and TEST_FLAGS, and includes this.

HERE := $(dir $(abspath $(firstword $(MAKEFILE_LIST))))
TOP := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))
BUILD ?= $(TOP)build/$(NAME)
PROGRAM ?= $(TOP)build/bin/$(NAME)

CC ?= cc
WARNINGS ?= -Wall -Wextra
VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' $(TOP)src/wiretale/version.py)
# What the caller gives comes last: -fsanitize=address and the like.
COMPILE = $(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g $(WARNINGS) -pthread -DWIRETALE_VERSION='"$(VERSION)"' $(CPPFLAGS) $(CFLAGS)
SANITIZE = -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer

FOLDER := $(HERE)$(SOURCE)
SOURCES := $(wildcard $(FOLDER)*.c)
OBJECTS = $(SOURCES:$(FOLDER)%.c=$(BUILD)/%.o)
PARTS = $(filter-out $(BUILD)/$(MAIN).o,$(OBJECTS))
TESTS = $(patsubst $(FOLDER)test/%.c,$(BUILD)/test/%,$(wildcard $(FOLDER)test/test_*.c))

# Libraries that the program opens itself, so that a missing one is named with its package (program_libraries.h). Tests, and
# programs for other processors, are linked with them as usual.
OPENED = $(if $(filter x86_64-% aarch64-%,$(shell $(CC) -dumpmachine)),$(filter-out -lm -lpthread,$(LIBRARIES)))
OPENING = $(if $(OPENED),$(BUILD)/library_calls.o)

.DEFAULT_GOAL := all
.PHONY: all test sanitize clean
all: $(PROGRAM)

$(PROGRAM): $(OBJECTS) $(OPENING)
	@mkdir -p $(@D)
	@$(COMPILE) $^ -o $@ $(LDFLAGS) $(filter-out $(OPENED),$(LIBRARIES))

# The functions that the objects take from each library, with the place of each in a table of 8-byte addresses.
$(BUILD)/library_calls.h: $(OBJECTS)
	@nm -u $(OBJECTS) | awk '{ print $$NF }' | sort -u > $(BUILD)/undefined
	@for library in $(OPENED:-l%=%); do file=$$($(CC) -print-file-name=lib$$library.so); \
		readelf -d $$file | sed -n 's/.*Library soname: \[\(.*\)\]/\1/p'; \
		nm -D --defined-only $$file | sed -n 's/.* [TWi] \([^@]*\).*/\1/p' | sort -u | comm -12 - $(BUILD)/undefined; done | \
		awk '/\.so/ { print "LIBRARY(\"" $$0 "\")"; next } { print "CALL(" 8 * (NR - 1) ", " $$0 ")" }' > $@

$(BUILD)/library_calls.c: $(BUILD)/library_calls.h
	@echo '#include "program_libraries.h"' > $@

$(BUILD)/library_calls.o: $(BUILD)/library_calls.c $(TOP)program_libraries.h
	@$(COMPILE) -I$(BUILD) -I$(TOP) -c $< -o $@

# The program as the dynamic linker would load it: dpkg-shlibdeps reads the needed packages from it.
$(BUILD)/linked: $(OBJECTS)
	@$(COMPILE) $^ -o $@ $(LDFLAGS) $(LIBRARIES)

# Other flags make other objects; a header that is missing is told with the package that brings it.
$(BUILD)/flags: FORCE
	@mkdir -p $(BUILD)/test
	@echo '$(COMPILE) $(LDFLAGS)' | cmp -s - $@ || { for needed in $(HEADERS); do \
		echo "#include <$${needed%:*}>" | $(CC) $(CPPFLAGS) $(CFLAGS) -E -x c - >/dev/null 2>&1 || \
		{ echo "$(NAME) needs $${needed%:*}: apt-get install $${needed#*:}" >&2; exit 1; }; done; \
		echo '$(COMPILE) $(LDFLAGS)' > $@; }
FORCE:

$(BUILD)/%.o: $(FOLDER)%.c $(BUILD)/flags
	@echo "    compiling $(<:$(TOP)%=%)"
	@$(COMPILE) -MMD -MP -c $< -o $@

test: $(TESTS)
	@for program in $^; do echo "==> running $$program"; $$program || exit 1; done

$(BUILD)/test/%: $(FOLDER)test/%.c $(PARTS)
	@echo "    compiling $(<:$(TOP)%=%)"
	@$(COMPILE) -MMD -MP -I$(FOLDER) $(TEST_FLAGS) $< $(PARTS) -o $@ $(LDFLAGS) $(LIBRARIES)

sanitize:
	@$(MAKE) -s -f $(firstword $(MAKEFILE_LIST)) all test BUILD=$(BUILD)/sanitize PROGRAM=$(BUILD)/sanitize/$(NAME) \
		CFLAGS="$(SANITIZE)" LDFLAGS="$(SANITIZE)"

clean:
	@rm -rf $(BUILD) $(PROGRAM)

-include $(wildcard $(BUILD)/*.d $(BUILD)/test/*.d)
