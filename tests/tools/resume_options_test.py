#!/usr/bin/env python3
"""resume_options_test.py MPIRUN_SH MPIEXEC TRAIN TESTS_DIR: two properties of all options of train, which --help-all lists.

Each option has a training that reads it, and another value of it. One kind says what the training is: with it, the weights are others, and a
checkpoint made without it is refused by the name of the option. All other options only cost time or memory, or choose what is written: with
them, the weights have the same bits, and a training that is resumed with them ends with the bits of one that was not stopped."""
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

mpirun, mpiexec, train, tests = sys.argv[1], sys.argv[2], *map(os.path.abspath, sys.argv[3:5])

SBM = "--graph sbm --nodes 150 --classes 3 --degree 6 --features 8 --layers 2 --hidden 8 --dropout 0.2"
CASES = {
    "sbm": SBM,
    "wide": SBM + " --heads 2 --model gat",
    "sage": SBM + " --sample 3,2 --batch-size 40",
    "labor": SBM + " --sample 3,2 --batch-size 40 --sampler labor",
    "saint": SBM + " --sampler saint-walk --batch-size 40",
    "clusters": SBM + " --clusters 6 --clusters-per-batch 2 --cluster-method ldg",
    "rgcn": SBM + " --model rgcn",
    "gcn": SBM + " --model gcn",
    "sgd": SBM + " --optimizer sgd",
    "step": SBM + " --schedule step --step-size 1 --lr 0.02",
    "cosine": SBM + " --schedule cosine --lr 0.02",
    "plateau": SBM + " --schedule plateau --patience 0 --lr 0.02",
    "link": SBM + " --task link",
    "mlp": SBM + " --task link --predictor distmult",
    "links": SBM + " --task link --sample 3,2 --batch-size 200",
    "two": SBM + " --partition random --reproducible",
    "cached": SBM + " --sample 3,2 --batch-size 40 --partition random",
    "csv": "--dataset edges.csv --task edge --embedding 4 --layers 1 --hidden 8",
    "table": "--dataset graph.csv --node-table nodes.csv --layers 1 --hidden 8",
    "drawn": SBM + " --split-nodes 0.5,0.2,0.3",
    "graphs": "--task graph --dataset tu --layers 2 --hidden 8 --split-graphs 20,5,5 --batch-size 7 --model gin",
    "papers": "--dataset mag --category paper --embedding 4 --model rgcn --layers 1 --hidden 8 --add-reverse-edges",
    "sampled papers": "--dataset mag --category paper --embedding 4 --model rgcn --layers 1 --hidden 8 --add-reverse-edges --sample 3",
    "writes": "--dataset mag --task link --relation writes --embedding 4 --model rgcn --layers 1 --hidden 8",
    "atoms": "--task potential --dataset atoms.xyz --hidden 8 --layers 1 --num-basis 4 --cutoff 2.2 --batch-size 5 --split-graphs 8,4,0",
    "files": "--task potential --dataset atoms.xyz --valid-file more.xyz --hidden 8 --layers 1 --num-basis 4 --cutoff 2.2 --batch-size 5",
    "zbl": "--task potential --dataset atoms.xyz --hidden 8 --layers 1 --num-basis 4 --cutoff 2.2 --zbl-inner 0.5 --zbl-outer 1.5 --batch-size 5",
}
# What the training is: option -> case, arguments (added, or in place of those that the case has).
TRAINING = {
    "--dataset": ("table", "--dataset other.csv"), "--category": None, "--relation": ("writes", "--relation cites"),
    "--reverse-relation": None, "--fields": ("table", "--fields features=more"), "--num-classes": ("sbm", "--num-classes 5"),
    "--add-reverse-edges": ("table", "--add-reverse-edges"), "--add-self-loops": ("table", "--add-self-loops"),
    "--drop-duplicates": ("table", "--drop-duplicates"), "--ignore-edge-weights": ("table", "--ignore-edge-weights"),
    "--normalize-features": ("sbm", "--normalize-features"), "--edge-means": None, "--node-table": ("table", "--node-table nodes2.csv"),
}
