# SPDX-License-Identifier: Apache-2.0
"""Fixtures that all tests share: samples, captures made by others, a browser, a link, and the program itself.

Tests of an `xdist_group` run one after another in one process. The group "live" has traffic whose rates and delays are
measured, where two tests would slow each other down. The group "counted" has real traffic, too, of which packets, drops and
words are compared. It and the other groups, which share a browser, a build, a link or all samples, wait for conditions and not
for times, so that they may run beside it. Tests marked `alone` measure times that a busy machine changes: no other test runs
beside them.
"""

from __future__ import annotations

import gc
import shutil
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import needs
from alone import Turns
from capture_link import CaptureLink, missing
from checkout import CAPTURES, SAMPLES, Run, SampleReport
from dropping_path import DroppingPath, made
from dropping_path import missing as no_path
from forked_commands import run_command
from report_page import VIEW, Page

# The same examples each time, as long as they take on a busy machine, in one folder.
IGNORED = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=IGNORED)
settings.load_profile("steady")


def heed_signals() -> None:
    """Who was started in the background or by nohup ignores signals, and so would every program that is tested."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda number, frame: None)  # a caught signal is not ignored in new programs
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


heed_signals()
TURNS = Turns()
# The tests of the suite are a million objects that stay: the collector must not look at all of them again and again.
gc.set_threshold(50_000, 20, 100)


#: A machine that is busy with others holds up a browser or a sender; a defect fails in each run.
HELD_UP = {"browser", "link", "path"}  # fixtures
HELD_UP_GROUPS = {"live", "counted", "experiment", "capture", "traffic-ends", "narrow-link", "lab-owner"}


def can_be_held_up(item: pytest.Item) -> bool:
    """Whether a test uses a browser or live traffic."""
    groups = {mark.args[0] for mark in item.iter_markers("xdist_group") if mark.args}
    return bool(HELD_UP & set(getattr(item, "fixturenames", ())) or HELD_UP_GROUPS & groups)


def pytest_configure(config: pytest.Config) -> None:
    """pytest-xdist 3.8 groups tests by Item._nodeid, which pytest 9.2 has no more: live tests would disturb each other."""
    if config.getoption("numprocesses", None) and pytest.version_tuple >= (9, 2):
        raise pytest.UsageError(
            "pytest-xdist does not group tests under pytest 9.2: install 'pytest<9.2', as setup.cfg says"
        )


def is_alone(item: pytest.Item | None) -> bool:
    """Whether no other test may run beside this one."""
    return item is not None and item.get_closest_marker("alone") is not None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that must be alone come first, one after another, so that the others wait once.

    Those that the machine can hold up run once more if they fail; the summary names them. A plain chroot may have neither /proc
    nor terminals: there, files whose tests use them are skipped.
    """
    items.sort(key=lambda item: not is_alone(item))
    for item in filter(can_be_held_up, items):
        item.add_marker(pytest.mark.flaky(reruns=1))
    absent = {word: reason for word, reason in {'"/proc': needs.proc(), "openpty": needs.terminal()}.items() if reason}
    for item in items if absent else []:
        text = item.path.read_text()
        if reasons := [reason for word, reason in absent.items() if word in text or word.replace('"', "'") in text]:
            item.add_marker(pytest.mark.skip(reason=reasons[0]))


def pytest_collection_finish() -> None:
    """From here on the collector looks at what tests make, and not at the tests."""
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    with TURNS.turn(is_alone(item), is_alone(nextitem)):
        return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Each reason why tests were skipped, once, with their number and files."""
    files: dict[str, list[str]] = {}
    for report in terminalreporter.stats.get("skipped", []):
        where, _, why = report.longrepr if isinstance(report.longrepr, tuple) else ("", 0, str(report.longrepr))
        files.setdefault(why.removeprefix("Skipped: "), []).append(Path(report.nodeid.partition("::")[0] or where).name)
    for why, names in sorted(files.items()):
        terminalreporter.write_line(f"skipped {len(names):4}  {why} ({', '.join(sorted(set(names)))})")


@pytest.fixture(params=CAPTURES, ids=lambda path: path.name)
def sample(request: pytest.FixtureRequest) -> Path:
    """Each of the sample captures."""
    path: Path = request.param
    return path


@pytest.fixture(scope="session")
def samples() -> Path:
    """The folder of sample captures."""
    return SAMPLES


@pytest.fixture(scope="session")
def real_captures() -> Path:
    """Captures made by others, beside the repository."""
    return needs.shared("captures")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Debian's Chromium, one for all tests of a worker."""
    needs.skip_without(needs.browser())
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=shutil.which(needs.BROWSER), args=["--no-sandbox"], timeout=90_000
        )
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def only_tab(browser: Any) -> Iterator[Any]:
    """A tab for pages of a worker: one that has compiled their scripts opens the next in half of the time."""
    opened = browser.new_page(viewport=VIEW)
    opened.set_default_timeout(90_000)
    yield opened
    opened.close()


@pytest.fixture
def page(only_tab: Any) -> Iterator[Page]:
    """An empty page (tests/support/report_page.py) in the tab of the worker."""
    page = Page(only_tab).clear()
    yield page
    page.ignore()


@pytest.fixture(scope="session")
def sample_report(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> SampleReport:
    """The report of a sample, made once by each worker."""
    import wiretale

    folder = tmp_path_factory.mktemp("reports")
    return cache(lambda name: wiretale.analyze(samples / name).report(folder / f"{name}.html"))


@pytest.fixture(scope="session")
def capture_link() -> Iterator[CaptureLink]:
    """A link between two interfaces, one for all tests of a worker."""
    needs.skip_without(missing())
    with made(CaptureLink()) as link:
        yield link


@pytest.fixture
def link(capture_link: CaptureLink, tmp_path: Path) -> CaptureLink:
    """The link, with daemons that capture into this test's folder."""
    capture_link.home = tmp_path
    return capture_link


@pytest.fixture(scope="module")
def path() -> Iterator[DroppingPath]:
    """Sender, router and receiver in namespaces; the router drops and delays."""
    needs.skip_without(no_path())
    with made(DroppingPath()) as path:
        yield path


@pytest.fixture(scope="session")
def wiretale_run() -> Run:
    """Runs `wiretale` as a user would, in a process of its own."""
    return run_command
