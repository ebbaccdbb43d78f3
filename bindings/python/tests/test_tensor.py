# SPDX-License-Identifier: MIT
import copy
import gc
import pickle
import threading

import numpy as np
import pytest
from conftest import random_graph

import sar
from sar.nn import functional as F


def test_an_array_is_used_without_a_copy():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = sar.tensor(array)
    array[0, 0] = 7
    assert x.shape == (2, 3) and x.numpy()[0, 0] == 7
    assert np.shares_memory(array, x.numpy())
    assert not np.shares_memory(array, sar.tensor(array, copy=True).numpy())


@pytest.mark.parametrize("array", [np.arange(4.0), np.arange(12, dtype=np.float32).reshape(3, 4).T, np.arange(3), [1, 2.5],
                                   np.array([True, False]), np.arange(8, dtype=np.float32)[::2]])
def test_other_arrays_are_converted(array):
    x = sar.tensor(array)
    assert x.dtype == "float32"
    np.testing.assert_array_equal(x.numpy(), np.asarray(array, np.float32))


def test_memory_lives_as_long_as_an_array_or_a_tensor():
    view = sar.tensor(np.full((1000, 10), 3.0)).numpy()
    x = sar.tensor(np.full((1000, 10), 4, np.float32))
    gc.collect()
    np.testing.assert_array_equal(view, 3)
    np.testing.assert_array_equal(x.numpy(), 4)
    result = F.relu(x)
    kept = result.numpy()
    del result
    gc.collect()
    F.relu(x)
    np.testing.assert_array_equal(kept, 4)


def test_buffers_and_dlpack_show_the_memory():
    x = sar.tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert memoryview(x).shape == (2, 3) and memoryview(x).format == "f"
    y = np.from_dlpack(x)
    x.copy_(np.zeros((2, 3)))
    np.testing.assert_array_equal(y, 0)
    assert np.asarray(x, dtype=np.float64).dtype == np.float64


def test_operations_do_not_write_to_borrowed_memory():
    array = np.full((4, 4), -1, np.float32)
    F.relu(sar.tensor(array))
    y = sar.tensor(array) + sar.tensor(array)
    np.testing.assert_array_equal(array, -1)
    np.testing.assert_array_equal(y.numpy(), -2)


def test_ids_may_change_after_the_call(comm):
    ids = np.array([2, 0, 1])
    far = np.full(3, 2**50)
    x, w = sar.tensor(np.arange(6.0).reshape(3, 2)), sar.tensor(np.arange(6.0).reshape(3, 2), requires_grad=True)
    drop = sar.nn.Dropout(0.5)
    graph = sar.Graph(([0, 1, 2], [1, 2, 0]), 3)
    conv = sar.nn.RelGraphConv(2, 2, 2)
    types = np.arange(graph.num_edges()) % 2
    rows, part, grown, dropped = x[ids], x[ids, 0:1], w[ids], drop(w, ids)
    related = conv(graph, sar.tensor(graph.local_rows(np.ones((3, 2))), requires_grad=True), types)
    expected = dropped.numpy() != 0
    ids[:], types[:] = far, 2**50
    np.testing.assert_array_equal(rows.numpy(), [[4, 5], [0, 1], [2, 3]])
    np.testing.assert_array_equal(part.numpy(), [[4], [0], [2]])
    (grown.sum() + dropped.sum() + sar.sum(related)).backward()
    np.testing.assert_array_equal(w.grad.numpy()[1:], 1 + 2 * expected[1:])


def test_read_only_arrays():
    array = np.ones((2, 2), np.float32)
    array.flags.writeable = False
    x = sar.tensor(array)
    assert not x.numpy().flags.writeable
    with pytest.raises(sar.InputError, match="borrowed for reading"):
        x.copy_(np.zeros((2, 2)))
    assert np.shares_memory(array, x.numpy())


def test_wrong_arrays():
    with pytest.raises(sar.InputError, match="dtype complex128, expected real numbers"):
        sar.tensor(np.ones(3, complex))
    with pytest.raises(sar.InputError, match="expected real numbers"):
        sar.tensor(np.array(["a"]))
    with pytest.raises(sar.ShapeError, match="1 to 4 dimensions, not 5"):
        sar.tensor(np.ones((1, 1, 1, 1, 1), np.float32))
    with pytest.raises(TypeError):
        F.relu("text")


def test_arithmetic_as_numpy():
    draw = np.random.default_rng(0)
    a, b = draw.normal(size=(4, 3)).astype(np.float32), draw.normal(size=3).astype(np.float32)
    x, y = sar.tensor(a), sar.tensor(b)
    for result, expected in [(x + y, a + b), (x - 2, a - 2), (2 - x, 2 - a), (x * y, a * b), (3 / (x * x + 1), 3 / (a * a + 1)),
                             (-x, -a), (x ** 2, a ** 2), (x @ sar.tensor(a.T), a @ a.T), (x.sum(), [a.sum()]),
                             (x.mean(dim=0), a.mean(0)), (x.sum(dim=-1), a.sum(1)), (x.reshape(2, -1), a.reshape(2, -1)),
                             (x[1:3], a[1:3]), (x[[2, 0]], a[[2, 0]]), (x[a[:, 0] > 0], a[a[:, 0] > 0]), (x[:, 1:], a[:, 1:]),
                             (x[-1], a[-1]), (sar.cat([x, x], dim=-1), np.hstack([a, a]))]:
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(IndexError):
        x[4]
    with pytest.raises(sar.ShapeError):
        x + sar.tensor(np.ones(5))


def test_comparisons_are_those_of_numpy():
    x, array = sar.tensor([[1.0, 2], [3, 1]]), np.array([[1.0, 2], [3, 1]])
    for other in (1, np.float32(1), array.T, [[1, 5], [3, 3]], sar.tensor(array.T), [2.0, 1]):
        plain = np.asarray(other)
        for found, expected in ((x == other, array == plain), (x != other, array != plain), (x < other, array < plain), (x <= other, array <= plain),
                                (x > other, array > plain), (x >= other, array >= plain), (other == x, plain == array), (other < x, plain < array)):
            assert found.dtype == bool
            np.testing.assert_array_equal(found, expected)
    assert not x == None and not x == "one" and x != None  # noqa: E711
    with pytest.raises(ValueError):
        x == [1, 2, 3]
    with pytest.raises(TypeError):
        x < "one"
    assert x.dtype == np.float32 and x.dtype == "float32" and x in [x] and len({x, x}) == 1
    assert sar.tensor([2.0]) and not sar.tensor([0.0])
    with pytest.raises(ValueError, match="ambiguous"):
        bool(x)


def test_masks():
    x = sar.tensor(np.arange(6.0).reshape(3, 2))
    np.testing.assert_array_equal(x[np.array([True, False, True])].numpy(), [[0, 1], [4, 5]])
    np.testing.assert_array_equal(x[np.array([2, 0, 0], np.uint8)].numpy(), [[4, 5], [0, 1], [0, 1]])
    np.testing.assert_array_equal(x[x > 2].numpy(), [3, 4, 5])
    for wrong in (np.ones((3, 1), bool), np.ones((3, 2, 1), bool), np.ones(2, bool), [True], np.bool_(True), True):
        with pytest.raises(sar.ShapeError, match="a mask of shape"):
            x[wrong]
    for rows in (np.array([2, 0, 1], np.uint8), np.array([1, 0, 1], np.int8), np.array([1, 0, 1])):
        with pytest.raises(sar.InputError, match="expected bool"):
            F.mse_loss(x, x.numpy(), rows)
    with pytest.raises(sar.ShapeError, match="2 dimensions"):
        F.mse_loss(x, x.numpy(), np.ones((3, 2), bool))


def test_heads():
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    x = sar.tensor(array, requires_grad=True)
    np.testing.assert_allclose(x.mean(1), array.mean(1))
    np.testing.assert_array_equal(x.flatten(1), array.reshape(2, 12))
    assert x.flatten().shape == (24,) and sar.zeros([0, 3, 4]).flatten(1).shape == (0, 12)
    (x.mean(1).sum() + x.flatten(1).sum()).backward()
    np.testing.assert_allclose(x.grad, np.full((2, 3, 4), 1 + 1 / 3), rtol=1e-6)
    for start_dim in (-1, 3):
        with pytest.raises(sar.InputError, match="start_dim"):
            x.flatten(start_dim)


def test_gradients():
    w = sar.tensor([1.0, 2, 3], requires_grad=True)
    (w * w).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), [2, 4, 6])
    (w * 2).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), [4, 6, 8])
    w.grad = None
    assert w.grad is None
    (w * w).backward(np.ones(3))
    np.testing.assert_allclose(w.grad.numpy(), [2, 4, 6])


@pytest.mark.parametrize("same", [lambda x: x.clone(), lambda x: x.reshape(3, 2, 1).flatten(), lambda x: x[[1, 0, 2]][[1, 0, 2]],
                                  lambda x: x[0:3], lambda x: x[np.array([True] * 3)], lambda x: x[0:3, 0:2], copy.copy,
                                  lambda x: sar.cat([row[None] for row in x]), lambda x: sar.where(np.ones((3, 2)), x, x * 2)])
def test_copies_and_parts_keep_the_gradient(same):
    x = sar.tensor([[1.0, 2], [3, 4], [5, 6]], requires_grad=True)
    y = same(x * 2)
    assert y.requires_grad
    (y * y).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 8 * x.numpy())


def test_a_clone_has_its_own_memory():
    for x in (sar.tensor([[1.0, 2]]), sar.tensor([[1.0, 2]], requires_grad=True)):
        y = x.clone()
        assert y.requires_grad == x.requires_grad and not np.shares_memory(x.numpy(), y.numpy())
        with sar.no_grad():
            assert not x.clone().requires_grad


def test_backward_ends_the_recording():
    w = sar.tensor([2.0], requires_grad=True)
    y = w * w
    y.backward()
    with pytest.raises(sar.Error, match="recording has ended"):
        y.backward()
    with pytest.raises(sar.Error, match="constants"):
        sar.tensor([1.0]).backward()
    with pytest.raises(sar.ShapeError, match="scalar"):
        (sar.tensor([2.0, 1.0], requires_grad=True) * 2).backward()


def test_a_recording_ends_with_its_last_result():
    w = sar.tensor(np.ones((1000, 1000)), requires_grad=True)
    peaks = []
    for _ in range(8):
        y = F.tanh(w) * w
        del y
        peaks.append(sar.peak_bytes())
    assert peaks[-1] == peaks[1]


def test_a_result_that_another_thread_drops_does_not_break_the_recording():
    w = sar.tensor([2.0], requires_grad=True)
    holder = [w * 3]
    thread = threading.Thread(target=holder.clear)
    thread.start()
    thread.join()
    (w * w).backward()
    np.testing.assert_allclose(w.grad.numpy(), [4])


def test_no_grad():
    w = sar.tensor([2.0], requires_grad=True)
    with sar.no_grad():
        assert not (w * w).requires_grad
        with sar.enable_grad():
            assert (w * w).requires_grad
    assert (w * w).requires_grad and sar.is_grad_enabled()

    @sar.no_grad()
    def constant():
        return w * w

    assert not constant().requires_grad
    assert not (w * w).detach().requires_grad


def test_leaves():
    x = sar.tensor([1.0, 2]).requires_grad_()
    y = x * 2
    assert x.is_leaf and not y.is_leaf
    with pytest.raises(sar.Error, match="computed from other tensors"):
        y.requires_grad_()
    with pytest.raises(sar.Error, match="detach"):
        x.requires_grad_(False)


def test_pickling_and_copies():
    x = sar.tensor([[1.0, 2]], requires_grad=True)
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert y.requires_grad and not np.shares_memory(x.numpy(), y.numpy())
        np.testing.assert_array_equal(x.numpy(), y.numpy())


def test_errors_are_values_and_runtime_errors():
    assert issubclass(sar.InputError, ValueError) and issubclass(sar.InputError, sar.Error)
    assert issubclass(sar.ShapeError, ValueError) and issubclass(sar.Error, RuntimeError)
    assert issubclass(sar.OutOfMemoryError, MemoryError)
    error = pickle.loads(pickle.dumps(sar.InputError("text")))
    assert isinstance(error, sar.InputError) and str(error) == "text"


def test_sparse_rows_have_the_results_of_dense_ones(comm):
    scipy = pytest.importorskip("scipy.sparse")
    _, _, graph = random_graph()
    draw = np.random.default_rng(0)
    rows = graph.local_rows(np.where(draw.random((60, 80)) < 0.05, draw.normal(size=(60, 80)), 0).astype(np.float32))
    dense, sparse = sar.tensor(rows), sar.tensor(scipy.csr_matrix(rows))
    assert sparse.is_sparse and not dense.is_sparse and sparse.shape == dense.shape
    conv = sar.nn.SAGEConv(80, 4)
    gradients = []
    for x in (dense, sparse):
        y = conv(graph, x)
        sar.sum(y * y).backward()
        gradients.append({name: np.array(each.grad) for name, each in conv.named_parameters()})
        conv.zero_grad()
    for name, gradient in gradients[0].items():
        np.testing.assert_allclose(gradients[1][name], gradient, rtol=1e-4, atol=1e-5, err_msg=name)
    chosen = np.arange(len(rows))[::3]
    assert sparse[chosen].is_sparse and sparse[1:3].is_sparse and sparse[np.isin(np.arange(len(rows)), chosen)].is_sparse
    np.testing.assert_array_equal(sparse[chosen], rows[chosen])
    np.testing.assert_allclose(sparse + 1, rows + 1)
    np.testing.assert_array_equal(np.from_dlpack(sparse), rows)
    assert not sparse.numpy().flags.writeable and not np.asarray(sparse).flags.writeable
    with pytest.raises(sar.InputError, match="copy_.. to sparse rows"):
        sparse.copy_(rows)
    with pytest.raises(sar.InputError, match="borrowed for reading"):
        sparse[0] = 1
    with pytest.raises(sar.InputError, match="a sparse matrix that requires a gradient"):
        sar.tensor(scipy.coo_array(rows), requires_grad=True)
