#!/usr/bin/env python3
# SPDX-License-Identifier: MIT

"""all_options_test.py MPIRUN_SH MPIEXEC TOOLS_DIR TESTS_DIR [OPTION...]: two properties of every option of train that --help-all lists.

1. An option that says what is trained gives other weights. Any other option only costs time or memory, or says what is evaluated and written:
   the weights have the same bits.
2. A training that is resumed with another value of an option ends with the bits of one that was not stopped, or is refused by name.

OPTIONS has a row for each option: the training that reads it, another value, and what it does. An option without a row fails."""
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

mpirun, mpiexec, tools, tests = os.path.abspath(sys.argv[1]), sys.argv[2], *map(os.path.abspath, sys.argv[3:5])

SBM = "--graph sbm --nodes 150 --classes 3 --degree 6 --features 8 --layers 2 --hidden 8 --dropout 0.2 "
MAG = "--dataset mag --embedding 4 --model rgcn --layers 1 --hidden 8 "
XYZ = "--task potential --dataset atoms.xyz --hidden 8 --layers 1 --num-basis 4 --cutoff 2.2 --batch-size 5 "
TRAININGS = {
    "sbm": SBM, "gat": SBM + "--model gat --heads 2", "gcn": SBM + "--model gcn", "rgcn": SBM + "--model rgcn",
    "sample": SBM + "--sample 3,2 --batch-size 40", "walk": SBM + "--sampler saint-walk --batch-size 40 --saint-coverage 5",
    "clusters": SBM + "--clusters 6 --clusters-per-batch 2 --cluster-method ldg",
    "sgd": SBM + "--optimizer sgd", "step": SBM + "--schedule step --step-size 1", "cosine": SBM + "--schedule cosine",
    "plateau": SBM + "--schedule plateau --patience 0 --lr 2", "drawn": SBM + "--split-nodes 0.5,0.2,0.3",
    "link": SBM + "--task link", "distmult": SBM + "--task link --predictor distmult", "sampled link": SBM + "--task link --sample 3,2 --batch-size 200",
    "two ranks": SBM + "--partition random --reproducible", "rounded": SBM + "--partition random", "cached": SBM + "--sample 3,2 --batch-size 40 --partition random",
    "karate": "--graph karate --layers 2 --hidden 8",
    "edges": "--dataset edges.csv --task edge --embedding 4 --layers 1 --hidden 8",
    "table": "--dataset graph.csv --node-table nodes.csv --node-columns key=id,labels=y,features=a,b --layers 1 --hidden 8 --model gcn",
    "values": "--dataset graph.csv --node-table nodes.csv --node-columns key=id,labels=b,features=a --layers 1 --hidden 8 --loss mse",
    "weighted": "--dataset graph.csv --node-table nodes.csv --node-columns key=id,labels=y,features=a,b --layers 1 --hidden 8 --sample 1 --batch-size 30",
    "folder": "--dataset folder --layers 1 --hidden 8", "features": "--dataset graph.csv --node-data labels=labels.npy features=a.npy --split-nodes 0.6,0.2,0.2 --layers 1 --hidden 8",
    "lists": "--dataset lists.csv --node-data labels=labels.npy --node-features lists.json --feature-lists values --split-nodes 0.6,0.2,0.2 --layers 1 --hidden 8",
    "graphs": "--task graph --dataset tu --layers 2 --hidden 8 --split-graphs 20,5,5 --batch-size 7 --model gin",
    "papers": MAG + "--category paper --add-reverse-edges", "sampled papers": MAG + "--category paper --add-reverse-edges --sample 3 --batch-size 30",
    "writes": MAG + "--task link --relation writes",
    "mace": XYZ.replace("--layers 1", "--layers 2") + "--split-graphs 8,4,0 --model mace --max-ell 2 --radial-mlp 8",
    "atoms": XYZ + "--split-graphs 8,4,0", "files": XYZ + "--valid-file more.xyz", "zbl": XYZ + "--split-graphs 8,4,0 --zbl-inner 0.5 --zbl-outer 1.5",
}
RANKS = {"two ranks": 2, "rounded": 2, "cached": 2}

# option | training | other value | what it does: trains (other weights, refused), may (other weights or not; resumed: as the others), free (the same
# bits). A row without a training says why there is none.
OPTIONS = """
--dataset | table | --dataset other.csv | trains
--category | - | another one has no labels here
--relation | writes | --relation cites | trains
--reverse-relation | - | there is one pair of reverse types in the data
--describe | - | trains nothing
--fields | folder | --fields features=more | trains
--num-classes | sbm | --num-classes 5 | trains
--add-reverse-edges | table | --add-reverse-edges | trains
--add-self-loops | table | --add-self-loops | trains
--drop-duplicates | table | --drop-duplicates | trains
--ignore-edge-weights | table | --ignore-edge-weights | trains
--normalize-features | sbm | --normalize-features | trains
--edge-means | table | --edge-means weight | trains
--sparse-features | sbm | --sparse-features yes | may
--node-data | features | --node-data labels=labels.npy features=b.npy | trains
--node-table | table | --node-table nodes2.csv | trains
--node-columns | table | --node-columns key=id,labels=y,features=a | trains
--missing-label | table | --missing-label 2 | trains
--node-features | lists | --node-features lists2.json | trains
--feature-lists | lists | --feature-lists indices | trains
--node-keys | - | read only where an edge list has names
--node-ids | table | --node-ids names | may
--columns | table | --columns source=v,target=u,weight=w | trains
--header | table | --header yes | free
--separator | table | --separator comma | free
--ignore-columns | table | --ignore-columns | trains
--split | folder | --split 1 | trains
--split-nodes | drawn | --split-nodes 0.4,0.3,0.3 | trains
--split-graphs | graphs | --split-graphs 18,6,6 | trains
--split-seed | drawn | --split-seed 5 | trains
--graph | karate | --graph sbm | trains
--nodes | sbm | --nodes 160 | trains
--degree | sbm | --degree 7 | trains
--classes | sbm | --classes 4 | trains
--features | sbm | --features 9 | trains
--homophily | sbm | --homophily 0.5 | trains
--train-share | sbm | --train-share 0.5 | trains
--model | sbm | --model gcn | trains
--layers | sbm | --layers 3 | trains
--hidden | sbm | --hidden 12 | trains
--dropout | sbm | --dropout 0.3 | trains
--input-dropout | sbm | --input-dropout 0.1 | trains
--norm | sbm | --norm layer | trains
--batch-norm | sbm | --batch-norm | trains
--activation | sbm | --activation tanh | trains
--heads | gat | --heads 4 | trains
--out-heads | gat | --out-heads 2 | trains
--attn-dropout | gat | --attn-dropout 0.3 | trains
--residual | sbm | --residual linear | trains
--jk | sbm | --jk sum | trains
--readout | graphs | --readout mean | trains
--head-layers | graphs | --head-layers 2 | trains
--post-linear | sbm | --post-linear | trains
--pre-linear | sbm | --pre-linear | trains
--edge-features | graphs | --edge-features | trains
--gcn-norm | gcn | --gcn-norm in_weights | trains
--num-bases | rgcn | --num-bases 2 | trains
--num-rels | rgcn | --num-rels 3 | trains
--embedding | sbm | --embedding 5 | trains
--init-weights | sbm | --init-weights first.safetensors | may
--rename | - | needs --init-weights
--strip-prefix | - | needs --init-weights
--drop-weights | - | needs --init-weights
--missing-weights | - | needs --init-weights
--task | sbm | --task link | trains
--loss | values | --loss mae | trains
--class-weights | sbm | --class-weights 1,2,3 | trains
--label-smoothing | sbm | --label-smoothing 0.1 | trains
--metric | sbm | --metric f1-macro | free
--epochs | - | goes on
--lr | - | may change, and train says so
--optimizer | sbm | --optimizer sgd | trains
--momentum | sgd | --momentum 0.5 | trains
--weight-decay | sbm | --weight-decay 0.1 | trains
--clip-norm | sbm | --clip-norm 0.1 | trains
--lr-factors | sbm | --lr-factors convs.0=0.1 | trains
--freeze | sbm | --freeze convs.0 | trains
--ema | sbm | --ema 0.5 | trains
--schedule | sbm | --schedule step --step-size 1 | trains
--warm-up | sbm | --warm-up 2 | trains
--step-size | step | --step-size 2 | trains
--patience | plateau | --patience 8 | trains
--lr-factor | step | --lr-factor 0.3 | trains
--min-lr | cosine | --min-lr 0.005 | trains
--eval-every | sbm | --eval-every 2 | free
--stop-after | - | ends a training
--runs | - | starts several trainings
--splits | - | starts several trainings
--seed | sbm | --seed 1 | trains
--matmul-precision | sbm | --matmul-precision medium | may
--precision | sbm | --precision mixed | trains
--bfloat16-features | sbm | --bfloat16-features | trains
--sample | sample | --sample 4,2 | trains
--batch-size | sample | --batch-size 50 | trains
--batch-per-rank | sample | --batch-per-rank | may
--drop-last | sample | --drop-last | trains
--sample-relation | sampled papers | --sample-relation cites=1 | trains
--sample-replace | sample | --sample-replace | trains
--sample-by-weight | weighted | --sample-by-weight | trains
--sampler | sample | --sampler labor | trains
--walk-length | walk | --walk-length 3 | trains
--saint-batches | walk | --saint-batches 1 | trains
--saint-coverage | walk | --saint-coverage 9 | trains
--sample-redraw | sample | --sample-redraw | trains
--sample-eval | sample | --sample-eval | free
--mfg | sbm | --mfg | may
--clusters | clusters | --clusters 5 | trains
--clusters-per-batch | clusters | --clusters-per-batch 3 | trains
--cluster-method | clusters | --cluster-method random | trains
--split-edges | link | --split-edges 0.1,0.1 | trains
--exclude | sampled link | --exclude none | trains
--predictor | link | --predictor mlp | trains
--link-loss | link | --link-loss margin | trains
--negatives | link | --negatives 2 | trains
--negatives-from | link | --negatives-from source | trains
--eval-negatives | link | --eval-negatives 9 | free
--hits-k | link | --hits-k 3 | free
--filtered-ranks | distmult | --filtered-ranks | free
--edge-labels | edges | --edge-labels values | trains
--valid-file | files | --valid-file other.xyz | free
--test-file | files | --test-file other.xyz | free
--watch-file | files | --watch-file other.xyz | free
--save-learner | - | writes a new learner
--graph-memory | files | --graph-memory 20000 | free
--committee | atoms | --committee 3 | trains
--energy-shifts | atoms | --energy-shifts O=-1 | trains
--energy-scale | atoms | --energy-scale 2 | trains
--new-species | - | needs the weights of another training
--kind-key | atoms | --kind-key other | free
--kind-weights | atoms | --kind-weights -=2 | trains
--huber-delta | atoms | --huber-delta 0.01 | trains
--energy-error | atoms | --energy-error per-root | trains
--stages | atoms | --stages 3:1,1,1 | trains
--energy-key | atoms | --energy-key other | trains
--forces-key | atoms | --forces-key none | trains
--stress-key | atoms | --stress-key none | trains
--cutoff | atoms | --cutoff 2 | trains
--num-basis | atoms | --num-basis 5 | trains
--radial-basis | atoms | --radial-basis gaussian | trains
--cutoff-function | atoms | --cutoff-function polynomial | trains
--max-ell | mace | --max-ell 1 | trains
--hidden-ell | mace | --hidden-ell 0 | trains
--correlation | mace | --correlation 2 | trains
--num-cutoff-basis | mace | --num-cutoff-basis 6 | trains
--radial-mlp | mace | --radial-mlp 8,8 | trains
--mlp-width | mace | --mlp-width 4 | trains
--interaction-first | mace | --interaction-first RealAgnosticDensityInteractionBlock | trains
--distance-transform | mace | --distance-transform agnesi | trains
--pair-repulsion | mace | --pair-repulsion 6 | trains
--zbl-inner | zbl | --zbl-inner 0.6 | trains
--zbl-outer | zbl | --zbl-outer 1.6 | trains
--energy-weight | atoms | --energy-weight 5 | trains
--forces-weight | atoms | --forces-weight 5 | trains
--stress-weight | atoms | --stress-weight 5 | trains
--threads | sbm | --threads 2 | free
--partition | two ranks | --partition ldg | free
--mode | two ranks | --mode one_shot | free
--max-halo-bytes | two ranks | --max-halo-bytes 300 | free
--halo-cache-bytes | - | to rounding: sums have another order
--reproducible | rounded | --reproducible | may
--halo-format | rounded | --halo-format bf16 | trains
--log | sbm | --log log.jsonl | free
--curves | sbm | --curves curves.svg | free
--tensorboard | sbm | --tensorboard events | free
--save-weights | - | every training here has it
--predict | sbm | --predict predicted | free
--keep | sbm | --keep best | may
--predict-layer | sbm | --predict predicted --predict-layer 1 | free
--predict-pairs | link | --predict predicted --predict-pairs pairs.txt | free
--checkpoint | - | every training here has it
--resume | - | every training here has it
--checkpoint-every | sbm | --checkpoint-every 1 | free
--checkpoint-batches | sample | --checkpoint-batches 1 | free
--keep-checkpoints | sbm | --keep-checkpoints 1 | free
"""


# Options that set another one, under whose name a checkpoint records them.
REFUSED_AS = {"--batch-norm": "--norm", "--post-linear": "--jk"}


def npy(name, values, kind, columns=None):
    """Writes a NumPy file of rows of numbers: kind is '<f4', '<i8' or '|b1'."""
    shape = (len(values) // (columns or 1),) + ((columns,) if columns else ())
    header = repr({"descr": kind, "fortran_order": False, "shape": shape}).encode()
    header += b" " * (63 - (len(header) + 10) % 64) + b"\n"
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
        file.write(struct.pack(f"<{len(values)}" + {"<f4": "f", "<i8": "q", "|b1": "?"}[kind], *values))


def atoms(name, count, seed):
    draw = random.Random(seed)
    with open(name, "w") as file:
        for _ in range(count):
            numbers = [f"{draw.random() - 0.5:.6f}" for _ in range(6)]
            stress = " ".join(numbers[i] for i in (0, 1, 2, 1, 3, 4, 2, 4, 5))
            print(8, f'\nLattice="2.4 0 0 0 2.4 0 0 0 2.4" Properties=species:S:1:pos:R:3:forces:R:3 energy={-30 + draw.random():.6f} '
                  f'other={-29 - draw.random():.6f} stress="{stress}"', file=file)
            for i in range(8):
                place = [f"{1.2 * (i >> k & 1) + 0.2 * draw.random():.6f}" for k in range(3)]
                print(("Si", "O")[i % 2], *place, *(f"{draw.random() - 0.5:.6f}" for _ in range(3)), file=file)


def make_data():
    shell = f"""set -e; source {tests}/tools/ogb_folders.sh; mag_folder mag
    source <(sed -n '/^tu_folder/,/^}}/p' {tests}/support/program_test.sh); tu_folder 30
    awk '{{ print NR % 3 }}' tu/R_A.txt >tu/R_edge_labels.txt"""
    subprocess.run(["bash", "-c", shell], check=True)
    atoms("atoms.xyz", 12, 1), atoms("more.xyz", 3, 2), atoms("other.xyz", 3, 3)
    draw = random.Random(4)
    with open("edges.csv", "w") as file:
        print("src,dst,label,split", file=file)
        for e in range(400):
            print(e * 7 % 60, e * 13 % 53, e % 3, "train" if e % 10 < 8 else "val" if e % 10 < 9 else "test", sep=",", file=file)
    for name, shift in (("graph.csv", 0), ("other.csv", 1)):
        with open(name, "w") as file:
            print("u,v,w", file=file)
            for e in range(300):
                print(e * 7 % 60, (e * 13 + shift * (e % 2)) % 60 if e % 50 else 7, 0.5 + e % 4, sep=",", file=file)
            print("7,9,1\n7,9,2", file=file)
    for name, seed in (("nodes.csv", 5), ("nodes2.csv", 6)):
        draw.seed(seed)
        with open(name, "w") as file:
            print("id,y,a,b,split", file=file)
            for v in range(60):
                print(v, v % 3, f"{draw.random():.4f}", f"{draw.random():.4f}", ("train", "train", "val", "test")[v % 4], sep=",", file=file)
    numbers = [v % 3 for v in range(60)]
    npy("labels.npy", numbers, "<i8"), npy("a.npy", [draw.random() for _ in range(120)], "<f4", 2), npy("b.npy", [draw.random() for _ in range(120)], "<f4", 2)
    with open("lists.csv", "w") as file:
        print("u,v", *(f"{e * 7 % 60},{e * 13 % 60}" for e in range(300)), sep="\n", file=file)
    for name, add in (("lists.json", 0), ("lists2.json", 1)):
        with open(name, "w") as file:
            file.write("{" + ", ".join(f'"{v}": [{(v + add) % 5}, {v % 7}]' for v in range(60)) + "}")
    os.mkdir("folder")
    shutil.copy("labels.npy", "folder/labels.npy"), shutil.copy("a.npy", "folder/features.npy"), shutil.copy("b.npy", "folder/more.npy")
    npy("folder/edge_index.npy", [e * 7 % 60 for e in range(300)] + [e * 13 % 60 for e in range(300)], "<i8", 300)
    for mask, part in (("train", (0, 1)), ("val", (2,)), ("test", (3,))):
        npy(f"folder/{mask}_mask.npy", [(v + s) % 4 in part for v in range(60) for s in range(2)], "|b1", 2)
    with open("pairs.txt", "w") as file:
        file.write("1 2\n3 4\n")


def run(ranks, *arguments):
    starter = [mpirun, mpiexec, str(ranks)] if ranks > 1 else []
    done = subprocess.run([*starter, f"{tools}/train", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
                          env=dict(os.environ, OMPI_MCA_pml="ob1"))
    return done.returncode, done.stdout.decode(errors="replace")


def tensors(path):
    """The bytes of the tensors of a weight file, without the description of the network; and of the learnable rows beside it."""
    found = []
    for name in sorted(name for name in os.listdir(".") if name == path or name.startswith(path + ".rows")):
        with open(name, "rb") as file:
            data = file.read()
        header = struct.unpack("<Q", data[:8])[0] if name == path else 0
        shapes = re.sub(rb'"__metadata__":\{[^}]*\},?', b"", data[8:8 + header]) if header else b""
        found.append((name[len(path):], shapes, data[8 + header:] if header else data))
        os.remove(name)
    return found


def changed(arguments, value):
    """The arguments with others in place of those that have the same name, or after them."""
    result, new = arguments.split(), value.split()
    for name in (word for word in new if word.startswith("--")):
        if name in result:
            at = result.index(name)
            end = next((i for i in range(at + 1, len(result)) if result[i].startswith("--")), len(result))
            del result[at:end]
    return [*result, *new]


class Training:
    """One that was not stopped: its weights and its checkpoint after two of four epochs."""
    made = {}

    def __init__(self, name):
        self.arguments, self.ranks = TRAININGS[name], RANKS.get(name, 1)
        code, said = run(self.ranks, *self.arguments.split(), "--epochs", "4", "--checkpoint", "run", "--checkpoint-every", "2", "--save-weights", "w",
                         "--threads", "1")
        assert code == 0, f"the training '{name}' ends with {code}: {said}"
        self.weights = tensors("w")
        shutil.rmtree("run/embedding-00000004-0", ignore_errors=True)
        os.remove("run/checkpoint-00000004.safetensors")
        self.checkpoint = "checkpoint of " + name.replace(" ", "-")
        os.rename("run", self.checkpoint)

    @classmethod
    def of(cls, name):
        if name not in cls.made:
            cls.made[name] = cls(name)
        return cls.made[name]


def check(option, name, value, effect):
    """Returns what is wrong."""
    base = Training.of(name)
    threads = [] if option == "--threads" else ["--threads", "1"]
    arguments = [*changed(base.arguments, value), "--epochs", "4", "--save-weights", "w", *threads]
    wrong = []
    code, said = run(base.ranks, *arguments, *(["--checkpoint", "other"] if option in ("--checkpoint-every", "--checkpoint-batches", "--keep-checkpoints") else []))
    shutil.rmtree("other", ignore_errors=True)
    if code != 0:
        return [f"a training with {value} ends with {code}: {said[-500:]}"]
    is_same = tensors("w") == base.weights
    if effect != "may" and is_same != (effect == "free"):
        wrong.append("the weights are the same" if is_same else "the weights are others")
    shutil.copytree(base.checkpoint, "run")
    code, said = run(base.ranks, *arguments, "--checkpoint", "run", "--resume")
    shutil.rmtree("run")
    if code == 0:
        if tensors("w") != base.weights:
            wrong.append("a resumed training ends with other weights")
        if effect == "trains":
            wrong.append("a checkpoint of another training is resumed")
    elif code != 1 or not re.search(rf"made with ({REFUSED_AS.get(option, option)} |.* whose hash |a number of |edge weights )|{option[2:]} is ", said):
        wrong.append(f"resumed, it ends with {code} and does not name {option}: {said[-500:]}")
    return wrong


def main():
    rows = {row.split(" | ")[0]: row.split(" | ")[1:] for row in OPTIONS.strip().splitlines()}
    listed = re.findall(r"^  (--[a-z0-9-]+)", run(1, "--help-all")[1].split("Help:")[0], re.M)
    failed = [f"{option}: has no row in OPTIONS" for option in listed if option not in rows] + [f"{option}: is no option" for option in rows if option not in listed]
    for option in sys.argv[5:] or rows:
        if rows[option][0] == "-":
            continue
        found = check(option, *rows[option])
        if found:
            failed.append(f"{option} ({rows[option][1]}): " + "; ".join(found))
            print("FAILED", failed[-1], flush=True)
    print(f"{len(rows)} options, {len(failed)} failures")
    return bool(failed)


with tempfile.TemporaryDirectory() as scratch:
    run(1, "--version")
    os.chdir(scratch)
    make_data()
    run(1, *SBM.split(), "--epochs", "1", "--save-weights", "first.safetensors")
    sys.exit(main())
