#!/usr/bin/env python3
# SPDX-License-Identifier: MIT

"""layouts_test.py MPIRUN_SH MPIEXEC TOOLS_DIR TESTS_DIR [SEED] [COUNT]: draws COUNT trainings by a seed: a task, a network, a sampler, options.
Each runs with --reproducible on 1, 2, 3, 4, 5 and 8 ranks, with a mode, a limit of halo rows, a number of threads and a partition drawn for each;
the weights, learnable rows and curves must have the same bits. Prints the command of each training that fails."""
import os
import random
import re
import subprocess
import sys
import tempfile

mpirun, mpiexec, tools, tests = os.path.abspath(sys.argv[1]), sys.argv[2], *map(os.path.abspath, sys.argv[3:5])
seed, count = (int(x) for x in (sys.argv[5:7] or (1, 60)))
RANKS = (1, 2, 3, 4, 5, 8)
SBM = "--graph sbm --nodes 120 --classes 3 --degree 6".split()
HOMOGENEOUS = ["sage", "gcn", "gat", "gatv2", "gin"]
TYPED = ["rgcn", "hgt", "hetero-sage", "hetero-gat"]


def with_chance(draw, chance, *options):
    return [str(o) for o in options] if draw.random() < chance else []


def network(draw, types, norms=True):
    """A model and what is around its layers."""
    model = draw.choice(types)
    options = ["--model", model, "--hidden", "8"]
    if model in ("gat", "gatv2", "hgt", "hetero-gat"):
        options += ["--heads", draw.choice("124")]
    if model in ("gat", "gatv2"):
        options += with_chance(draw, 0.4, "--attn-dropout", 0.2)
    if model == "rgcn":
        options += with_chance(draw, 0.4, "--num-bases", 2)
    options += with_chance(draw, 0.5, "--dropout", draw.choice((0, 0.3)))
    options += with_chance(draw, 0.5, "--norm", draw.choice(("batch", "layer"))) if norms else []
    options += with_chance(draw, 0.4, "--residual", draw.choice(("identity", "linear", "1")))
    options += with_chance(draw, 0.3, "--jk", draw.choice(("last", "sum", "max", "cat")))
    options += with_chance(draw, 0.2, "--pre-linear")
    return model, options


def sampler(draw, layers, task):
    """How a batch comes about; none: the whole graph."""
    sample = ["--sample", ",".join(draw.choice(("-1", "2", "4")) for _ in range(layers)), "--batch-size", draw.choice(("90", "170", "1000"))]
    kind = draw.choice(("full", "mfg", "sample", "labor") + (("saint", "clusters") if task == "node" else ()))
    if kind == "mfg":
        return ["--mfg"]
    if kind == "sample":
        return sample + with_chance(draw, 0.3, "--sample-replace") + with_chance(draw, 0.3, "--sample-redraw")
    if kind == "labor":
        return sample + ["--sampler", "labor"]
    if kind == "saint":
        method = draw.choice(("saint-node", "saint-edge", "saint-walk"))
        return ["--sampler", method, "--batch-size", "40"] + ([] if method == "saint-node" else ["--saint-coverage", "5"])
    if kind == "clusters":
        return ["--clusters", "6", "--cluster-method", draw.choice(("ldg", "random")), "--clusters-per-batch", "2"]
    return []


def training(draw):
    """The options of a training."""
    task = draw.choice(("node", "node", "link", "edge", "graph", "potential", "category", "relation"))
    layers = draw.choice((1, 2, 3))
    options = ["--layers", str(layers), "--epochs", "2", "--seed", str(draw.randrange(5))]
    options += with_chance(draw, 0.3, "--clip-norm", 0.5) + with_chance(draw, 0.2, "--ema", 0.9) + with_chance(draw, 0.2, "--weight-decay", 0.01)
    if task == "potential":
        return options + ["--task", task, "--dataset", "atoms.xyz", "--hidden", "8", "--cutoff", draw.choice(("1.6", "2.2")), "--num-basis", "4",
                          "--batch-size", draw.choice("1345"), "--split-graphs", "8,4,0"]
    if task == "graph":
        model, around = network(draw, HOMOGENEOUS)
        return options + around + ["--task", task, "--dataset", "tu", "--readout", draw.choice(("sum", "mean", "max")), "--split-graphs", "20,5,5",
                                   "--batch-size", draw.choice(("1", "6", "50"))] + with_chance(draw, 0.3, "--head-layers", 2)
    if task == "category":
        model, around = network(draw, TYPED)
        return options + around + ["--dataset", "mag", "--category", "paper", "--embedding", "6", "--add-reverse-edges"] + sampler(draw, layers, task)
    predictor = ["--negatives", draw.choice("13")] + with_chance(draw, 0.3, "--link-loss", "margin")
    if task == "relation":
        model, around = network(draw, TYPED)
        return options + around + predictor + ["--task", "link", "--dataset", "mag", "--relation", draw.choice(("writes", "cites")), "--embedding", "6",
                                               "--add-reverse-edges", "--predictor", draw.choice(("mlp", "distmult"))] + sampler(draw, layers, "link")
    model, around = network(draw, HOMOGENEOUS + ["rgcn"] * (task == "node"))
    rows = with_chance(draw, 0.3, "--embedding", 6)
    if task == "edge":
        return options + around + ["--task", task, "--dataset", "edges.csv", "--embedding", "8"] + sampler(draw, layers, task)
    graph = draw.choice((SBM, ["--graph", "karate"]))
    if task == "link":
        return options + around + rows + predictor + ["--task", task, *graph, "--predictor", draw.choice(("dot", "mlp"))] + sampler(draw, layers, task)
    return options + around + rows + graph + with_chance(draw, 0.3, "--class-weights", "balanced") + sampler(draw, layers, task)


def layout(draw, ranks):
    """What may differ between two runs of one training."""
    options = ["--threads", str(draw.choice((1, 2))), "--mode", draw.choice(("rematerialize", "sequential", "one_shot"))]
    options += with_chance(draw, 0.4, "--max-halo-bytes", draw.choice((300, 3000)))
    return options + ["--partition", "contiguous" if ranks == 1 else draw.choice(("random", "contiguous", "ldg"))]


def start(command, ranks):
    starter = [mpirun, mpiexec, str(ranks)] if ranks > 1 else []
    return subprocess.run([*starter, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)


def results(command, ranks, draw):
    """The bits of what a run leaves behind, by name, or a text if it fails; and the layout."""
    with tempfile.TemporaryDirectory() as folder:
        chosen = layout(draw, ranks)
        if {"graph", "potential"} & set(command):
            chosen = chosen[:2]  # only the number of threads: their graphs are not partitioned
        run = start([f"{tools}/train", *command, "--reproducible", *chosen, "--log", f"{folder}/log", "--save-weights", f"{folder}/w"], ranks)
        if run.returncode != 0:
            said = re.findall("^(?:train: |--).*", run.stdout.decode(errors="replace"), re.M)
            return f"ends with {run.returncode} on {ranks} ranks: {said}", chosen
        found = {}
        for name in sorted(os.listdir(folder)):
            with open(f"{folder}/{name}", "rb") as file:
                found[name] = file.read()
        found["log"] = [re.sub(r'"(forward|backward|comm)?_?seconds.*', "", line) for line in found["log"].decode().splitlines() if '"epoch"' in line]
        return found, chosen


def make_data():
    shell = f"""set -e; programs={tools} ; source {tests}/tools/ogb_folders.sh; mag_folder mag
    source <(sed -n '/^tu_folder/,/^}}/p' {tests}/support/program_test.sh); tu_folder 30"""
    subprocess.run(["bash", "-c", shell], check=True)
    draw = random.Random(1)
    with open("atoms.xyz", "w") as file:
        for _ in range(12):
            print(8, f'\nLattice="2.4 0 0 0 2.4 0 0 0 2.4" Properties=species:S:1:pos:R:3:forces:R:3 energy={-30 + draw.random()}', file=file)
            for i in range(8):
                place = [1.2 * (i >> k & 1) + 0.2 * draw.random() for k in range(3)]
                print(draw.choice(("Si", "O")), *place, *(draw.random() - 0.5 for _ in range(3)), file=file)
    with open("edges.csv", "w") as file:
        print("src,dst,label,split", file=file)
        for e in range(400):
            print(e * 7 % 60, e * 13 % 53, e % 3, "train" if e % 10 < 8 else "val" if e % 10 < 9 else "test", sep=",", file=file)


def main():
    refused = failed = equal = 0
    number = seed * 1000
    while equal + failed < count:
        number += 1
        draw = random.Random(number)
        command = training(draw)
        print(f"{number}: train {' '.join(command)}", flush=True)
        one, _ = results(command, 1, draw)
        if isinstance(one, str):
            assert re.match(r"ends with [12] on 1 ranks: \[.", one), f"{' '.join(command)} {one}"
            refused += 1  # a combination that the program does not have
            assert refused < 20 + 2 * count, one
            continue
        assert len(one["log"]) == 2, (command, one["log"])
        differing = []
        for ranks in RANKS[1:]:
            other, chosen = results(command, ranks, draw)
            if isinstance(other, str):
                differing.append(other)
            else:
                names = [name for name in sorted(one.keys() | other.keys()) if one.get(name) != other.get(name)]
                if names:
                    differing.append(f"{', '.join(names)} differ on {ranks} ranks with {' '.join(chosen)}")
        if differing:
            failed += 1
            print(f"FAILED {number}:\n  " + "\n  ".join(differing), flush=True)
        else:
            equal += 1
    print(f"{equal} trainings are equal on {', '.join(map(str, RANKS))} ranks, {failed} differ; {refused} combinations were refused")
    return failed > 0


with tempfile.TemporaryDirectory() as scratch:
    os.chdir(scratch)
    make_data()
    sys.exit(main())
