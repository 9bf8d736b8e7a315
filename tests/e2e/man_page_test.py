# SPDX-License-Identifier: Apache-2.0
"""The man page renders without warnings, and it and --help name the same options."""
import re, subprocess
from support import *

docs = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs")
page = os.path.join(docs, "perfpipe.1")
GLOBAL = {"help", "quiet", "verbose", "color", "format", "no-progress"}


def test_the_man_pages_render_without_warnings():
    need("mandoc")
    for name in ("perfpipe.1", "perfpipe.yaml.5", "perfpipe-labels.7"):
        done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", os.path.join(docs, name)],
                              capture_output=True, text=True)
        assert done.returncode == 0 and not done.stdout, done.stdout


def options_in_help(*words):
    text = run(*words, "--help", check=0).stdout.decode()
    return set(re.findall(r"^  (?:-\w, |    )--([a-z-]+)", text, re.M)) - GLOBAL


def options_in_section(title):
    text = open(page).read()
    section = re.search(r"^\.Ss %s\n(.*?)(?=^\.S[sh] )" % title, text, re.M | re.S).group(1)
    # ".It Fl a , -all", and in text ".Fl -labels , -no-symbols".
    lines = re.findall(r"^\.(?:It )?Fl (.*)$", section, re.M)
    lines += re.findall(r"^\.Fl (.*)$", section, re.M)
    return {name for line in lines for name in re.findall(r"(?:^|\s)-([a-z]{2}[a-z-]*)", line)}


def test_every_option_is_in_the_man_page_and_in_the_help():
    listed = re.findall(r"^  ([\w-]+) ", run("--help").stdout.decode().split("Commands:\n")[1], re.M)
    for command in listed:
        if command == "help":
            continue
        help_names = options_in_help(command)
        page_names = options_in_section("perfpipe " + command)
        if command == "convert":  # the other calling form stands in the same section
            page_names -= {"force", "jit"}
        if command in ("report", "push"):  # share convert's
            help_names -= options_in_help("convert")
            page_names -= options_in_help("convert")
        if command == "symbols":  # shares how to reach a server with push
            shared = options_in_help("push") - options_in_help("convert") - {"to", "wait"}
            help_names -= shared
            page_names -= shared
        page_names -= GLOBAL
        assert help_names == page_names, "%s: only in --help %s, only in the man page %s" % (
            command, help_names - page_names, page_names - help_names)


main(globals())
