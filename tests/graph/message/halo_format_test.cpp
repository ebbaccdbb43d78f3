// SPDX-License-Identifier: MIT

/// Rows and gradients that are rounded while they travel, against exact ones on the same graph and against
/// the rounding of single rows.
#include "graph/test_graphs.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <doctest/doctest.h>
#include <sar/autograd/tape.hpp>
#include <sar/comm/halo/wire_format.hpp>
#include <sar/core/error.hpp>
#include <sar/data.hpp>
#include <sar/graph/message/halo_step.hpp>
#include <sar/models.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

constexpr bool has_int8 = sizeof(real) == sizeof(float);

std::vector<HaloFormat> rounding_formats() {
  std::vector<HaloFormat> formats;
  for (const HaloFormatTraits& traits : halo_format_traits)
    if (traits.max_error > 0 && (traits.in_double || sizeof(real) == sizeof(float)))
      formats.push_back(traits.value);
  CHECK(formats.size() >= 1);
  return formats;
}

/// Largest error of a rounded number, relative to the largest number of its row.
double error_bound(HaloFormat format) {
  return 1.001 * traits_of(format).max_error;
}

double largest(const std::vector<double>& whole, Index row, Index width) {
  double most = 0;
  for (Index j = row * width; j < (row + 1) * width; ++j)
    most = std::max(most, std::abs(whole[static_cast<std::size_t>(j)]));
  return most;
}

/// The source row of every in-edge as its reader sees it.
Tensor source_rows(const Graph& graph, const Tensor& u) {
  return graph.apply_edges(fn::copy_u(Variable(u))).value();
}

/// All numbers that depend on what travels: the result and the gradients of u and e.
struct Results {
  Tensor out, grad_u, grad_e;
};

Results weighted_sum(const Graph& graph, const Tensor& u, const Tensor& e, const Tensor& grad) {
  const HaloStep step(11, 3);
  const Variable sources(u, true), edges(e, true);
  Tape tape;
  const Variable out = graph.update_all(fn::u_mul_e(sources, edges), Reduce::sum);
  tape.backward(out, grad);
  return {out.value(), sources.grad(), edges.grad()};
}

}  // namespace

TEST_CASE("formats that do not go with other options are refused") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = test_graphs().front();
  Graph graph = shard(comm, whole, test_books(whole, comm.size()).front(), {});
  const auto refusal = [&](const GraphOptions& options) {
    return thrown_by_all<InputError>(comm, [&] { graph.set_options(options); });
  };
  CHECK(refusal({.reproducible = true, .halo_format = HaloFormat::bf16}) ==
        "halo_format is bf16 on a reproducible graph, expected exact");
  if (!has_int8)
    CHECK(refusal({.halo_format = HaloFormat::int8}) ==
          "halo_format is int8 in double precision, expected exact, bf16");
  CHECK(graph.options().halo_format == HaloFormat::exact);
}

TEST_CASE("ranks with different formats are told so") {
  const Communicator comm = Communicator::world();
  if (comm.size() == 1) return;
  const WholeGraph whole = test_graphs().front();
  Graph graph = shard(comm, whole, test_books(whole, comm.size()).front(), {});
  if (comm.rank() == 1) graph.set_options({.halo_format = HaloFormat::bf16});
  const Variable u(Tensor::zeros(Shape{graph.num_nodes(), 2}));
  const auto call = [&] { (void)graph.update_all(fn::copy_u(u), Reduce::sum); };
  CHECK(thrown_by_all<InputError>(comm, call) ==
        "update_all is called with a different halo_format on different ranks: exact on rank 0, bf16 on rank "
        "1");
}

TEST_CASE("every reader has the same rounded row, on any number of ranks; rows of its own are exact") {
  const Communicator comm = Communicator::world();
  const Index width = 33;
  for (const WholeGraph& whole : square_graphs()) {
    const auto u = random_values(whole.num_src * width, 1);
    const Tensor all = to_tensor(u, Shape{whole.num_src, width});
    Array<Index> ids;
    for (Index v = 0; v < whole.num_src; ++v) ids.push_back(original_id(v));
    Array<std::int32_t> rows(whole.num_src);
    std::iota(rows.begin(), rows.end(), 0);
    for (const HaloFormat format : rounding_formats()) {
      const auto first_draws = [&] {
        const HaloStep step(11, 3);
        return HaloDraws::of_next_operation({.halo_format = format});
      };
      const HaloDraws draws = first_draws();
      const WireFormatPtr made = make_wire_format(
          format, width, {.key = Random(draws.rows).key(), .owned_ids = {ids.data(), ids.size()}});
      const WireFormat& wire = *made;
      Array<std::byte> packed(wire.bytes(all.size()));
      wire.pack(all, rows, 0, all.size(), packed.data());
      Tensor rounded(all.shape());
      wire.unpack(packed.data(), all.size(), rounded.data());
      for (const Books& books : test_books(whole, comm.size())) {
        CAPTURE(whole.name);
        const Graph graph = renamed_shard(comm, whole, books.src, {.halo_format = format});
        const HaloStep step(11, 3);
        const Tensor seen = source_rows(graph, local_rows(u, books.src, comm.rank(), width));
        Tensor expected(seen.shape());
        for (Index i = 0; i < expected.num_rows(); ++i) {
          const Index v = whole.src[static_cast<std::size_t>(graph.edge_ids()[i])];
          std::copy_n((books.src.owner(v) == comm.rank() ? all : rounded).row(v), width, expected.row(i));
        }
        CHECK(same_bits(seen, expected));
      }
    }
  }
}

TEST_CASE("sums and gradients deviate by what rounding may change, in all modes alike") {
  const Communicator comm = Communicator::world();
  const Index width = 5;
  for (const WholeGraph& whole : test_graphs()) {
    const auto u = random_values(whole.num_src * width, 1), g = random_values(whole.num_dst * width, 4);
    const auto e = random_values(static_cast<Index>(whole.src.size()), 2);
    for (const Books& books : test_books(whole, comm.size())) {
      const int p = comm.rank();
      const auto run = [&](const GraphOptions& options) {
        const Graph graph = shard(comm, whole, books, options);
        return weighted_sum(graph, local_rows(u, books.src, p, width), edge_rows(e, graph),
                            local_rows(g, books.dst, p, width));
      };
      const Results exact = run({});
      std::vector<double> sum_bound(static_cast<std::size_t>(whole.num_dst), 0);
      std::vector<double> grad_bound(static_cast<std::size_t>(whole.num_src), 0);
      for (std::size_t k = 0; k < whole.src.size(); ++k) {
        sum_bound[static_cast<std::size_t>(whole.dst[k])] += std::abs(e[k]) * largest(u, whole.src[k], width);
        grad_bound[static_cast<std::size_t>(whole.src[k])] +=
            std::abs(e[k]) * largest(g, whole.dst[k], width);
      }
      const auto within = [&](const Tensor& a, const Tensor& b, const std::vector<double>& bounds,
                              Index first, double bound) {
        for (Index i = 0; i < a.num_rows(); ++i)
          for (Index j = 0; j < width; ++j)
            if (std::abs(double{a.row(i)[j]} - double{b.row(i)[j]}) >
                bounds[static_cast<std::size_t>(first + i)] * bound + 1e-5)
              return false;
        return true;
      };
      for (const HaloFormat format : rounding_formats()) {
        CAPTURE(whole.name);
        CAPTURE(static_cast<int>(format));
        const Results rounded = run({.halo_format = format});
        CHECK(within(rounded.out, exact.out, sum_bound, books.dst.begin(p), error_bound(format)));
        CHECK(within(rounded.grad_u, exact.grad_u, grad_bound, books.src.begin(p), error_bound(format)));
        const Results kept = run({.mode = HaloMode::sequential, .halo_format = format});
        CHECK(same_bits(kept.out, rounded.out));
        CHECK(within(kept.grad_u, rounded.grad_u, grad_bound, books.src.begin(p),
                     0));                               // added in another order
        CHECK(same_bits(kept.grad_e, rounded.grad_e));  // from rows that were fetched again
        const Results in_small_stages = run({.max_halo_bytes = 100, .halo_format = format});
        CHECK(same_bits(in_small_stages.grad_e, rounded.grad_e));
      }
    }
  }
}

TEST_CASE("bytes are counted as they travel") {
  const Communicator comm = Communicator::world();
  const Index width = 60;
  const WholeGraph whole = test_graphs().front();
  const Books books = test_books(whole, comm.size()).front();
  const HaloTraffic traffic = halo_traffic(whole, books, comm);
  const auto bytes = [&](HaloFormat format) {
    Graph graph = shard(comm, whole, books, {.halo_format = format});
    const Variable u(Tensor::zeros(Shape{graph.num_nodes(), width}), true);
    const std::uint64_t before = comm_bytes(graph);
    Tape tape;
    tape.backward(graph.update_all(fn::copy_u(u), Reduce::sum),
                  Tensor::zeros(Shape{graph.num_nodes(), width}));
    return comm_bytes(graph) - before;
  };
  const auto rows = traffic.sends + traffic.reads;  // forward, backward
  const auto of_rows = [&](HaloFormat format) {
    return rows * static_cast<std::uint64_t>(wire_bytes(format, width));
  };
  const std::uint64_t rest = bytes(HaloFormat::exact) - of_rows(HaloFormat::exact);  // of synchronization
  for (const HaloFormat format : rounding_formats()) CHECK(bytes(format) - of_rows(format) == rest);
}

TEST_CASE("what is not finite is not hidden") {
  const Communicator comm = Communicator::world();
  const Index width = 4;
  const WholeGraph whole = test_graphs().front();
  const Books books = test_books(whole, comm.size()).front();
  for (const HaloFormat format : rounding_formats()) {
    const Graph graph = shard(comm, whole, books, {.halo_format = format});
    for (const real bad : {std::numeric_limits<real>::quiet_NaN(), std::numeric_limits<real>::infinity()}) {
      Tensor u = Tensor::full(Shape{graph.num_nodes(), width}, 1);
      if (books.src.owner(1) == comm.rank()) u.row(1 - books.src.begin(comm.rank()))[2] = bad;
      const Tensor seen = source_rows(graph, u);
      for (Index i = 0; i < seen.num_rows(); ++i)
        CHECK(std::isfinite(seen.row(i)[2]) ==
              (whole.src[static_cast<std::size_t>(graph.edge_ids()[i])] != 1));
    }
  }
}

TEST_CASE("edge_softmax and what is computed once travel exactly") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = square_graphs().front();
  const Books books = test_books(whole, comm.size()).front();
  const int p = comm.rank();
  const auto softmax = [&](HaloFormat format) {
    const Graph graph = shard(comm, whole, books, {.halo_format = format});
    return edge_softmax(graph, edge_rows(random_values(static_cast<Index>(whole.src.size()), 2), graph),
                        NormBy::src)
        .value();
  };
  const auto cached = [&](HaloFormat format) {
    const Graph graph = shard(comm, whole, books, {.halo_format = format});
    Generator gen(0);
    SAGEConv conv(3, 4, gen, {.cached = true});
    return conv(graph, local_rows(random_values(whole.num_src * 3, 1), books.src, p, 3)).value();
  };
  for (const HaloFormat format : rounding_formats()) {
    CHECK(same_bits(softmax(format), softmax(HaloFormat::exact)));
    CHECK(same_bits(cached(format), cached(HaloFormat::exact)));
  }
}
