# SPDX-License-Identifier: MIT

# The types of pyg.py. tests/test_types.py compares the two.
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ._sar import Communicator, ModuleBase

def pyg_state_dict(module: ModuleBase, mean_heads: Sequence[str] = ()) -> dict[str, Any]: ...
def load_pyg_state_dict(module: ModuleBase, state: Mapping[str, Any]) -> None: ...
def save_pyg_weights(module: ModuleBase, path: str | os.PathLike[str], mean_heads: Sequence[str] = (), comm: Communicator | None = None) -> None: ...
