// SPDX-License-Identifier: MIT
#include "graph/test_graphs.hpp"
#include "support/golden_graph.hpp"
#include "support/reference.hpp"
#include "support/rows.hpp"

#include <doctest/doctest.h>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/message/attention.hpp>

#include <cmath>
#include <string>

using namespace sar;
using namespace sar::test;

namespace {

constexpr HaloMode modes[] = {HaloMode::rematerialize, HaloMode::sequential, HaloMode::one_shot};
constexpr NormBy norms[] = {NormBy::dst, NormBy::src};

struct Expected {
  std::vector<double> y, grad;
};

Expected by_definition(const WholeGraph& g, NormBy by, const std::vector<double>& x,
                       const std::vector<double>& grad, std::size_t width) {
  const auto& ids = by == NormBy::dst ? g.dst : g.src;
  const auto nodes = static_cast<std::size_t>(by == NormBy::dst ? g.num_dst : g.num_src);
  std::vector<double> m(nodes * width, -1e300), z(m.size(), 0), s(m.size(), 0);
  Expected r{x, grad};
  const auto for_all = [&](const auto& visit) {
    for (std::size_t k = 0; k < ids.size(); ++k)
      for (std::size_t j = 0; j < width; ++j)
        visit(k * width + j, static_cast<std::size_t>(ids[k]) * width + j);
  };
  for_all([&](std::size_t i, std::size_t n) { m[n] = std::max(m[n], x[i]); });
  for_all([&](std::size_t i, std::size_t n) { z[n] += std::exp(x[i] - m[n]); });
  for_all([&](std::size_t i, std::size_t n) { r.y[i] = std::exp(x[i] - m[n]) / z[n]; });
  for_all([&](std::size_t i, std::size_t n) { s[n] += r.y[i] * grad[i]; });
  for_all([&](std::size_t i, std::size_t n) { r.grad[i] = r.y[i] * (grad[i] - s[n]); });
  return r;
}

Tensor edge_part(const std::vector<double>& whole, const Graph& graph, Index width) {
  return graph.local_edge_rows(to_tensor(whole, Shape{static_cast<Index>(whole.size()) / width, width}));
}

double largest_difference(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape())) return 1e300;
  double error = 0;
  for (Index i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a.data()[i])) return 1e300;
    error = std::max(error, std::abs(static_cast<double>(a.data()[i]) - b.data()[i]));
  }
  return error;
}

}  // namespace

TEST_CASE("golden vectors of edge_softmax") {
  const Communicator comm = Communicator::world();
  for (const std::string name : {"dst", "dst_bipartite", "dst_large", "src", "src_bipartite"}) {
    CAPTURE(name);
    const Case golden("edge_softmax/" + name);
    const NormBy by = golden.arg("norm_by") == "dst" ? NormBy::dst : NormBy::src;
    for (const HaloMode mode : modes) {
      for (const Index max_halo_bytes : {0, 1}) {
        const GoldenGraph g = golden_graph(comm, golden, {.mode = mode, .max_halo_bytes = max_halo_bytes});
        const Variable x(g.edge_rows(golden.tensor("in.logits")), true);
        Tape tape;
        const Variable y = edge_softmax(g.graph, x, by);
        CHECK(error_of_part(y.value(), g.edge_rows(golden.tensor("out")), golden.tensor("out")) <
              tolerance());
        tape.backward(y, g.edge_rows(golden.tensor("grad_out")));
        CHECK(error_of_part(x.grad(), g.edge_rows(golden.tensor("grad_in.logits")),
                            golden.tensor("grad_in.logits")) < tolerance());
      }
    }
  }
}

TEST_CASE("edge_softmax agrees with the definition on any partition, however large the logits") {
  const Communicator comm = Communicator::world();
  const Index width = 3;
  for (const WholeGraph& whole : test_graphs()) {
    for (const Books& books : test_books(whole, comm.size())) {
      for (const NormBy by : norms) {
        for (const double scale : {1., 2000.}) {
          CAPTURE(whole.name);
          CAPTURE(static_cast<int>(by));
          CAPTURE(scale);
          const Graph graph = shard(comm, whole, books, {});
          auto x = random_values(static_cast<Index>(whole.src.size()) * width, 1);
          for (double& value : x) value = static_cast<real>(value * scale);
          const auto g = random_values(static_cast<Index>(x.size()), 2);
          const Expected want = by_definition(whole, by, x, g, width);
          const Variable local(edge_part(x, graph, width), true);
          Tape tape;
          const Variable y = edge_softmax(graph, local, by);
          CHECK(largest_difference(y.value(), edge_part(want.y, graph, width)) < tolerance());
          tape.backward(y, edge_part(g, graph, width));
          CHECK(largest_difference(local.grad(), edge_part(want.grad, graph, width)) < tolerance());
        }
      }
    }
  }
}

TEST_CASE("by destination nothing travels; by source, halo rows to their owners and back") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("bytes", 200, 200, 3000, 5);
  const Books books = test_books(whole, comm.size()).front();
  const Graph graph = shard(comm, whole, books, {});
  const Index width = 4;
  const auto [sends, reads] = halo_traffic(whole, books, comm);
  const std::uint64_t row = width * sizeof(real);
  for (const NormBy by : norms) {
    const Variable x(Tensor::full(Shape{graph.num_edges(), width}, 1), true);
    Tape tape;
    std::uint64_t before = comm_bytes(graph);
    const Variable y = edge_softmax(graph, x, by);
    const std::uint64_t forward = comm_bytes(graph) - before;
    before = comm_bytes(graph);
    tape.backward(y, Tensor::full(y.shape(), 1));
    const std::uint64_t backward = comm_bytes(graph) - before;
    if (by == NormBy::dst) {
      CHECK(forward == 0);
      CHECK(backward == 0);
    } else {
      CHECK(forward >= 2 * (sends + reads) * row);
      CHECK(forward <= 2 * (sends + reads) * row + 200);
      CHECK(backward == (sends + reads) * row);
    }
  }
}

TEST_CASE("edge rows missing on one rank are the same error on all") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("shapes", 50, 50, 100, 5);
  const Graph graph = shard(comm, whole, test_books(whole, comm.size()).front(), {});
  const bool bad = comm.rank() == comm.size() - 1;
  for (const NormBy by : norms) {
    CHECK_THROWS_AS((void)edge_softmax(graph, Tensor(Shape{graph.num_edges() + (bad ? 1 : 0), 2}), by),
                    ShapeError);
    CHECK_THROWS_AS((void)edge_softmax(graph, bad ? Variable() : Tensor(Shape{graph.num_edges(), 2}), by),
                    ShapeError);
    if (comm.size() > 1)
      CHECK_THROWS_AS((void)edge_softmax(graph, Tensor(Shape{graph.num_edges(), bad ? 1 : 2}), by),
                      InputError);
    CHECK_NOTHROW((void)edge_softmax(graph, Tensor::zeros(Shape{graph.num_edges(), 2}), by));
  }
}
