# SPDX-License-Identifier: Apache-2.0
"""wiretale experiment: plans that run themselves, and a report of what came of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from wiretale.cli.destination import STDOUT, add_overwrite, folder, note_written, page, print_page
from wiretale.cli.parser import exit_codes
from wiretale.cli.whole_number import port_number, whole_number

if TYPE_CHECKING:
    from wiretale.cli.parser import Commands
    from wiretale.traffic.experiment.endpoint import Endpoint
    from wiretale.traffic.experiment.plan import Plan, Test, Tracer
    from wiretale.traffic.experiment.run import Done

DESCRIPTION = """\
Run a plan of tests, and report on it. A plan defines which traffic is sent from where to where and how often
(docs/experiments.md).
"""
EXAMPLES = """\
# the built-in plans
wiretale experiment list
# a plan on this host, about ten seconds; its figures
wiretale experiment run quick -o quick/
wiretale experiment report quick/ -o report.html
"""
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
RUN_EXIT_CODES = {
    0: "done",
    2: "wrong usage or plan",
    3: "done, but a test failed (results.csv has the reason)",
    4: "no such plan or folder, or the receiver did not start",
    5: "a program or a permission is missing",
    130: "interrupted",
    143: "terminated",
}
FAILED = 3


def scale(text: str) -> float:
    """A factor over 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a factor over 0, as 0.1")
    return value


def endpoint(text: str) -> Endpoint:
    """Where a program is run."""
    from wiretale.traffic.experiment.endpoint import parse_endpoint

    try:
        return parse_endpoint(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None


def add_command(commands: Commands) -> None:
    """The command, its actions and their options."""
    parser = commands.add_parser(
        "experiment",
        usage="wiretale experiment list\nwiretale experiment run PLAN -o DIR [options]\n"
        "wiretale experiment report DIR -o FILE",
        description=DESCRIPTION,
    )
    parser.examples, parser.exit_codes = EXAMPLES, RUN_EXIT_CODES
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True, prog="wiretale experiment")
    listing = actions.add_parser(
        "list",
        help="list the built-in plans",
        usage="wiretale experiment list [--json]",
        description="List the built-in plans.",
    )
    listing.examples, listing.exit_codes = "wiretale experiment list", exit_codes(0, 2)
    listing.add_argument("--json", action="store_true", help="print one JSON object")
    listing.set_defaults(command=list_plans)
    add_run(actions)
    reporting = actions.add_parser(
        "report",
        help="write one page of figures",
        usage="wiretale experiment report DIR -o FILE",
        description="Write one page of figures from the results of `wiretale experiment run`.",
    )
    reporting.examples = "wiretale experiment report quick/ -o report.html"
    reporting.exit_codes = exit_codes(0, 2, 4)
    reporting.add_argument("folder", type=Path, metavar="DIR", help="the output of `wiretale experiment run`")
    reporting.add_argument(
        "-o", "--output", type=page, required=True, metavar="FILE", help="the HTML page to write; - for standard output"
    )
    add_overwrite(reporting)
    reporting.set_defaults(command=report)


def add_run(actions: Commands) -> None:
    """The action `run`."""
    parser = actions.add_parser(
        "run",
        help="run a plan",
        usage="wiretale experiment run PLAN -o DIR [options]",
        description=RUN_DESCRIPTION,
    )
    parser.examples, parser.exit_codes = RUN_EXAMPLES, RUN_EXIT_CODES
    parser.add_argument("plan", metavar="PLAN", help="name of a built-in plan, or a TOML file")
    run_options = parser.add_argument_group("run")
    run_options.add_argument(
        "-o", "--output", type=folder, metavar="DIR", help="folder of the results: results.csv, raw/ (JSON), captures/"
    )
    add_overwrite(run_options)
    run_options.add_argument("--dry-run", action="store_true", help="print every command, run none")
    run_options.add_argument(
        "--trials", type=whole_number(1, 1000), metavar="N", help="trials of each test (overrides the plan's)"
    )
    run_options.add_argument(
        "--scale", type=scale, default=1.0, metavar="X", help="factor for counts, times and offsets (default 1)"
    )
    run_options.add_argument("--file", metavar="FILE", help="send this file instead of the plan's payload")
    where = parser.add_argument_group("endpoints")
    where.add_argument(
        "--sender", type=endpoint, metavar="ENDPOINT", help="endpoint that sends: here, ssh:user@host or netns:NAME"
    )
    where.add_argument("--receiver", type=endpoint, metavar="ENDPOINT", help="endpoint that receives")
    where.add_argument("--host", metavar="ADDRESS", help="address of the receiver as the sender reaches it")
    where.add_argument("--port", type=port_number, metavar="PORT", help="port of the receiver, 1 to 65535")
    where.add_argument("--tracer", type=endpoint, metavar="ENDPOINT", help="endpoint that captures (the receiver)")
    where.add_argument("--interface", metavar="IF", help="capture on this interface")
    where.add_argument("--no-capture", action="store_true", help="capture nothing")
    parser.set_defaults(command=run)


def list_plans(arguments: argparse.Namespace) -> int:
    """The built-in plans."""
    from wiretale.traffic.experiment.plan import BUILT_IN, plan_text, read_plan

    plans = [read_plan(*plan_text(name)) for name in BUILT_IN]
    if arguments.json:
        import json

        listed = [{"name": plan.name, "title": plan.title, "tests": len(plan.tests)} for plan in plans]
        print(json.dumps({"schema": "wiretale.experiment-list/1", "plans": listed}))
        return 0
    for plan in plans:
        print(f"{plan.name:20}  {len(plan.tests):4} tests  {plan.title}")
    return 0


def chosen_tracer(plan: Plan, arguments: argparse.Namespace) -> Tracer | None:
    """The plan's tracer, as the options have it."""
    from wiretale.analyzer.errors import UsageError
    from wiretale.traffic.experiment.plan import Tracer

    if arguments.no_capture:
        return None
    tracer = plan.tracer
    if arguments.interface:
        if not arguments.interface.isprintable() or arguments.interface.startswith("-"):
            raise UsageError(f"--interface {arguments.interface!r}: expected the name of an interface")
        where = arguments.tracer or (tracer.endpoint if tracer else plan.receiver)
        old = tracer or Tracer(arguments.interface, where)
        return replace(old, interface=arguments.interface, endpoint=where, optional=False)
    if arguments.tracer and not tracer:
        raise UsageError("--tracer: expected --interface with it, because the plan names no interface to capture on")
    return replace(tracer, endpoint=arguments.tracer) if tracer and arguments.tracer else tracer


def chosen_plan(arguments: argparse.Namespace) -> Plan:
    """The plan as the options have it."""
    from wiretale.analyzer.errors import UsageError
    from wiretale.traffic.experiment.plan import plan_text, read_plan, scaled, with_file

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
    return scaled(plan, arguments.scale) if arguments.scale != 1 else plan


def note(text: str) -> None:
    """Something to know, on stderr."""
    from wiretale.analyzer.printable import printable

    print(f"wiretale: {printable(text)}", file=sys.stderr)


@contextmanager
def progress(plan: Plan) -> Iterator[Done]:
    """Shows how far it is, where stderr is a terminal; tests that fail are told anywhere."""

    def tell(test: Test, error: str | None) -> None:
        if error is not None:
            note(f"{test.name} failed: {error}")

    if not sys.stderr.isatty():
        yield tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[last]}", markup=False))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=len(plan.tests), last="")

        def show(test: Test, error: str | None) -> None:
            bar.update(task, advance=1, last=test.name)
            tell(test, error)

        yield show


def dry_run(plan: Plan) -> int:
    """Every command, on stdout."""
    from wiretale.analyzer.errors import WiretaleError
    from wiretale.traffic.experiment.commands import CAPTURE_PROGRAMS, all_commands
    from wiretale.traffic.program import program_path

    here = [one for one in CAPTURE_PROGRAMS if program_path(one.name)]
    try:
        for line in all_commands(plan, (here or CAPTURE_PROGRAMS)[0]):
            print(line)
    except WiretaleError as error:
        note(str(error))
        return error.exit_code
    return 0


def run(arguments: argparse.Namespace) -> int:
    """Runs a plan."""
    from wiretale.analyzer.errors import UsageError

    plan = chosen_plan(arguments)
    if arguments.dry_run:
        return dry_run(plan)
    if not arguments.output:
        raise UsageError("expected -o DIR, the folder of the results")
    from wiretale.traffic.experiment.run import run_plan
    from wiretale.traffic.experiment.store import RESULTS, Store

    store = Store(arguments.output)
    sent = {session.file for test in plan.tests for session in test.sessions if session.file}
    store.check([arguments.plan, *sent], arguments.overwrite)
    with progress(plan) as done:
        failed = run_plan(plan, store, note, done)
    note(f"wrote {arguments.output / RESULTS}" + (f"; {failed} of {len(plan.tests)} tests failed" if failed else ""))
    return FAILED if failed else 0


def report(arguments: argparse.Namespace) -> int:
    """Writes the page."""
    from wiretale.reports.export.destination import check_outputs
    from wiretale.reports.html.experiment import render, write_page
    from wiretale.traffic.experiment.outcome import read_outcome
    from wiretale.traffic.experiment.store import Store

    if arguments.output != STDOUT:
        check_outputs([arguments.output], Store(arguments.folder).files(), arguments.overwrite, page=True)
    outcome = read_outcome(arguments.folder)
    if arguments.output == STDOUT:
        print_page(render(outcome))
    else:
        note_written(write_page(outcome, arguments.output))
    return 0
