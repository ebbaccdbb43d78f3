# SPDX-License-Identifier: MIT

# The types of checkpoint.py. tests/test_types.py compares the two.
import os
from typing import Any, NamedTuple

from ._sar import Communicator, ModuleBase, Optimizer

class Checkpoint(NamedTuple):
    epoch: int
    extra: Any

class Checkpointer:
    def __init__(self, directory: str | os.PathLike[str], keep_last: int = 3, comm: Communicator | None = None) -> None: ...
    def save(self, epoch: int, module: ModuleBase, optimizer: Optimizer, schedule: Any = None, loader: Any = None, extra: Any = None) -> None: ...
    def latest(self) -> str: ...
    def resume(self, module: ModuleBase, optimizer: Optimizer, schedule: Any = None, loader: Any = None,
               path: str | os.PathLike[str] | None = None) -> Checkpoint: ...
