# SPDX-License-Identifier: MIT

# The types of __init__.py. tests/test_types.py compares the two.
from collections.abc import Iterator, Mapping
from typing import Any

from .._sar import SGD as SGD
from .._sar import Adam as Adam
from .._sar import AdamW as AdamW
from .._sar import Optimizer as Optimizer
from . import lr_scheduler as lr_scheduler
from .lr_scheduler import (
    CosineAnnealingLR as CosineAnnealingLR,
    ExponentialLR as ExponentialLR,
    LambdaLR as LambdaLR,
    LinearLR as LinearLR,
    LRScheduler as LRScheduler,
    MultiStepLR as MultiStepLR,
    ReduceLROnPlateau as ReduceLROnPlateau,
    StepLR as StepLR,
)

class ParamGroup(Mapping[str, Any]):
    def __init__(self, optimizer: Optimizer, number: int) -> None: ...
    def __getitem__(self, name: str) -> Any: ...
    def __setitem__(self, name: str, value: float) -> None: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...

__all__ = [
    "Adam", "AdamW", "CosineAnnealingLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR",
    "Optimizer", "ParamGroup", "ReduceLROnPlateau", "SGD", "StepLR", "lr_scheduler",
]
