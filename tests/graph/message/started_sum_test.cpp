// SPDX-License-Identifier: MIT

/// Sums that are started, with other work before they are finished: the same bits as update_all, forward and
/// backward, whatever runs in between, and the same error on all ranks where one fails.
#include "graph/test_graphs.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <doctest/doctest.h>

#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/message/degree_factors.hpp>
#include <sar/graph/message/typed_sum.hpp>

#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

constexpr Index width = 5;

Tensor values(Index rows, Index columns, int seed) {
  Tensor x({rows, columns});
  for (Index i = 0; i < x.size(); ++i)
    x.data()[i] = static_cast<real>((i * 37 + seed * 11) % 101) / real{50} - real{1};
  return x;
}

/// What a sum reads, on this rank.
struct Operands {
  Graph graph;
  Variable x, weight, base;
  Variable matrices;
  EdgeTypes types;

  Operands(const Communicator& comm, const WholeGraph& whole, const Books& books, const GraphOptions& options)
      : graph(shard(comm, whole, books, options)),
        x(values(graph.num_src_nodes(), width, 1 + comm.rank()), true),
        weight(values(graph.num_edges(), 1, 2), true),
        base(values(graph.num_dst_nodes(), width, 3), true),
        matrices(values(2 * width, width, 4).reshape({2, width, width}), true),
        types(std::vector<Index>(static_cast<std::size_t>(graph.num_edges()), 1)) {}

  [[nodiscard]] std::vector<Tensor> gradients() const {
    return {x.grad(), weight.grad(), base.grad(), matrices.grad()};
  }
  void zero() {
    for (Variable* v : {&x, &weight, &base, &matrices}) v->zero_grad();
  }
};

using Start = std::function<StartedSum(const Operands&)>;

std::vector<Start> kinds_of_sums() {
  const SumFactors factors{.src = DegreeFactor::inverse_root, .dst = DegreeFactor::inverse_root};
  return {[](const Operands& o) { return o.graph.start_update_all(fn::copy_u(o.x), fn::mean); },
          [](const Operands& o) { return o.graph.start_update_all(fn::u_mul_e(o.x, o.weight), fn::sum); },
          [](const Operands& o) { return o.graph.start_update_all(fn::u_add_e(o.x, o.weight), fn::max); },
          [=](const Operands& o) { return start_scaled_sum(o.graph, o.x, {}, factors); },
          [=](const Operands& o) { return start_scaled_sum(o.graph, o.x, o.weight, factors); },
          [](const Operands& o) { return start_typed_sum(o.graph, o.x, o.matrices, o.types, o.weight); }};
}

}  // namespace

TEST_CASE("what runs between start and finish changes no bit, and may communicate") {
  const Communicator comm = Communicator::world();
  ::alarm(120);  // ends a program that hangs
  for (const WholeGraph& whole : test_graphs()) {
    if (whole.num_src != whole.num_dst) continue;
    const Books books = test_books(whole, comm.size()).back();
    for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::sequential})
      for (const bool in_double : {false, true}) {
        Operands o(comm, whole, books, {.mode = mode, .max_halo_bytes = 60, .reproducible = in_double});
        const Tensor seed = values(o.graph.num_dst_nodes(), width, 7);
        for (const Start& start : kinds_of_sums()) {
          CAPTURE(whole.name);
          const auto run = [&](const std::function<Variable()>& between) {
            o.zero();
            Tape tape;
            StartedSum sum = start(o);
            const Variable other = between();
            Variable y = sum.finish(o.base * real{2});
            if (other.defined()) y = y + other * real{0};
            tape.backward(y, seed);
            std::vector<Tensor> results = o.gradients();
            results.push_back(y.value());
            return results;
          };
          const std::vector<Tensor> plain = run([] { return Variable(); });
          const std::vector<Tensor> busy = run([&] {
            comm.barrier();
            (void)comm.all_reduce(comm.rank());
            return Variable();
          });
          for (std::size_t i = 0; i < plain.size(); ++i) CHECK(same_bits(plain[i], busy[i]));
          // another sum, started and finished in between, with a backward pass of its own
          const std::vector<Tensor> nested =
              run([&] { return o.graph.update_all(fn::copy_u(o.base), fn::sum); });
          CHECK(same_bits(plain.back(), nested.back()));
          CHECK(same_bits(plain[0], nested[0]));
        }
      }
  }
  ::alarm(0);
}

TEST_CASE("several sums may be in flight, and are finished in any order") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("several", 80, 80, 700, 4);
  const Books books = test_books(whole, comm.size()).front();
  Operands o(comm, whole, books, {.max_halo_bytes = 40});
  const Tensor seed = values(o.graph.num_dst_nodes(), width, 7);
  ::alarm(60);
  const auto run = [&](const std::vector<int>& order) {
    o.zero();
    Tape tape;
    std::vector<Variable> results(3);
    std::vector<StartedSum> sums;
    for (int k = 0; k < 3; ++k)
      sums.push_back(
          o.graph.start_update_all(k == 1 ? fn::copy_u(o.x) : fn::u_mul_e(o.x, o.weight), fn::sum));
    for (const int k : order)
      results[static_cast<std::size_t>(k)] = sums[static_cast<std::size_t>(k)].finish();
    tape.backward(results[0] + results[1] * results[2], seed);
    return std::pair(results[1].value(), o.weight.grad());
  };
  const auto [y, grad] = run({0, 1, 2});
  for (const std::vector<int>& order : {std::vector<int>{2, 1, 0}, std::vector<int>{1, 2, 0}}) {
    const auto [other_y, other_grad] = run(order);
    CHECK(same_bits(y, other_y));
    CHECK(same_bits(grad, other_grad));
  }
  ::alarm(0);
}

TEST_CASE("a sum that is dropped leaves other sums and the communicator usable") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("dropped", 80, 80, 700, 4);
  const Books books = test_books(whole, comm.size()).front();
  const Operands o(comm, whole, books, {.max_halo_bytes = 40});
  ::alarm(60);
  const Tensor want = o.graph.update_all(fn::copy_u(o.x), fn::sum).value();
  {
    Tape tape;
    StartedSum used = o.graph.start_update_all(fn::copy_u(o.x), fn::sum);
    { const StartedSum dropped = o.graph.start_update_all(fn::u_mul_e(o.x, o.weight), fn::sum); }
    CHECK(same_bits(used.finish().value(), want));
  }
  CHECK(same_bits(o.graph.update_all(fn::copy_u(o.x), fn::sum).value(), want));
  ::alarm(0);
}

TEST_CASE("a failure of one rank is an error of all, wherever it happens, and the next sum is right") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("failures", 80, 80, 700, 4);
  const Books books = test_books(whole, comm.size()).front();
  Operands o(comm, whole, books, {.max_halo_bytes = 40});
  const Tensor seed = values(o.graph.num_dst_nodes(), width, 7);
  ::alarm(120);
  const auto step = [&](int failing, int when) {
    const auto fail = [&](int now) {
      if (comm.rank() == failing && when == now) throw std::runtime_error("enough");
    };
    return comm.agree([&] {
      o.zero();
      Tape tape;
      StartedSum sum = o.graph.start_update_all(fn::u_mul_e(o.x, o.weight), fn::sum);
      fail(0);
      StartedSum second = o.graph.start_update_all(fn::copy_u(o.x), fn::mean);
      fail(1);
      Variable self = record(o.base.value(), [&, to = o.base.gradient()](const Tensor& grad) {
        fail(2);  // between the halves of the backward pass
        to->add(grad);
      });
      Variable y = sum.finish(std::move(self));
      fail(3);
      y = y + second.finish();
      tape.backward(y, seed);
      fail(4);
      return o.gradients();
    });
  };
  const std::vector<Tensor> want = step(-1, 0);
  for (int failing = 0; failing < comm.size(); ++failing)
    for (int when = 0; when <= 4; ++when) {
      CAPTURE(failing);
      CAPTURE(when);
      CHECK(thrown_by_all<Error>(comm, [&] { (void)step(failing, when); }) == "enough");
      const std::vector<Tensor> again = step(-1, 0);
      for (std::size_t i = 0; i < 3; ++i) CHECK(same_bits(want[i], again[i]));
    }
  ::alarm(0);
}

TEST_CASE("wrong bases and second ends are refused on all ranks") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("wrong", 30, 30, 200, 4);
  const Operands o(comm, whole, test_books(whole, comm.size()).front(), {});
  const bool here = comm.rank() == comm.size() - 1;
  for (const Start& start : kinds_of_sums()) {
    StartedSum sum = start(o);
    const Variable wrong = values(o.graph.num_dst_nodes(), here ? width + 1 : width, 3);
    CHECK(thrown_by_all<ShapeError>(comm, [&] { (void)sum.finish(wrong); }).find("a base of shape") !=
          std::string::npos);
    CHECK(thrown_by_all<InputError>(comm, [&] { (void)sum.finish(); }) == "a sum is finished a second time");
    CHECK(start(o).finish(o.base).num_rows() == o.graph.num_dst_nodes());
  }
  CHECK(thrown_by_all<ShapeError>(comm, [&] {
          (void)o.graph.start_update_all(fn::copy_u(values(o.graph.num_src_nodes() + (here ? 1 : 0), 2, 1)),
                                         fn::sum);
        }).find("source rows have shape") != std::string::npos);
}
