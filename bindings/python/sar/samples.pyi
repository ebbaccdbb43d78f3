# SPDX-License-Identifier: MIT

# The types of samples.py. tests/test_types.py compares the two.
from collections.abc import Iterator, Sequence
from typing import Any

from numpy.typing import ArrayLike

from ._sar import BatchedGraph as BatchedGraph, Communicator

__all__ = ["BatchedGraph", "GraphDataLoader", "GraphSamples", "batch"]

class GraphSamples:
    comm: Communicator
    def __init__(self, graphs: Sequence[Any], labels: ArrayLike | None = None, *, add_reverse_edges: bool = False, add_self_loops: bool = False,
                 comm: Any = None) -> None: ...
    def __len__(self) -> int: ...
    def batch(self, indices: ArrayLike | None = None) -> BatchedGraph: ...

def batch(graphs: Sequence[Any], labels: ArrayLike | None = None, **options: Any) -> BatchedGraph: ...

class GraphDataLoader:
    epoch: int
    def __init__(self, samples: GraphSamples, indices: ArrayLike | None = None, batch_size: int = 32, shuffle: bool = True, drop_last: bool = False,
                 per_rank: bool = False, seed: int = 0) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[BatchedGraph]: ...
