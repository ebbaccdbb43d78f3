# SPDX-License-Identifier: MIT
import contextlib
import gc
import pickle
import weakref

import numpy as np
import pytest
from conftest import random_graph, whole

import sar
from sar.nn import functional as F


class Net(sar.nn.Module):
    def __init__(self, width=8, bias=True):
        super().__init__()
        self.first = sar.nn.SAGEConv(5, width, bias=bias)
        self.norm = sar.nn.BatchNorm1d(width)
        self.drop = sar.nn.Dropout(0.5)
        self.second = sar.nn.SAGEConv(width, 3)

    def forward(self, graph, x):
        h = self.drop(F.relu(self.norm(self.first(graph, x))), graph)
        return self.second(graph, h)


def curve(epochs=6, reproducible=False, mixed=False, **options):
    src, dst, graph = random_graph(**options)
    graph.set_options(reproducible=reproducible)
    draw = np.random.default_rng(4)
    x, labels = draw.normal(size=(60, 5)).astype(np.float32), draw.integers(0, 3, 60)
    mask = draw.uniform(size=60) < 0.7
    sar.manual_seed(3)
    net = Net(bias=False)  # ahead of the batch norm, its gradient is 0, and Adam would step by rounding errors
    optimizer = sar.optim.Adam(net, lr=0.02)
    losses = []
    for _ in range(epochs):
        with sar.mixed_precision(mixed):
            with sar.reproducible() if reproducible else contextlib.nullcontext():
                loss = F.cross_entropy(net(graph, sar.tensor(graph.local_rows(x))), graph.local_rows(labels), graph.local_rows(mask))
            optimizer.zero_grad()
            loss.backward()
        optimizer.step()
        losses.append(loss.item())
    net.eval()
    with sar.no_grad():
        logits = net(graph, sar.tensor(graph.local_rows(x)))
    return losses, whole(graph, logits), F.accuracy(logits, graph.local_rows(labels), graph.local_rows(mask))


def curve_alone(**options):
    before = sar.get_communicator()
    sar.init(sar.Communicator.self())
    try:
        return curve(comm=sar.Communicator.self(), **options)
    finally:
        sar.init(before)


def test_a_reproducible_training_has_the_same_bits_on_one_rank_and_on_all(comm):
    losses, logits, accuracy = curve(reproducible=True)
    alone, logits_alone, accuracy_alone = curve_alone(reproducible=True)
    np.testing.assert_array_equal(losses, alone)
    np.testing.assert_array_equal(logits, logits_alone)
    assert accuracy == accuracy_alone


def steps_of_own_pieces(**options):
    """Weights after steps through a reduction of the user and rows of a table that captures parameters."""
    _, _, graph = random_graph(**options)
    graph.set_options(reproducible=True)
    x = graph.local_rows(np.random.default_rng(5).normal(size=(60, 5)).astype(np.float32))
    sar.manual_seed(2)
    inner, table = sar.nn.Linear(5, 4), sar.nn.Parameter(np.random.default_rng(6).normal(size=(3, 4)))
    optimizer = sar.optim.SGD([("weight", inner.weight), ("bias", inner.bias), ("table", table)], lr=0.1)
    kinds = np.asarray(graph.dst_ids) % 3
    for _ in range(3):
        with sar.reproducible():
            mean = graph.update_all(sar.fn.copy_u(sar.tensor(x)), lambda nodes: F.relu(inner(nodes.mailbox["m"])).mean(1))
            loss = F.mse_loss(mean + F.embedding(kinds, table), np.ones((len(x), 4), np.float32))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [np.asarray(each).copy() for each in (inner.weight, inner.bias, table)]


def test_own_reductions_and_tables_have_the_same_bits_on_one_rank_and_on_all(comm):
    weights = steps_of_own_pieces()
    before = sar.get_communicator()
    sar.init(sar.Communicator.self())
    try:
        alone = steps_of_own_pieces(comm=sar.Communicator.self())
    finally:
        sar.init(before)
    for mine, expected in zip(weights, alone):
        np.testing.assert_array_equal(mine, expected)


def test_embedding_takes_ids_of_any_shape(comm):
    table = sar.nn.Parameter(np.arange(6, dtype=np.float32).reshape(3, 2))
    assert F.embedding([[2, 0], [1, 1]], table).shape == (2, 2, 2)
    F.embedding([2, 2, 0], table).sum().backward()
    np.testing.assert_array_equal(table.grad, [[1, 1], [0, 0], [2, 2]])
    with pytest.raises(sar.Error, match="3"):
        F.embedding([3], table)
    with pytest.raises(sar.Error, match="expected .rows, width."):
        F.embedding([0], sar.zeros([3]))


def test_a_training_is_the_same_on_one_rank_and_on_all(comm):
    losses, logits, accuracy = curve()
    alone, logits_alone, accuracy_alone = curve_alone()
    np.testing.assert_allclose(losses, alone, rtol=1e-4)
    np.testing.assert_allclose(logits, logits_alone, rtol=1e-2, atol=1e-3)
    assert losses[-1] < losses[0] and accuracy == pytest.approx(accuracy_alone)


def test_mixed_precision_is_near_full_precision_and_ends_with_its_scope(comm):
    full, mixed = curve()[0], curve(mixed=True)[0]
    assert mixed != full
    np.testing.assert_allclose(mixed, full, rtol=0.03)
    assert curve()[0] == full

    graph = random_graph()[2]
    x = sar.tensor(np.ones((graph.num_nodes(), 5), np.float32))
    sar.manual_seed(3)
    layer = sar.nn.SAGEConv(5, 4)

    def rounded(values):
        return not (values.numpy().view(np.uint32) & 0xFFFF).any()

    @sar.mixed_precision()
    def inside():
        with sar.mixed_precision(False):
            outer = layer(graph, x)
        return outer, layer(graph, x)

    outer, inner = inside()
    assert rounded(inner) and inner.numpy().dtype == np.float32
    assert not rounded(outer) and not rounded(layer(graph, x))


def test_docstrings_have_the_comments_of_the_classes_in_cpp():
    assert "W_self x_v + b + W_neigh 1/d_v sum_{u -> v} w_uv x_u" in sar.nn.SAGEConv.__doc__
    assert sar.nn.SAGEConv.__doc__.startswith("dgl.nn.SAGEConv") and "@code" not in sar.nn.SAGEConv.__doc__
    layers = [value for value in vars(sar.nn).values() if isinstance(value, type) and value.__module__ == "sar._sar"]
    short = [layer.__name__ for layer in layers if len(layer.__doc__ or "") < 100]
    assert len(layers) > 20 and not short


def test_names_and_state():
    net = Net()
    names = [name for name, _ in net.named_parameters()]
    assert names == ["first.fc_neigh.weight", "first.fc_self.weight", "first.fc_self.bias", "norm.weight", "norm.bias",
                     "second.fc_neigh.weight", "second.fc_self.weight", "second.fc_self.bias"] or set(names) == {
                         "first.fc_neigh.weight", "first.fc_self.weight", "first.fc_self.bias", "norm.weight", "norm.bias",
                         "second.fc_neigh.weight", "second.fc_self.weight", "second.fc_self.bias"}
    assert net.training and not net.eval().training and not net.drop.training and net.train() is net
    other = Net()
    other.load_state_dict(net.state_dict())
    for (name, one), (_, two) in zip(net.named_parameters(), other.named_parameters()):
        np.testing.assert_array_equal(one.numpy(), two.numpy(), err_msg=name)
    state = {name: np.array(value) for name, value in net.state_dict().items()}
    before = other.first.state_dict()["fc_neigh.weight"].numpy().copy()
    with pytest.raises(sar.InputError, match="the state has no 'norm.bias'"):
        other.load_state_dict({name: value + 1 for name, value in state.items() if name != "norm.bias"})
    with pytest.raises(sar.InputError, match="the state has 'more'"):
        other.load_state_dict({**state, "more": np.ones(1)})
    with pytest.raises(sar.ShapeError, match=r"'norm.bias' has shape \[2\] in the state, expected \[8\]"):
        other.load_state_dict({**state, "norm.bias": np.ones(2)})
    np.testing.assert_array_equal(before, other.first.state_dict()["fc_neigh.weight"].numpy())


@pytest.mark.parametrize("schedule_of", [lambda o: sar.optim.lr_scheduler.StepLR(o, 2, 0.5), lambda o: sar.optim.lr_scheduler.ReduceLROnPlateau(o, patience=0),
                                         lambda o: sar.optim.lr_scheduler.CosineAnnealingLR(o, 9, warm_up=2)])
def test_a_resumed_training_has_the_losses_of_the_unbroken_one(schedule_of):
    _, _, graph = random_graph()
    draw = np.random.default_rng(4)
    x, labels = draw.normal(size=(60, 5)).astype(np.float32), draw.integers(0, 3, 60)
    x, labels = sar.tensor(graph.local_rows(x)), graph.local_rows(labels)

    def losses(first, last, state=None):
        sar.manual_seed(3)
        net = Net()
        optimizer = sar.optim.Adam(net, lr=0.02)
        schedule = schedule_of(optimizer)
        loader = sar.DataLoader(graph, np.arange(graph.num_nodes()), sar.NeighborSampler([3, 3], redraw=True), batch_size=32)
        if state is not None:
            for part, saved in zip((net, optimizer, schedule), pickle.loads(state)):
                part.load_state_dict(saved)
            loader.epoch = first
        found = []
        for _ in range(first, last):
            loss = F.cross_entropy(net(graph, x), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            for rows, seeds, blocks in loader:
                loss = F.cross_entropy(net.second(blocks[1], net.drop(net.first(blocks[0], x[rows]), blocks[1])), labels[seeds])
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                found.append(loss.item())
            schedule.step(found[-1])
        return found, pickle.dumps([part.state_dict() for part in (net, optimizer, schedule)])

    unbroken, _ = losses(0, 4)
    before, state = losses(0, 2)
    after, _ = losses(2, 4, state)
    assert before + after == unbroken


def test_a_state_of_torch_has_no_calls_of_dropouts():
    net, other = Net(), Net()
    net.drop(sar.tensor(np.ones((2, 2))), np.arange(2))
    state = net.state_dict()
    assert state.pop("drop.calls") == 1 and "norm.num_batches_tracked" in state
    other.load_state_dict(state)
    assert other.state_dict()["drop.calls"] == 0
    other.load_state_dict({**state, "drop.calls": np.array(4)})
    assert other.state_dict()["drop.calls"] == 4
    with pytest.raises(sar.InputError, match="no 'norm.num_batches_tracked'"):
        other.load_state_dict({name: value for name, value in state.items() if "num_batches" not in name})
    schedule = sar.optim.lr_scheduler.StepLR(sar.optim.SGD(net), 2)
    with pytest.raises(sar.InputError, match="no 'epoch'"):
        schedule.load_state_dict({"base_lr": "1"})


def test_parts_of_a_module():
    class Parts(sar.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = sar.nn.Parameter([1.0, 2])
            self.register_buffer("length", [3.0])
            self.steps = sar.nn.Sequential(sar.nn.Linear(2, 3), sar.nn.ReLU(), sar.nn.Linear(3, 1))
            self.several = sar.nn.ModuleList([sar.nn.Linear(1, 1), sar.nn.Linear(1, 1, bias=False)])

        def forward(self, x):
            return self.steps(x * self.scale)

    net = Parts()
    assert sorted(net.state_dict()) == ["length", "scale", "several.0.bias", "several.0.weight", "several.1.weight",
                                        "steps.0.bias", "steps.0.weight", "steps.2.bias", "steps.2.weight"]
    net(sar.tensor(np.ones((4, 2)))).sum().backward()
    assert net.scale.grad.shape == (2,)
    net.several = sar.nn.Linear(1, 1)
    del net.scale
    assert sorted(net.state_dict()) == ["length", "several.bias", "several.weight", "steps.0.bias", "steps.0.weight",
                                        "steps.2.bias", "steps.2.weight"]
    gone = weakref.ref(net)
    del net
    gc.collect()
    assert gone() is None


def test_networks_in_layers():
    _, _, graph = random_graph()
    net = sar.nn.Sequential(sar.nn.Linear(5, 4), sar.nn.Tanh(), sar.nn.Linear(4, 2))
    for apply_func in (net, sar.nn.MLP(5, 4, 2), sar.nn.Linear(5, 2)):
        conv = sar.nn.GINConv(apply_func, learn_eps=True)
        x = sar.tensor(graph.local_rows(np.ones((60, 5))))
        y = conv(graph, x)
        y.sum().backward()
        assert y.shape == (graph.num_nodes(), 2)
        assert [name for name, _ in conv.named_parameters()][0] == "eps"
        assert all(name == "eps" or name.startswith("apply_func.") for name, _ in conv.named_parameters())
        assert all(parameter.grad is not None for parameter in conv.parameters())
    with pytest.raises(sar.InputError, match="apply_func is a function"):
        sar.nn.GINConv(lambda x: x)
    gat = sar.nn.GATConv(5, 2, 2, activation=F.elu)
    plain = sar.nn.GATConv(5, 2, 2)
    plain.load_state_dict(gat.state_dict())
    np.testing.assert_allclose(np.asarray(gat(graph, x)), np.asarray(F.elu(plain(graph, x))), atol=1e-6)


def test_gradients_are_those_of_differences():
    _, _, graph = random_graph()
    sar.manual_seed(1)
    conv = sar.nn.GraphConv(3, 2)
    x = sar.tensor(graph.local_rows(np.random.default_rng(0).normal(size=(60, 3))))
    loss = sar.sum(F.tanh(conv(graph, x)))
    loss.backward()
    optimizer = sar.optim.SGD(conv)
    optimizer.gather_grads()
    weight = dict(conv.named_parameters())["weight"]
    gradient = weight.grad.numpy().copy()
    for place in ((0, 0), (2, 1)):
        values = []
        for step in (0.01, -0.01):
            weight.numpy()[place] += step
            with sar.no_grad():
                values.append(sar.sum(F.tanh(conv(graph, x))).item())
            weight.numpy()[place] -= step
        assert (values[0] - values[1]) / 0.02 == pytest.approx(gradient[place], rel=2e-2, abs=2e-2)


def test_optimizers_and_schedules():
    for make in (sar.optim.SGD, sar.optim.Adam, sar.optim.AdamW):
        w = sar.tensor([1.0, -2], requires_grad=True)
        optimizer = make([("w", w)], lr=0.1)
        (w * w).sum().backward()
        assert optimizer.clip_grad_norm(1e9) > 0
        optimizer.zero_grad()
        assert w.grad is None
        (w * w).sum().backward()
        optimizer.step()
        assert np.all(np.abs(w.numpy()) < [1, 2])
        state = optimizer.state_dict()
        make([("w", w)]).load_state_dict(state)
    schedule = sar.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    schedule.step()
    assert optimizer.lr == pytest.approx(0.05)
    with pytest.raises(sar.InputError, match="lr"):
        sar.optim.SGD([w], lr=-1)
    with pytest.raises(sar.InputError, match="expected a sar.Tensor"):
        sar.optim.SGD([np.ones(3)])


def test_losses_as_in_numpy(comm):
    draw = np.random.default_rng(0)
    logits, labels = draw.normal(size=(6, 3)).astype(np.float32), np.array([0, 1, 2, -1, 1, 0])
    logp = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    counted = labels >= 0
    expected = -logp[counted, labels[counted]].mean()
    assert F.cross_entropy(sar.tensor(logits), labels).item() == pytest.approx(expected, rel=1e-5)
    assert F.cross_entropy(sar.tensor(logits), labels.astype(np.int32), counted).item() == pytest.approx(expected, rel=1e-5)
    target = draw.normal(size=(6, 3)).astype(np.float32)
    assert F.mse_loss(sar.tensor(logits), target).item() == pytest.approx(((logits - target) ** 2).mean(), rel=1e-5)
    assert F.l1_loss(sar.tensor(logits), target, counted).item() == pytest.approx(np.abs(logits - target)[counted].mean(), rel=1e-5)
    with pytest.raises(sar.InputError, match="the labels have dtype float64, expected integers"):
        F.cross_entropy(sar.tensor(logits), labels * 1.0)
    with pytest.raises(sar.ShapeError):
        F.cross_entropy(sar.tensor(logits), labels[:4])
    with pytest.raises(sar.InputError, match="label 7"):
        F.cross_entropy(sar.tensor(logits), np.full(6, 7))
    with pytest.raises(sar.InputError, match="expected bool"):
        F.cross_entropy(sar.tensor(logits), labels, labels * 0.5)


def test_targets_get_gradients():
    for loss in (F.mse_loss, F.l1_loss, F.huber_loss):
        x, y = (sar.tensor(np.full((2, 2), value), requires_grad=True) for value in (1.0, 1.5))
        loss(x, y).backward()
        np.testing.assert_array_equal(x.grad.numpy(), -y.grad.numpy())
        assert np.abs(y.grad.numpy()).min() > 0


def test_row_weights_multiply_the_terms_of_rows(comm):
    draw = np.random.default_rng(0)
    logits, labels = draw.normal(size=(6, 3)).astype(np.float32), np.array([0, 1, 2, -1, 1, 0])
    target, weights = draw.uniform(size=(6, 3)).astype(np.float32), draw.uniform(size=6)
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    counted = labels >= 0
    x = sar.tensor(logits, requires_grad=True)
    loss = F.cross_entropy(x, labels, row_weights=weights)
    expected = -(weights * np.log(p[np.arange(6), labels]))[counted].sum()
    assert loss.item() == pytest.approx(comm.size * expected, rel=1e-5)
    loss.backward()
    np.testing.assert_allclose(x.grad, (weights * counted)[:, None] * (p - np.eye(3)[labels]), rtol=1e-4, atol=1e-6)

    far = np.abs(logits - target)
    terms = {F.mse_loss: (logits - target)**2, F.l1_loss: far, F.huber_loss: np.where(far <= 1, far**2 / 2, far - 0.5),
             F.binary_cross_entropy_with_logits: np.log1p(np.exp(logits)) - target * logits}
    for function, term in terms.items():
        for mask in (None, counted):
            rows = np.ones(6, bool) if mask is None else mask
            value = function(sar.tensor(logits), target, mask=mask, row_weights=weights.astype(np.float32)).item()
            assert value == pytest.approx(comm.size * (weights[:, None] * term)[rows].sum(), rel=1e-5)
    with pytest.raises(sar.ShapeError):
        F.mse_loss(sar.tensor(logits), target, row_weights=weights[:4])
    with pytest.raises(sar.InputError):
        F.cross_entropy(sar.tensor(logits), labels, row_weights=-weights)
    if comm.size > 1:
        with pytest.raises(sar.Error):
            F.l1_loss(sar.tensor(logits), target, row_weights=weights if comm.rank == 0 else None)


def test_dropout_is_the_same_on_all_ranks():
    _, _, graph = random_graph()
    sar.manual_seed(5)
    drop = sar.nn.Dropout(0.5)
    y = whole(graph, drop(sar.tensor(np.ones((graph.num_nodes(), 4))), graph))
    assert 0.3 < (y == 0).mean() < 0.7 and set(np.unique(y)) == {0, 2}
    drop.eval()
    np.testing.assert_array_equal(np.asarray(drop(sar.tensor(np.ones((2, 4))))), 1)


def accumulated(comm, change):
    """Losses and gradients of steps without zero_grad()."""
    _, _, graph = random_graph(comm=comm)
    draw = np.random.default_rng(4)
    x, labels = draw.normal(size=(60, 5)).astype(np.float32), draw.integers(0, 3, 60)
    sar.manual_seed(3)
    net = sar.nn.SAGEConv(5, 3)
    step, values = sar.optim.SGD(net, lr=0.05, comm=comm), []
    for epoch in range(4):
        for _ in range(1 + epoch % 2):
            loss = F.cross_entropy(net(graph, sar.tensor(graph.local_rows(x))), graph.local_rows(labels), comm=comm)
            loss.backward()
        if epoch == 2:
            step.clip_grad_norm(0.1)
        step.step()
        values += [loss.item(), *(parameter.grad.numpy().sum() for parameter in net.parameters() if parameter.grad is not None)]
        change(net, step, comm)
    return values


@pytest.mark.parametrize("change", [lambda net, step, comm: None, lambda net, step, comm: net.zero_grad(),
                                    lambda net, step, comm: step.step(), lambda net, step, comm: (step.gather_grads(), step.gather_grads()),
                                    lambda net, step, comm: sar.optim.SGD(net, lr=0.01, comm=comm).step(),
                                    lambda net, step, comm: [setattr(each, "grad", None) for each in net.parameters()]])
def test_gradients_that_nobody_clears_do_not_depend_on_the_ranks(comm, change):
    np.testing.assert_allclose(accumulated(comm, change), accumulated(sar.Communicator.self(), change), rtol=2e-4, atol=2e-5)


def test_a_failed_step_keeps_what_is_summed(comm):
    w = sar.tensor(np.ones(2, np.float32), requires_grad=True)
    optimizer = sar.optim.SGD([w], lr=0.0)

    def body():
        (w * w).sum().backward()
        optimizer.step()
        raise KeyError("later")

    (w * 1).sum().backward()
    with pytest.raises(sar.Error, match="later"):
        comm.agree(body)
    np.testing.assert_array_equal(w.grad.numpy(), 1)
    optimizer.step()
    np.testing.assert_array_equal(w.grad.numpy(), comm.size)
    optimizer.step()
    np.testing.assert_array_equal(w.grad.numpy(), comm.size)


def test_what_has_two_names_counts_once(comm):
    class Tied(sar.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = sar.nn.Linear(2, 2)
            self.again = self.first
            self.scale = sar.nn.Parameter(np.ones(2))
            self.same = self.scale
            self.drop = sar.nn.Dropout(0.5)
            self.drop_too = self.drop

        def forward(self, x):
            return self.again(self.first(x)) * self.scale

    def trained(net, parameters):
        optimizer = sar.optim.Adam(parameters, lr=0.1)
        net(sar.tensor(np.ones((3, 2)))).sum().backward()
        norm = optimizer.clip_grad_norm(1e9)
        optimizer.step()
        return norm, net.first.weight.numpy().copy(), net.scale.numpy().copy(), optimizer.state_dict()

    sar.manual_seed(1)
    net = Tied()
    assert [name for name, _ in net.named_parameters()] == ["scale", "first.weight", "first.bias"] and len(net.parameters()) == 3
    assert len(net.named_parameters(remove_duplicate=False)) == 6
    assert set(net.state_dict()) == {"scale", "same", "first.weight", "first.bias", "again.weight", "again.bias", "drop.calls", "drop_too.calls"}
    before = net.state_dict()["first.weight"].numpy().copy()
    norm, weight, scale, state = trained(net, net)
    assert set(name.split(".")[0] for name in state) == {"scale", "first", "lr"}
    np.testing.assert_allclose(np.abs(weight - before), 0.1, rtol=1e-3)
    squares = sum(np.square(parameter.grad.numpy()).sum() for parameter in net.parameters())
    assert norm == pytest.approx(np.sqrt(squares), rel=1e-5)
    sar.manual_seed(1)
    other = Tied()
    norm_too, weight_too, _, _ = trained(other, [*other.parameters(), *other.first.parameters(), other.scale])
    assert norm_too == norm
    np.testing.assert_array_equal(weight_too, weight)
    other.load_state_dict(net.state_dict())
    other.freeze("again.weight")
    assert [name for name, value in other.named_parameters() if value.requires_grad] == ["scale", "first.bias"]


def test_scores_are_a_list_or_a_column():
    scores, labels = np.array([0.1, 0.9, 0.4, 0.35], np.float32), np.array([0, 1, 0, 1])
    for metric in (F.roc_auc, F.average_precision):
        assert metric(sar.tensor(scores), labels) == metric(sar.tensor(scores[:, None]), labels)
    assert F.roc_auc(sar.tensor(scores), labels) == pytest.approx(0.75)


def test_a_gradient_that_is_set_stays_the_sum_over_the_ranks(comm):
    for gather in (lambda optimizer: optimizer.gather_grads(), lambda optimizer: optimizer.clip_grad_norm(1e6)):
        weight = sar.nn.Parameter([1.0])
        optimizer = sar.optim.SGD([weight], lr=1.0)
        (weight * 2.0).sum().backward()
        gather(optimizer)
        total = weight.grad.item()
        weight.grad = weight.grad * 0.5
        optimizer.step()
        assert weight.item() == pytest.approx(1 - 0.5 * total)


def test_a_trace_ends_with_an_exception(comm, shared_dir):
    for _ in range(2):
        with pytest.raises(ValueError):
            with sar.Trace(shared_dir / "failed.json"):
                raise ValueError
    with sar.Trace(shared_dir / "good.json"):
        pass
    assert (shared_dir / "good.json").exists()


def test_losses_and_metrics_of_one_number_a_row(comm):
    x, target = sar.tensor([1.0, 0.5, 3.0]), [1.0, 0.0, 9.0]
    mask, column = [True, True, False], sar.tensor([[1.0], [0.5], [3.0]])
    for loss in (F.mse_loss, F.l1_loss, F.huber_loss, F.binary_cross_entropy_with_logits):
        wanted = [[value] for value in (target if loss is not F.binary_cross_entropy_with_logits else [1.0, 0.0, 1.0])]
        flat = [value for value, in wanted]
        assert loss(x, flat, mask=mask).item() == loss(column, wanted, mask=mask).item()
        assert loss(x, flat, row_weights=[1.0, 2, 3]).item() == loss(column, wanted, row_weights=[1.0, 2, 3]).item()
    scores = sar.tensor([[2.0], [-1.0], [0.5], [-3.0], [0.7]])
    for labels in ([1, 0, 0, 1, -1], np.array([1, 0, 0, 1, np.nan])):
        assert F.roc_auc(scores, labels) == pytest.approx(0.5)
        assert F.f1_score(scores, labels, average="binary") == pytest.approx(0.5)
    equal = sar.tensor([[1.1, 0.3, -0.5, -1.3], [1.1, -1.3, 0.3, -0.5]])  # with the same probability of class 0
    assert F.roc_auc(equal, [0, 1]) == pytest.approx(0.25)
    several = sar.tensor([[2.0, -1], [0.5, 1], [-1, 2]])
    assert F.f1_score(several, [[1, 0], [0, 1], [1, 1]], average="macro") == pytest.approx((0.5 + 1) / 2)
    assert F.f1_score(several, [[1, 0], [0, 1], [1, 1]]) == pytest.approx(6 / 8)
    np.testing.assert_array_equal(sar.cat([x, sar.tensor([4.0])], dim=-1), [1, 0.5, 3, 4])
    np.testing.assert_array_equal(sar.cat([column, column], dim=-2).shape, [6, 1])


def test_every_parameter_of_an_lstm_has_a_gradient(comm):
    graph = sar.Graph(([0, 1], [1, 2]), num_nodes=3)
    conv = sar.nn.SAGEConv(2, 2, aggregator_type="lstm")
    optimizer = sar.optim.SGD(conv, lr=0.1)
    conv(graph, sar.ones((graph.num_nodes(), 2))).sum().backward()
    optimizer.gather_grads()
    assert all(parameter.grad is not None for parameter in conv.parameters())
