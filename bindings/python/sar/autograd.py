# SPDX-License-Identifier: MIT

"""How operations are recorded."""

from __future__ import annotations

import contextlib as _contextlib
from typing import Any as _Any

from . import _sar


class _GradMode(_contextlib.ContextDecorator):
    _enabled = False

    def __enter__(self) -> _GradMode:
        self._before = _sar._set_grad_enabled(self._enabled)
        return self

    def __exit__(self, *error: object) -> None:
        _sar._set_grad_enabled(self._before)

    def _recreate_cm(self) -> _GradMode:
        return type(self)()


class no_grad(_GradMode):
    """Local. While it lasts, this thread records nothing: results are constants. A context or a decorator.

        >>> x = sar.ones(2).requires_grad_()
        >>> with sar.no_grad():
        ...     y = x * 2
        ...
        >>> y.requires_grad
        False
    """


class enable_grad(_GradMode):
    """Local. The opposite of no_grad, inside of one.

        >>> x = sar.ones(2).requires_grad_()
        >>> with sar.no_grad(), sar.enable_grad():
        ...     y = x * 2
        ...
        >>> y.requires_grad
        True
    """

    _enabled = True


class reproducible(_contextlib.ContextDecorator):
    """Local. What is recorded while it lasts sums over the nodes of all ranks of `comm` (None: that of sar.init) with bits that do
    not depend on the number of ranks: gradients of weights, statistics of batch norm. Sums over edges need
    graph.set_options(reproducible=True) beside it. All ranks record the same operations. A context or a decorator.

        >>> graph = sar.Graph(([0, 1, 2], [1, 2, 0]), num_nodes=3)
        >>> graph.set_options(reproducible=True)
        >>> with sar.reproducible():
        ...     y = graph.update_all(sar.fn.copy_u(sar.ones((3, 1))), sar.fn.sum)
        ...
    """

    def __init__(self, comm: _sar.Communicator | None = None) -> None:
        self._comm = comm

    def __enter__(self) -> reproducible:
        _sar._enter_reproducible(self._comm)
        return self

    def __exit__(self, *error: object) -> None:
        _sar._leave_reproducible()


class mixed_precision(_contextlib.ContextDecorator):
    """Local. While it lasts, layers on this thread store their results in bfloat16, and products round their factors to it; sums,
    parameters and losses stay in float32, as under torch.autocast. It must last over the forward pass and backward(), on every
    rank. enabled=False is full precision inside of another. numpy() gives float32. A context or a decorator.

        >>> graph = sar.Graph(([0, 1, 2], [1, 2, 0]), num_nodes=3)
        >>> conv = sar.nn.SAGEConv(4, 8)
        >>> with sar.mixed_precision():
        ...     sar.sum(conv(graph, sar.ones((3, 4)))).backward()
        ...
    """

    def __init__(self, enabled: bool = True) -> None:
        self._enabled = enabled

    def __enter__(self) -> mixed_precision:
        _sar._enter_mixed_precision(self._enabled)
        return self

    def __exit__(self, *error: object) -> None:
        _sar._leave_mixed_precision()


def unpickled(values: _Any, requires_grad: bool) -> _sar.Tensor:
    """A tensor of its pickled state."""
    return _sar.tensor(values, requires_grad)
