# SPDX-License-Identifier: MIT

"""Methods of sar.Tensor that are composed of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _sar
from ._arguments import given
from ._sar import InputError, Tensor


class BatchRows(np.ndarray[Any, np.dtype[np.int64]]):
    """Rows of nodes that a mini-batch reads or computes. x[rows] of a constant makes no copy: what uses the result reads x."""

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Results of functions are plain arrays and numbers."""
        return array[()] if array.ndim == 0 else np.asarray(array)


def _axis(x: Tensor, axis: Any, dim: Any, out: None = None) -> int | None:
    """The dimension that `axis`, or torch's `dim`, names, counted from 0; None for all."""
    if axis is not None and dim is not None:
        raise InputError("axis and dim are given, expected one of them")
    if out is not None:
        raise InputError("out is given, expected None: the result is a new tensor")
    axis = dim if axis is None else axis
    if axis is None:
        return None
    if not isinstance(axis, (int, np.integer)) or isinstance(axis, bool) or not -x.ndim <= axis < x.ndim:
        raise InputError(f"the axis is {axis!r}, expected {-x.ndim} to {x.ndim - 1}")
    return int(axis) % x.ndim


def _extreme(name: str) -> Callable[..., Tensor]:
    places_of = getattr(np, f"arg{name}")

    def extreme(x: Tensor, axis: Any = None, keepdims: bool = False, *, dim: Any = None, keepdim: bool | None = None, out: None = None) -> Tensor:
        axis, keepdims = _axis(x, axis, dim, out), keepdims if keepdim is None else keepdim
        if (x.size if axis is None else x.shape[axis]) == 0:
            raise _sar.ShapeError(f"{name} over no element of a tensor of shape {list(x.shape)}")
        if axis is None:
            return x._elements([places_of(x.numpy())], (1,) * x.ndim if keepdims else (1,))
        chosen = np.expand_dims(places_of(x.numpy(), axis), axis)
        places = np.take_along_axis(_places(x), chosen, axis)
        shape = places.shape if keepdims else (*x.shape[:axis], *x.shape[axis + 1:])
        return x._elements(places.ravel(), shape or (1,))

    return extreme


max, min = _extreme("max"), _extreme("min")


def argmax(x: Tensor, axis: Any = None, keepdims: bool = False, *, dim: Any = None, keepdim: bool | None = None, out: None = None) -> Any:
    return np.argmax(x.numpy(), _axis(x, axis, dim, out), keepdims=keepdims if keepdim is None else keepdim)


def argmin(x: Tensor, axis: Any = None, keepdims: bool = False, *, dim: Any = None, keepdim: bool | None = None, out: None = None) -> Any:
    return np.argmin(x.numpy(), _axis(x, axis, dim, out), keepdims=keepdims if keepdim is None else keepdim)


def _places(x: Tensor) -> NDArray[np.int64]:
    """The place of each element in memory, in the shape of x."""
    return np.arange(x.size).reshape(x.shape)


def _of_places(x: Tensor, places: NDArray[np.int64]) -> Tensor:
    return x._elements(places.ravel(), places.shape or (1,))


def _keys(key: Any) -> Any:
    """An index with arrays of NumPy in place of those of other packages and of lists."""
    if isinstance(key, tuple):
        return tuple(map(_keys, key))
    if key is None or key is Ellipsis or isinstance(key, (slice, int)):
        return key
    return np.from_dlpack(key) if hasattr(key, "__dlpack__") and not hasattr(key, "__array__") else np.asarray(key)


def part(x: Tensor, key: Any) -> Tensor:
    """x[key] for any index of NumPy."""
    key = _keys(key)
    if isinstance(key, np.ndarray) and key.dtype == bool and key.shape != x.shape[:key.ndim]:
        raise _sar.ShapeError(f"a mask of shape {key.shape} for a tensor of shape {list(x.shape)}, expected one bool for each row or element")
    try:
        places = _places(x)[key]
    except IndexError as error:
        raise IndexError(f"{error}; the tensor has shape {list(x.shape)}") from None
    return _of_places(x, np.asarray(places))


def assign(x: Tensor, key: Any, values: Any) -> None:
    if x.requires_grad:
        raise InputError("x[...] = values of a tensor that requires a gradient, expected a constant; sar.where() computes a new tensor")
    if isinstance(values, Tensor) and values.requires_grad:
        raise InputError("x[...] = values that require a gradient, expected constants: values.detach(), or sar.where() for a new tensor")
    values = np.asarray(values)
    if values.dtype.kind not in "fiub":
        raise InputError(f"x[...] = values of dtype {values.dtype}, expected real numbers")
    x._before_write()
    array = x.numpy()
    if not array.flags.writeable:
        raise InputError("x[...] = values of a tensor on memory that was borrowed for reading, expected memory that may be written")
    array[_keys(key)] = values


def permute(x: Tensor, *dims: Any) -> Tensor:
    dims = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    if sorted(d % x.ndim if isinstance(d, int) else -1 for d in dims) != list(range(x.ndim)):
        raise InputError(f"the dimensions are {dims}, expected each of 0 to {x.ndim - 1} once")
    return _of_places(x, _places(x).transpose(dims))


def transpose(x: Tensor, *dims: Any) -> Tensor:
    if x.ndim == 2 and len(dims) == 2 and all(isinstance(d, int) for d in dims) and (dims[0] % 2, dims[1] % 2) == (0, 1):  # which torch swaps and NumPy leaves
        raise InputError(f"transpose({dims[0]}, {dims[1]}) of a matrix, which NumPy leaves as it is and torch swaps, expected x.T or permute()")
    return permute(x, *(dims if dims and dims != (None,) else range(x.ndim)[::-1]))


def squeeze(x: Tensor, axis: int | None = None, *, dim: int | None = None) -> Tensor:
    axis = _axis(x, axis, dim)
    if axis is not None and x.shape[axis] != 1:
        return x
    shape = [n for d, n in enumerate(x.shape) if n != 1 or (axis is not None and d != axis)]
    return x.reshape(shape or [1])


def unsqueeze(x: Tensor, dim: int) -> Tensor:
    if not isinstance(dim, int) or not -x.ndim - 1 <= dim <= x.ndim:
        raise InputError(f"dim is {dim!r}, expected {-x.ndim - 1} to {x.ndim}")
    shape = list(x.shape)
    shape.insert(dim % (x.ndim + 1), 1)
    return x.reshape(shape)


def formatted(x: Tensor, spec: str) -> str:
    if not spec:
        return str(x)
    if x.size != 1:
        raise TypeError(f"the format '{spec}' of a tensor of shape {list(x.shape)}, expected one number")
    return format(x.item(), spec)


def rows(x: Tensor) -> Iterator[Tensor]:
    return (x[i] for i in range(len(x)))


def contains(x: Tensor, value: object) -> bool:
    return bool(np.any(x == value))


def _larger(a: Any, b: Any) -> Tensor:
    return _sar.where((np.asarray(a) >= np.asarray(b)) | np.isnan(np.asarray(a)), a, b)


def _smaller(a: Any, b: Any) -> Tensor:
    return _sar.where((np.asarray(a) <= np.asarray(b)) | np.isnan(np.asarray(a)), a, b)


def _expm1(x: Tensor) -> Tensor:
    is_small = np.abs(x.numpy()) < 1
    half = _sar.tanh(_sar.where(is_small, x, 0) * 0.5)  # exp(x) - 1 = 2 h / (1 - h) keeps the digits of a small x
    return _sar.where(is_small, 2 * half / (1 - half), _sar.exp(_sar.where(is_small, 0, x)) - 1)


def _log1p(x: Tensor) -> Tensor:
    y = 1 + x
    with np.errstate(invalid="ignore"):
        lost = x.numpy() - (y.numpy() - 1)  # to the rounding of 1 + x
    found: Tensor = _sar.log(y) + np.divide(lost, y.numpy(), out=np.zeros_like(lost), where=np.isfinite(lost) & (lost != 0))
    return found


_DIFFERENTIABLE: dict[str, Callable[..., Tensor]] = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b, "divide": lambda a, b: a / b,
    "power": lambda a, b: a ** b, "float_power": lambda a, b: a ** b, "matmul": lambda a, b: a @ b, "maximum": _larger, "minimum": _smaller,
    "negative": lambda x: -x, "positive": lambda x: x, "absolute": _sar.abs, "fabs": _sar.abs, "exp": _sar.exp, "log": _sar.log,
    "sqrt": _sar.sqrt, "tanh": _sar.tanh, "square": lambda x: x * x, "reciprocal": lambda x: 1 / x, "exp2": lambda x: 2 ** x,
    "log2": lambda x: _sar.log(x) / np.log(2), "log10": lambda x: _sar.log(x) / np.log(10), "expm1": _expm1, "log1p": _log1p}
# of which the derivative is 0, or which return bools
_CONSTANT = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isnan", "isinf", "isfinite", "signbit", "sign", "floor", "ceil",
             "rint", "trunc", "logical_and", "logical_or", "logical_xor", "logical_not"}


def ufunc(self: Tensor, function: Any, method: str, *inputs: Any, out: tuple[Any, ...] | None = None, **options: Any) -> Any:
    """numpy.exp(x), array + x, ...: a tensor for what has a derivative, otherwise the array that NumPy computes of constants."""
    name = function.__name__
    for each in inputs:
        if not isinstance(each, Tensor) and np.asarray(each).dtype.kind not in "fiub":
            raise TypeError(f"numpy.{name} of {given(each)}, expected real numbers or tensors of them")
    if method == "__call__" and out is None and not options and name in _DIFFERENTIABLE:
        first, *others = inputs
        if isinstance(first, Tensor) or not others or name in ("maximum", "minimum"):
            return _DIFFERENTIABLE[name](*inputs)
        return _DIFFERENTIABLE[name](_sar.tensor(first) if np.ndim(first) else float(first), *others)
    if name not in _CONSTANT and any(isinstance(each, Tensor) and each.requires_grad for each in inputs):
        what = f"numpy.{name}" if method == "__call__" else f"numpy.{name}.{method}"
        raise TypeError(f"{what} of a tensor that requires a gradient, which sar does not differentiate{' with out or where' * (name in _DIFFERENTIABLE)}: "
                        "expected a constant, such as x.detach()")
    arrays = [each.numpy() if isinstance(each, Tensor) else each for each in inputs]
    if out is not None:
        if any(isinstance(each, Tensor) for each in out):
            raise TypeError(f"numpy.{name} with a tensor as out, expected an array of NumPy: x.numpy() has the tensor's memory")
        options["out"] = out
    return getattr(function, method)(*arrays, **options)
