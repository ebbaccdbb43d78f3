# SPDX-License-Identifier: MIT

"""Optimizers and schedules under torch's names. step() adds the gradients of all ranks first."""

from types import SimpleNamespace as _Namespace

from ._sar import SGD, Adam, AdamW, CosineAnnealingLR, LinearLR, LRScheduler, Optimizer, ReduceLROnPlateau, StepLR

lr_scheduler = _Namespace(CosineAnnealingLR=CosineAnnealingLR, LinearLR=LinearLR, ReduceLROnPlateau=ReduceLROnPlateau,
                          StepLR=StepLR)

__all__ = [
    "Adam", "AdamW", "CosineAnnealingLR", "LRScheduler", "LinearLR", "Optimizer", "ReduceLROnPlateau", "SGD", "StepLR",
    "lr_scheduler",
]
