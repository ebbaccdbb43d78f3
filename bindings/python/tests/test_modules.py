# SPDX-License-Identifier: MIT
import copy
import gc
import pathlib
import pickle
import weakref

import numpy as np
import pytest
from conftest import random_graph, whole

import sar
from sar.nn import functional as F


class Net(sar.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = sar.nn.Embedding(7, 6)
        self.convs = sar.nn.ModuleList([sar.nn.SAGEConv(6, 8), sar.nn.GATConv(8, 3, 2, feat_drop=0.2)])
        self.gin = sar.nn.GINConv(sar.nn.MLP(6, 8, 3))
        self.norm = sar.nn.LayerNorm(8)
        self.drop = sar.nn.Dropout(0.5)
        self.scale = sar.nn.Parameter([[1.0, 2, 3]])
        self.register_buffer("shift", [[0.5, 0.25, 0.125]])
        self.register_buffer("unsaved", [[1.0, 1, 1]], persistent=False)
        self.width = 8
        self.activation = F.relu

    def forward(self, graph, kinds):
        x = self.embedding(kinds)
        h = self.drop(self.activation(self.norm(self.convs[0](graph, x))), graph)
        return self.convs[1](graph, h).mean(1) * self.scale + self.shift * self.unsaved + self.gin(graph, x)


def parts(seed=3, **options):
    src, dst, graph = random_graph(**options)
    kinds, labels = np.arange(60) % 7, np.arange(60) % 3
    sar.manual_seed(seed)
    return graph, graph.local_rows(kinds), graph.local_rows(labels)


def values(net):
    return {name: np.array(value) for name, value in net.state_dict().items()}


def assert_same(one, two):
    assert list(one) == list(two)
    for name in one:
        np.testing.assert_array_equal(one[name], two[name])


def step(net, optimizer, graph, kinds, labels):
    loss = F.cross_entropy(net(graph, kinds), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


@pytest.mark.parametrize("how", ["deepcopy", "pickle"])
def test_a_copy_of_a_module_has_its_values_and_its_own_memory(comm, how):
    graph, kinds, labels = parts()
    net = Net()
    optimizer = sar.optim.Adam(net, lr=0.05)
    step(net, optimizer, graph, kinds, labels)
    net.freeze("convs.0.fc_self.bias")
    net.freeze("scale")
    other = copy.deepcopy(net) if how == "deepcopy" else pickle.loads(pickle.dumps(net))
    assert type(other) is Net and repr(other) == repr(net) and other.width == 8
    assert_same(values(other), values(net))
    assert [value.requires_grad for _, value in other.named_parameters()] == [value.requires_grad for _, value in net.named_parameters()]
    assert not other.scale.requires_grad and other.convs[0].training
    np.testing.assert_array_equal(other.shift, net.shift)
    np.testing.assert_array_equal(other.unsaved, net.unsaved)
    net.eval(), other.eval()
    with sar.no_grad():
        np.testing.assert_array_equal(other(graph, kinds), net(graph, kinds))
    net.train(), other.train()
    with sar.no_grad():
        same = np.array_equal(other(graph, kinds), net(graph, kinds))
    assert comm.all_reduce(float(same), "min") == (1 if how == "pickle" else 0)  # the draws of dropouts go on in a pickle only
    before = values(net)
    step(other, sar.optim.SGD(other, lr=0.1), graph, kinds, labels)
    assert_same({name: value for name, value in values(net).items() if "calls" not in name},
                {name: value for name, value in before.items() if "calls" not in name})
    assert not np.array_equal(values(other)["embedding.weight"], before["embedding.weight"])
    assert copy.deepcopy(net.eval()).convs[1].training is False


def test_copies_do_not_change_what_layers_a_pickle_makes_later():
    def later(between):
        sar.manual_seed(5)
        net = sar.nn.Linear(3, 2)
        between(net)
        return np.array(sar.nn.Linear(3, 2).weight)

    np.testing.assert_array_equal(later(lambda net: None), later(lambda net: pickle.loads(pickle.dumps(net))))
    assert not np.array_equal(later(lambda net: None), later(copy.deepcopy))  # a copy has streams of its own


class Tied(sar.nn.Module):
    def __init__(self):
        super().__init__()
        self.late = sar.nn.Module()
        self.first = sar.nn.Linear(4, 4)
        self.late.weight, self.again = self.first.weight, self.first.weight
        self.one = self.two = sar.nn.Linear(2, 2)


def test_a_parameter_of_several_names_stays_one_in_a_copy():
    for other in (copy.deepcopy(Tied()), pickle.loads(pickle.dumps(Tied()))):
        assert other.one is other.two
        assert len(other.parameters()) == 4 and len(other.named_parameters(remove_duplicate=False)) == 8
        other.again.copy_(np.full((4, 4), 2.0))
        assert (other.late.weight.numpy() == 2).all() and (other.first.weight.numpy() == 2).all()


def test_what_cannot_be_pickled_says_what_to_do(comm):
    with pytest.raises(TypeError, match="state_dict"):
        pickle.dumps(sar.optim.SGD(sar.nn.Linear(2, 2), lr=0.1))
    with pytest.raises(TypeError, match="Communicator cannot"):
        pickle.dumps(sar.nn.BatchNorm1d(3, comm=comm))
    assert copy.deepcopy(sar.nn.BatchNorm1d(3, comm=comm)).training
    model = sar.GraphModel({"type": "sage", "in_feats": 6, "hidden": 4, "out_feats": 3, "layers": 2})
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert type(other) is sar.GraphModel and other.description == model.description
        assert_same(values(other), values(model))


def test_a_list_of_modules_is_a_list():
    a, b, c, d = layers = [sar.nn.Linear(i, 1) for i in range(1, 5)]
    modules = sar.nn.ModuleList([a])
    assert modules.append(b) is modules and list(modules.extend([c])) == [a, b, c]
    modules += [d]
    assert list(modules) == layers and modules[-1] is d and list(modules[1:3]) == [b, c] and len(modules) == 4
    assert isinstance(modules[1:3], sar.nn.ModuleList) and b in modules and sar.nn.Linear(1, 1) not in modules
    del modules[0]
    modules.insert(1, a)
    modules[0] = d
    assert list(modules) == [d, a, c, d] and list(modules + [b])[-1] is b
    assert modules.pop() is d and modules.pop(0) is d and list(modules) == [a, c]
    assert [name for name, _ in modules.named_parameters()] == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert [list(value.shape) for value in modules.parameters()] == [[1, 1], [1], [1, 3], [1]]
    with pytest.raises(IndexError):
        modules[2]
    with pytest.raises(TypeError, match="a str in a ModuleList, expected"):
        modules.append("layer")
    assert list(modules) == [a, c]


def test_a_sequential_passes_the_graph_to_layers_that_read_it(comm):
    graph, kinds, labels = parts()
    x = sar.tensor(np.random.default_rng(comm.rank).normal(size=(len(kinds), 6)))

    class Own(sar.nn.Module):
        def forward(self, graph, x):
            return x * float(graph.num_global_nodes())

    conv, linear, drop = sar.nn.SAGEConv(6, 8), sar.nn.Linear(8, 4), sar.nn.Dropout(0.5)
    net = sar.nn.Sequential(conv, sar.nn.ReLU(), sar.nn.Sequential(drop, linear), Own(), F.relu, lambda x: x + 1.0)
    state = drop.state_dict()
    result = net(graph, x).numpy().copy()
    drop.load_state_dict(state)
    np.testing.assert_array_equal(result, F.relu(linear(drop(F.relu(conv(graph, x)), graph)) * 60.0) + 1.0)
    assert len(net) == 6 and net[0] is conv and list(net[:1].named_parameters())[0][0].startswith("0.")
    plain = sar.nn.Sequential(sar.nn.Linear(6, 3), F.relu)
    assert plain(x).shape == (len(kinds), 3) and plain(graph, x).shape == (len(kinds), 3)
    with pytest.raises(TypeError, match="called with 3 arguments"):
        plain(graph, x, x)
    mine = 100 * np.arange(1, 41) + comm.rank  # a dropout draws by these ids, not by the rows
    own = sar.Graph((mine[:1], mine[1:2]), nodes=mine)
    ones, drops = sar.tensor(np.ones((40, 6))), sar.nn.Sequential(sar.nn.Dropout(0.5))
    state = drops.state_dict()
    drawn = drops(own, ones).numpy().copy()
    drops.load_state_dict(state)
    np.testing.assert_array_equal(drawn, drops[0](ones, own))
    drops.load_state_dict(state)
    assert not np.array_equal(drawn, drops[0](ones))
    two = sar.nn.Sequential(sar.nn.SAGEConv(6, 5), sar.nn.ReLU(), sar.nn.Dropout(0.1), sar.nn.SAGEConv(5, 2))
    sampler = sar.NeighborSampler([-1, -1])
    for rows, seeds, blocks in sar.DataLoader(graph, np.arange(graph.num_nodes()), sampler, batch_size=5, shuffle=False):
        two.eval()
        np.testing.assert_allclose(two(blocks, x[rows]), two(graph, x)[seeds], rtol=1e-5, atol=1e-6)
        with pytest.raises(sar.InputError, match="2 layers of a graph got 1 blocks"):
            two(blocks[:1], x[rows])


def test_walks_through_modules():
    net = Net()
    names = [name for name, _ in net.named_modules()]
    assert names == ["", "embedding", "convs", "convs.0", "convs.1", "gin", "norm", "drop"]
    seen = []
    assert net.apply(lambda module: seen.append(type(module).__name__)) is net
    assert seen == ["Embedding", "SAGEConv", "GATConv", "ModuleList", "GINConv", "LayerNorm", "Dropout", "Net"]
    assert len(net.modules()) == 8 and net.get_submodule("convs.1") is net.convs[1] and net.convs[0].children() == []
    with pytest.raises(sar.InputError, match="no module 'convs.7'"):
        net.get_submodule("convs.7")
    assert [list(p.shape) for p in net.parameters(recurse=False)] == [[1, 3]]
    assert [name for name, _ in net.named_buffers()] == ["shift", "gin.eps"]
    assert net.train(False) is net and not net.convs[1].training


def test_parameters_become_constants_and_leaves_again(comm):
    graph, kinds, labels = parts()
    net = Net()
    assert net.embedding.requires_grad_(False) is net.embedding
    assert not net.embedding.weight.requires_grad and net.scale.requires_grad
    before = values(net)
    step(net, sar.optim.SGD(net, lr=0.5), graph, kinds, labels)
    np.testing.assert_array_equal(values(net)["embedding.weight"], before["embedding.weight"])
    assert not np.array_equal(values(net)["scale"], before["scale"])
    net.requires_grad_(False)
    assert not any(parameter.requires_grad for parameter in net.parameters()) and not net.scale.requires_grad
    net.requires_grad_()
    assert all(parameter.requires_grad for parameter in net.parameters()) and net.scale.requires_grad
    step(net, sar.optim.SGD(net, lr=0.5), graph, kinds, labels)
    assert not np.array_equal(values(net)["embedding.weight"], before["embedding.weight"])
    with pytest.raises(sar.InputError, match="no parameter 'weight'"):
        net.freeze("weight")


def test_embedding(comm):
    sar.manual_seed(1)
    layer = sar.nn.Embedding(500, 40)
    assert layer.weight.numpy().mean() == pytest.approx(0, abs=0.02) and layer.weight.numpy().std() == pytest.approx(1, abs=0.02)
    ids = np.array([3, 3, 499, 0])
    F.mse_loss(layer(ids), sar.zeros([4, 40])).backward()
    expected = np.zeros((500, 40), np.float32)
    np.add.at(expected, ids, 2 * layer.weight.numpy()[ids] / (4 * 40 * comm.size))
    np.testing.assert_allclose(layer.weight.grad, expected, rtol=1e-5, atol=1e-9)
    fixed = sar.nn.Embedding.from_pretrained(np.arange(6).reshape(3, 2))
    assert not fixed.weight.requires_grad and fixed([2]).numpy().tolist() == [[4, 5]]
    with pytest.raises(sar.InputError, match="is 500, expected 0 to 499"):
        layer([500])
    two = sar.nn.CategoryEmbedding([3, 2], 4)
    table = two.named_parameters()[0][1].numpy()
    np.testing.assert_array_equal(two([[2, 0], [0, 1]]), table[[2, 0]] + table[[3, 4]])
    with pytest.raises(sar.ShapeError, match="categories of shape"):
        two([1, 2])


def test_losses_are_modules():
    draw = np.random.default_rng(2)
    x, y, labels = draw.normal(size=(9, 3)), draw.normal(size=(9, 3)), draw.integers(0, 3, 9)
    mask = labels > 0
    x = sar.tensor(x)
    for loss, expected in ((sar.nn.CrossEntropyLoss(label_smoothing=0.1), F.cross_entropy(x, labels, label_smoothing=0.1)),
                           (sar.nn.CrossEntropyLoss(weight=[1, 2, 3]), F.cross_entropy(x, labels, weight=[1, 2, 3]))):
        assert loss(x, labels).item() == expected.item()
    assert sar.nn.CrossEntropyLoss()(x, labels, mask).item() == F.cross_entropy(x, labels, mask).item()
    for loss, function in ((sar.nn.MSELoss(), F.mse_loss), (sar.nn.L1Loss(), F.l1_loss), (sar.nn.HuberLoss(), F.huber_loss)):
        assert loss(x, y).item() == function(x, y).item()
        assert loss(x, y, mask).item() == function(x, y, mask=mask).item() != loss(x, y).item()
    assert sar.nn.HuberLoss(delta=0.3)(x, y).item() == F.huber_loss(x, y, delta=0.3).item() != F.huber_loss(x, y).item()
    targets = (y > 0).astype(float)
    assert sar.nn.BCEWithLogitsLoss()(x, targets).item() == F.binary_cross_entropy_with_logits(x, targets).item()
    for module, function in ((sar.nn.MSELoss, F.mse_loss), (sar.nn.L1Loss, F.l1_loss), (sar.nn.HuberLoss, F.huber_loss),
                             (sar.nn.BCEWithLogitsLoss, F.binary_cross_entropy_with_logits)):
        total = function(x, targets, reduction="sum")
        assert module(reduction="sum")(x, targets).item() == total.item()
        np.testing.assert_allclose(total.item(), function(x, targets).item() * x.size * sar.get_communicator().size, rtol=1e-5)
    ranks = sar.get_communicator().size
    np.testing.assert_allclose(F.mse_loss(x, y, mask, reduction="sum").item(), ranks * ((x.numpy() - y)[mask] ** 2).sum(), rtol=1e-5)
    np.testing.assert_allclose(F.cross_entropy(x, labels, mask, reduction="sum").item(), ranks * mask.sum() * F.cross_entropy(x, labels, mask).item(),
                               rtol=1e-5)
    given = sar.tensor(y, requires_grad=True)
    F.mse_loss(x, given, reduction="sum").backward()
    np.testing.assert_allclose(given.grad, 2 * (given.numpy() - x.numpy()), rtol=1e-4, atol=1e-5)
    with pytest.raises(TypeError, match="MSELoss has no option 'delta'"):
        sar.nn.MSELoss(delta=1)


def test_groups_of_parameters(comm):
    graph, kinds, labels = parts()
    net = Net()
    optimizer = sar.optim.SGD([{"params": net.convs.parameters(), "lr": 0.5}, {"params": [net.scale]}], lr=0.01, momentum=0.9)
    first, second = optimizer.param_groups
    assert first["lr"] == 0.5 and second["lr"] == 0.01 and second["momentum"] == 0.9 and second["params"][0].shape == (1, 3)
    assert dict(second)["weight_decay"] == 0 and "lr=0.5" in repr(optimizer) and optimizer.lr == 0.5
    before = values(net)
    F.cross_entropy(net(graph, kinds), labels).backward()
    optimizer.gather_grads()
    gradient, of_conv = np.array(net.scale.grad), np.array(net.convs[0].parameters()[0].grad)
    second["lr"] = 0.25
    optimizer.step()
    name = net.convs[0].named_parameters()[0][0]
    np.testing.assert_allclose(values(net)["scale"], before["scale"] - 0.25 * gradient, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(values(net)[f"convs.0.{name}"], before[f"convs.0.{name}"] - 0.5 * of_conv, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(values(net)["embedding.weight"], before["embedding.weight"])
    optimizer.add_param_group({"params": net.embedding, "weight_decay": 0.1})
    assert len(optimizer.param_groups) == 3 and optimizer.param_groups[2]["weight_decay"] == 0.1
    state = optimizer.state_dict()
    assert state["lr"] == [0.5, 0.25, 0.01]
    other = sar.optim.SGD([{"params": part} for part in (net.convs.parameters(), [net.scale], net.embedding)], lr=1, momentum=0.9)
    other.load_state_dict(state)
    assert [group["lr"] for group in other.param_groups] == [0.5, 0.25, 0.01]
    assert_same({name: np.array(value) for name, value in other.state_dict().items()},
                {name: np.array(value) for name, value in state.items()})
    for wrong, text in (([{"params": net, "speed": 1}], "no option 'speed'"), ([{"lr": 1}], "no 'params'"),
                        ([{"params": net}, {"params": [net.scale]}], "two groups"), ([{"params": net}, 3], "is a int"),
                        ([{"params": net, "lr": "x"}], "lr is x, expected a number")):
        with pytest.raises(sar.InputError, match=text):
            sar.optim.SGD(wrong, lr=0.1)
    with pytest.raises(sar.InputError, match="'momentum' of a group"):
        first["momentum"] = 0.5


@pytest.mark.parametrize("make, rates", [
    (lambda optimizer: sar.optim.lr_scheduler.StepLR(optimizer, 2), [1, 0.1, 0.1, 0.01]),
    (lambda optimizer: sar.optim.lr_scheduler.ExponentialLR(optimizer, 0.5), [0.5, 0.25, 0.125, 0.0625]),
    (lambda optimizer: sar.optim.lr_scheduler.MultiStepLR(optimizer, [3, 1], gamma=0.1), [0.1, 0.1, 0.01, 0.01]),
    (lambda optimizer: sar.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch)), [1 / 2, 1 / 3, 1 / 4, 1 / 5]),
    (lambda optimizer: sar.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4), [0.853553, 0.5, 0.146447, 0]),
])
def test_schedules_step_every_group_and_have_a_state(make, rates):
    def fresh():
        net = sar.nn.Linear(2, 2)
        optimizer = sar.optim.SGD([{"params": [net.weight], "lr": 0.5}, {"params": [net.bias], "lr": 2}])
        return optimizer, make(optimizer)

    optimizer, schedule = fresh()
    state = None
    for epoch, rate in enumerate(rates):
        schedule.step()
        np.testing.assert_allclose(schedule.get_last_lr(), [0.5 * rate, 2 * rate], rtol=1e-5, atol=1e-9)
        if epoch == 1:
            state = optimizer.state_dict(), schedule.state_dict()
    other, again = fresh()
    other.load_state_dict(state[0])
    again.load_state_dict(pickle.loads(pickle.dumps(state[1])))
    for rate in rates[2:]:
        again.step()
        np.testing.assert_allclose([group["lr"] for group in other.param_groups], [0.5 * rate, 2 * rate], rtol=1e-5, atol=1e-9)
    with pytest.raises(sar.InputError):
        again.load_state_dict({})


SCHEDULES = {"none": lambda optimizer: None, "step": lambda optimizer: sar.optim.lr_scheduler.StepLR(optimizer, 2),
             "lambda": lambda optimizer: sar.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.9**epoch)}


def training(directory, epochs, schedule="step", keep=True, comm=None, **options):
    """The losses of the epochs that this call computes."""
    graph, kinds, labels = parts(comm=comm, **options)
    graph.set_options(reproducible=True)
    net = Net()
    optimizer = sar.optim.Adam([{"params": net.convs.named_parameters()}, {"params": net.embedding, "lr": 0.1}], lr=0.02, comm=comm)
    steps = SCHEDULES[schedule](optimizer)
    loader = sar.DataLoader(graph, np.arange(graph.num_nodes()), sar.NeighborSampler([3]), batch_size=20)
    draw = np.random.default_rng(8)
    checkpoints = sar.Checkpointer(directory, keep_last=2, comm=comm) if keep else None
    first = 1
    if keep:
        last = checkpoints.resume(net, optimizer, steps, loader)
        first = last.epoch + 1
        if last.extra:
            draw.bit_generator.state = last.extra["draw"]
    losses = []
    for epoch in range(first, epochs + 1):
        with sar.reproducible(comm):
            loss = F.cross_entropy(net(graph, kinds), labels, comm=comm) * float(draw.uniform())
            seeds = [sorted(rows.tolist()) for _, rows, _ in loader]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append((loss.item(), seeds))
        if steps is not None:
            steps.step()
        if keep:
            checkpoints.save(epoch, net, optimizer, steps, loader, extra={"draw": draw.bit_generator.state})
    return losses, values(net)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_resumed_training_has_the_bits_of_one_that_was_not_stopped(comm, shared_dir, schedule):
    straight, weights = training(None, 6, schedule, keep=False)
    directory = shared_dir / schedule
    first, _ = training(directory, 2, schedule)
    second, _ = training(directory, 4, schedule)
    third, resumed = training(directory, 6, schedule)
    assert first + second + third == straight
    assert_same(resumed, weights)
    assert len(list(pathlib.Path(directory).glob("checkpoint-*"))) == 2
    assert training(directory, 6, schedule)[0] == []


def test_a_training_resumes_on_another_number_of_ranks(comm, shared_dir):
    straight, weights = training(None, 4, keep=False)
    alone = sar.Communicator.self()
    if comm.rank == 0:
        before = sar.get_communicator()
        sar.init(alone)
        training(shared_dir / "ranks", 2, comm=alone)
        sar.init(before)
    comm.barrier()
    resumed, again = training(shared_dir / "ranks", 4)
    assert [seeds for _, seeds in resumed] == [seeds for _, seeds in straight[2:]]
    assert [loss for loss, _ in resumed] == [loss for loss, _ in straight[2:]]
    assert_same(again, weights)


def test_rounded_halo_rows_go_on_with_their_draws(comm, shared_dir):
    graph, kinds, labels = parts()
    graph.set_options(halo_format="int8")
    checkpoints = sar.Checkpointer(shared_dir / "rounded", keep_last=5)

    def epochs(path):
        net = Net()
        optimizer = sar.optim.Adam(net, lr=0.02)
        last = checkpoints.resume(net, optimizer, path=path).epoch if path else 0
        losses = []
        for epoch in range(last + 1, 5):
            losses.append(step(net, optimizer, graph, kinds, labels))
            if not path:
                checkpoints.save(epoch, net, optimizer)
        return losses, values(net)

    straight, weights = epochs(None)
    sar.manual_seed(3)
    resumed, again = epochs(checkpoints.latest().replace("00000004", "00000002"))
    assert resumed == straight[2:]
    assert_same(again, weights)


def test_rates_of_a_resumed_training(shared_dir):
    def fresh(lr, make):
        sar.manual_seed(1)
        optimizer = sar.optim.Adam(sar.nn.Linear(2, 1), lr=lr)
        return sar.nn.Linear(2, 1), optimizer, make(optimizer)

    schedules = sar.optim.lr_scheduler
    for name, make, longer, expected in (
            ("none", lambda optimizer: None, lambda optimizer: None, 0.01),
            ("step", lambda optimizer: schedules.StepLR(optimizer, 5, 0.1), lambda optimizer: schedules.StepLR(optimizer, 2, 0.5), 0.01 / 32),
            ("cosine", lambda optimizer: schedules.CosineAnnealingLR(optimizer, 10), lambda optimizer: schedules.CosineAnnealingLR(optimizer, 20), 0.005),
            ("lambda", lambda optimizer: schedules.LambdaLR(optimizer, lambda epoch: 0), lambda optimizer: schedules.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch)), 0.01 / 11)):
        net, optimizer, schedule = fresh(0.01, make)
        for _ in range(10 if schedule else 0):
            schedule.step()
        checkpoints = sar.Checkpointer(shared_dir / name)
        checkpoints.save(10, net, optimizer, schedule)
        net, optimizer, schedule = fresh(1e-4, longer)
        checkpoints.resume(net, optimizer, schedule)
        assert optimizer.lr == pytest.approx(expected), name
        if schedule is None:
            optimizer.lr = 1e-4
        else:
            schedule.set_base_lr(1e-4)
        assert optimizer.lr == pytest.approx(expected / 100 if schedule else 1e-4), name


def test_wrong_checkpoints_change_nothing(comm, shared_dir):
    sar.manual_seed(1)
    net = sar.nn.Linear(3, 2)
    optimizer = sar.optim.Adam(net, lr=0.1)
    checkpoints = sar.Checkpointer(shared_dir / "wrong")
    assert checkpoints.latest() == "" and checkpoints.resume(net, optimizer) == (0, None)
    checkpoints.save(3, net, optimizer, extra={"best": np.float32(0.5)})
    assert checkpoints.resume(net, optimizer) == (3, {"best": 0.5})
    before = values(net)
    for other, text in ((sar.optim.SGD(net, lr=0.1), "optimizer is Adam, expected SGD"),
                        (sar.optim.Adam([{"params": [net.weight]}, {"params": [net.bias]}]), "an optimizer of 2 groups")):
        with pytest.raises(sar.InputError, match=text):
            checkpoints.resume(net, other)
    for schedule in (SCHEDULES["step"](optimizer), SCHEDULES["lambda"](optimizer)):
        with pytest.raises(sar.InputError, match="the schedule is none, expected"):
            checkpoints.resume(net, optimizer, schedule)
    with pytest.raises(sar.InputError):
        checkpoints.resume(sar.nn.Linear(4, 2), optimizer)
    assert_same(values(net), before)
    sar.manual_seed(2)
    for call in (lambda: checkpoints.save(4, net, optimizer), lambda: checkpoints.resume(net, optimizer)):
        with pytest.raises(sar.InputError, match="seed was 1 when the Checkpointer was made, and is now 2"):
            call()
    with pytest.raises(sar.InputError, match="seed is 1, expected 2"):
        sar.Checkpointer(shared_dir / "wrong").resume(net, optimizer)


def test_a_nested_sequential_takes_as_many_blocks_as_it_has_layers_of_a_graph():
    sar.manual_seed(1)
    graph = sar.Graph(([0, 1, 2, 3, 0], [1, 2, 3, 0, 2]), 4)
    x = sar.tensor(graph.local_rows(np.arange(8, dtype=np.float32).reshape(4, 2)))
    first, second, third = sar.nn.SAGEConv(2, 3), sar.nn.SAGEConv(3, 3), sar.nn.SAGEConv(3, 2)
    flat = sar.nn.Sequential(first, sar.nn.ReLU(), second, third)
    nested = sar.nn.Sequential(first, sar.nn.Sequential(sar.nn.ReLU(), sar.nn.Dropout(0.0)), sar.nn.Sequential(second, third))
    np.testing.assert_array_equal(np.asarray(nested(graph, x)), np.asarray(flat(graph, x)))
    loader = sar.DataLoader(graph, np.arange(graph.num_nodes()), sar.NeighborSampler([-1, -1, -1]), batch_size=4, shuffle=False)
    for input_nodes, _, blocks in loader:
        np.testing.assert_array_equal(np.asarray(nested(blocks, x[input_nodes])), np.asarray(flat(blocks, x[input_nodes])))
        with pytest.raises(sar.InputError, match="a Sequential with 3 layers of a graph got 2 blocks"):
            nested(blocks[1:], x)


def test_a_used_sequential_is_freed():
    class Network(sar.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = sar.nn.Linear(2, 2)
            self.steps = sar.nn.Sequential(lambda graph, x: self.layer(x))

    graph = sar.Graph(([0, 1], [1, 0]), 2)
    network = Network()
    network.steps(graph, sar.zeros((graph.num_nodes(), 2)))
    kept = weakref.ref(network)
    del network
    gc.collect()
    assert kept() is None


def test_schedules_are_a_module_as_in_torch():
    from sar.optim.lr_scheduler import LambdaLR, StepLR

    assert StepLR is sar.optim.lr_scheduler.StepLR and LambdaLR is sar.optim.LambdaLR


def test_a_refused_part_leaves_the_one_before():
    inner = sar.nn.Linear(2, 2)
    for before in (inner, sar.nn.Parameter(np.ones(2)), None):
        net = sar.nn.Module()
        if before is None:
            net.register_buffer("part", np.ones(2))
        else:
            net.part = before
        names = set(net.state_dict())
        with pytest.raises(sar.InputError, match="itself"):
            net.part = net
        assert set(net.state_dict()) == names and names, before


def test_a_refused_edit_of_a_list_or_a_sequential_changes_nothing():
    layers = [sar.nn.Linear(2, 2), F.relu, sar.nn.Linear(2, 2)]
    net, modules = sar.nn.Sequential(*layers), sar.nn.ModuleList([layers[0], layers[2]])
    edits = (lambda: net.__setitem__(1, 3), lambda: net.insert(0, "x"), lambda: net.__setitem__(0, net), lambda: net.extend([layers[0], 3]),
             lambda: net.append(None), lambda: modules.insert(0, modules), lambda: modules.__setitem__(0, F.relu))
    for edit in edits:
        with pytest.raises((TypeError, sar.InputError)):
            edit()
        assert list(net) == layers and list(modules) == [layers[0], layers[2]]
        assert list(net.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
        assert list(modules.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]


def test_a_part_keeps_its_place_when_it_is_replaced_or_a_replacement_is_refused():
    class Net(sar.nn.Sequential):
        def __init__(self):
            super().__init__(sar.nn.Linear(2, 2))
            self.extra = sar.nn.Linear(2, 2)
            self.first, self.second = sar.nn.Parameter([1.0]), sar.nn.Parameter([2.0])
            self.register_buffer("scale", [1.0])

    net = Net()
    net.freeze("second")
    names = list(net.state_dict())
    with pytest.raises(sar.InputError):
        setattr(net, "0", net)
    assert list(net.state_dict()) == names
    with pytest.raises(sar.InputError):
        net.second = net
    net.extra, net.first = sar.nn.Linear(2, 2), sar.nn.Parameter([3.0])
    setattr(net, "0", sar.nn.Linear(2, 2))
    assert list(net.state_dict()) == names
    assert [name for name, _ in net.named_parameters()][:2] == ["first", "second"] and [name for name, _ in net.named_buffers()] == ["scale"]
    net.append(sar.nn.Linear(2, 2))
    assert [name for name, _ in net.named_children()] == ["0", "extra", "1"]

    layers = [sar.nn.Linear(2, 2) for _ in range(3)]
    modules = sar.nn.ModuleList(layers)
    modules[0], modules[1] = modules[1], modules[0]
    assert list(modules) == [layers[1], layers[0], layers[2]]
    assert [part for _, part in modules.named_children()] == list(modules)


def test_an_attribute_without_a_setter_is_no_part():
    net = sar.nn.Module()
    for change in (lambda: setattr(net, "training", sar.nn.Linear(1, 1)), lambda: net.register_buffer("training", [1.0])):
        with pytest.raises(AttributeError):
            change()
        assert not net.state_dict() and net.training is True


def test_what_fails_in_agree_leaves_modules_and_optimizers_as_they_were(comm):
    net = sar.nn.Sequential(sar.nn.Linear(2, 2), sar.nn.Dropout(0.5))
    optimizer = sar.optim.Adam(net, lr=0.1)
    x = sar.tensor([[1.0, 2.0]])
    other = {name: np.asarray(value) + 1 for name, value in net.state_dict().items()}
    moments = {name: np.asarray(value) + 1 if name != "lr" else 5.0 for name, value in optimizer.state_dict().items()}
    before = values(net), values(optimizer), np.array(x)

    def change():
        net.load_state_dict(other)
        optimizer.load_state_dict(moments)
        net.eval()
        x.copy_([[3.0, 4.0]])
        x[0] = 5.0
        if comm.rank == comm.size - 1:
            raise ValueError("no")

    with pytest.raises(sar.Error, match="no"):
        comm.agree(change)
    assert_same(values(net), before[0])
    assert_same(values(optimizer), before[1])
    np.testing.assert_array_equal(x, before[2])
    assert net.training and net[1].training


def test_a_refused_backward_can_be_repeated():
    weight = sar.nn.Parameter(np.ones((3, 2)))
    y = weight * 2.0
    with pytest.raises(sar.ShapeError, match="needs a scalar"):
        y.backward()
    with pytest.raises(sar.ShapeError, match="gradient of shape"):
        y.backward(np.ones((2, 2)))
    y.backward(np.ones((3, 2)))
    np.testing.assert_array_equal(weight.grad, np.full((3, 2), 2))


def test_schedules_that_fail_stay_at_their_epoch(shared_dir):
    def factor(epoch):
        return [1.0, 0.5, 0.25][epoch]

    net = sar.nn.Linear(2, 1)
    optimizer = sar.optim.SGD(net, lr=0.1)
    schedule = sar.optim.lr_scheduler.LambdaLR(optimizer, factor)
    schedule.step()
    schedule.step()
    for _ in range(2):
        with pytest.raises(IndexError):
            schedule.step()
    assert schedule.last_epoch == 2 and optimizer.lr == pytest.approx(0.025)
    with pytest.raises(sar.InputError, match="0 base rates, expected 1"):
        schedule.load_state_dict({"last_epoch": "1", "base_lrs": "[]"})
    sar.manual_seed(0)
    checkpoints = sar.Checkpointer(shared_dir / "lambda")
    checkpoints.save(2, net, optimizer, schedule)
    other = sar.nn.Linear(2, 1)
    kept = values(other)
    optimizer = sar.optim.SGD(other, lr=0.3)
    short = sar.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: [1.0, 0.5][epoch])
    with pytest.raises(IndexError):
        checkpoints.resume(other, optimizer, short)
    assert_same(values(other), kept)
    assert short.last_epoch == 0 and optimizer.lr == 0.3


def test_rates_are_finite_and_not_negative():
    net = sar.nn.Linear(2, 1)
    optimizer = sar.optim.Adam([{"params": [net.weight]}, {"params": [net.bias]}], lr=0.1)
    state = {**optimizer.state_dict(), "lr": [0.2, -1.0]}
    for change in (lambda: setattr(optimizer, "lr", -1.0), lambda: setattr(optimizer, "lr", float("nan")),
                   lambda: optimizer.param_groups[1].__setitem__("lr", float("inf")), lambda: optimizer.load_state_dict(state)):
        with pytest.raises(sar.InputError, match="a learning rate of"):
            change()
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.1]


def test_refused_layers_draw_nothing():
    sar.manual_seed(4)
    before = sar._sar._generator()
    for make in (lambda: sar.nn.SAGEConv(4, -8), lambda: sar.nn.GATConv(4, 8, 0), lambda: sar.nn.GATConv(4, 8, 2, attn_drop=-1.0),
                 lambda: sar.nn.RelGraphConv(4, 8, 3, "basis", num_bases=-1)):
        with pytest.raises(sar.InputError):
            make()
        assert sar._sar._generator() == before


def test_functions_of_edges_that_are_written_in_python(comm):
    draw = np.random.default_rng(comm.rank)
    graph = sar.Graph((draw.integers(0, 500, 9000), draw.integers(0, 500, 9000)), num_nodes=500) if comm.size == 1 else random_graph()[2]
    x, edges = sar.ones((graph.num_nodes(), 3)), sar.ones((graph.num_edges(), 2))
    threads = sar.get_num_threads()
    try:
        sar.set_num_threads(3)
        for edge_func in (sar.nn.MLP(2, 5, 12, activation=lambda rows: F.relu(rows)), sar.nn.Sequential(sar.nn.Linear(2, 5), F.relu, sar.nn.Linear(5, 12))):
            conv = sar.nn.NNConv(3, 4, edge_func)
            for _ in range(3):
                conv(graph, x, edges).sum().backward()
    finally:
        sar.set_num_threads(threads)
    conv = sar.nn.NNConv(1, 1, sar.nn.Sequential(sar.nn.Linear(2, 1), sar.nn.Dropout(0.5)))
    with pytest.raises(sar.InputError, match="a dropout in a message function"):
        conv(graph, x[:, :1], edges)


def test_states_with_other_names():
    net, two = sar.nn.Linear(3, 3), sar.nn.Sequential(sar.nn.Linear(3, 3), sar.nn.Linear(3, 3))
    state = {name.upper(): value for name, value in net.state_dict().items()}
    found = net.load_state_dict(state, strict=False)
    assert found.missing_keys == ["weight", "bias"] and found.unexpected_keys == ["WEIGHT", "BIAS"]
    assert net.load_state_dict(net.state_dict()) == ([], [])
    for optimizer, other in ((sar.optim.SGD(net), sar.optim.Adam(net)), (sar.optim.Adam(net.parameters()), sar.optim.Adam(two.parameters()))):
        with pytest.raises(sar.InputError, match="which the optimizer has not"):
            optimizer.load_state_dict(other.state_dict())
