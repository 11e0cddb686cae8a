# SPDX-License-Identifier: Apache-2.0
# Places of a program's files, for its target `install`; debian/rules sets those of Debian.

PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
UNITDIR ?= $(PREFIX)/lib/systemd/system
INSTALL ?= install
PLACES = -e 's|@BINDIR@|$(PREFIX)/bin|g' -e 's|@SYSCONFDIR@|$(SYSCONFDIR)|g' -e 's|@VERSION@|$(VERSION)|g'
