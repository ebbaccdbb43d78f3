// SPDX-License-Identifier: MIT

/// Tangents of built-in messages against differences of the values, for each operation and reduction.
#include "graph/test_graphs.hpp"
#include "support/random_tensor.hpp"
#include "support/rows.hpp"

#include <sar/autograd/ops.hpp>
#include <sar/autograd/variable.hpp>
#include <sar/graph/message/graph.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <utility>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

TEST_CASE("tangents of built-in messages are derivatives of their sums, means and rows of edges") {
  using Run = std::function<Variable(const Graph&, const Message&)>;
  std::vector<Message> kinds{fn::copy_u(Variable()), fn::copy_e(Variable())};
  for (const auto& op : message_op_names)
    for (const auto& [lhs, rhs] :
         {std::pair(MessageTarget::u, MessageTarget::v), std::pair(MessageTarget::v, MessageTarget::e),
          std::pair(MessageTarget::e, MessageTarget::u)})
      if (op.value != MessageOp::copy)
        kinds.push_back({.op = op.value, .lhs = lhs, .rhs = rhs, .u = {}, .v = {}, .e = {}});
  const auto with_operands = [](Message message, const std::vector<Variable>& x) {
    if (message.reads(MessageTarget::u)) message.u = x[0];
    if (message.reads(MessageTarget::v)) message.v = x[1];
    if (message.reads(MessageTarget::e)) message.e = x[2];
    return message;
  };
  const Run runs[] = {
      [](const auto& graph, const Message& m) { return graph.update_all(m, Reduce::sum); },
      [](const auto& graph, const Message& m) { return graph.update_all(m, Reduce::mean); },
      [](const auto& graph, const Message& m) { return graph.apply_edges(m); },
  };
  const double step = sizeof(real) == 8 ? 1e-5 : 1e-2, tolerance = sizeof(real) == 8 ? 1e-8 : 2e-2;
  const Communicator comm = Communicator::world();
  for (const WholeGraph& whole : square_graphs()) {
    const Books books = test_books(whole, comm.size()).back();
    const Graph graph = shard(comm, whole, books, {});
    const auto nodes = [&](std::uint64_t stream, double low) {
      return my_rows(random_tensor({whole.num_src, 3}, stream, low, 2), books.src, comm.rank());
    };
    // values away from 0, for divisions
    const std::vector<Tensor> at = {nodes(1, 1), nodes(2, 1), random_tensor({graph.num_edges(), 3}, 3, 1, 2)};
    const std::vector<Tensor> along = {nodes(4, -2), nodes(5, -2),
                                       random_tensor({graph.num_edges(), 3}, 6, -2, 2)};
    for (const Message& kind : kinds)
      for (const Run& run : runs) {
        CAPTURE(whole.name);
        CAPTURE(std::string(to_string(kind.lhs)));
        CAPTURE(std::string(to_string(kind.op)));
        const auto moved = [&](double by) {
          std::vector<Variable> x;
          for (std::size_t k = 0; k < 3; ++k)
            x.push_back(Variable(at[k]) + Variable(along[k]) * static_cast<real>(by));
          return run(graph, with_operands(kind, x)).value();
        };
        std::vector<Variable> x;
        for (std::size_t k = 0; k < 3; ++k) x.push_back(make_dual(Variable(at[k]), Variable(along[k])));
        const Variable y = run(graph, with_operands(kind, x));
        REQUIRE(y.is_dual());
        const Tensor value = moved(0), above = moved(step), below = moved(-step);
        const Tensor tangent = y.tangent().value();
        REQUIRE(tangent.shape() == value.shape());
        for (Index i = 0; i < value.size(); ++i) {
          CHECK(y.value().data()[i] == value.data()[i]);
          const double slope =
              (static_cast<double>(above.data()[i]) - static_cast<double>(below.data()[i])) / (2 * step);
          CHECK(std::abs(static_cast<double>(tangent.data()[i]) - slope) <=
                tolerance * (1 + std::abs(slope) + std::abs(static_cast<double>(value.data()[i]))));
        }
      }
  }
}
