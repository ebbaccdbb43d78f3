# SPDX-License-Identifier: MIT

"""What the scripts *_cases.py share: how the arrays of a case are written for pack.py, and how values are drawn."""
from pathlib import Path

import numpy as np
import torch


class Group:
    """OUT/<name>/<case>/*.npy and args.txt. Everything is computed in double precision, from this seed."""

    def __init__(self, out, name, seed):
        self.folder = Path(out) / name
        torch.set_default_dtype(torch.float64)
        torch.manual_seed(seed)

    def save(self, case, args={}, **arrays):
        folder = self.folder / case
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "args.txt").write_text("".join(f"{key}={value}\n" for key, value in {"case": case, **args}.items()))
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", np.ascontiguousarray(array.detach().numpy() if torch.is_tensor(array) else np.asarray(array)))


def values(*shape):
    return torch.randn(*shape).float().double()  # exact in single precision, too
