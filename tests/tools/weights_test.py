# SPDX-License-Identifier: MIT

"""weights_test.py MPIRUN_SH MPIEXEC RANKS TRAIN PRECISION TEST_DATA DATASET

Weights both ways, with NumPy instead of the library on the other side: initial weights of a reference run (DGL) go into
`train` and reproduce its losses; what `train` saves is read, and is what the losses were had from. Exit code 77: skipped."""
import json
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

try:
    import numpy as np
except ImportError:
    print("skipped: there is no NumPy")
    sys.exit(77)

mpirun, mpiexec, ranks, train, precision, test_data, dataset = sys.argv[1:]
tolerance = 1e-9 if precision == "double" else 1e-4
if not Path(dataset, "edge_index.npy").exists():
    print("skipped: there is no dataset in", dataset)
    sys.exit(77)


def write(path, tensors):
    header, data = {}, b""
    for name, array in tensors.items():
        dtype = {"float64": "F64", "int64": "I64"}[str(array.dtype)]
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def read(path):
    raw = Path(path).read_bytes()
    length, = struct.unpack("<Q", raw[:8])
    assert length % 8 == 0, "the data are not aligned"
    header, data = json.loads(raw[8:8 + length]), raw[8 + length:]
    metadata = header.pop("__metadata__")
    assert metadata["crc32"] == "%08x" % zlib.crc32(data), "wrong checksum"
    tensors, end = {}, 0
    for name, about in header.items():
        begin, stop = about["data_offsets"]
        assert begin == end, "a gap"
        end = stop
        dtype = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "BOOL": "|b1"}[about["dtype"]]
        tensors[name] = np.frombuffer(data[begin:stop], dtype).reshape(about["shape"])
    assert end == len(data)
    return tensors, metadata


def run(*options):
    command = [mpirun, mpiexec, ranks, train, "--dataset", dataset, "--normalize-features", "--dropout", "0", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


def losses(log):
    return np.array([json.loads(line)["loss"] for line in Path(log).read_text().splitlines() if '"loss"' in line])


scratch = tempfile.TemporaryDirectory()
here = Path(scratch.name)
cases = {"sage_cora": ["--model", "sage", "--hidden", "16", "--batch-norm"],
         "gcn_cora": ["--model", "gcn", "--hidden", "16"],
         "gat_cora": ["--model", "gat", "--hidden", "64", "--heads", "8"]}
vectors, metadata = read(Path(test_data, "golden", "train.safetensors"))
for name, options in cases.items():
    golden, arguments = ({key[len(name) + 1:]: value for key, value in part.items() if key.startswith(name + "/")}
                         for part in (vectors, metadata))
    weights = {key.split(".", 1)[1]: array for key, array in golden.items() if key.startswith(("param.", "buffer."))}
    if name == "sage_cora":
        weights["bns.0.num_batches_tracked"] = np.array(0)
    initial, saved, log = here / (name + ".in"), here / (name + ".out"), here / (name + ".jsonl")
    write(initial, weights)
    options = options + ["--layers", "2", "--lr", arguments["lr"], "--weight-decay", arguments["weight_decay"],
                         "--eval-every", "0"]
    if arguments["self_loops_added"] == "1":
        options.append("--add-self-loops")

    run(*options, "--epochs", "30", "--init-weights", str(initial), "--save-weights", str(saved), "--log", str(log))
    expected = golden["losses"]
    error = np.abs(losses(log) / expected - 1).max()
    print(f"{name}: the losses of the reference, largest relative difference {error:.1e}")
    assert error < tolerance, (losses(log), expected)

    trained, about = read(saved)
    assert about["format"] == "pt"
    assert {key: array.shape for key, array in trained.items()} == {key: array.shape for key, array in weights.items()}
    assert all(array.dtype.kind == ("i" if "num_batches" in key else "f") for key, array in trained.items())
    if name == "sage_cora":
        assert trained["bns.0.num_batches_tracked"] == 30
        # The bias in front of a batch norm stays: there, rounding moves it, and running_mean with it.
        bias = trained["convs.0.fc_self.bias"]
        assert (bias == weights["convs.0.fc_self.bias"].astype(bias.dtype)).all()
        variance = golden["out.bns.0.running_var"]
        assert np.abs(trained["bns.0.running_var"] - variance).max() < 1e-2 * np.abs(variance).max()
    # Another run from what NumPy read and wrote again begins where this one ended.
    write(initial, {key: array.astype(np.float64) if array.dtype.kind == "f" else array for key, array in trained.items()})
    for file, to in ((initial, "a"), (saved, "b")):
        run(*options, "--epochs", "2", "--init-weights", str(file), "--log", str(here / to))
    assert (losses(here / "a") == losses(here / "b")).all()
    assert losses(here / "a")[0] < expected[-1]
