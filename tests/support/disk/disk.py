#!/usr/bin/env python3
# SPDX-License-Identifier: MIT

"""disk.py LIBRARY MPIEXEC TOOLS_DIR STEP: lets the calls that write files fail one by one (disk.cpp), every STEP-th of them.

Programs write checkpoints, embeddings, logs, curves, predictions and weights, a partition, and a potential, on two ranks. A call of one rank
fails with EIO or ENOSPC, is cut short, or finds a full disk. Then

- the program ends by itself. With an exit code other than 0, it names the file; with 0, all results have the bits of an undisturbed run;
- each result is absent or has these bits, each line of a log is whole, and no temporary file is left;
- the same command, with --resume for a training, now ends with the results of an undisturbed run.

Before that, the order of the calls of an undisturbed run is checked, as a power cut demands it: see check_order().
SAR_DISK_POINT=PROGRAM:RANK:CALL:HOW runs one point.
"""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
MPIRUN = HERE.parents[1] / "mpirun.sh"
TEMPORARY = re.compile(r"\.tmp\d+(-\d+)?")
HOWS = ("EIO", "ENOSPC", "short", "full")

SBM = "train --graph sbm --nodes 90 --classes 3 --degree 5 --hidden 8 --layers 2 --reproducible --epochs 3 --threads 1"
PROGRAMS = {
    "train": SBM + " --embedding 4 --checkpoint ck --checkpoint-every 1 --keep-checkpoints 9 --resume --log log.jsonl --predict pred"
                   " --tensorboard curves --save-weights w.safetensors",
    "partition": "partition ../edges.csv --parts 2 --out part --report report.json",
    "potential": "train --task potential --dataset ../atoms.xyz --cutoff 2.2 --num-basis 4 --hidden 8 --layers 2 --split-graphs 5,2,1 --batch-size 3"
                 " --reproducible --epochs 2 --threads 1 --checkpoint ck --checkpoint-every 1 --resume --save-learner learner --predict pred",
}


def write_inputs(folder):
    with open(folder / "edges.csv", "w") as file:
        file.write("src,dst\n" + "".join(f"{e * 7 % 60},{e * 13 % 53}\n" for e in range(300)))
    with open(folder / "atoms.xyz", "w") as file:
        for s in range(8):
            file.write(f'4\nLattice="2.4 0 0 0 2.4 0 0 0 2.4" Properties=species:S:1:pos:R:3:forces:R:3 energy={-9 - s % 3 / 7}\n')
            for i in range(4):
                file.write(f"Si {i % 2 * 1.2} {i // 2 * 1.2 + s / 50} {s * i % 5 / 20} {i / 9} {-i / 9} 0\n")


def value_of(path):
    """The bytes of a result. The texts of a checkpoint tell times: of .safetensors, the tensors."""
    data = path.read_bytes()
    if path.suffix != ".safetensors" or len(data) < 8:
        return data
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header.pop("__metadata__", None)
    return json.dumps(header).encode() + data[end:]


def contents(folder):
    """The results by name; names of curves have a time and a process."""
    return {str(path.relative_to(folder)): value_of(path) for path in folder.rglob("*")
            if path.is_file() and "events.out" not in path.name}


def calls_of(log):
    rows = [line.split("\t") for line in log.read_text().splitlines()] if log.exists() else []
    return sorted((int(row[0]), row[1], int(row[2]), *row[3:]) for row in rows)


def check_order(calls, folder):
    """Returns what a power cut could destroy: before a name is given by a rename, the file, or all that is in the folder, is synced; the rename
    is synced in its own folder before another file there is deleted, and at the end."""
    dirty, pending, wrong = {}, collections.defaultdict(dict), []
    for _, _, _, call, ok, path, *to in calls:
        parent = str(pathlib.Path(path).parent)
        if ok != "ok":
            continue
        if call in ("write", "pwrite", "ftruncate"):
            dirty[path] = call
        elif call == "mkdir":
            pending[parent][path] = call
        elif call == "syncfs":
            dirty.clear()
            pending.clear()
        elif call == "fsync":
            dirty.pop(path, None)
            pending.pop(path, None)
        elif call == "unlink":
            dirty.pop(path, None)
            pending[parent].pop(path, None)
            if not TEMPORARY.search(path):
                wrong += [f"{path} is deleted before the rename to {name} is synced" for name, by in pending[parent].items() if by == "rename"]
        elif call == "rename":
            below = path + "/"
            lost = [name for name in dirty if name == path or name.startswith(below)]
            lost += [name for where, names in pending.items() if where == path or where.startswith(below) for name in names]
            if not TEMPORARY.search(parent):
                wrong += [f"{path} gets its name before {name} is synced" for name in lost]
            for name in [name for name in dirty if name.startswith(below) or name == path]:
                dirty[to[0] + name[len(path):]] = dirty.pop(name)
            pending[parent].pop(path, None)
            pending[str(pathlib.Path(to[0]).parent)][to[0]] = "rename"
    for names in pending.values():
        wrong += [f"the rename to {name} is not synced" for name, call in names.items() if call == "rename"]
    return [text.replace(str(folder) + "/", "") for text in wrong]


class Disk:
    def __init__(self, library, mpiexec, tools, scratch):
        self.library, self.mpiexec, self.tools, self.scratch = os.path.abspath(library), mpiexec, os.path.abspath(tools), scratch
        self.folder, self.log = scratch / "run", scratch / "calls"
        self.failed = 0  # points at which a call has failed

    def run(self, command, rank="", number=0, how=""):
        """Runs a program; returns its exit code and what it prints."""
        self.log.unlink(missing_ok=True)
        self.folder.mkdir(exist_ok=True)
        variables = dict(LD_PRELOAD=self.library, SAR_DISK_FOLDER=self.folder, SAR_DISK_LOG=self.log, SAR_DISK_RANK=rank,
                         SAR_DISK_FAIL=number, SAR_DISK_HOW=how)
        program, *arguments = command.split()
        done = subprocess.run([MPIRUN, self.mpiexec, "2", "env", *(f"{name}={value}" for name, value in variables.items()),
                               os.path.join(self.tools, program), *arguments],
                              cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr

    def check_point(self, command, expected, rank, number, how):
        """Returns what is wrong after the failure of one call."""
        shutil.rmtree(self.folder, ignore_errors=True)
        try:
            status, text = self.run(command, rank, number, how)
        except subprocess.TimeoutExpired:
            return "the program does not end"
        failed = [path for *_, ok, path in (call[:6] for call in calls_of(self.log)) if ok == "failed"]
        self.failed += bool(failed)
        found = contents(self.folder)
        names = [TEMPORARY.sub("", path.replace(f"{self.folder}/", "")) for path in failed]
        if status != 0 and not any(name in TEMPORARY.sub("", text) for name in names):
            return f"exit code {status}, and no error names one of {names}:\n{text[-1500:]}"
        if status == 0 and self.differing(found, expected):
            return f"exit code 0, but {self.differing(found, expected)} differ from those of an undisturbed run"
        for name, data in found.items():
            if TEMPORARY.search(name):
                return f"{name} is left (exit code {status})"
            if name.endswith(".jsonl"):
                if data and not data.endswith(b"\n"):
                    return f"the last line of {name} is not whole"
                for line in data.splitlines():
                    json.loads(line)
            elif name in expected and name != "report.json" and data != expected[name]:
                return f"{name} is neither absent nor whole"
        for part in ("part/", "learner/"):  # folders that get their name as a whole
            names = {name for name in expected if name.startswith(part)}
            if any(name.startswith(part) for name in found) and not names <= set(found):
                return f"{part} lacks {sorted(names - set(found))}"
        if status == 0:
            return None
        status, text = self.run(command)
        if status != 0 and self.differing(found, expected):  # a program may refuse to replace what is complete
            return f"afterwards the program ends with {status}:\n{text[-1500:]}"
        differing = self.differing(contents(self.folder), expected)
        return f"afterwards, {differing} differ from those of an undisturbed run" if differing else None

    @staticmethod
    def differing(found, expected):
        return sorted(name for name in expected if not name.endswith((".jsonl", "report.json")) and found.get(name) != expected[name])


def main():
    library, mpiexec, tools, step = sys.argv[1:]
    only = os.environ.get("SAR_DISK_POINT", "").split(":")
    points, failures = 0, []
    with tempfile.TemporaryDirectory() as scratch:
        disk = Disk(library, mpiexec, tools, pathlib.Path(scratch).resolve())
        write_inputs(disk.scratch)
        for name, command in PROGRAMS.items():
            if only[0] not in ("", name):
                continue
            shutil.rmtree(disk.folder, ignore_errors=True)
            status, text = disk.run(command)
            if status != 0:
                sys.exit(f"{name} without a failure ends with {status}:\n{text}")
            expected, calls = contents(disk.folder), calls_of(disk.log)
            failures += [f"{name}: {wrong}" for wrong in check_order(calls, disk.folder)]
            numbered = [(rank, number, how) for _, rank, number, *_ in calls if number > 0 for how in HOWS]
            if not numbered:
                sys.exit(f"{name}: the preloaded library has seen no call")
            chosen = numbered[::int(step)] if only[0] == "" else [(only[1], int(only[2]), only[3])]
            for rank, number, how in chosen:
                wrong = disk.check_point(command, expected, rank, number, how)
                points += 1
                if wrong:
                    failures.append(f"SAR_DISK_POINT={name}:{rank}:{number}:{how}: {wrong}")
                    print(failures[-1], flush=True)
            print(f"{name}: {len(calls)} calls, {len(chosen)} points", flush=True)
    if points > 0 and disk.failed == 0:
        failures.append("no call has failed")
    print("\n".join(["", *failures, f"{points} points, {len(failures)} failures"]))
    return 1 if failures else 0


sys.exit(main())
