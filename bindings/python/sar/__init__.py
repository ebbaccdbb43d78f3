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
    BatchedGraph,
    Block,
    CommunicationError,
    Communicator,
    EdgeBatch,
    Error,
    GraphModel as _GraphModel,
    InputError,
    NeighborList,
    OutOfMemoryError,
    PotentialErrors,
    PotentialLearner,
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
    readout_nodes,
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
from .transforms import (
    add_reverse_edges,
    add_self_loop,
    connected_components,
    largest_connected_component,
    remove_self_loop,
    reverse,
    subgraph,
    to_bidirected,
    to_homogeneous,
    to_simple,
)
from . import nn, optim, plot
from .checkpoint import Checkpointer
from .dataloading import ClusterLoader, DataLoader, EdgeDataLoader, NeighborSampler, NodePairs, SAINTLoader, negative_pairs
from .datasets import Dataset, load_dataset
from .models import GraphModel, Potential
from .pyg import load_pyg_state_dict, pyg_state_dict, save_pyg_weights
from .samples import GraphDataLoader, GraphSamples, batch
from .running import TrainError, partition, train

_atexit.register(_sar._finalize)


def init(comm: _Any = None, threads: int | None = None) -> Communicator:
    """Collective. Uses `comm`, a communicator of mpi4py, for everything that is given no communicator. Without
    init(), sar uses all ranks, and initializes MPI itself where nobody has.

    threads: how many threads this process computes with; by default the ranks of a node share its cores.
    Returns the sar.Communicator.

        >>> comm = sar.init(threads=1)
        >>> comm.rank < comm.size
        True
    """
    if threads is not None:
        set_num_threads(threads)
    if comm is not None:
        _sar.set_communicator(comm if isinstance(comm, Communicator) else Communicator(comm))
    return get_communicator()


__all__ = [
    "BatchedGraph", "Block", "Checkpointer", "ClusterLoader", "CommunicationError", "Communicator", "DataLoader", "Dataset",
    "EdgeBatch", "EdgeDataLoader", "Error", "Graph", "GraphDataLoader", "GraphModel", "GraphSamples", "InputError", "NeighborList",
    "NeighborSampler", "NodePairs", "OutOfMemoryError", "Potential", "PotentialErrors", "PotentialLearner", "PotentialValues", "SAINTLoader",
    "ShapeError", "Tensor", "Trace", "TrainError", "__version__", "add_reverse_edges", "add_self_loop", "all_reduce", "balanced_class_weights", "batch",
    "cat", "compare_params", "connected_components", "construct_mfgs", "dot", "edge_softmax", "edge_weight_norm", "enable_grad",
    "fn", "full", "get_communicator", "get_num_threads", "init", "is_grad_enabled", "largest_connected_component", "load_dataset",
    "load_model", "load_potential", "load_pyg_state_dict", "load_weights", "manual_seed", "mean", "mixed_precision", "mpi_library",
    "negative_pairs", "nn", "no_grad", "ones", "optim", "partition", "peak_bytes", "plot", "pyg_state_dict", "readout_nodes",
    "relative_positions", "remove_self_loop", "reproducible", "reverse", "save_model", "save_potential", "save_pyg_weights",
    "save_weights", "set_num_threads", "subgraph", "sum", "sync_params", "tensor", "to_bidirected", "to_homogeneous", "to_simple", "train", "where",
    "zeros",
]
