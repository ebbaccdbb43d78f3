# SPDX-License-Identifier: MIT

# The types of dataloading.py. tests/test_types.py compares the two.
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from . import _sar
from ._sar import Block, GraphBase

class NeighborSampler:
    fanouts: list[Any]
    options: dict[str, Any]
    def __init__(self, fanouts: Sequence[int] | Sequence[Mapping[str, int]], **options: Any) -> None: ...
    def of(self, graph: GraphBase) -> _sar.NeighborSampler: ...

class DataLoader:
    epoch: int
    def __init__(self, graph: GraphBase, indices: ArrayLike | Mapping[str, ArrayLike], sampler: NeighborSampler, batch_size: int = 1024,
                 shuffle: bool = True, drop_last: bool = False, per_rank: bool = False, seed: int = 0) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[tuple[Any, Any, list[Block]]]: ...
