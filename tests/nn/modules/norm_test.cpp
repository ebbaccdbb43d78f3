// SPDX-License-Identifier: MIT
#include "graph/test_graphs.hpp"
#include "support/reference.hpp"
#include "support/rows.hpp"

#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/comm/reproducible_scope.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/nn/modules/norms.hpp>
#include <sar/nn/train/distributed.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <utility>

using namespace sar;
using namespace sar::test;

namespace {

using Doubles = std::vector<double>;

/// The formulas, over all rows at once, in double precision, from the rounded inputs.
struct Reference {
  Doubles y, dx, dweight, dbias, mean, var;
};

Reference batch_norm_reference(const Tensor& x, const Tensor& grad, const Doubles& weight,
                               const Doubles& bias, double eps) {
  const auto n = static_cast<std::size_t>(x.num_rows()), f = static_cast<std::size_t>(x.row_size());
  Reference r{Doubles(n * f), Doubles(n * f), Doubles(f), Doubles(f), Doubles(f), Doubles(f)};
  for (std::size_t j = 0; j < f; ++j) {
    for (std::size_t i = 0; i < n; ++i) r.mean[j] += x.data()[i * f + j] / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i)
      r.var[j] += std::pow(x.data()[i * f + j] - r.mean[j], 2) / static_cast<double>(n);
    const double inv_std = 1 / std::sqrt(r.var[j] + eps);
    const auto xhat = [&](std::size_t i) { return (x.data()[i * f + j] - r.mean[j]) * inv_std; };
    for (std::size_t i = 0; i < n; ++i) {
      r.y[i * f + j] = xhat(i) * weight[j] + bias[j];
      r.dbias[j] += grad.data()[i * f + j];
      r.dweight[j] += grad.data()[i * f + j] * xhat(i);
    }
    for (std::size_t i = 0; i < n; ++i)
      r.dx[i * f + j] =
          weight[j] * inv_std *
          (grad.data()[i * f + j] - (r.dbias[j] + xhat(i) * r.dweight[j]) / static_cast<double>(n));
  }
  return r;
}

Tensor to_tensor(const Shape& shape, const Doubles& values) {
  return Tensor::from(shape, std::vector<real>(values.begin(), values.end()));
}

std::vector<Index> ids_of(const PartitionBook& book, int rank) {
  std::vector<Index> ids(static_cast<std::size_t>(book.num_nodes(rank)));
  std::iota(ids.begin(), ids.end(), book.begin(rank));
  return ids;
}

struct FusedRun {
  Tensor y, dx, dweight, dbias, running_var;
};

/// x -> batch norm -> ReLU -> dropout over all ranks, with gradient `grad` coming back.
FusedRun run_chain(bool fused, const Tensor& x_rows, const Tensor& grad, const std::vector<Index>& ids,
                   double p, bool training) {
  const Communicator world = Communicator::world();
  Generator gen(11);
  Dropout dropout(p, gen);
  DistributedBN1D norm(x_rows.row_size(), world);
  norm.set_parameter("weight", random_values(Shape{x_rows.row_size()}, 5));
  norm.set_parameter("bias", random_values(Shape{x_rows.row_size()}, 6));
  norm.train(training);
  dropout.train(training);
  Variable x(x_rows, true);
  Tape tape;
  const Variable y = fused ? batch_norm_relu_dropout(x, norm, dropout, ids) : dropout(relu(norm(x)), ids);
  const Tensor value = y.value().clone();
  tape.backward(y, grad.clone());
  const auto parameters = norm.named_parameters();
  return {value, x.grad(), parameters[0].parameter.grad(), parameters[1].parameter.grad(),
          norm.named_buffers()[1].tensor.clone()};
}

}  // namespace

TEST_CASE("DistributedBN1D: golden vectors, and the formulas on the rounded inputs") {
  const Communicator world = Communicator::world();
  const int rank = world.rank();
  for (const std::string name : {"norm/batch_norm", "norm/batch_norm_eval", "norm/batch_norm_large_mean",
                                 "norm/batch_norm_no_affine"}) {
    CAPTURE(name);
    const Case golden(name);
    const Tensor whole = golden.tensor("in.x"), grad = golden.tensor("grad_out");
    const Index features = whole.row_size();
    const bool affine = golden.number("affine") == 1, training = golden.number("training") == 1;
    // in single precision, rounding an input with mean 1e4 moves it by more than the tolerance
    const bool exact_inputs = sizeof(real) == 8 || golden.number("input_mean") == 0;
    for (const PartitionBook& book : row_splits(whole.num_rows(), world.size())) {
      DistributedBN1D norm(
          features, world,
          {.eps = golden.number("eps"), .momentum = golden.number("momentum"), .affine = affine});
      CHECK(norm.named_parameters().size() == (affine ? 2 : 0));
      Doubles weight(static_cast<std::size_t>(features), 1), bias(static_cast<std::size_t>(features), 0);
      if (affine) {
        norm.set_parameter("weight", golden.tensor("param.weight"));
        norm.set_parameter("bias", golden.tensor("param.bias"));
        weight = golden.values("param.weight");
        bias = golden.values("param.bias");
      }
      norm.set_buffer("running_mean", golden.tensor("buffer.running_mean"));
      norm.set_buffer("running_var", golden.tensor("buffer.running_var"));
      norm.train(training);

      Variable x(my_rows(whole, book, rank), true);
      Tape tape;
      const Variable y = norm(x);
      const Tensor value = y.value();
      tape.backward(y, my_rows(grad, book, rank));
      const Tensor running_mean = norm.named_buffers()[0].tensor,
                   running_var = norm.named_buffers()[1].tensor;
      CHECK(same_on_all_ranks(world, running_mean));
      CHECK(same_on_all_ranks(world, running_var));
      CHECK(*norm.named_counters()[0].value == (training ? 1 : 0));
      std::vector<Tensor> parameter_grads;
      for (const auto& named : norm.named_parameters())
        parameter_grads.push_back(sum_over_ranks(world, named.parameter.grad()));

      CHECK(relative_error(running_mean, golden.values("out.running_mean")) < tolerance());
      if (exact_inputs) {
        CHECK(error_of_rows(value, golden.tensor("out"), book.begin(rank)) < tolerance());
        CHECK(error_of_rows(x.grad(), golden.tensor("grad_in.x"), book.begin(rank)) < tolerance());
        CHECK(relative_error(running_var, golden.values("out.running_var")) < tolerance());
        if (affine) {
          CHECK(relative_error(parameter_grads[0], golden.values("grad_param.weight")) < tolerance());
          CHECK(relative_error(parameter_grads[1], golden.values("grad_param.bias")) < tolerance());
        }
      }
      if (training) {
        const Reference r = batch_norm_reference(whole, grad, weight, bias, golden.number("eps"));
        CHECK(error_of_rows(value, to_tensor(whole.shape(), r.y), book.begin(rank)) < tolerance());
        CHECK(error_of_rows(x.grad(), to_tensor(whole.shape(), r.dx), book.begin(rank)) < tolerance());
        if (affine) {
          CHECK(relative_error(parameter_grads[0], r.dweight) < tolerance());
          CHECK(relative_error(parameter_grads[1], r.dbias) < tolerance());
        }
        const double n = static_cast<double>(whole.num_rows()), momentum = golden.number("momentum");
        Doubles expected = golden.values("buffer.running_var");
        for (std::size_t j = 0; j < expected.size(); ++j)
          expected[j] = (1 - momentum) * expected[j] + momentum * r.var[j] * n / (n - 1);
        CHECK(relative_error(running_var, expected) < tolerance());
      }
    }
  }
}

TEST_CASE("batch_norm_relu_dropout is batch norm, then ReLU, then dropout") {
  const Communicator world = Communicator::world();
  const Tensor whole = random_values(Shape{61, 7}), grad = random_values(Shape{61, 7}, 1);
  for (const PartitionBook& book : row_splits(61, world.size()))
    for (const double p : {0.0, 0.4})
      for (const bool training : {true, false}) {
        CAPTURE(p);
        CAPTURE(training);
        const auto ids = ids_of(book, world.rank());
        const Tensor x = my_rows(whole, book, world.rank()), g = my_rows(grad, book, world.rank());
        const FusedRun fused = run_chain(true, x, g, ids, p, training);
        const FusedRun chain = run_chain(false, x, g, ids, p, training);
        CHECK(same_bits(fused.y, chain.y));
        CHECK(relative_error(fused.dx, chain.dx) < tolerance());
        CHECK(relative_error(fused.dweight, chain.dweight) < tolerance());
        CHECK(relative_error(fused.dbias, chain.dbias) < tolerance());
        CHECK(same_bits(fused.running_var, chain.running_var));
        Index zeros = 0;
        for (const real value : fused.y.values()) zeros += value == 0;
        zeros = world.all_reduce(zeros);
        CHECK(zeros > 100);
        CHECK(zeros < 427);
      }
}

TEST_CASE("batch_norm_relu_dropout: central differences in random directions") {
  if (sizeof(real) < 8) return;  // differences need the digits
  const Communicator world = Communicator::world();
  const PartitionBook book = row_splits(40, world.size()).back();
  const auto ids = ids_of(book, world.rank());
  const Tensor x0 = my_rows(random_values(Shape{40, 5}), book, world.rank());
  const Tensor grad = my_rows(random_values(Shape{40, 5}, 1), book, world.rank());
  Generator gen(3);
  Dropout dropout(0.3, gen);
  DistributedBN1D norm(5, world);
  norm.set_parameter("weight", random_values(Shape{5}, 5));
  norm.set_parameter("bias", random_values(Shape{5}, 6));
  for (const bool training : {true, false}) {
    CAPTURE(training);
    norm.train(training);
    const auto forward = [&](const Variable& x) {
      *dropout.named_counters()[0].value = 4;  // the same draws every time
      return batch_norm_relu_dropout(x, norm, dropout, ids);
    };
    std::vector<Variable> leaves = norm.parameters();
    leaves.insert(leaves.begin(), Variable(x0.clone(), true));
    norm.zero_grad();
    {
      Tape tape;
      tape.backward(forward(leaves[0]), grad.clone());
    }
    for (std::size_t k = 0; k < leaves.size(); ++k) {
      CAPTURE(k);
      // x is dealt out, the parameters are the same everywhere and so must their direction be
      Tensor whole = random_values(k == 0 ? Shape{40, 5} : Shape{5}, 20 + k);
      const Tensor direction = k == 0 ? my_rows(whole, book, world.rank()) : whole;
      const auto loss_at = [&](double step) {
        const Tensor before = leaves[k].value().clone();
        for (Index i = 0; i < direction.size(); ++i)
          leaves[k].value().data()[i] += static_cast<real>(step * direction.data()[i]);
        const Variable y = forward(leaves[0]);
        leaves[k].value().copy_from(before);
        double loss = 0;
        for (Index i = 0; i < y.value().size(); ++i)
          loss += static_cast<double>(y.value().data()[i]) * grad.data()[i];
        return world.all_reduce(loss);
      };
      double analytic = 0;
      for (Index i = 0; i < direction.size(); ++i)
        analytic += static_cast<double>(leaves[k].grad().data()[i]) * direction.data()[i];
      analytic = world.all_reduce(analytic);
      constexpr double step = 1e-6;
      CHECK(analytic == doctest::Approx((loss_at(step) - loss_at(-step)) / (2 * step)).epsilon(1e-7));
    }
  }
}

TEST_CASE("1 and 2 threads give the same bits") {
  const Communicator world = Communicator::world();
  const Index rows = 20000 + 1000 * world.rank();
  const Tensor x = random_values(Shape{rows, 33}), grad = random_values(Shape{rows, 33}, 1);
  std::vector<Index> ids(static_cast<std::size_t>(rows));
  std::iota(ids.begin(), ids.end(), 100000 * world.rank());
  const auto run = [&](int threads) {
    const ThreadLimit limit(threads);
    return run_chain(true, x, grad, ids, 0.5, true);
  };
  const FusedRun one = run(1), two = run(2);
  CHECK(same_bits(one.y, two.y));
  CHECK(same_bits(one.dx, two.dx));
  CHECK(same_bits(one.dweight, two.dweight));
  CHECK(same_bits(one.dbias, two.dbias));
  CHECK(same_bits(one.running_var, two.running_var));
}

TEST_CASE("in a ReproducibleScope, gradients in evaluation do not depend on the number of ranks") {
  const Communicator world = Communicator::world(), self = Communicator::self();
  constexpr Index rows = 999, width = 3;
  const auto gradients = [&](const Communicator& comm, const PartitionBook& book) {
    const ReproducibleScope scope(comm);
    DistributedBN1D norm(width, comm);
    norm.eval();
    Tape tape;
    const Variable y = norm(my_rows(random_values(Shape{rows, width}, 1), book, comm.rank()));
    tape.backward(y, my_rows(random_values(Shape{rows, width}, 2), book, comm.rank()));
    gather_grads(comm, norm, false);
    return norm.parameters();
  };
  const auto expected = gradients(self, PartitionBook::even(rows, 1));
  for (const PartitionBook& book : row_splits(rows, world.size())) {
    const auto found = gradients(world, book);
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(same_bits(found[i].grad(), expected[i].grad()));
  }
}

TEST_CASE("on a reproducible graph, neither do those of a message function") {
  const Communicator world = Communicator::world(), self = Communicator::self();
  constexpr Index nodes = 40, width = 3;
  const WholeGraph whole = random_graph("norm", nodes, nodes, 300, 3);
  const auto gradients = [&](const Communicator& comm, const Books& books) {
    const Graph graph = shard(comm, whole, books, {.edge_chunk = 7, .reproducible = true});
    const ReproducibleScope scope(comm);
    DistributedBN1D norm(width, comm);
    norm.eval();
    const Variable x(my_rows(random_values(Shape{nodes, width}, 1), books.src, comm.rank()), true);
    Tape tape;
    const Variable y =
        graph.update_all([&](const EdgeBatch& edges) { return norm(edges.src(x)); }, Reduce::sum);
    tape.backward(y, my_rows(random_values(Shape{nodes, width}, 2), books.dst, comm.rank()));
    gather_grads(comm, norm, false);
    return norm.parameters();
  };
  const auto expected = gradients(self, test_books(whole, 1).front());
  for (const Books& books : test_books(whole, world.size())) {
    const auto found = gradients(world, books);
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(same_bits(found[i].grad(), expected[i].grad()));
  }
}

TEST_CASE("with local statistics, each rank is a world of its own") {
  const Communicator world = Communicator::world();
  const int rank = world.rank();
  // rank 0: no rows, rank 1: one row, others: more
  const Tensor x = random_values(Shape{world.size() == 1 ? 9
                                  : rank < 2        ? rank
                                                    : 5 + rank,
                                  3},
                                 static_cast<std::uint64_t>(rank));
  DistributedBN1D norm(3, world, {.local = true});
  Variable leaf(x, true);
  Tape tape;
  const Variable y = norm(leaf);
  const Tensor value = y.value();
  const Tensor grad = random_values(x.shape(), 50);
  tape.backward(y, grad.clone());
  const Tensor running_var = norm.named_buffers()[1].tensor;
  if (x.num_rows() < 2) {
    CHECK(same_bits(running_var, Tensor::full({3}, 1)));
    CHECK(same_bits(value, Tensor::zeros(x.shape())));
    CHECK(*norm.named_counters()[0].value == 0);
    return;
  }
  const Reference r = batch_norm_reference(x, grad, {1, 1, 1}, {0, 0, 0}, 1e-5);
  CHECK(relative_error(value, r.y) < tolerance());
  CHECK(relative_error(leaf.grad(), r.dx) < tolerance());
  const double n = static_cast<double>(x.num_rows());
  CHECK(running_var.data()[2] == doctest::Approx(0.9 + 0.1 * r.var[2] * n / (n - 1)));
}

TEST_CASE("the fused operation keeps its input only, and its backward pass uses the gradient's memory") {
  const Communicator world = Communicator::world();
  const Index rows = 2000, columns = 64;
  const std::size_t tensor_bytes = static_cast<std::size_t>(rows * columns) * sizeof(real);
  std::vector<Index> ids(static_cast<std::size_t>(rows));
  Generator gen(1);
  Dropout dropout(0.5, gen);
  DistributedBN1D norm(columns, world);
  Variable x(random_values(Shape{rows, columns}), true);
  const std::size_t before = live_bytes();
  const std::size_t allowance = tensor_bytes / 2;  // block buffers, vectors of a column each
  Tape tape;
  Variable y = batch_norm_relu_dropout(x, norm, dropout, ids);
  CHECK(live_bytes() < before + tensor_bytes + allowance);
  Tensor grad = random_values(Shape{rows, columns}, 1);
  const GradientPtr to_y = y.gradient();
  y.value() = Tensor();
  reset_peak_bytes();
  CHECK(live_bytes() < before + tensor_bytes + allowance);
  tape.backward(y, std::move(grad));
  CHECK(peak_bytes() < before + tensor_bytes + allowance);
}

TEST_CASE("a layer after the fused operation on an array that is borrowed for reading") {
  const Communicator world = Communicator::world();
  const Tensor owned = random_values(Shape{3000, 64});
  const Tensor borrowed = Tensor::borrow(owned.data(), owned.shape());
  const std::vector<Index> ids(3000);
  const auto gradient = [&](const Tensor& rows) {
    Generator gen(1);
    Dropout dropout(0.5, gen);
    DistributedBN1D norm(64, world);
    Variable weight(random_values(Shape{8, 64}, 2), true);
    Tape tape;
    const Variable y = linear(batch_norm_relu_dropout(Variable(rows), norm, dropout, ids), weight, {});
    tape.backward(y, random_values(y.shape(), 4));
    return weight.grad();
  };
  const Tensor expected = gradient(owned), found = gradient(borrowed);
  CHECK(std::equal(found.values().begin(), found.values().end(), expected.values().begin()));
}

TEST_CASE("inference normalizes in place when nobody else needs the input") {
  const Communicator world = Communicator::world();
  DistributedBN1D norm(4, world);
  norm.eval();
  Variable x(random_values(Shape{10, 4}));
  const real* memory = x.value().data();
  const Tensor kept = norm(x).value();
  CHECK(kept.data() != memory);
  const Variable y = norm(std::move(x));
  CHECK(y.value().data() == memory);
  CHECK(same_bits(y.value(), kept));
}

TEST_CASE("batch norm of too little is an error on all ranks") {
  const Communicator world = Communicator::world();
  DistributedBN1D norm(2, world);
  CHECK_THROWS_AS((void)norm(Tensor::zeros({world.rank() == 0 ? 1 : 0, 2})), InputError);
  CHECK_THROWS_AS((void)norm(Tensor::zeros({5, 3})), ShapeError);
  CHECK_THROWS_AS(DistributedBN1D(0, world), InputError);
  CHECK_THROWS_AS(DistributedBN1D(2, world, {.momentum = 2}), InputError);
}

TEST_CASE("LayerNorm: golden vectors, and the formulas on the rounded inputs") {
  const Communicator world = Communicator::world();
  const int rank = world.rank();
  for (const std::string name : {"norm/layer_norm", "norm/layer_norm_large_mean"}) {
    CAPTURE(name);
    const Case golden(name);
    const Tensor whole = golden.tensor("in.x"), grad = golden.tensor("grad_out");
    const Index rows = whole.num_rows(), features = whole.row_size();
    const bool exact_inputs = sizeof(real) == 8 || golden.number("input_mean") == 0;
    // the reference of batch norm, applied to the transpose, gives y, and dx for a unit weight
    Tensor transposed({features, rows}), weighted({features, rows});
    const Doubles weight = golden.values("param.weight"), bias = golden.values("param.bias");
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < features; ++j) {
        transposed.row(j)[i] = whole.row(i)[j];
        weighted.row(j)[i] = static_cast<real>(grad.row(i)[j] * weight[static_cast<std::size_t>(j)]);
      }
    const Reference r =
        batch_norm_reference(transposed, weighted, Doubles(static_cast<std::size_t>(rows), 1),
                             Doubles(static_cast<std::size_t>(rows), 0), golden.number("eps"));
    Tensor expected_y(whole.shape()), expected_dx(whole.shape());
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < features; ++j) {
        const auto from = static_cast<std::size_t>(j * rows + i);
        const auto column = static_cast<std::size_t>(j);
        expected_y.row(i)[j] = static_cast<real>(r.y[from] * weight[column] + bias[column]);
        expected_dx.row(i)[j] = static_cast<real>(r.dx[from]);
      }
    for (const PartitionBook& book : row_splits(rows, world.size())) {
      LayerNorm norm(features, golden.number("eps"));
      norm.set_parameter("weight", golden.tensor("param.weight"));
      norm.set_parameter("bias", golden.tensor("param.bias"));
      Variable x(my_rows(whole, book, rank), true);
      Tape tape;
      const Variable y = norm(x);
      const Tensor value = y.value();
      tape.backward(y, my_rows(grad, book, rank));
      const Tensor dweight = sum_over_ranks(world, norm.parameters()[0].grad());
      const Tensor dbias = sum_over_ranks(world, norm.parameters()[1].grad());
      CHECK(error_of_rows(value, expected_y, book.begin(rank)) < tolerance());
      CHECK(error_of_rows(x.grad(), expected_dx, book.begin(rank)) < tolerance());
      CHECK(relative_error(dbias, golden.values("grad_param.bias")) < tolerance());
      if (exact_inputs) {
        CHECK(error_of_rows(value, golden.tensor("out"), book.begin(rank)) < tolerance());
        CHECK(error_of_rows(x.grad(), golden.tensor("grad_in.x"), book.begin(rank)) < tolerance());
        CHECK(relative_error(dweight, golden.values("grad_param.weight")) < tolerance());
      }
    }
  }
  CHECK_THROWS_AS((void)LayerNorm(3)(Tensor::zeros({2, 4})), ShapeError);
}
