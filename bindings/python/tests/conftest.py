# SPDX-License-Identifier: MIT

"""What the tests share. Under mpirun, every rank runs all of them, in the same order."""

import json
import pathlib
import struct

import numpy as np
import pytest

import sar

DATA = pathlib.Path(__file__).resolve().parents[3] / "tests" / "data"


def content_of_file(path):
    """The metadata and the arrays of a .safetensors file."""
    content = pathlib.Path(path).read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header, arrays = json.loads(content[8:8 + length]), {}
    metadata = header.pop("__metadata__", {})
    types = {"F64": np.float64, "I64": np.int64, "F32": np.float32, "I32": np.int32, "U8": np.uint8, "BOOL": np.bool_}
    for key, entry in header.items():
        begin, end = entry["data_offsets"]
        arrays[key] = np.frombuffer(content[8 + length + begin:8 + length + end], types[entry["dtype"]]).reshape(entry["shape"])
    return metadata, arrays


def tensors_of_file(path):
    return content_of_file(path)[1]


class Golden:
    """Arrays and arguments of reference cases, of a .safetensors file that pack.py has written."""

    def __init__(self, name):
        metadata, arrays = content_of_file(DATA / "golden" / f"{name}.safetensors")
        self.args, self.arrays = {}, {}
        for key, value in metadata.items():
            case, _, name = key.partition("/")
            self.args.setdefault(case, {})[name] = value
        for key, array in arrays.items():
            case, _, name = key.partition("/")
            self.arrays.setdefault(case, {})[name] = array


@pytest.fixture(scope="session")
def comm():
    return sar.get_communicator()


@pytest.fixture
def shared_dir(tmp_path_factory, comm):
    """A folder of rank 0 that all ranks know."""
    name = str(tmp_path_factory.mktemp("shared")) if comm.rank == 0 else ""
    codes = comm.all_gather(np.frombuffer(name.encode(), np.uint8)).astype(np.uint8)
    return pathlib.Path(codes.tobytes().decode())


def whole(graph, rows):
    """The rows of all ranks, in the order of the original ids."""
    rows = np.asarray(rows)
    everything = np.zeros((graph.num_global_nodes(), *rows.shape[1:]), np.float32)
    everything[graph.src_ids] = rows
    return np.asarray(sar.all_reduce(sar.tensor(everything), comm=graph.comm))


def random_graph(nodes=60, edges=300, seed=1, **options):
    """A graph with loops, duplicate edges and isolated nodes."""
    draw = np.random.default_rng(seed)
    src, dst = draw.integers(0, nodes - 2, edges), draw.integers(0, nodes - 2, edges)
    src[:5], dst[:5] = src[5:10], dst[5:10]
    src[10:13] = dst[10:13]
    return src, dst, sar.Graph((src, dst), nodes, **options)
