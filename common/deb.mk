# SPDX-License-Identifier: Apache-2.0
# Makes a Debian package of a program in $(DIST): make deb. The including Makefile sets NAME, PACKAGE, COMMAND (whose help gives the
# completions) and MANUAL (its page), has deb/ with control.in and the scripts of the package, and a target `install`.

DIST ?= $(TOP)dist
PYTHON ?= $(TOP).venv/bin/python
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
UNITDIR ?= $(PREFIX)/lib/systemd/system
INSTALL ?= install
PLACES = -e 's|@BINDIR@|$(PREFIX)/bin|g' -e 's|@SYSCONFDIR@|$(SYSCONFDIR)|g' -e 's|@VERSION@|$(VERSION)|g'

ROOT ?= $(BUILD)/deb
ARCH = $(shell dpkg --print-architecture)
MADE = $(DIST)/$(PACKAGE)_$(VERSION)_$(ARCH).deb
DOC = $(ROOT)/usr/share/doc/$(PACKAGE)
SCRIPTS = $(filter-out %.in,$(wildcard $(HERE)deb/*))

.PHONY: deb
deb: $(PROGRAM) $(BUILD)/linked
	@rm -rf $(ROOT) && mkdir -p $(ROOT)/DEBIAN $(DOC) $(DIST)
	@$(MAKE) -s -f $(firstword $(MAKEFILE_LIST)) install DESTDIR=$(abspath $(ROOT)) PREFIX=/usr UNITDIR=/lib/systemd/system PROGRAM=$(PROGRAM) BUILD=$(BUILD)
	@WIRETALE_PROGRAMS=$(abspath $(ROOT))/usr/bin $(PYTHON) -m wiretale.cli.manual $(ROOT)/usr $(COMMAND) >/dev/null
	@strip --strip-unneeded $(ROOT)/usr/bin/$(NAME)
	@find $(ROOT)/usr/share/man -type f -exec gzip -9nf {} +
	@$(INSTALL) -m 0644 $(TOP)LICENSE $(DOC)/copyright
	@$(if $(SCRIPTS),$(INSTALL) -m 0755 $(SCRIPTS) $(ROOT)/DEBIAN/)
	@echo $(SYSCONFDIR)/default/$(PACKAGE) > $(ROOT)/DEBIAN/conffiles
	@mkdir -p $(ROOT).shlibs/debian && printf 'Source: x\n\nPackage: x\nArchitecture: any\n' > $(ROOT).shlibs/debian/control
	@depends=$$(cd $(ROOT).shlibs && dpkg-shlibdeps -O $(abspath $(BUILD))/linked 2>/dev/null | sed 's/^shlibs:Depends=//'); \
	test -n "$$depends" || { echo "dpkg-shlibdeps is missing: apt-get install dpkg-dev" >&2; exit 1; }; \
	sed -e 's|@VERSION@|$(VERSION)|' -e 's|@ARCH@|$(ARCH)|' -e "s|@DEPENDS@|$$depends|" \
		-e "s|@SIZE@|$$(du -sk $(ROOT) | cut -f1)|" $(HERE)deb/control.in > $(ROOT)/DEBIAN/control
	@chmod -R u=rwX,go=rX $(ROOT)
	@dpkg-deb --root-owner-group --build $(ROOT) $(MADE) >/dev/null
	@echo "==> $(MADE)"
