# SPDX-License-Identifier: Apache-2.0
# Each step prints its name, and stops with one error message if it fails. `make help` lists the targets.

PYTHON ?= python3
VENV ?= .venv
CC ?= cc
CLANG ?= clang
FUZZ_SECONDS ?= 60

export PYTHON CC
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Each of five processes would otherwise rewrite the assertions of all tests at each run.
export PYTHONDONTWRITEBYTECODE =

PY = $(VENV)/bin/python
say = @echo "==> $(1)"

CFLAGS_CORE = -std=gnu11 -O2 -g -Wall -Wextra -Werror -fvisibility=hidden
SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
LIBRARIES = -lpcap -lz -lzstd -llz4 -lsodium -lnettle -lm -lpthread

HEADERS = $(wildcard analyzer/core/*/*.h common/*.h)
MODULE_SOURCES = common/json.c common/sequence_window.c common/utf8.c $(filter-out analyzer/core/fuzz/%,$(wildcard analyzer/core/*/*.c))
CORE_SOURCES = $(filter-out analyzer/core/python/%,$(MODULE_SOURCES))
CORE_INCLUDES = -I. -Ianalyzer/core
C_TESTS = $(patsubst analyzer/core/%.c,%,$(wildcard analyzer/core/*/test/test_*.c))
FUZZERS = $(notdir $(basename $(wildcard analyzer/core/fuzz/fuzz_*.c capture/fuzz/fuzz_*.c)))
EXTENSION = analyzer/_core.abi3.so
# Folders of the C programs, and the name of the program of each.
PROGRAM_FOLDERS = traffic traffic/link capture
TESTED_FOLDERS = common $(PROGRAM_FOLDERS)
program_of = $(if $(filter traffic/link,$(1)),wiretale-link,wiretale-$(1))
PACKAGING = setup.cfg setup.py pyproject.toml

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r target text; do printf '  make %-12s %s\n' "$$target" "$$text"; done

# --- set-up -------------------------------------------------------------------------------------------------

.PHONY: setup
setup: $(VENV)/.stamp-run ## install system packages (apt-get, if root) and a virtual environment

# Installs only Python packages, because `build` compiles the core and the programs, each source once.
INSTALL = env WIRETALE_COMPILE=no $(PY) -m pip install --no-build-isolation -e

$(VENV)/.stamp-run: $(PACKAGING)
	$(call say,checking system packages)
	@.ci/packages build
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "wiretale needs Python 3.11 or later: set PYTHON=" >&2; exit 1; }
	@.ci/step "making the virtual environment $(VENV)" $(PYTHON) -m venv $(VENV)
	@.ci/step "installing setuptools and shtab into it" $(PY) -m pip install 'setuptools>=77' wheel 'shtab>=1.8'
	@.ci/step "installing wiretale and the libraries that it needs into it" $(INSTALL) .
	@touch $@

$(VENV)/.stamp-test: $(VENV)/.stamp-run
	$(call say,checking system packages for tests)
	@.ci/packages test
	@.ci/step "installing test tools into $(VENV)" $(INSTALL) '.[test]'
	@touch $@

$(VENV)/.stamp-lint: $(VENV)/.stamp-run
	@.ci/step "installing lint tools into $(VENV)" $(INSTALL) '.[lint]'
	@touch $@

$(VENV)/.stamp-docs: $(VENV)/.stamp-run
	@.ci/step "installing the tools of the documentation into $(VENV)" $(INSTALL) '.[docs]'
	@touch $@

$(VENV)/.stamp-wheels: $(VENV)/.stamp-run
	$(call say,checking system packages for wheels)
	@.ci/packages wheels
	@.ci/step "installing the tools of the wheels into $(VENV)" $(INSTALL) '.[wheels]'
	@touch $@

$(VENV)/.stamp-check: $(VENV)/.stamp-run
	$(call say,checking system packages for the fast tier)
	@.ci/packages check
	@.ci/step "installing the tools of the fast tier into $(VENV)" $(INSTALL) '.[check]'
	@touch $(VENV)/.stamp-lint $@

.PHONY: build
build: $(VENV)/.stamp-run $(EXTENSION) programs ## compile the core and the programs in this checkout
	@$(PY) -m compileall -q src/wiretale analyzer reports traffic # as an installation does; otherwise each start could compile them

JOBS = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc 2>/dev/null || echo 1))

.PHONY: programs
programs: $(VENV)/.stamp-run
	@$(foreach folder,$(PROGRAM_FOLDERS),$(MAKE) -s $(JOBS) -C $(folder) CFLAGS=-Werror PROGRAM=$(abspath $(VENV))/bin/$(call program_of,$(folder)) &&) true

$(EXTENSION): $(MODULE_SOURCES) $(HEADERS) analyzer/_core.pyi $(PACKAGING) | $(VENV)/.stamp-run
	@.ci/step "compiling the native core" env WIRETALE_CFLAGS=-Werror $(PY) setup.py -q build_ext --inplace
	@touch $@

# --- use ----------------------------------------------------------------------------------------------------

CAPTURE = sample_pcaps/tcp_losses.pcap

.PHONY: demo demo-capture
demo: demo-capture build ## set everything up, analyze a sample (or CAPTURE=x.pcap), print the path of the report
	$(call say,analyzing $(CAPTURE))
	@$(VENV)/bin/wiretale analyze "$(CAPTURE)" -o build/demo
	@echo "==> the report: file://$(CURDIR)/build/demo/report.html"
	@command -v wiretale >/dev/null || echo '==> put wiretale on your PATH: export PATH="$(abspath $(VENV))/bin:$$PATH"'
	@echo "==> then a capture of yours: wiretale FILE"

demo-capture:
	@[ -r "$(CAPTURE)" ] || { echo "make demo: $(CAPTURE): no such file, or not readable" >&2; exit 1; }

PREFIX ?= $(HOME)/.local
HOME_OF_IT = $(PREFIX)/lib/wiretale
PROGRAM_NAMES = wiretale wiretale-traffic wiretale-link wiretale-capture

.PHONY: install
install: $(VENV)/.stamp-run ## install programs, man pages and completions below PREFIX (~/.local)
	@rm -rf build/wheel
	@.ci/step "building the package" $(PY) -m pip wheel --no-build-isolation --no-deps -w build/wheel .
	@.ci/step "installing it into $(HOME_OF_IT)" sh -c '$(PYTHON) -m venv "$(HOME_OF_IT)" && "$(HOME_OF_IT)/bin/python" -m pip install --force-reinstall build/wheel/*.whl'
	@mkdir -p "$(PREFIX)/bin" "$(PREFIX)/share"
	@for name in $(PROGRAM_NAMES); do ln -sf "$(HOME_OF_IT)/bin/$$name" "$(PREFIX)/bin/$$name"; done
	@cd "$(HOME_OF_IT)/share" && cp -R man bash-completion zsh fish "$(PREFIX)/share/"
	@echo "==> installed: $(PREFIX)/bin/wiretale FILE"
	@case ":$$PATH:" in *":$(PREFIX)/bin:"*) ;; *) echo "==> $(PREFIX)/bin is not in PATH yet: PATH=$(PREFIX)/bin:\$$PATH" ;; esac

.PHONY: uninstall
uninstall: ## remove what `make install` made below PREFIX
	@rm -rf "$(HOME_OF_IT)"
	@for name in $(PROGRAM_NAMES); do rm -f "$(PREFIX)/bin/$$name"; done
	@rm -f "$(PREFIX)"/share/man/man1/wiretale.1 "$(PREFIX)"/share/man/man1/wiretale-*.1 \
		"$(PREFIX)/share/bash-completion/completions/wiretale" "$(PREFIX)/share/zsh/site-functions/_wiretale" \
		"$(PREFIX)/share/fish/vendor_completions.d/wiretale.fish"

.PHONY: docs
docs: $(VENV)/.stamp-docs build ## build the documentation as a site that needs no network, in build/site
	$(call say,building the documentation)
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict -q -f .ci/site/mkdocs.yml
	@echo "==> the documentation: file://$(CURDIR)/build/site/index.html"

# --- checks -------------------------------------------------------------------------------------------------

.PHONY: test
test: $(VENV)/.stamp-test build ## run all tests: C, then Python
	@$(MAKE) -s test-c test-page
	$(call say,running the Python tests)
	@$(VENV)/bin/pytest -q -n 5 $(PYTEST_ARGS)

CHECKED = tests/ci tests/scenarios \
	'tests/reports/test_report_mouse.py::test_a_report_opens_offline_and_every_panel_answers_the_mouse[tcp_losses.pcap]'

.PHONY: check
check: $(VENV)/.stamp-check build ## the fast tier: lint, C tests, scenarios, a report in a browser; 3 minutes on two cores
	@$(MAKE) -s lint
	@$(MAKE) -s test-c
	$(call say,running the scenarios, and a report in a browser)
	@$(VENV)/bin/pytest -q -n 2 $(CHECKED)

.PHONY: test-c
test-c:
	@$(MAKE) -s $(JOBS) $(C_TESTS:%=build/test/%)
	@for program in $(C_TESTS:%=build/test/%); do echo "==> running $$program"; $$program || exit 1; done
	@for folder in $(TESTED_FOLDERS); do $(MAKE) -s -C $$folder CFLAGS=-Werror test || exit 1; done

# What needs node is skipped without it: the pages do not.
NODE := $(if $(shell command -v npm),$(shell command -v node))
without_node = @echo "==> skipped, because node is missing: $(1)"

build/node/.stamp: package.json package-lock.json
	@mkdir -p $(@D) && cp package.json package-lock.json $(@D)
	@.ci/step "installing TypeScript into $(@D)" npm ci --prefix $(@D) --no-audit --no-fund
	@touch $@

.PHONY: test-page
test-page:
ifneq ($(NODE),)
	@.ci/step "testing modules of the pages" node --test $(wildcard tests/reports/page/test_*.js)
else
	$(call without_node,tests of modules of the pages)
endif

# The objects of the core in $(1), and the C tests linked with them in $(2), compiled with the flags $(3).
define core_tests
$(1)/%.o: %.c
	@mkdir -p $$(@D)
	@$$(CC) $$(CFLAGS_CORE) $(3) $$(CORE_INCLUDES) -MMD -MP -c $$< -o $$@

$(2)/%: analyzer/core/%.c $(CORE_SOURCES:%.c=$(1)/%.o)
	$$(call say,compiling $$<)
	@mkdir -p $$(@D)
	@$$(CC) $$(CFLAGS_CORE) $(3) -MMD -MP $$(CORE_INCLUDES) $$< $$(filter %.o,$$^) -o $$@ $$(LIBRARIES)
endef

$(eval $(call core_tests,build/core,build/test))
$(eval $(call core_tests,build/sanitize/core,build/sanitize/test,-O1 $(SANITIZE)))

# `make -k lint` continues after a check that fails.
.PHONY: lint lint-python lint-names lint-c lint-layers lint-page lint-docs
lint: lint-python lint-names types lint-c lint-layers lint-page lint-docs ## check style, names, types, size, layers, phrases and made documents

lint-python: $(VENV)/.stamp-lint
	$(call say,ruff)
	@$(VENV)/bin/ruff check -q .
	@$(VENV)/bin/ruff format -q --check .
	$(call say,lizard: functions up to 60 lines and complexity up to 15)
	@$(VENV)/bin/lizard -L 60 -C 15 -w -x './build/*' -x './.venv/*' src traffic capture common analyzer reports sample_pcaps benchmarks tests

lint-names:
	$(call say,names of Python files: few vague identifiers)
	@$(PYTHON) .ci/checks/names.py

lint-c: $(VENV)/.stamp-lint
	$(call say,clang-format)
	@$(VENV)/bin/clang-format --dry-run -Werror $(C_FILES)
	$(call say,gcc -fanalyzer (without leaks and shifts, which make sanitize checks: gcc reports false ones))
	@$(MAKE) -s $(JOBS) $(LINT_OBJECTS)

lint-layers: lint-c build types
	$(call say,layers and circles of files and folders)
	@$(PY) .ci/checks/includes.py
	@cd build/typing && $(abspath $(VENV))/bin/lint-imports --config $(CURDIR)/setup.cfg --no-logo

lint-page: $(if $(NODE),build/node/.stamp)
ifneq ($(NODE),)
	$(call say,tsc: types of the modules of the pages)
	@build/node/node_modules/.bin/tsc -p .
else
	$(call without_node,types of the modules of the pages)
endif

lint-docs: build $(VENV)/.stamp-lint docs
	$(call say,spelling: words and American forms)
	@$(VENV)/bin/codespell $(SPELLED)
	$(call say,phrases of comments and documents)
	@$(PY) .ci/checks/prose.py
	$(call say,docs/tables.md and docs/findings.md are up to date)
	@$(PY) .ci/make_docs.py --check
	$(call say,option tables of the C programs are those of their declarations)
	@$(PY) .ci/option_tables.py --check

SPELLED = README.md CONTRIBUTING.md docs sample_pcaps/README.md src analyzer reports traffic capture common

C_FILES = $(shell find analyzer benchmarks capture common traffic -name '*.[ch]')

LINT_OBJECTS = $(patsubst %.c,build/lint/%.o,$(shell find analyzer/core capture common traffic -name '*.c' \
	-not -path '*/test/*' -not -path '*/fuzz/*' -not -path '*/python/*'))
# A program's includes are relative to its folder; the core is compiled without the programs' macros.
LINT_FLAGS = -I. $(foreach folder,analyzer/core capture traffic/generator traffic/link,$(if $(filter $(folder)/%,$(1)),-I$(folder))) \
	$(if $(filter analyzer/%,$(1)),,-D_GNU_SOURCE -DWIRETALE_PROGRAM='""' -DWIRETALE_VERSION='""')

# gcc 12 takes vectors for single bits, and gcc 14 a descriptor that outlives its function for a leak.
FALSE_REPORTS = -Wno-analyzer-malloc-leak -Wno-analyzer-fd-leak -Wno-analyzer-shift-count-overflow

build/lint/%.o: %.c
	@mkdir -p $(@D)
	@$(CC) $(CFLAGS_CORE) $(call LINT_FLAGS,$<) -fanalyzer $(FALSE_REPORTS) -MMD -MP -c $< -o $@

.PHONY: types
types: build/typing $(VENV)/.stamp-lint
	$(call say,mypy)
	@$(VENV)/bin/mypy --no-error-summary
	@$(VENV)/bin/mypy --no-error-summary sample_pcaps/generator/*.py benchmarks/*/*.py benchmarks/*/*/*.py .ci/*.py .ci/checks/*.py .ci/site/*.py .ci/wheels/*.py

# Type checkers cannot follow package_dir, so they get links in the layout of the installed package.
.PHONY: build/typing
build/typing:
	@rm -rf $@ && mkdir -p $@/wiretale
	@ln -s $(CURDIR)/src/wiretale/* $(CURDIR)/analyzer $(CURDIR)/reports $(CURDIR)/traffic $@/wiretale/

BENCHMARK = PYTHONPATH=benchmarks $(PY) -m

.PHONY: bench
bench: $(VENV)/.stamp-test build build/bench/libpcap_loop ## measure speed and memory beside tcptrace, tshark and libpcap
	@.ci/packages bench
	@failed=0; $(BENCHMARK) speed.analyze --wiretale $(VENV)/bin/wiretale || failed=1; \
	$(BENCHMARK) speed.files --wiretale $(VENV)/bin/wiretale || failed=1; \
	$(BENCHMARK) speed.view --wiretale $(VENV)/bin/wiretale || failed=1; \
	$(BENCHMARK) speed.traffic --program $(VENV)/bin/wiretale-traffic || failed=1; \
	$(BENCHMARK) speed.pacing --program $(VENV)/bin/wiretale-traffic || failed=1; \
	$(BENCHMARK) speed.capture --program $(VENV)/bin/wiretale-capture || failed=1; \
	$(BENCHMARK) speed.stall --program $(VENV)/bin/wiretale-capture || failed=1; exit $$failed

SOAK_SECONDS ?= 1800

.PHONY: soak
soak: $(VENV)/.stamp-test build ## run a tracer for SOAK_SECONDS (1800) while disk, interface, clock and process fail, and account for each packet (as root)
	@$(MAKE) -s -C capture PROGRAM=$(CURDIR)/build/soak/wiretale-capture BUILD=$(CURDIR)/build/soak \
		LDFLAGS="$(CURDIR)/benchmarks/soak/clock_shift.c -Wl,--wrap=clock_gettime,--wrap=pcap_dispatch"
	@$(BENCHMARK) soak --program build/soak/wiretale-capture --seconds $(SOAK_SECONDS)

.PHONY: bench-scale
bench-scale: $(VENV)/.stamp-test build ## measure cost by packets, flows, files and jobs (all or AXES), write docs/performance.md
	@.ci/packages bench
	@$(BENCHMARK) speed.scale --wiretale $(VENV)/bin/wiretale $(if $(AXES),--axes $(AXES))
	@$(BENCHMARK) speed.performance_page

SAME_ROWS = sample_pcaps $(wildcard ../shared/captures ../shared/labelled build/bench/*.pcap)

.PHONY: same-rows
same-rows: build ## compare the rows of all captures for 1, 2, 3 and 8 jobs
	@$(PY) .ci/same_rows.py $(SAME_ROWS)

.PHONY: studies
studies: build ## repeat the published studies in emulated networks (as root), write docs/measured/studies.md
	@.ci/packages test
	@$(BENCHMARK) studies

.PHONY: accuracy
accuracy: $(VENV)/.stamp-test build ## score verdicts, limits and exchanges (as root), write docs/measured/{accuracy,savings,exchanges}.md
	@.ci/packages test bench
	@PYTHONPATH=benchmarks .ci/wireshark $(PY) -m score
	@$(BENCHMARK) score.savings
	@$(BENCHMARK) score.exchanges

TRIAL_SESSIONS = 100000
TRIAL_REMOVALS = 50
TRIAL_QUESTIONS = 1000

.PHONY: trials
trials: $(VENV)/.stamp-test build ## hostile sessions at a receiver with sanitizers, removals of a captured interface, and questions to `find` (as root)
	@.ci/packages bench
	@$(foreach folder,traffic,$(MAKE) -s -C $(folder) all $(SANITIZED_PROGRAM))
	@$(BENCHMARK) trials.sessions --program build/sanitize/bin/wiretale-traffic --count $(TRIAL_SESSIONS)
	@$(BENCHMARK) trials.removals --program $(VENV)/bin/wiretale-capture --count $(TRIAL_REMOVALS)
	@WIRETALE_QUESTIONS=$(TRIAL_QUESTIONS) $(PY) -m pytest -q -n0 tests/capture/test_find.py -k equals_a_scan

build/bench/%: benchmarks/speed/%.c
	@mkdir -p $(@D)
	@$(CC) -std=gnu11 -O2 -Wall -Wextra -Werror $< -o $@ -lpcap

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZ_SECONDS (60), starting from sample_pcaps
	@.ci/packages build fuzz
	@$(MAKE) -s $(FUZZERS:%=build/fuzz/%)
	@for name in $(FUZZERS); do .ci/fuzz $$name $(FUZZ_SECONDS) || exit 1; done

FUZZ = $(CLANG) -std=gnu11 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined

build/fuzz/%: analyzer/core/fuzz/%.c $(CORE_SOURCES) $(HEADERS)
	$(call say,compiling $<)
	@mkdir -p $(@D)
	@$(FUZZ) $(CORE_INCLUDES) $< $(CORE_SOURCES) -o $@ $(LIBRARIES)

# Fuzz targets of the daemon: all its sources except main().
CAPTURE_SOURCES = $(filter-out capture/main.c capture/fuzz/% common/test/%,$(wildcard capture/*.c capture/*/*.c common/*.c common/*/*.c))

build/fuzz/%: capture/fuzz/%.c $(CAPTURE_SOURCES) $(wildcard capture/*.h capture/*/*.h)
	$(call say,compiling $<)
	@mkdir -p $(@D)
	@$(FUZZ) -D_GNU_SOURCE -DWIRETALE_PROGRAM='""' -DWIRETALE_VERSION='""' -I. -Icapture $< $(CAPTURE_SOURCES) -o $@ -lpcap -lseccomp -lcap-ng -lzstd -lpthread -lm

.PHONY: sanitize
sanitize: $(VENV)/.stamp-test ## run all tests with AddressSanitizer and UndefinedBehaviorSanitizer
	@$(MAKE) -s $(JOBS) $(C_TESTS:%=build/sanitize/test/%)
	@for program in $(C_TESTS:%=build/sanitize/test/%); do echo "==> running $$program"; $$program || exit 1; done
	@$(foreach folder,$(TESTED_FOLDERS),$(MAKE) -s -C $(folder) all test $(SANITIZED_PROGRAM) &&) true
	@.ci/sanitize $(VENV) "$(SANITIZE)"

SANITIZED_PROGRAM = CFLAGS="-O1 $(SANITIZE)" LDFLAGS="$(SANITIZE)" BUILD=$(CURDIR)/build/sanitize/$(folder) \
	PROGRAM=$(CURDIR)/build/sanitize/bin/$(call program_of,$(folder))

.PHONY: deb deb-check
deb: ## build the Debian source package and its packages in dist/
	@.ci/packages build deb
	@.ci/deb

deb-check: deb ## install, start, upgrade and purge them in a bare Debian with systemd (as root)
	@.ci/packages fresh deb-check
	@.ci/deb_check

MACHINES = x86_64 aarch64
TRIED_x86_64 = bullseye bookworm trixie
TRIED_aarch64 = bookworm

.PHONY: wheels
wheels: $(VENV)/.stamp-wheels build ## build wheels that need no system libraries, in build/wheels; as root, try each in bare Debian
	@$(PY) .ci/wheels/wheel.py $(MACHINES)
	@[ "$$(id -u)" -ne 0 ] || $(foreach machine,$(MACHINES),.ci/wheels/roots build/wheels/wiretale-*_$(machine).whl $(machine) $(TRIED_$(machine)) &&) true

.PHONY: macos
macos: $(VENV)/.stamp-wheels ## compile the core for macOS, on which it is not run
	@$(PY) .ci/wheels/macos.py

.PHONY: fresh
fresh: ## run make demo and make check in bare Debian 12 and 13, and make test in one (as root; see .ci/fresh for FRESH_*)
	@.ci/packages fresh
	@.ci/fresh

$(VENV)/.stamp-release: $(VENV)/.stamp-run
	@.ci/step "installing the tools of a release into $(VENV)" $(INSTALL) '.[release]'
	@touch $@

.PHONY: release
release: $(VENV)/.stamp-release build ## build all files of a release in dist/, and check that they may be published; uploads nothing
	@VENV=$(VENV) .ci/release

.PHONY: owner
owner: ## write addresses that only the owner knows (.ci/owner.toml) where they belong
	@$(PYTHON) .ci/owner.py

.PHONY: clean
clean: ## remove all built files and the virtual environment
	$(call say,removing build and $(VENV))
	@rm -rf build dist *.egg-info src/*.egg-info $(EXTENSION) $(VENV)
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.SECONDARY:
-include $(shell find build/core build/test build/lint build/sanitize/core build/sanitize/test -name '*.d' 2>/dev/null)
