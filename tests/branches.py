#!/usr/bin/env python3
# SPDX-License-Identifier: MIT

"""branches.py BUILD ROOT MISSED: branches of core, comm and graph that the tests took, of a build with --coverage whose programs have run.

Prints a line for each folder and writes the branches that no test took to the file MISSED, by file and line. Ways that only an exception
takes are left out: any call may throw. A line of a template is there once for each instance, and has taken a way if one of them has."""
import gzip
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

build, root, missed = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), Path(sys.argv[3]).resolve()
FOLDERS = ("core", "comm", "graph")


def reports():
    """What gcov says of each source."""
    data = sorted(build.rglob("*.gcda"))
    with tempfile.TemporaryDirectory() as folder:
        for begin in range(0, len(data), 200):
            subprocess.run(["gcov", "--json-format", "--branch-probabilities", "--preserve-paths", *map(str, data[begin:begin + 200])], cwd=folder,
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for path in Path(folder).glob("*.gcov.json.gz"):
                with gzip.open(path) as file:
                    yield json.load(file)
                path.unlink()


def name_of(report, path):
    """The path in the tree; "" of a file outside of FOLDERS. Headers are found by links of the build tree, include/sar/..."""
    path = Path(report["current_working_directory"], path)
    path = path.resolve() if path.exists() else path
    name = str(path.relative_to(root)) if path.is_relative_to(root) else ""
    return name if name.split("/")[0] in FOLDERS else ""


def main():
    taken = defaultdict(int)  # (file, line, number of ways, way)
    for report in reports():
        for file in report["files"]:
            if not (name := name_of(report, file["file"])):
                continue
            for line in file["lines"]:
                ways = [way for way in line["branches"] if not way["throw"]]
                if len(ways) < 2 or line["count"] == 0:  # lines that never ran are those of coverage.sh
                    continue
                for number, way in enumerate(ways):
                    taken[name, line["line_number"], len(ways), number] += way["count"]
    counts = {folder: [0, 0] for folder in FOLDERS}
    lines = []
    for (name, line, ways, way), count in sorted(taken.items()):
        of = counts[name.split("/")[0]]
        of[1] += 1
        of[0] += count > 0
        if count == 0:
            text = Path(root, name).read_text().splitlines()[line - 1].strip()
            lines.append(f"{name}:{line}: way {way + 1} of {ways}: {text}")
    missed.write_text("\n".join(lines) + "\n")
    for folder, (hit, number) in counts.items():
        print(f"{folder:9s} {hit:5d} of {number:5d} branches, {100 * hit / max(number, 1):.1f} %")


main()
