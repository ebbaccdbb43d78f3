#!/usr/bin/env python3
# SPDX-License-Identifier: MIT

"""Runs a program under many seeds of the library beside this script (noise.cpp), which disturbs the order of messages:

    noise.py --library build/release/tests/support/noise/libsar_noise.so --ranks 3 --seeds 1:200 -- build/release/tests/comm/test_comm

A seed fails when the program does not end with 0, or not before --limit seconds (it hangs). With --same FILE, which may be repeated, the
file that the program writes as {out}/FILE must have the bits that one rank writes without noise; the program must
be reproducible. The seed and the command that replays it are printed.
"""
import argparse
import hashlib
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
MPIRUN = HERE.parents[1] / "mpirun.sh"


def run(options, command, ranks, seed, out):
    """Runs the command; returns None, or what went wrong."""
    launched = [str(MPIRUN), options.mpiexec, str(ranks)]
    if seed is not None:  # for the ranks alone: mpiexec itself need not load the library
        launched += ["env", f"LD_PRELOAD={options.library}", f"SAR_NOISE_SEED={seed}", f"SAR_NOISE_USED={out}/noise"]
    launched += [word.replace("{out}", out) for word in command]
    with open(os.path.join(out, "output"), "w+") as output:
        process = subprocess.Popen(launched, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
        try:
            status = process.wait(options.limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)  # mpiexec ends its ranks
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            return f"does not end within {options.limit} s"
        output.seek(0)
        text = output.read()
        if seed is not None and not os.path.exists(os.path.join(out, "noise")):
            return "runs without noise:\n" + text[-4000:]
        return None if status == 0 else f"ends with {status}:\n" + text[-4000:]


def hashes(options, out):
    return {name: hashlib.sha256(pathlib.Path(out, name).read_bytes()).hexdigest() for name in options.same}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, type=os.path.abspath)
    parser.add_argument("--mpiexec", default="mpirun")
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--seeds", default="1:20", help="FIRST:LAST, or one seed")
    parser.add_argument("--more", type=int, help="LAST in the full run (SAR_FULL_RUN)")
    parser.add_argument("--limit", type=float, default=120, help="seconds of a run")
    parser.add_argument("--same", action="append", default=[], metavar="FILE")
    parser.add_argument("--all", action="store_true", help="go on after a failure")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    first, _, last = options.seeds.partition(":")
    if options.more and "SAR_FULL_RUN" in os.environ:
        last = str(options.more)
    began, failed = time.monotonic(), []
    with tempfile.TemporaryDirectory() as out:
        if options.same:
            problem = run(options, options.command, 1, None, out)
            if problem is not None:
                sys.exit("without noise the program " + problem)
            expected = hashes(options, out)
    for seed in range(int(first), int(last or first) + 1):
        with tempfile.TemporaryDirectory() as out:
            problem = run(options, options.command, options.ranks, seed, out)
            if problem is None and options.same and hashes(options, out) != expected:
                problem = "writes other bits than one rank without noise"
        if problem is None:
            continue
        failed.append(seed)
        replay = [__file__, "--library", options.library, "--mpiexec", options.mpiexec, "--ranks", str(options.ranks), "--seeds", str(seed),
                  *(f"--same={name}" for name in options.same), "--", *options.command]
        print(f"seed {seed}: the program {problem}\nreplay: {shlex.join(replay)}", flush=True)
        if not options.all:
            break
    done = seed - int(first) + 1
    print(f"{done} seeds, {options.ranks} ranks, {time.monotonic() - began:.0f} s, failed: {failed or 'none'}")
    return 1 if failed else 0


sys.exit(main())
