# SPDX-License-Identifier: MIT

# The types of optim.py. tests/test_types.py compares the two.
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ._sar import (
    SGD as SGD,
    Adam as Adam,
    AdamW as AdamW,
    CosineAnnealingLR as CosineAnnealingLR,
    LinearLR as LinearLR,
    LRScheduler as LRScheduler,
    Optimizer as Optimizer,
    ReduceLROnPlateau as ReduceLROnPlateau,
    StepLR as StepLR,
)

class ParamGroup(Mapping[str, Any]):
    def __init__(self, optimizer: Optimizer, number: int) -> None: ...
    def __getitem__(self, name: str) -> Any: ...
    def __setitem__(self, name: str, value: float) -> None: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...

class _FactorLR:
    optimizer: Optimizer
    last_epoch: int
    base_lrs: list[float]
    def __init__(self, optimizer: Optimizer) -> None: ...
    def step(self, metric: float | None = None) -> None: ...
    def get_last_lr(self) -> list[float]: ...
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

class _Schedules:
    CosineAnnealingLR: type[CosineAnnealingLR]
    ExponentialLR: type[ExponentialLR]
    LambdaLR: type[LambdaLR]
    LinearLR: type[LinearLR]
    MultiStepLR: type[MultiStepLR]
    ReduceLROnPlateau: type[ReduceLROnPlateau]
    StepLR: type[StepLR]

lr_scheduler: _Schedules

__all__ = [
    "Adam", "AdamW", "CosineAnnealingLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR",
    "Optimizer", "ParamGroup", "ReduceLROnPlateau", "SGD", "StepLR", "lr_scheduler",
]
