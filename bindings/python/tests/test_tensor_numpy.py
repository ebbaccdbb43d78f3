# SPDX-License-Identifier: MIT

"""A tensor beside NumPy's arrays: the same values from the same expressions, and gradients by differences."""

import numpy as np
import pytest

import sar
from sar.nn import functional as F

DRAW = np.random.default_rng(0)


class OnlyDlpack:
    """An array of another package, which has no __array__."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class OnlyArray:
    """The same with __array__ only."""

    def __init__(self, array):
        self._array = array

    def __array__(self, dtype=None, copy=None):
        return np.array(self._array, dtype=dtype)


def numbers(*shape):
    return DRAW.normal(size=shape).astype(np.float32)


def check(result, expected, rtol=2e-5):
    """A number is a tensor of shape [1]."""
    assert isinstance(result, sar.Tensor)
    assert result.shape == (np.shape(expected) or (1,))
    np.testing.assert_allclose(result.numpy().reshape(np.shape(expected)), expected, rtol=rtol, atol=1e-6)


def check_gradient(function, *arrays, step=1e-2):
    """The gradient of sum(factors * function(...)) beside central differences of it, in the numbers of the library."""
    leaves = [sar.tensor(array, requires_grad=True, copy=True) for array in arrays]
    result = function(*leaves)
    assert result.requires_grad
    factors = np.linspace(0.5, 1.5, result.size).reshape(result.shape)
    result.backward(factors)

    def value(changed):
        return float((np.asarray(function(*map(sar.tensor, changed)), np.float64) * factors).sum())

    for which, leaf in enumerate(leaves):
        expected = np.zeros(arrays[which].shape)
        for place in np.ndindex(expected.shape):
            sums = []
            for sign in (1, -1):
                changed = [array.copy() for array in arrays]
                changed[which][place] += sign * step
                sums.append(value(changed))
            expected[place] = (sums[0] - sums[1]) / (2 * step)
        found = np.zeros(expected.shape) if leaf.grad is None else leaf.grad.numpy()
        np.testing.assert_allclose(found, expected, rtol=2e-2, atol=2e-3)


OPERATORS = [lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b]


@pytest.mark.parametrize("f", OPERATORS)
def test_operators_take_what_numpy_takes_on_both_sides(f):
    a = numbers(3, 4) + 3
    x = sar.tensor(a)
    for other in (numbers(3, 4) + 3, numbers(4) + 3, numbers(3, 1) + 3, numbers(1, 4) + 3, np.float64(2), np.float32(2), np.int64(2), np.array(2.0), 2, 2.5,
                  True, [[1.0, 2, 3, 4]], np.arange(1, 5), np.ones((3, 4), bool), numbers(2, 3, 4) + 3, (1.0, 2, 3, 4)):
        plain = np.asarray(other, np.float32)
        check(f(x, other), f(a, plain))
        check(f(other, x), f(plain, a))
        if plain.ndim:
            for wrapped in (sar.tensor(plain), OnlyDlpack(plain), OnlyArray(plain)):
                check(f(x, wrapped), f(a, plain))
                check(f(wrapped, x), f(plain, a))


@pytest.mark.parametrize("f", OPERATORS)
def test_gradients_of_operators(f):
    a, b = numbers(3, 4) + 3, numbers(4) + 3
    check_gradient(f, a, b)
    check_gradient(f, b, a)
    check_gradient(f, numbers(3, 1) + 3, b)
    check_gradient(lambda x: f(b, x) + f(x, b) + f(2, x) + f(np.float32(3), x), a)


def test_other_operands_are_type_errors_that_name_both():
    x = sar.tensor([1.0])
    for other in ("a", None, {}, 1j, np.ones(1, complex), np.array(["a"]), object()):
        for f in (*OPERATORS, lambda a, b: a ** b, lambda a, b: a @ b):
            with pytest.raises((TypeError, sar.InputError)):
                f(x, other)
            with pytest.raises((TypeError, sar.InputError)):
                f(other, x)
    with pytest.raises(TypeError, match="'Tensor' and 'str'"):
        x + "a"
    with pytest.raises(TypeError, match=r"numpy.add of an array of shape \[1\] and dtype complex128, expected real numbers"):
        x + np.ones(1, complex)
    with pytest.raises(sar.ShapeError, match="do not broadcast"):
        sar.tensor(np.ones((2, 3))) + np.ones(4)


@pytest.mark.parametrize("shapes", [((2, 3), (3, 4)), ((2, 3), (3,)), ((3,), (3, 4)), ((3,), (3,)), ((2, 4, 3), (3, 2)), ((2, 4, 3), (3,))])
def test_matrix_products(shapes):
    a, b = numbers(*shapes[0]), numbers(*shapes[1])
    check(sar.tensor(a) @ sar.tensor(b), a @ b)
    check(sar.tensor(a) @ b, a @ b)
    check(a @ sar.tensor(b), a @ b)
    check_gradient(lambda x, y: x @ y, a, b)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 0.5, -1, -1.5, 2.7, np.float32(2), np.int64(3)])
def test_powers(exponent):
    a = np.abs(numbers(3, 2)) + 0.5
    check(sar.tensor(a) ** exponent, a ** exponent)
    check_gradient(lambda x: x ** exponent + 0 * x, a, step=3e-3)


def test_powers_of_negative_numbers_and_tensors():
    a, b = numbers(3, 2), np.abs(numbers(3, 2)) + 0.5
    check(sar.tensor(a) ** 3, a ** 3)
    check_gradient(lambda x: x ** 3, a)
    check(2 ** sar.tensor(a), 2 ** a)
    check(b ** sar.tensor(a), b ** a)
    check(sar.tensor(b) ** a, b ** a)
    check_gradient(lambda x, y: y ** x + 3 ** x, a, b)
    with pytest.raises(sar.InputError, match="-2 \\*\\* x of a tensor, expected a positive number"):
        (-2) ** sar.tensor(a)


INDEXES = [0, -1, np.int64(2), np.array(1), slice(None), slice(1, 3), slice(None, None, -1), slice(3, 0, -2), slice(0, 4, 2), (1, 2), (slice(None), 0),
           (slice(None), -1), (slice(None), slice(1, None)), (slice(None), slice(None, None, 2)), (slice(1, 3), 1), (slice(None), np.int64(1)), [2, 0, -1],
           np.array([0, 0, 3], np.uint8), [True, False, True, True], np.array([False] * 4), [], (Ellipsis, 1), None, (slice(None), None), (None, 2),
           ([0, 2], 1), ([0, 2], slice(1, 3)), ([0, 2], [1, 1]), (slice(None), [0, 2]), [[0, 1], [2, 3]], (), Ellipsis, ([True, False, True, False], 0)]


@pytest.mark.parametrize("index", INDEXES, ids=str)
@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 2)])
def test_indexes_are_those_of_numpy(index, shape):
    a = numbers(*shape)
    array_index = np.asarray(index, int) if isinstance(index, list) and not index else index
    expected = a[array_index]
    check(sar.tensor(a)[index], expected)
    check(sar.tensor(a, requires_grad=True)[index], expected)
    if expected.size:
        check_gradient(lambda x: x[index] * 1, a)


def test_indexes_of_vectors_and_of_four_dimensions():
    vector, array = numbers(5), numbers(2, 3, 4, 2)
    x, y = sar.tensor(vector), sar.tensor(array)
    for index in (0, -1, slice(1, 4), [0, 2], vector > 0, (0,), None):
        check(x[index], vector[index])
    for index in ((0, 1), (slice(None), 0, 1), (slice(None), slice(0, 2), slice(1, 3), 1), (Ellipsis, 0), (1, slice(None), 2), (slice(None), slice(None), 0),
                  array > 0, (0, Ellipsis, [1, 0])):
        check(y[index], array[index])
    check_gradient(lambda z: z[:, 1:, 2], array)
    with pytest.raises(sar.ShapeError, match="1 to 4 dimensions"):
        y[None]


def test_masks_of_other_packages():
    a, mask = numbers(4, 2), np.array([True, False, True, True])
    for wrapped in (OnlyDlpack, OnlyArray, list, np.array):
        check(sar.tensor(a)[wrapped(mask)], a[mask])
        check(sar.tensor(a)[wrapped(np.array([2, 0]))], a[[2, 0]])
        if wrapped is not list:
            check(sar.tensor(a)[wrapped(a > 0)], a[a > 0])
            check(sar.tensor(a)[:, wrapped(np.array([1, 0]))], a[:, [1, 0]])


def test_wrong_indexes():
    x = sar.tensor(numbers(4, 3))
    for index, text in ((4, "index 4 of dimension 0"), (-5, "expected -4 to 3"), ((0, 3), "index 3 of dimension 1"), ([0, 7], "index 7 of dimension 0"),
                        ((0, 0, 0), "too many indices"), ((slice(None), [5]), "out of bounds")):
        with pytest.raises(IndexError, match=text):
            x[index]
    for index in (1.5, "a", (slice(None), 1.5), np.ones(4)):
        with pytest.raises((sar.InputError, IndexError), match="integer"):
            x[index]


AXES = [None, 0, 1, 2, -1, -2, (0, 1), (0, 2), (1, 2), (0, -1), (0, 1, 2)]


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("name", ["sum", "mean"])
@pytest.mark.parametrize("keepdims", [False, True])
def test_sums_and_means(axis, name, keepdims):
    a = numbers(4, 3, 2)
    f = lambda x: getattr(x, name)(axis, keepdims)  # noqa: E731
    expected = getattr(a, name)(axis, keepdims=keepdims)
    check(f(sar.tensor(a)), expected)
    check(getattr(sar.tensor(a), name)(dim=axis, keepdim=keepdims), expected)
    check(getattr(np, name)(sar.tensor(a), axis=axis), getattr(a, name)(axis))
    check_gradient(f, a)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("keepdims", [False, True])
def test_largest_and_smallest(axis, name, keepdims):
    a = DRAW.permutation(24).reshape(4, 3, 2).astype(np.float32)
    f = lambda x: getattr(x, name)(axis, keepdims)  # noqa: E731
    check(f(sar.tensor(a)), getattr(a, name)(axis, keepdims=keepdims))
    check_gradient(f, a)
    places = getattr(sar.tensor(a), "arg" + name)(axis)
    np.testing.assert_array_equal(places, getattr(a, "arg" + name)(axis))
    check(getattr(np, name)(sar.tensor(a), axis=axis), getattr(a, name)(axis))


def test_the_gradient_of_equal_largest_goes_to_the_first():
    x = sar.tensor([[1.0, 2, 2]], requires_grad=True)
    x.max(1).backward()
    np.testing.assert_array_equal(x.grad, [[0, 1, 0]])


def test_wrong_axes():
    x = sar.tensor(numbers(2, 3))
    for name in ("sum", "mean", "max", "min", "argmax"):
        for axis in (2, -3, "rows", 1.0):
            with pytest.raises(sar.InputError, match="expected -2 to 1"):
                getattr(x, name)(axis)
        with pytest.raises(sar.InputError, match="expected one of them"):
            getattr(x, name)(0, dim=1)
    with pytest.raises(sar.InputError, match="given twice"):
        x.sum((0, 0))
    with pytest.raises(sar.ShapeError, match="max over no element"):
        sar.zeros((0, 2)).max(0)
    assert sar.zeros((0, 2)).max(1).shape == (0,) and sar.zeros((0, 2)).sum(0).tolist() == [0, 0]


def test_shapes():
    a = numbers(4, 3, 2)
    x = sar.tensor(a)
    assert x.size == 24 and type(x.size) is int and x.shape == (4, 3, 2) and x.dtype == np.float32 and x.dtype == a.dtype
    assert x.ndim == x.dim() == 3 and x.numel() == 24
    check(x.T, a.T)
    check(x.permute(1, 0, 2), a.transpose(1, 0, 2))
    check(np.transpose(x, (2, 0, 1)), a.transpose(2, 0, 1))
    check(x[0].T, a[0].T)
    check(x.view(2, -1), a.reshape(2, -1))
    check(x.unsqueeze(1).squeeze(), a)
    check(x[:, None].squeeze(1), a)
    check_gradient(lambda y: y.T @ y, a[0])
    check_gradient(lambda y: y.permute(2, 0, 1).unsqueeze(-1).squeeze(3) * 1, a)
    with pytest.raises(sar.InputError, match="each of 0 to 2 once"):
        x.permute(0, 1)


def test_numbers():
    x = sar.tensor([2.75])
    assert f"{x:.1f}" == "2.8" and f"{x}" == str(x) and int(x) == 2 and float(x) == 2.75 and bool(x) and x.item() == 2.75
    assert sar.tensor([[1.0, 2]]).tolist() == [[1.0, 2.0]] and [row.tolist() for row in sar.tensor([[1.0], [2]])] == [[1.0], [2.0]]
    assert 2 in sar.tensor([[1.0, 2]]) and 3 not in sar.tensor([[1.0, 2]]) and len(sar.tensor([[1.0, 2]])) == 1
    y = sar.tensor([1.0, 2])
    with pytest.raises(TypeError, match=r"the format '\.2f' of a tensor of shape \[2\], expected one number"):
        f"{y:.2f}"
    for one in (int, float):
        with pytest.raises(sar.ShapeError, match="2"):
            one(y)


UFUNCS = [np.exp, np.tanh, np.sqrt, np.log, np.abs, np.square, np.negative, np.log1p, np.expm1, np.log2, np.log10, np.exp2, np.reciprocal]


@pytest.mark.parametrize("f", UFUNCS, ids=lambda f: f.__name__)
def test_functions_of_numpy_give_tensors(f):
    a = np.abs(numbers(3, 2)) + 0.5
    check(f(sar.tensor(a)), f(a))
    check_gradient(f, a, step=3e-3)


@pytest.mark.parametrize("f", [np.log1p, np.expm1], ids=lambda f: f.__name__)
def test_functions_of_small_numbers_keep_their_digits(f):
    a = np.array([1e-8, -3e-7, 1e-4, 0.3, 0, 20, -0.999], np.float32)
    np.testing.assert_allclose(f(sar.tensor(a)), f(a), rtol=2e-6, atol=0)
    check(f(sar.tensor([np.inf, -1])), f(np.array([np.inf, -1], np.float32)))
    x = sar.tensor(a, requires_grad=True)
    f(x).sum().backward()
    np.testing.assert_allclose(x.grad, 1 / (1 + a) if f is np.log1p else np.exp(a), rtol=1e-5)


@pytest.mark.parametrize("f", [np.add, np.subtract, np.multiply, np.divide, np.power, np.maximum, np.minimum], ids=lambda f: f.__name__)
def test_functions_of_two_operands(f):
    a, b = np.abs(numbers(3, 2)) + 0.5, np.abs(numbers(2)) + 0.5
    for first, second in ((sar.tensor(a), b), (a, sar.tensor(b)), (sar.tensor(a), sar.tensor(b)), (sar.tensor(a), 2.0), (2.0, sar.tensor(b))):
        check(f(first, second), f(np.asarray(first), np.asarray(second)).astype(np.float32))
    check_gradient(f, a, b, step=3e-3)


def test_other_functions_of_numpy():
    a = numbers(3, 2)
    x, w = sar.tensor(a), sar.tensor(a, requires_grad=True)
    for result, expected in ((np.sin(x), np.sin(a)), (np.add.reduce(x), np.add.reduce(a)), (np.isfinite(w), np.isfinite(a)), (np.sign(w), np.sign(a)),
                             (a < w, np.zeros((3, 2), bool))):
        assert isinstance(result, np.ndarray)
        np.testing.assert_array_equal(result, expected)
    for wrong in (lambda: np.sin(w), lambda: np.add.reduce(w), lambda: np.add(w, w, out=a.copy()), lambda: np.exp(w, where=a > 0)):
        with pytest.raises(TypeError, match="requires a gradient"):
            wrong()
    own = a.copy()
    own += x
    np.testing.assert_array_equal(own, 2 * a)
    with pytest.raises(TypeError, match="a tensor as out"):
        np.sin(a, out=x)


def test_values_are_assigned_to_constants():
    a = numbers(3, 2)
    x, expected, mask = sar.tensor(a, copy=True), a.copy(), OnlyDlpack(a > 1)
    x[0], x[:, 1], x[mask], x[[2]] = 5, sar.tensor([1.0, 2, 3]), 0, x[[1]]
    expected[0], expected[:, 1], expected[a > 1] = 5, [1, 2, 3], 0
    expected[2] = a[1]
    np.testing.assert_array_equal(x, expected)
    with pytest.raises(sar.InputError, match="requires a gradient, expected a constant"):
        sar.tensor(a, requires_grad=True)[0] = 1
    fixed = np.ones(2, np.float32)
    fixed.flags.writeable = False
    with pytest.raises(sar.InputError, match="borrowed for reading"):
        sar.tensor(fixed)[0] = 2


def test_where_and_softmax():
    a = numbers(3, 2)
    check(sar.where(a > 0, sar.tensor(a), 0), np.where(a > 0, a, 0))
    check_gradient(lambda x: sar.where(a > 0, x, 2 * x), a)
    np.testing.assert_allclose(F.softmax(sar.tensor(a), dim=1), np.exp(a) / np.exp(a).sum(1, keepdims=True), rtol=1e-5)
    with pytest.raises(sar.InputError, match="dim is 0"):
        F.log_softmax(sar.tensor(a), dim=0)


def test_what_would_lose_a_gradient_or_nan_without_a_word():
    w = sar.tensor([1.0, 2, 3], requires_grad=True)
    x = sar.zeros([3])
    with pytest.raises(sar.InputError, match="values that require a gradient"):
        x[0:1] = (w * 2)[0:1]
    result = w * 2
    with pytest.raises(sar.InputError, match="copy_"):
        result.copy_([0.0, 0, 0])
    np.testing.assert_array_equal(x.numpy(), 0)
    nan = sar.tensor([np.nan, 1])
    for function in (np.maximum, np.minimum):
        for a, b in ((nan, 0.0), (0.0, nan)):
            np.testing.assert_array_equal(np.isnan(np.asarray(function(a, b))), [True, False])
    with pytest.raises(sar.InputError, match="x.T"):
        sar.zeros([2, 2]).transpose(0, 1)
    with pytest.raises(sar.InputError, match="x.T"):
        sar.zeros([2, 2]).transpose(-2, -1)


def test_a_buffer_stays_in_the_state_when_it_is_assigned():
    module = sar.nn.Module()
    module.register_buffer("average", np.zeros(2))
    module.average = module.average * 0.9 + 1
    np.testing.assert_array_equal(np.asarray(module.state_dict()["average"]), 1)
    modules = sar.nn.ModuleDict({"a": sar.nn.Linear(2, 2), "b.c": sar.nn.Linear(2, 3)})
    assert len(modules) == 2 and list(modules) == ["a", "b.c"] and modules.values()[1] is modules["b.c"]


def test_powers_of_tensors_need_positive_bases():
    np.testing.assert_allclose(np.asarray(sar.tensor([2.0, 3]) ** sar.tensor([2.0, 0.5])), [4, 3**0.5], rtol=1e-6)
    for power in (lambda: sar.tensor([2.0, -2]) ** sar.tensor([2.0, 2]), lambda: np.array([0.0, 2], np.float32) ** sar.tensor([0.0, 1])):
        with pytest.raises(sar.InputError, match="expected positive x"):
            power()


def test_rows_are_copies():
    array = np.arange(12, dtype=np.float32).reshape(4, 3)
    for key in ([0, 1], np.array([True, False, True, False]), np.array([2, 0]), slice(None, None, 2), ([0, 1], slice(0, 2)), (slice(None), [0, 2]),
                array > 3, np.array([[0, 1], [2, 3]])):
        x = sar.tensor(array, copy=True)
        y = x[key]
        weight = sar.tensor(np.ones((y.shape[-1], 1)), requires_grad=True)
        z = y.reshape(-1, y.shape[-1]) @ weight
        expected = y.numpy().copy()
        x[0] = 100
        x.copy_(x + 1)
        x.numpy()[:] += 5
        np.testing.assert_array_equal(y, expected)
        z.backward(np.ones(z.shape))
        np.testing.assert_allclose(weight.grad.numpy()[:, 0], expected.reshape(-1, y.shape[-1]).sum(0), rtol=1e-6)
