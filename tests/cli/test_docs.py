"""The commands that `docs/cli.md` shows print what it says; run this file to write them anew."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
BLOCK = re.compile(r"(?<=^```console\n)\$ (.+)\n((?:.*\n)*?)(?=^```$)", re.MULTILINE)
# Times, sizes, made-up ids and folders differ from run to run and from machine to machine.
VARYING = re.compile(r"[0-9a-f]{32}|[0-9a-f]{12}\b|[0-9][0-9,.:-]*%?|\(/[^)]*exists\)|[ \n]+")


def output(command, folder):
    environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "80"}
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
    )
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def fixed(text):
    return VARYING.sub("#", text)


def test_the_page_shows_what_the_commands_print(empty_directory, run):
    blocks = BLOCK.findall(PAGE.read_text())
    assert len(blocks) > 20
    for command, shown in blocks:
        if re.search("[|>]", command):
            printed = output(command, empty_directory)
        else:
            result = run(*shlex.split(command)[1:])
            printed = result.out + result.err
        assert fixed(printed) == fixed(shown), command


def shown(command, folder):
    return output(command, folder).replace(folder, "/home/ines")


def rewrite(text, folder):
    return BLOCK.sub(lambda block: f"$ {block[1]}\n{shown(block[1], folder)}", text)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(rewrite(PAGE.read_text(), folder))
