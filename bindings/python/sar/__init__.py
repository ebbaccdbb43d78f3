# SPDX-License-Identifier: MIT

"""Graph neural networks on graphs that do not fit one machine, under MPI.

    import sar
    graph = sar.Graph((src, dst), num_nodes=1000)
    net = sar.nn.SAGEConv(64, 4)
    optimizer = sar.optim.Adam(net, lr=0.01)
    loss = sar.nn.functional.cross_entropy(net(graph, x), labels, mask)
    loss.backward()
    optimizer.step()

docs/python.md is the guide.
"""

import atexit as _atexit
from typing import Any as _Any

try:
    from . import _sar
except ImportError as _error:
    if "libmpi" not in str(_error):
        raise
    raise ImportError(f"{_error}. This copy of sar was built for the MPI with this library: install it ('pip install mpich' for "
                      "libmpi.so.12), or add its folder to LD_LIBRARY_PATH") from None
from ._sar import (
    Block,
    CommunicationError,
    Communicator,
    EdgeBatch,
    Error,
    GraphModel as _GraphModel,
    InputError,
    NeighborList,
    OutOfMemoryError,
    PotentialValues,
    ShapeError,
    Tensor,
    Trace,
    __version__,
    all_reduce,
    balanced_class_weights,
    cat,
    compare_params,
    construct_mfgs,
    dot,
    edge_softmax,
    edge_weight_norm,
    full,
    get_communicator,
    get_num_threads,
    is_grad_enabled,
    load_model,
    load_potential,
    load_weights,
    manual_seed,
    mean,
    mpi_library,
    ones,
    peak_bytes,
    relative_positions,
    save_model,
    save_potential,
    save_weights,
    set_num_threads,
    sum,
    sync_params,
    tensor,
    where,
    zeros,
)
from .autograd import enable_grad, mixed_precision, no_grad, reproducible
from . import fn
from .graph import Graph
from . import nn, optim, plot
from .dataloading import DataLoader, NeighborSampler
from .datasets import Dataset, load_dataset
from .models import GraphModel, Potential
from .running import TrainError, train

_atexit.register(_sar._finalize)


def init(comm: _Any = None, threads: int | None = None) -> Communicator:
    """Collective. Uses `comm`, a communicator of mpi4py, for everything that is given no communicator. Without
    init(), sar uses all ranks, and initializes MPI itself where nobody has.

    threads: how many threads this process computes with; by default the ranks of a node share its cores.
    Returns the sar.Communicator.
    """
    if threads is not None:
        set_num_threads(threads)
    if comm is not None:
        _sar.set_communicator(comm if isinstance(comm, Communicator) else Communicator(comm))
    return get_communicator()


__all__ = [
    "Block", "CommunicationError", "Communicator", "DataLoader", "Dataset", "EdgeBatch", "Error", "Graph", "GraphModel",
    "InputError", "NeighborList", "NeighborSampler", "OutOfMemoryError", "Potential", "PotentialValues", "ShapeError", "Tensor",
    "Trace", "TrainError", "__version__", "all_reduce", "balanced_class_weights", "cat", "compare_params", "construct_mfgs", "dot",
    "edge_softmax", "edge_weight_norm", "enable_grad", "fn", "full", "get_communicator", "get_num_threads", "init",
    "is_grad_enabled", "load_dataset", "load_model", "load_potential", "load_weights", "manual_seed", "mean", "mixed_precision",
    "mpi_library", "nn", "no_grad", "ones", "optim", "peak_bytes", "plot", "relative_positions", "reproducible", "save_model",
    "save_potential", "save_weights", "set_num_threads", "sum", "sync_params", "tensor", "train", "where", "zeros",
]
