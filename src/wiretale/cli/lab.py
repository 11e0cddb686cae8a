# SPDX-License-Identifier: Apache-2.0
"""Run hosts joined by an emulated link on this machine; the link delays, drops and reorders packets and logs the fate of
each. Needs root, or a kernel that allows user namespaces.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from wiretale.analyzer.errors import UsageError
from wiretale.cli.help_text import text_lines
from wiretale.cli.options import add_json, add_overwrite, factor, folder, note, option, print_json, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from wiretale.cli.parser import Commands, Parser
    from wiretale.traffic.lab.state import Lab


USAGE = "wiretale lab ACTION [options]"
NOTES = "To define your own link, write a TOML file: docs/lab.md."
EXAMPLES = """\
# sender, tracer and receiver, joined by a long lossy path
wiretale lab up wan
wiretale lab shell sender
wiretale lab down wan
# a published simulation: captures, truth, report
wiretale lab run s6-narrow-link -o narrow/
# a plan of wiretale experiment over an emulated link
wiretale lab run s5-rate-sweep --profile wlan-g -o sweep/
# the precision of the link on this machine
wiretale lab check
"""
EXIT_CODES = (0, 2, 4, 5, 130, 143)
# The help of each action: text, usage, examples.
UP = ("make a lab that stays up", "PROFILE [NAME] [options]", "wiretale lab up wan\nwiretale lab up wan mine")
RUN = (
    "run a scenario or a plan in a lab of its own",
    "SCENARIO|PLAN -o DIR [options]",
    "wiretale lab run s6-narrow-link -o narrow/\nwiretale lab run s5-rate-sweep --profile wlan-g -o sweep/",
)
SHELL = (
    "run a shell, or a command, on a host of a lab",
    "[NAME] HOST [--name NAME] [--] [COMMAND...]",
    "wiretale lab shell receiver\nwiretale lab shell mine sender -- ping -c 3 receiver",
)
ATTACH = (
    "connect an existing network namespace or container with a host of a lab",
    "HOST TARGET [--name NAME]",
    "wiretale lab attach sender netns:mine\nwiretale lab attach receiver pid:4711",
)
DOWN = (
    "remove a lab that no process uses",
    "[NAME | --name NAME | --all] [--force]",
    "wiretale lab down mine\n# every lab that no process uses, also after a crash\nwiretale lab down --all",
)
LIST = ("list labs and profiles", "[--json]", "wiretale lab list")
CHECK = ("measure the link's precision on this machine", "[--json]", "wiretale lab check --json")
ALL_HELP = "remove every lab that no process uses (lab run, lab shell …), also after a crash"
SEED_HELP = "random seed (overrides the profile's)"


def add_action(
    actions: Commands, name: str, words: tuple[str, str, str], action: Callable[[argparse.Namespace], int]
) -> Parser:
    """Adds an action."""
    text, usage, examples = words
    described = f"{text[0].upper()}{text[1:]}."
    parser = actions.add_parser(name, help=text, usage=f"wiretale lab {name} {usage}", description=described)
    parser.set_defaults(command=run, action=action)
    return parser.describe(examples, EXIT_CODES)


def add_name(parser: Parser, text: str) -> None:
    """Adds the name of a lab, as an argument or as --name."""
    option(parser, "name", "NAME", text, nargs="?", default=argparse.SUPPRESS)
    option(parser, "--name", "NAME", "the same as an option")


def add_options(parser: Parser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True, prog="wiretale lab")
    up = add_action(actions, "up", UP, up_action)
    option(up, "profile", "PROFILE", "name of a profile (wiretale lab list), or a TOML file")
    add_name(up, "name of the lab (default: the profile's)")
    option(up, "-o --output", "DIR", "directory of the truth: truth.parquet once the lab is down", type=folder)
    add_overwrite(up)
    option(up, "--seed", "N", SEED_HELP, type=int)
    scenario = add_action(actions, "run", RUN, run_action)
    option(scenario, "scenario", "SCENARIO|PLAN", "a scenario (s6, s6-base …), or a plan of wiretale experiment")
    option(
        scenario, "-o --output", "DIR", "directory of captures, truth, results and report", type=folder, required=True
    )
    add_overwrite(scenario)
    option(scenario, "--profile", "PROFILE", "link that a plan runs over: a profile or a TOML file (same-switch)")
    option(scenario, "--seed", "N", SEED_HELP, type=int)
    option(scenario, "--trials", "N", "trials of each test of a plan", type=whole_number(1, 1000))
    option(scenario, "--scale", "X", "factor for counts, times and offsets of a plan", type=factor)
    option(scenario, "--json", None, "print the results as one JSON object")
    shell = add_action(actions, "shell", SHELL, shell_action)
    option(
        shell, "host", "[NAME] HOST", "sender, tracer, receiver or another of the profile, after the name of its lab"
    )
    option(shell, "program", "COMMAND", "command to run instead of a shell", nargs=argparse.REMAINDER)
    option(shell, "--name", "NAME", "name of the lab, if there are several")
    attach = add_action(actions, "attach", ATTACH, attach_action)
    option(attach, "host", "HOST", "sender or receiver, which routes its packets over the link")
    option(attach, "target", "TARGET", "netns:NAME, or pid:NUMBER of a process in it, such as a container's")
    option(attach, "--name", "NAME", "name of the lab, if there are several")
    down = add_action(actions, "down", DOWN, down_action)
    add_name(down, "name of the lab, if there are several")
    option(down, "--all", None, ALL_HELP)
    option(down, "--force", None, "also remove labs that are in use, and end the processes that use them")
    add_json(add_action(actions, "list", LIST, list_action))
    add_json(add_action(actions, "check", CHECK, check_action))


def run(arguments: argparse.Namespace) -> int:
    """Runs an action with the rights that it needs."""
    from wiretale.traffic.lab.rights import with_rights

    with_rights(keeping=arguments.action in (up_action, shell_action, down_action, list_action))
    code: int = arguments.action(arguments)
    return code


def up_action(arguments: argparse.Namespace) -> int:
    """wiretale lab up."""
    from wiretale.traffic.lab.lifecycle import lab_up
    from wiretale.traffic.lab.profile import load_profile
    from wiretale.traffic.lab.rights import end_holder
    from wiretale.traffic.lab.run import check_lab_folder, with_seed
    from wiretale.traffic.lab.state import known_labs
    from wiretale.traffic.lab.topology.network import addresses

    try:
        profile = with_seed(load_profile(arguments.profile), arguments.seed)
        if arguments.output:
            check_lab_folder(arguments.output, [arguments.profile], arguments.overwrite)
        lab = lab_up(profile, arguments.name or profile.name, arguments.output)
    finally:
        if not known_labs():
            end_holder()
    hosts = ", ".join(f"{host} {address}" for host, address in addresses(lab).items())
    note(f"the lab {lab.name} is up: {hosts}")
    note(f"wiretale lab shell sender --name {lab.name}")
    return 0


def run_action(arguments: argparse.Namespace) -> int:
    """wiretale lab run."""
    from wiretale.traffic.lab.run import run_lab

    chosen = {"--trials": arguments.trials, "--scale": arguments.scale}
    changes = [word for name, value in chosen.items() if value is not None for word in (name, f"{value:g}")]
    results = run_lab(
        arguments.scenario, arguments.output, arguments.profile, arguments.seed, note, arguments.overwrite, changes
    )
    if arguments.json:
        print_json(results)
    else:
        from wiretale.reports.terminal.lab import print_fidelity, print_rows

        (print_fidelity if results["schema"] == "wiretale.lab-plan/1" else print_rows)(results, sys.stdout)
    return 0


def lab_and_host(words: list[str]) -> tuple[str | None, str]:
    """Returns the host of `[NAME] HOST ...`, after the name of its lab or None. A first word may be both names."""
    from wiretale.analyzer.units import one_of
    from wiretale.traffic.lab.state import HOSTS, known_labs

    labs = {lab.name: lab.spaces for lab in known_labs()}
    hosts = list(dict.fromkeys((*HOSTS, *(space for spaces in labs.values() for space in spaces))))
    first, second = (*words, "")[:2]
    if second and (second in labs.get(first, ()) or (first not in hosts and (first in labs or second in hosts))):
        name, host = first, second
    else:
        name, host = None, first
    if host not in hosts:
        raise UsageError(f"{host}: expected {one_of(hosts)}, or the name of a lab before one of them")
    return name, host


def shell_words(name: str | None, words: list[str]) -> tuple[str | None, str, list[str]]:
    """Returns lab, host and command from `[NAME] HOST [--name NAME] [--] COMMAND...`; argparse passes all words after HOST."""
    first, host = lab_and_host(words)
    words = words[2 if first else 1 :]
    if words[:1] == ["--name"] and len(words) > 1:
        _, name, *words = words
    elif words[:1] and words[0].startswith("--name="):
        name, words = words[0].removeprefix("--name="), words[1:]
    if words[:1] == ["--"]:
        words = words[1:]
    elif words and words[0].startswith("-"):
        raise UsageError(f"{words[0]}: expected --name NAME, -- or a command; see `wiretale lab shell --help`")
    if len({first, name} - {None, ""}) > 1:
        raise UsageError(f"{first} and {name}: expected the name of one lab")
    return first or name, host, words


def shell_action(arguments: argparse.Namespace) -> int:
    """wiretale lab shell: the process becomes the program."""
    from wiretale.analyzer.units import one_of
    from wiretale.traffic.lab.lifecycle import lab_status
    from wiretale.traffic.lab.rights import is_elsewhere
    from wiretale.traffic.lab.state import find_lab

    name, host, words = shell_words(arguments.name, [arguments.host, *arguments.program])
    lab = find_lab(name)
    if is_elsewhere(lab) or lab_status(lab) == "gone":
        raise UsageError(
            f"the lab {lab.name} is {lab_status(lab)}: expected one that is up; `wiretale lab down {lab.name}` removes it"
        )
    if host not in lab.spaces:
        raise UsageError(f"{host}: expected a host of the lab {lab.name}: {one_of(lab.spaces)}")
    command = lab.inside(host, *(words or [os.environ.get("SHELL", "/bin/sh")]))
    sys.stdout.flush()
    os.environ["WIRETALE_HOST"] = f"{lab.name}-{host}"
    os.execve(command[0], command, lab.environment())


def attach_action(arguments: argparse.Namespace) -> int:
    """wiretale lab attach."""
    from wiretale.traffic.lab.hosts import ADDRESSES
    from wiretale.traffic.lab.lifecycle import lab_status
    from wiretale.traffic.lab.rights import is_elsewhere
    from wiretale.traffic.lab.state import find_lab
    from wiretale.traffic.lab.topology.attach import attach_space

    if arguments.host not in ADDRESSES:
        raise UsageError(f"{arguments.host}: expected sender or receiver")
    lab = find_lab(arguments.name)
    if is_elsewhere(lab) or lab_status(lab) != "up":
        raise UsageError(f"the lab {lab.name} is {lab_status(lab)}: expected one that is up and was made by root")
    address = attach_space(lab, arguments.host, arguments.target)
    other = next(name for name in ADDRESSES if name != arguments.host)
    note(f"{arguments.target} is attached as {address}; over the link: {other}, {ADDRESSES[other][0]}")
    return 0


def labs_to_remove(name: str | None, every: bool, force: bool) -> list[Lab]:
    """Returns the labs to remove: those that no running process uses, or all if `force`."""
    from wiretale.traffic.lab.hosts import user_of
    from wiretale.traffic.lab.state import find_lab, known_labs

    labs = [find_lab(name)] if name else known_labs()
    users = {} if force else {lab.name: user for lab in labs if (user := user_of(lab))}
    if name and users:
        raise UsageError(f"the lab {name} is in use by {users[name]}: stop that process, or add --force")
    for used, user in users.items():
        note(f"the lab {used} is kept: {user} uses it")
    free = [lab for lab in labs if lab.name not in users]
    if name or every or len(free) == 1:
        return free
    raise UsageError(f"expected the name of a lab, or --all (labs: {', '.join(lab.name for lab in labs) or 'none'})")


def down_action(arguments: argparse.Namespace) -> int:
    """wiretale lab down."""
    from wiretale.reports.terminal.lab import fidelity_text
    from wiretale.traffic.lab.lifecycle import lab_down
    from wiretale.traffic.lab.link import summary_if_any
    from wiretale.traffic.lab.rights import end_holder
    from wiretale.traffic.lab.state import known_labs

    for lab in labs_to_remove(arguments.name, arguments.all, arguments.force):
        lab_down(lab)
        note(f"the lab {lab.name} is down")
        if lab.keeps and not lab.owner and (summary := summary_if_any(lab)):
            note(fidelity_text(summary["fidelity"]))
    if not known_labs():
        end_holder()
    return 0


def list_action(arguments: argparse.Namespace) -> int:
    """wiretale lab list."""
    from wiretale.traffic.lab.lifecycle import lab_status
    from wiretale.traffic.lab.profile import load_profile, profile_names
    from wiretale.traffic.lab.state import known_labs
    from wiretale.traffic.lab.topology.setting import shipped_traces

    labs = [{"name": lab.name, "profile": lab.profile, "status": lab_status(lab)} for lab in known_labs()]
    profiles = [{"name": name, "description": load_profile(name).description} for name in profile_names()]
    if arguments.json:
        print_json({"schema": "wiretale.labs/1", "labs": labs, "profiles": profiles, "traces": shipped_traces()})
        return 0
    for lab in labs:
        print(f"{lab['name']:24} {lab['status']:8} {lab['profile']}")
    if not labs:
        print("no lab is up")
    print("\nprofiles:")
    for profile in profiles:
        print("\n".join(text_lines(f"  {profile['name']:22} ", profile["description"])))
    print()
    print("\n".join(text_lines("traces: ", ", ".join(shipped_traces()))))
    return 0


def check_action(arguments: argparse.Namespace) -> int:
    """wiretale lab check."""
    from wiretale.traffic.lab.check import check_lab

    result = check_lab()
    if arguments.json:
        print_json(result)
    else:
        from wiretale.reports.terminal.lab import print_check

        print_check(result, sys.stdout)
    return 0
