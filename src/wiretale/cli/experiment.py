# SPDX-License-Identifier: Apache-2.0
"""Run a plan of tests, and report on it. A plan defines which traffic is sent between which endpoints, and how often
(docs/experiments.md).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from wiretale.cli import options, process
from wiretale.cli.options import add_json, add_overwrite, note, option

if TYPE_CHECKING:
    from wiretale.cli.parser import Commands, Parser
    from wiretale.traffic.experiment.endpoint import Endpoint
    from wiretale.traffic.experiment.plan import Plan, Test, Tracer
    from wiretale.traffic.experiment.run import Done
    from wiretale.traffic.experiment.store import Store

USAGE = """\
wiretale experiment list
wiretale experiment run PLAN -o DIR [options]
wiretale experiment report DIR -o FILE
wiretale experiment serve DIR"""
EXAMPLES = """\
# the built-in plans
wiretale experiment list
# a plan on this host, about ten seconds; its figures
wiretale experiment run quick -o quick/
wiretale experiment report quick/ -o report.html
"""
RUN_USAGE = "wiretale experiment run PLAN -o DIR [options]"
RUN_DESCRIPTION = """\
Run a plan: start the receiver, then for each test the tracer and the senders. Rerun the command to resume an interrupted
run.
"""
RUN_EXAMPLES = """\
wiretale experiment run quick -o quick/
# a receiver on another host
wiretale experiment run s2-controller-sweep -o s2/ --receiver ssh:me@far --host 192.0.2.7
# between two network namespaces
wiretale experiment run s5-rate-sweep -o s5/ --sender netns:a --receiver netns:b --host 10.0.0.2 --interface veth0
# the commands of a plan of your own, at a tenth of its length
wiretale experiment run my-plan.toml -o out/ --scale 0.1 --dry-run
"""
EXIT_CODES = (0, 2, 3, 4, 5, 130, 143)
EXIT_TEXTS = {
    2: "wrong usage or plan",
    3: "done, but a test failed (results.csv has the reason)",
    4: "no such plan or directory, or the receiver did not start",
    5: "a program or a permission is missing",
    130: "interrupted (Ctrl-C)",
    143: "terminated (SIGTERM, SIGHUP)",
}
SERVE_USAGE = "wiretale experiment serve DIR [--files FOLDER] [--port N] [--open]"
SERVE_DESCRIPTION = """\
Open a page that runs experiments: choose a plan or a test of your own, on this host or over the link of a lab's profile; see
progress and figures grow, stop, and compare with published figures and earlier runs. The page is served on 127.0.0.1 until
Ctrl-C, at an address with a random token, by a process without rights; runs stay in DIR.
"""
SERVE_EXAMPLES = """\
wiretale experiment serve runs/ --open
# runs over a lab need root, or a kernel that allows user namespaces
sudo wiretale experiment serve runs/
"""
REPORT_EXAMPLE = "wiretale experiment report quick/ -o report.html"
FAILED = 3
CASES_SHOWN = 12  # lines of the result of a run


def endpoint(text: str) -> Endpoint:
    """Returns the host or namespace that runs a program."""
    from wiretale.traffic.experiment.endpoint import parse_endpoint

    try:
        return parse_endpoint(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None


def add_options(parser: Parser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True, prog="wiretale experiment")
    usage, text = "wiretale experiment list [--json]", "list the built-in plans"
    listing = actions.add_parser("list", help=text, usage=usage, description="List the built-in plans.")
    add_json(listing.describe("wiretale experiment list", (0, 2)))
    listing.set_defaults(command=list_plans)
    add_run(actions)
    text = "Write one page of figures from the results of `wiretale experiment run`."
    usage = "wiretale experiment report DIR -o FILE"
    reporting = actions.add_parser("report", help="write one page of figures", usage=usage, description=text)
    reporting.describe(REPORT_EXAMPLE, (0, 2, 4))
    option(reporting, "folder", "DIR", "the output of `wiretale experiment run`", type=Path)
    text = "the HTML page to write; - for standard output"
    option(reporting, "-o --output", "FILE", text, type=options.file_or_stdout, required=True)
    add_overwrite(reporting)
    reporting.set_defaults(command=report)
    add_serve(actions)


def add_run(actions: Commands) -> None:
    """Adds the action `run`."""
    parser = actions.add_parser("run", help="run a plan", usage=RUN_USAGE, description=RUN_DESCRIPTION)
    parser.describe(RUN_EXAMPLES, EXIT_CODES, meanings=EXIT_TEXTS)
    option(parser, "plan", "PLAN", "name of a built-in plan, or a TOML file")
    group = parser.add_argument_group("run")
    text = "directory of the results: results.csv, raw/ (JSON), captures/"
    option(group, "-o --output", "DIR", text, type=options.folder)
    add_overwrite(group)
    option(group, "--dry-run", None, "print every command, run none")
    option(group, "--trials", "N", "trials of each test (overrides the plan's)", type=options.whole_number(1, 1000))
    option(group, "--scale", "X", "factor for counts, times and offsets (default: 1)", type=options.factor, default=1.0)
    option(group, "-P --min-size", "SIZE", "leave out tests with smaller blocks: 512, 1KiB")
    text = "send at least this many blocks in each session with a count"
    option(group, "-L --min-count", "N", text, type=options.whole_number(1, 2**53))
    option(group, "--file", "FILE", "send this file instead of the plan's payload")
    group = parser.add_argument_group("endpoints")
    text = "endpoint that sends: here, ssh:user@host or netns:NAME"
    option(group, "--sender", "ENDPOINT", text, type=endpoint)
    option(group, "--receiver", "ENDPOINT", "endpoint that receives", type=endpoint)
    option(group, "--host", "ADDRESS", "address of the receiver as the sender reaches it")
    option(group, "--port", "PORT", "port of the receiver, 1 to 65535", type=options.port_number)
    option(group, "--tracer", "ENDPOINT", "endpoint that captures (the receiver)", type=endpoint)
    option(group, "--interface", "IF", "capture on this interface")
    option(group, "--no-capture", None, "capture nothing")
    parser.set_defaults(command=run)


def add_serve(actions: Commands) -> None:
    """Adds the action `serve`."""
    parser = actions.add_parser(
        "serve", help="run experiments from a page", usage=SERVE_USAGE, description=SERVE_DESCRIPTION
    )
    parser.describe(SERVE_EXAMPLES, (0, 2, 4, 5, 130, 143))
    option(parser, "folder", "DIR", "directory of the runs", type=options.folder)
    option(parser, "--files", "FOLDER", "offer the files in this directory for sending", type=Path)
    text = "port to listen on (default: any free one)"
    option(parser, "--port", "N", text, type=options.port_number, default=0)
    option(parser, "--open", None, "open the page in the browser")
    parser.set_defaults(command=serve)


def list_plans(arguments: argparse.Namespace) -> int:
    """wiretale experiment list."""
    from wiretale.traffic.experiment.plan import BUILT_IN, plan_text, read_plan

    plans = [read_plan(*plan_text(name)) for name in BUILT_IN]
    if arguments.json:
        listed = [{"name": plan.name, "title": plan.title, "tests": len(plan.tests)} for plan in plans]
        options.print_json({"schema": "wiretale.experiment-list/1", "plans": listed})
        return 0
    for plan in plans:
        print(f"{plan.name:20}  {len(plan.tests):4} tests  {plan.title}")
    return 0


def chosen_tracer(plan: Plan, arguments: argparse.Namespace) -> Tracer | None:
    """Returns the plan's tracer with the changes of the options. UsageError if an interface is missing or invalid."""
    from wiretale.analyzer.errors import UsageError
    from wiretale.traffic.experiment.plan import Tracer

    if arguments.no_capture:
        return None
    tracer = plan.tracer
    if arguments.interface:
        if not arguments.interface.isprintable() or arguments.interface.startswith("-"):
            raise UsageError(f"--interface {arguments.interface!r}: expected the name of an interface")
        host = arguments.tracer or (tracer.endpoint if tracer else plan.receiver)
        old = tracer or Tracer(host, arguments.interface)
        return replace(old, interface=arguments.interface, endpoint=host, optional=False)
    if arguments.tracer and not tracer:
        raise UsageError("--tracer needs --interface, because the plan has no interface to capture on")
    return replace(tracer, endpoint=arguments.tracer) if tracer and arguments.tracer else tracer


def chosen_plan(arguments: argparse.Namespace) -> Plan:
    """Returns the plan with the changes of the options."""
    from wiretale.analyzer.errors import UsageError
    from wiretale.analyzer.units import parse_size
    from wiretale.traffic.experiment.plan import plan_text, read_plan, scaled, with_file, with_least

    plan = read_plan(*plan_text(arguments.plan), trials=arguments.trials)
    follows = plan.tracer and plan.tracer.endpoint == plan.receiver
    plan = replace(
        plan,
        sender=arguments.sender or plan.sender,
        receiver=arguments.receiver or plan.receiver,
        address=arguments.host or plan.address,
        port=arguments.port or plan.port,
    )
    if plan.address.startswith("-") or not plan.address.isprintable():
        raise UsageError(f"--host {plan.address!r}: expected an address")
    if follows and plan.tracer:
        plan = replace(plan, tracer=replace(plan.tracer, endpoint=plan.receiver))
    plan = replace(plan, tracer=chosen_tracer(plan, arguments))
    if arguments.file:
        plan = with_file(plan, arguments.file)
    plan = scaled(plan, arguments.scale) if arguments.scale != 1 else plan
    return with_least(plan, arguments.min_size and parse_size(arguments.min_size), arguments.min_count)


@contextmanager
def progress(plan: Plan, store: Store) -> Iterator[Done]:
    """Reports tests that fail; shows the progress if stderr is a terminal: tests, time left, and the last result."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[last]}", markup=False),
    )
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("", total=len(plan.tests), last="")

    def show(test: Test, error: str | None) -> None:
        bar.update(task, advance=1, last=last_result(store, test.name))
        if error is not None:
            note(f"{test.name} failed: {error}")

    with bar if sys.stderr.isatty() else nullcontext():
        yield show


def last_result(store: Store, name: str) -> str:
    """Returns a test with the rate that its sessions received together."""
    from wiretale.analyzer.units import show_rate
    from wiretale.traffic.experiment.results import rows

    rates = [row["throughput_mbit_s"] for row in rows([store.test(name)])]
    return name if None in rates else f"{name}: {show_rate(sum(rates) * 1e6)}"


def dry_run(plan: Plan) -> int:
    """Prints every command."""
    from wiretale.analyzer.errors import WiretaleError
    from wiretale.traffic.experiment.commands import CAPTURE_PROGRAMS, all_commands
    from wiretale.traffic.program import program_path

    installed = [program for program in CAPTURE_PROGRAMS if program_path(program.name)]
    try:
        for line in all_commands(plan, (installed or CAPTURE_PROGRAMS)[0]):
            print(line)
    except WiretaleError as error:
        note(str(error))
        return error.exit_code
    return 0


def run(arguments: argparse.Namespace) -> int:
    """wiretale experiment run."""
    from wiretale.analyzer.errors import UsageError

    plan = chosen_plan(arguments)
    if arguments.dry_run:
        return dry_run(plan)
    if not arguments.output:
        raise UsageError("expected -o DIR, the directory of the results")
    from wiretale.analyzer.units import plural
    from wiretale.traffic.experiment.run import run_plan
    from wiretale.traffic.experiment.store import RESULTS, Store

    store = Store(arguments.output)
    sessions = [session for test in plan.tests for session in test.sessions]
    sent = {path for session in sessions for path in (session.file, session.pattern, session.turns) if path}
    store.check([arguments.plan, *sent], arguments.overwrite)
    with progress(plan, store) as done:
        failed = run_plan(plan, store, note, done)
    note(
        f"wrote {arguments.output / RESULTS}"
        + (f"; {failed} of {plural(len(plan.tests), 'test')} failed" if failed else "")
    )
    show_result(arguments.output)
    return FAILED if failed else 0


def show_result(folder: Path) -> None:
    """Prints the means of each case, and the next command."""
    import csv
    import shlex

    from wiretale.reports.terminal.console import print_parts
    from wiretale.reports.terminal.fitted import Column, fitted
    from wiretale.traffic.experiment.store import SUMMARIES

    cases: dict[tuple[str, ...], dict[str, float]] = {}
    with (folder / SUMMARIES).open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            case = tuple(row[name] for name in ("group", "session", "block_bytes", "offered_mbit_s", "settings"))
            cases.setdefault(case, {})[row["measure"]] = float(row["mean"])
    rows = [case_cells(case, means) for case, means in list(cases.items())[:CASES_SHOWN]]
    heads = Column("blocks", True), Column("offered", True, 1), Column("arrived", True), Column("lost", True)
    columns = (Column("test", breaks_after=","), *heads)
    print_parts(sys.stdout, lambda console: [fitted(columns, rows, console.width)])
    if len(cases) > CASES_SHOWN:
        print(f"and {len(cases) - CASES_SHOWN:,} more: {folder / SUMMARIES}")
    page = folder / "report.html"
    print(f"next: wiretale experiment report {shlex.quote(str(folder))} -o {shlex.quote(str(page))}")


def case_cells(case: tuple[str, ...], means: dict[str, float]) -> list[str]:
    """Returns the cells of a case: the means over its trials."""
    from wiretale.analyzer.printable import printable
    from wiretale.analyzer.units import UNKNOWN, show_bytes, show_count, show_rate

    group, session, block, offered, settings = case
    name = ", ".join(dict.fromkeys(filter(None, (group, session, settings))))
    rate, lost = means.get("throughput_mbit_s"), means.get("packets_lost")
    return [
        printable(name),
        show_bytes(float(block)) if block else UNKNOWN,
        show_rate(float(offered) * 1e6) if offered else UNKNOWN,
        show_rate(rate * 1e6) if rate is not None else UNKNOWN,
        show_count(lost) if lost is not None else UNKNOWN,
    ]


def report(arguments: argparse.Namespace) -> int:
    """wiretale experiment report."""
    from wiretale.reports.export.destination import check_outputs
    from wiretale.reports.html.experiment.page import render, write_page
    from wiretale.traffic.experiment.results import read_outcome
    from wiretale.traffic.experiment.store import Store

    if arguments.output != options.STDOUT:
        check_outputs([arguments.output], Store(arguments.folder).files(), arguments.overwrite, page=True)
    outcome = read_outcome(arguments.folder)
    if arguments.output == options.STDOUT:
        options.print_page(render(outcome))
    else:
        note(f"wrote {write_page(outcome, arguments.output)}")
    return 0


def serve(arguments: argparse.Namespace) -> int:
    """wiretale experiment serve."""
    from wiretale.reports.html.experiment.console import console_page
    from wiretale.reports.view.apart import Apart, Page
    from wiretale.reports.view.server import Answer
    from wiretale.traffic.console.form import FORM_PLAN, addresses, files_of, links, read_form
    from wiretale.traffic.console.runs import Runs, usable
    from wiretale.traffic.experiment.plan import BUILT_IN, plan_text, read_plan
    from wiretale.traffic.experiment.published import networks

    sent: Path | None = arguments.files
    files_of(sent)  # InputError before anything is made
    folder: Path = usable(arguments.folder)
    runs = Runs(folder)
    plans = [(name, read_plan(*plan_text(name)).title) for name in BUILT_IN]
    plans.append((FORM_PLAN, "A test of your own"))
    places = addresses(""), addresses(links()[0])
    page = console_page(str(folder), plans, links(), places, networks(), sent is not None).encode()

    answers: dict[str, Answer] = {
        "state": lambda _: {**runs.state(), "files": files_of(sent)},
        "figures": lambda query: runs.figures(
            query.get("run", ""), query.get("with", "").split(), query.get("published", "")
        ),
    }
    actions: dict[str, Answer] = {
        "start": lambda fields: runs.start(read_form(fields, sent)),
        "stop": lambda _: runs.stop(),
    }
    pages: dict[str, Page] = {"report": lambda query: runs.report(query.get("run", ""))}
    try:
        with Apart(lambda: page, answers, actions, pages, arguments.port) as server:
            print(server.url, flush=True)
            if arguments.open:
                import webbrowser

                webbrowser.open(server.url)
            server.serve_forever()
    except KeyboardInterrupt:
        return process.interrupted_code() if process.terminated else 0
    finally:
        runs.close()
    return 0
