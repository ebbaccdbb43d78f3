// SPDX-License-Identifier: MIT

/// Sums over all ranks and readouts of the whole graph: values and gradients of one rank, on any number.
#include "graph/test_graphs.hpp"
#include "support/reference.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/autograd/gradcheck.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/autograd/variable.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/conv/global_pooling.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/reductions.hpp>
#include <sar/nn/train/distributed.hpp>
#include <sar/nn/train/loss.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

constexpr Index nodes = 23, width = 5;

/// A graph without edges on the nodes of a book: readouts read none.
Graph graph_of(const Communicator& comm, const PartitionBook& book) {
  return {comm, book, book, EdgeList{}, true};
}

/// A value, and gradients of rows and parameters.
struct Result {
  Tensor value, rows;
  std::vector<Tensor> parameters;
};

using Objective = std::function<Variable(const Graph&, const Variable& rows)>;

/// The loss on this rank's rows; gradients of the parameters over all ranks.
Result run(const Communicator& comm, const PartitionBook& book, const Tensor& whole, Module& module,
           const Objective& objective) {
  module.zero_grad();
  const Variable x(my_rows(whole, book, comm.rank()), true);
  Tape tape;
  const Variable loss = objective(graph_of(comm, book), x);
  tape.backward(loss);
  gather_grads(comm, module);
  Result result{loss.value(), x.grad(), {}};
  for (const Variable& parameter : module.parameters()) result.parameters.push_back(parameter.grad().clone());
  return result;
}

/// On all ranks, with several distributions of the rows, and on one.
void check_on_any_ranks(Module& module, const Objective& objective,
                        const Tensor& whole = random_values({nodes, width}, 3)) {
  const Communicator world = Communicator::world(), self = Communicator::self();
  const Result expected = run(self, PartitionBook::even(nodes, 1), whole, module, objective);
  Tensor largest = Tensor::full({1}, real(1e-3));
  for (const Tensor& gradient : expected.parameters)
    for (const real value : gradient.values())
      largest.data()[0] = std::max(largest.data()[0], std::abs(value));
  for (const PartitionBook& book : row_splits(nodes, world.size())) {
    const Result found = run(world, book, whole, module, objective);
    CHECK(same_on_all_ranks(world, found.value));
    CHECK(relative_error(found.value, expected.value) < tolerance());
    CHECK(error_of_rows(found.rows, expected.rows, book.begin(world.rank())) < tolerance());
    REQUIRE(found.parameters.size() == expected.parameters.size());
    for (std::size_t k = 0; k < found.parameters.size();
         ++k)  // that of the gate's bias is 0 but for rounding
      CHECK(error_of_part(found.parameters[k], expected.parameters[k], largest) < tolerance());
  }
  // what one rank computes is right
  const Graph graph = graph_of(self, PartitionBook::even(nodes, 1));
  CHECK_NOTHROW(gradcheck([&](const auto& in) { return objective(graph, in[0]); }, {Variable(whole, true)}));
}

struct Head : Module {
  Linear gate, feat, out;
  explicit Head(Generator& gen) : gate(width, 1, gen), feat(width, 3, gen), out(width, 2, gen) {
    register_module("gate", gate);
    register_module("feat", feat);
    register_module("out", out);
  }
};

/// Shares a layer that another object owns.
std::shared_ptr<Linear> borrowed(Linear& layer) {
  return {std::shared_ptr<void>(), &layer};
}

}  // namespace

TEST_CASE("sums, means and dot products over all ranks are parts of a loss") {
  Generator gen(0);
  Head head(gen);
  const auto on_rows = [&](const std::function<Variable(const Variable&, const Communicator&)>& loss) {
    check_on_any_ranks(
        head, [&](const Graph& graph, const Variable& x) { return loss(tanh(head.out(x)), graph.comm()); });
  };
  on_rows([](const Variable& y, const Communicator& comm) { return sum(y, comm); });
  on_rows([](const Variable& y, const Communicator& comm) { return mean(y, comm); });
  on_rows([](const Variable& y, const Communicator& comm) { return dot(y, y * y + 1, comm); });
  on_rows([](const Variable& y, const Communicator& comm) {  // arithmetic on losses
    const Variable drift = mean(y, comm, ReduceDim::rows), total = sum(y, comm, ReduceDim::rows);
    const Variable drag = sum(y, comm) - 2;
    return drag * drag + sum(drift * drift) * real(0.5) + sum(exp(total * real(0.1)));
  });
}

TEST_CASE("sums, means and dot products: values") {
  const Communicator world = Communicator::world();
  const int p = world.rank();
  const bool none = p == 0 && world.size() > 1;
  const Tensor x = none ? Tensor::zeros({0, 2}) : Tensor::from({2, 2}, {1, 2, 3, 4});
  const double holders = none || world.size() > 1 ? world.size() - 1 : 1;
  CHECK(sum(x, world).value().item() == 10 * holders);
  CHECK(mean(x, world).value().item() == doctest::Approx(2.5));
  CHECK(sum(x, world, ReduceDim::rows).value().shape() == Shape{2});
  CHECK(mean(x, world, ReduceDim::rows).value().data()[1] == doctest::Approx(3));
  CHECK(dot(x, x, world).value().item() == 30 * holders);
}

TEST_CASE("large rows that cancel leave the same sum wherever they are") {
  const Communicator world = Communicator::world();
  const real big = sizeof(real) == 4 ? real(1e8) : real(1e17);
  // rank 0 has what rounds away beside `big`, the last rank what cancels it
  const bool first = world.rank() == 0, last = world.rank() == world.size() - 1;
  std::vector<real> mine;
  if (first) mine.insert(mine.end(), {sizeof(real) == 4 ? real(1) : real(64), big});
  if (last) mine.push_back(-big);
  const Tensor x = Tensor::from({std::ssize(mine), 1}, mine);
  const Tensor ones = Tensor::full(x.shape(), 1);
  const double expected = sizeof(real) == 4 ? 1 : 64;
  CHECK(sum(x, world).value().item() == expected);
  CHECK(sum(x, world, ReduceDim::rows).value().item() == expected);
  CHECK(dot(x, ones, world).value().item() == expected);
  CHECK(mean(x, world).value().item() == doctest::Approx(expected / 3));
}

TEST_CASE("all_reduce adds values up, and the shares of their gradients") {
  Generator gen(0);
  Head head(gen);
  // back to the nodes, and through parameters that all ranks have
  check_on_any_ranks(head, [&](const Graph& graph, const Variable& x) {
    const Communicator& comm = graph.comm();
    const Variable whole = all_reduce(sum(x * x, ReduceDim::rows), comm);
    const Variable y = x * tanh(whole);
    return mse(y, Tensor::zeros(y.shape()), comm) +
           mse(head.out(reshape(whole, {1, width})), Tensor::full({1, 2}, 1), comm);
  });
}

TEST_CASE(
    "the largest and the smallest over the ranks, whose gradient goes to the lowest rank that has them") {
  const Communicator world = Communicator::world();
  const real nan = std::numeric_limits<real>::quiet_NaN();
  const int p = world.rank(), last = world.size() - 1;
  const auto mine = static_cast<real>(p);
  Variable x(Tensor::from({4}, {mine, 7, -mine, p == last ? nan : mine}), true);
  for (const ReduceOp op : {ReduceOp::max, ReduceOp::min}) {
    x.zero_grad();
    Tape tape;
    const Variable y = all_reduce(x, world, op);
    const bool max = op == ReduceOp::max;
    CHECK(y.value().data()[0] == static_cast<real>(max ? last : 0));
    CHECK(y.value().data()[1] == 7);
    CHECK(y.value().data()[2] == static_cast<real>(max ? 0 : -last));
    CHECK(std::isnan(y.value().data()[3]));
    tape.backward(y, Tensor::from({4}, {1, 1, 1, 1}));
    const auto all = static_cast<real>(world.size());  // the shares of all ranks
    CHECK(x.grad().data()[0] == (p == (max ? last : 0) ? all : 0));
    CHECK(x.grad().data()[1] == (p == 0 ? all : 0));
    CHECK(x.grad().data()[2] == (p == (max ? 0 : last) ? all : 0));
    CHECK(x.grad().data()[3] == (p == last ? all : 0));
  }
}

TEST_CASE("readouts of the whole graph, through a network to a loss") {
  Generator gen(0);
  Head head(gen);
  const auto loss_of = [&](const Graph& graph, const Variable& whole) {
    CHECK(whole.shape() == Shape{1, width});
    return mse(head.out(tanh(whole)), Tensor::full({1, 2}, 1), graph.comm());
  };
  check_on_any_ranks(
      head, [&](const Graph& graph, const Variable& x) { return loss_of(graph, SumPooling()(graph, x)); });
  check_on_any_ranks(
      head, [&](const Graph& graph, const Variable& x) { return loss_of(graph, AvgPooling()(graph, x)); });
  Tensor apart({nodes, width});  // no two rows of a column are within a step of each other
  for (Index i = 0; i < apart.size(); ++i)
    apart.data()[i] = static_cast<real>((i / width * 7 + i % width * 3) % nodes) / 10 - 1;
  check_on_any_ranks(
      head, [&](const Graph& graph, const Variable& x) { return loss_of(graph, MaxPooling()(graph, x)); },
      apart);
  check_on_any_ranks(head, [&](const Graph& graph, const Variable& x) {
    return loss_of(graph, GlobalAttentionPooling(borrowed(head.gate))(graph, x));
  });
  check_on_any_ranks(head, [&](const Graph& graph, const Variable& x) {
    const GlobalAttentionPooling pooling(borrowed(head.gate), borrowed(head.feat));
    return mse(pooling(graph, x * 3), Tensor::full({1, 3}, 1), graph.comm());
  });
}

TEST_CASE("readouts against their formulas; names of parameters; large gates") {
  const Communicator self = Communicator::self();
  Generator gen(1);
  const auto gate = std::make_shared<Linear>(width, 1, gen), feat = std::make_shared<Linear>(width, 3, gen);
  const GlobalAttentionPooling pooling(gate, feat);
  CHECK(pooling.named_parameters().front().name == "gate_nn.weight");
  CHECK(pooling.named_parameters().back().name == "feat_nn.bias");
  const Graph graph = graph_of(self, PartitionBook::even(nodes, 1));
  const Tensor x = random_values({nodes, width}, 3);
  const Tensor scores = (*gate)(x).value(), rows = (*feat)(x).value();
  double total = 0;
  std::vector<double> expected(3), coefficients, largest(width, -1e30), sums(width);
  for (Index i = 0; i < nodes; ++i) total += std::exp(static_cast<double>(scores.data()[i]));
  for (Index i = 0; i < nodes; ++i) {
    coefficients.push_back(std::exp(static_cast<double>(scores.data()[i])) / total);
    for (Index j = 0; j < 3; ++j) expected[j] += coefficients.back() * rows.row(i)[j];
    for (Index j = 0; j < width; ++j) {
      largest[j] = std::max(largest[j], static_cast<double>(x.row(i)[j]));
      sums[j] += x.row(i)[j];
    }
  }
  CHECK(relative_error(pooling(graph, x).value(), expected) < tolerance());
  CHECK(relative_error(pooling.attention(graph, x).value(), coefficients) < tolerance());
  CHECK(relative_error(MaxPooling()(graph, x).value(), largest) == 0);
  CHECK(relative_error(SumPooling()(graph, x).value(), sums) < tolerance());
  for (double& s : sums) s /= nodes;
  CHECK(relative_error(AvgPooling()(graph, x).value(), sums) < tolerance());

  gate->set_parameter("bias", Tensor::full({1}, 2000));
  CHECK(relative_error(pooling(graph, x).value(), expected) < 10 * tolerance());
  Tensor with_nan = x.clone();
  with_nan.row(4)[2] = std::numeric_limits<real>::quiet_NaN();
  CHECK(std::isnan(MaxPooling()(graph, with_nan).value().data()[2]));
  CHECK(MaxPooling()(graph, with_nan).value().data()[1] == static_cast<real>(largest[1]));
}

TEST_CASE("what is wrong on one rank is an error on all") {
  const Communicator world = Communicator::world();
  const bool last = world.rank() == world.size() - 1;
  const Graph graph = graph_of(world, PartitionBook::even(nodes, world.size()));
  const Tensor x = Tensor::zeros({graph.num_nodes() + (last ? 1 : 0), 2});
  CHECK_THROWS_AS((void)SumPooling()(graph, x), ShapeError);
  CHECK_THROWS_AS((void)AvgPooling()(graph, x), ShapeError);
  CHECK_THROWS_AS((void)MaxPooling()(graph, x), ShapeError);
  CHECK_THROWS_AS(dot(x, last ? Tensor::zeros({1}) : x, world), ShapeError);
  CHECK(thrown_by_all<ShapeError>(world,
                                  [&] {
                                    (void)sum(Tensor::zeros({2, 3}), world, ReduceDim::columns);
                                  }) ==
        "sum over all ranks: of a tensor of shape [2, 3], expected ReduceDim::all or ReduceDim::rows of a "
        "tensor");
  CHECK(thrown_by_all<InputError>(world, [&] {
          (void)mean(Tensor::zeros({0, 3}), world);
        }) == "mean over all ranks of no elements");
  CHECK_THROWS_AS(GlobalAttentionPooling{RowFunction{}}, InputError);
  Generator gen(0);
  const GlobalAttentionPooling two(std::make_shared<Linear>(2, 2, gen));
  CHECK_THROWS_AS((void)two(graph, Tensor::zeros({graph.num_nodes(), 2})), ShapeError);
  if (world.size() == 1) return;
  CHECK_THROWS_AS(all_reduce(Tensor::zeros({last ? 2 : 1, 3}), world), InputError);
  CHECK_THROWS_AS(all_reduce(Tensor::zeros({1}), world, last ? ReduceOp::max : ReduceOp::sum), InputError);
  CHECK_THROWS_AS(sum(Tensor::zeros({2, last ? 3 : 2}), world, ReduceDim::rows), InputError);
  Tape tape;
  CHECK_THROWS_AS(all_reduce(Variable(Tensor::zeros({1}), last), world), InputError);
  CHECK(all_reduce(Tensor::full({1}, 1), world).value().item() == world.size());
}

TEST_CASE("reductions over ranks reduce tangents, and a tangent on one rank only is an error of all") {
  const Communicator comm = Communicator::world();
  const real size = static_cast<real>(comm.size());
  const Variable x = make_dual(Variable(Tensor::full({2, 3}, 2)), Variable(Tensor::full({2, 3}, 10)));
  struct Kind {
    const char* name;
    std::function<Variable(const Variable&)> reduce;
    real value, tangent;
  };
  const Kind kinds[] = {
      {"sum", [&](const Variable& of) { return sum(of, comm); }, 12 * size, 60 * size},
      {"mean", [&](const Variable& of) { return mean(of, comm); }, 2, 10},
      {"dot", [&](const Variable& of) { return dot(of, of, comm); }, 24 * size, 240 * size},
      {"all_reduce", [&](const Variable& of) { return all_reduce(of, comm); }, 2 * size, 10 * size},
  };
  for (const Kind& kind : kinds) {
    CAPTURE(kind.name);
    const Variable y = kind.reduce(x);
    REQUIRE(y.is_dual());
    CHECK(y.value().data()[0] == doctest::Approx(kind.value));
    CHECK(y.tangent().value().data()[0] == doctest::Approx(kind.tangent));
    if (comm.size() == 1) continue;
    const Variable of_one = comm.rank() == 0 ? x : x.primal();
    CHECK(thrown_by_all<Error>(comm, [&] { (void)kind.reduce(of_one); }).find(kind.name) !=
          std::string::npos);
    CHECK(kind.reduce(x).is_dual());  // the communicator can be used further
  }
  CHECK(thrown_by_all<InputError>(comm, [&] {
          (void)all_reduce(x, comm, ReduceOp::max);
        }).starts_with("all_reduce of a dual variable"));
}
