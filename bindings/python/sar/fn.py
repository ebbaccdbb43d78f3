# SPDX-License-Identifier: MIT

"""Built-in messages and reductions under DGL's names, of fields or of tensors:

    graph.update_all(fn.u_mul_e("h", "w", "m"), fn.mean("m", "y"))    # fields of ndata and edata
    y = graph.update_all(fn.u_mul_e(h, w), fn.mean)                   # tensors
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from ._arguments import given as _given
from ._sar import InputError, Tensor, message_ops, reductions
from ._sar import tensor as _tensor


_EXAMPLE = """

    >>> graph, x = sar.Graph(([0, 1, 2], [1, 2, 0]), num_nodes=3), sar.ones((3, 2))
    >>> graph.apply_edges(sar.fn.{}).shape
    {}
"""


class Message:
    """A message of an edge, which graph.update_all and graph.apply_edges compute.

        >>> x, w = sar.ones((3, 2)), sar.ones(3)
        >>> message = sar.fn.u_mul_e(x, w)
        >>> message.op, message.lhs, message.rhs
        ('mul', 'u', 'e')
    """

    def __init__(self, op: str, lhs: str, rhs: str, left: Tensor | str, right: Tensor | str | None = None, out: str | None = None) -> None:
        self.op: str = op
        self.lhs: str = lhs
        self.rhs: str = rhs
        self.left: Tensor | str = left
        self.right: Tensor | str | None = right
        self.out: str | None = out

    def operands(self, frames: Mapping[str, Mapping[str, Tensor]]) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """The tensors of u, v and e; `frames` has the fields of each."""
        found: dict[str, Tensor | None] = {"u": None, "v": None, "e": None}
        for target, operand in ((self.lhs, self.left), (self.rhs, self.right)):
            if operand is None:
                continue
            if isinstance(operand, str):
                if operand not in frames[target]:
                    raise InputError(f"a message reads the field '{operand}' of {target}, which the graph has not: "
                                     f"it has {sorted(frames[target])}")
                operand = frames[target][operand]
            if not isinstance(operand, Tensor) and hasattr(operand, "__array__"):  # a field of NumPy or torch
                operand = _tensor(operand)
            if not isinstance(operand, Tensor):
                raise TypeError(f"a message reads {_given(operand)}, expected a sar.Tensor or the name of a field")
            found[target] = operand
        return found["u"], found["v"], found["e"]


class Reduction:
    """A reduction: fn.mean, or fn.mean("m", "y"), which writes the field y of the destinations.

        >>> graph = sar.Graph(([0, 1, 2], [1, 2, 0]), num_nodes=3)
        >>> graph.ndata["h"] = sar.tensor([[1.0], [2], [4]])
        >>> graph.update_all(sar.fn.copy_u("h", "m"), sar.fn.sum("m", "y"))
        >>> graph.ndata["y"].tolist()
        [[4.0], [1.0], [2.0]]
    """

    def __init__(self, name: str, message: str | None = None, out: str | None = None) -> None:
        self.name: str = name
        self.message: str | None = message
        self.out: str | None = out

    def __call__(self, message: str, out: str) -> Reduction:
        return Reduction(self.name, message, out)


class _Copy(Protocol):
    def __call__(self, x: Tensor | str, out: str | None = None) -> Message: ...


class _Binary(Protocol):
    def __call__(self, left: Tensor | str, right: Tensor | str, out: str | None = None) -> Message: ...


def _copy(target: str) -> _Copy:
    def message(x: Tensor | str, out: str | None = None) -> Message:
        return Message("copy", target, target, x, None, out)

    message.__doc__ = f"The message is {target}." + _EXAMPLE.format(f"copy_{target}(x)", "(3, 2)")
    message.__name__ = message.__qualname__ = f"copy_{target}"
    return message


def _binary(op: str, lhs: str, rhs: str) -> _Binary:
    def message(left: Tensor | str, right: Tensor | str, out: str | None = None) -> Message:
        return Message(op, lhs, rhs, left, right, out)

    message.__doc__ = f"The message is {lhs} {op} {rhs}." + _EXAMPLE.format(f"{lhs}_{op}_{rhs}(x, x)", "(3, 1)" if op == "dot" else "(3, 2)")
    message.__name__ = message.__qualname__ = f"{lhs}_{op}_{rhs}"
    return message


copy_u: _Copy = _copy("u")
copy_e: _Copy = _copy("e")
if TYPE_CHECKING:  # what the loops below make
    sum: Reduction
    mean: Reduction
    max: Reduction
    min: Reduction

    def __getattr__(name: str) -> _Binary: ...  # u_add_v, u_add_e, v_add_u, ...: an operation of two operands


for _op in message_ops[1:]:
    for _lhs in "uve":
        for _rhs in "uve".replace(_lhs, ""):
            globals()[f"{_lhs}_{_op}_{_rhs}"] = _binary(_op, _lhs, _rhs)
for _name in reductions:
    globals()[_name] = Reduction(_name)
