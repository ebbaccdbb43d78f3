# SPDX-License-Identifier: MIT

# The types of lr_scheduler.py. tests/test_types.py compares the two.
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._sar import CosineAnnealingLR as CosineAnnealingLR
from .._sar import LinearLR as LinearLR
from .._sar import LRScheduler as LRScheduler
from .._sar import Optimizer
from .._sar import ReduceLROnPlateau as ReduceLROnPlateau
from .._sar import StepLR as StepLR

class _FactorLR:
    optimizer: Optimizer
    last_epoch: int
    base_lrs: list[float]
    def __init__(self, optimizer: Optimizer) -> None: ...
    def step(self, metric: float | None = None) -> None: ...
    def get_last_lr(self) -> list[float]: ...
    def set_base_lr(self, lr: float) -> None: ...
    def state_dict(self) -> dict[str, str]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...

class LambdaLR(_FactorLR):
    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]]) -> None: ...

class ExponentialLR(_FactorLR):
    gamma: float
    def __init__(self, optimizer: Optimizer, gamma: float) -> None: ...

class MultiStepLR(_FactorLR):
    milestones: list[int]
    gamma: float
    def __init__(self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1) -> None: ...

__all__ = [
    "CosineAnnealingLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "ReduceLROnPlateau", "StepLR",
]
