// SPDX-License-Identifier: MIT

/// Gradients of attention that are zero for a reason are exactly zero, so that no optimizer scales up their
/// rounding: a softmax over one in-edge, and destination terms of scores that all have one sign.
#include "attention_options.hpp"
#include "graph/test_graphs.hpp"
#include "support/random_tensor.hpp"

#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/graph/message/attention.hpp>
#include <sar/graph/message/typed_sum.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

constexpr Index nodes = 60, heads = 3, dim = 5;

/// Node v has the in-edges from 7 v + 13 k, k = 0 .. degree - 1; node 5 has none.
WholeGraph regular_graph(Index degree) {
  WholeGraph whole{.name = "regular", .num_src = nodes, .num_dst = nodes, .src = {}, .dst = {}};
  for (Index v = 0; v < nodes; ++v)
    for (Index k = 0; k < degree && v != 5; ++k) {
      whole.src.push_back((7 * v + 13 * k + 1) % nodes);
      whole.dst.push_back(v);
    }
  return whole;
}

Tensor rank_rows(const Tensor& whole, const PartitionBook& book, int rank) {
  return whole.slice_rows(book.begin(rank), book.end(rank)).clone();
}

bool is_zero(const Tensor& x) {
  return x.defined() && std::ranges::all_of(x.values(), [](real value) { return value == 0; });
}

struct Operands {
  Variable x, by_head, dst, attn, beta, flat;

  Operands(const Communicator& comm, const PartitionBook& book) {
    const auto rows = [&](const Shape& shape, std::uint64_t seed) {
      return Variable(rank_rows(random_tensor(shape, seed), book, comm.rank()), true);
    };
    x = rows({nodes, heads, dim}, 1);
    by_head = rows({nodes, heads}, 2);
    dst = rows({nodes, heads, dim}, 3);
    flat = rows({nodes, dim}, 5);
    attn = Variable(random_tensor({1, heads, dim}, 4), true);
    beta = Variable(Tensor::full({1}, real(1.5)), true);
  }
};

}  // namespace

TEST_CASE("a softmax over one in-edge has no gradient") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = regular_graph(1);
  for (const Books& books : test_books(whole, comm.size()))
    for (const GraphOptions& options : all_options()) {
      const Graph graph = shard(comm, whole, books, options);
      const Operands in(comm, books.src);
      const Variable bias(random_tensor({heads * dim}, 6), true);
      const auto check = [&](const Variable& y, std::initializer_list<Variable> zero) {
        Tape::current()->backward(sum(y * y));
        for (const Variable& each : zero) CHECK(is_zero(each.grad()));
      };
      for (const bool weighted : {false, true}) {
        AttentionOptions attention;
        attention.bias = bias;
        if (weighted) attention.edge_weight = Variable(random_tensor({graph.num_edges()}, 7), true);
        const Tape tape;
        check(gat_attention(graph, in.x, in.attn, in.by_head, real(0.2), attention), {in.attn, in.by_head});
      }
      {
        const Tape tape;
        const Operands mine(comm, books.src);
        check(gatv2_attention(graph, mine.x, mine.dst, mine.attn, real(0.2)), {mine.attn, mine.dst});
      }
      {
        const Tape tape;
        check(dot_attention(graph, in.dst, in.x, in.x, real(0.3)), {in.dst});
      }
      {
        const Tape tape;
        check(cosine_attention(graph, in.flat,
                               rank_rows(random_tensor({nodes, dim}, 8), books.dst, comm.rank()), in.beta),
              {in.beta});
      }
      const Tape tape;
      const Variable matrices(random_tensor({2, heads, dim, dim}, 9), true),
          messages(random_tensor({2, heads, dim, dim}, 10)),
          keys(rank_rows(random_tensor({nodes, 2, heads, dim}, 11), books.src, comm.rank())),
          query(rank_rows(random_tensor({nodes, heads, dim}, 12), books.dst, comm.rank()), true);
      Array<std::uint16_t> types;
      for (const Index id : graph.edge_ids()) types.push_back(static_cast<std::uint16_t>(id % 2));
      check(typed_attention(graph, keys, query, matrices, messages, EdgeTypes(std::move(types))),
            {matrices, query});
    }
}

TEST_CASE("a destination term that the softmax cancels has no gradient") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = regular_graph(4);
  for (const Books& books : test_books(whole, comm.size()))
    for (const GraphOptions& options : all_options()) {
      const Graph graph = shard(comm, whole, books, options);
      const Operands in(comm, books.src);
      // heads whose scores are all positive, all negative, and of both signs
      Tensor terms({graph.num_dst_nodes(), heads});
      for (Index v = 0; v < terms.num_rows(); ++v) {
        terms.row(v)[0] = 20;
        terms.row(v)[1] = -20;
        terms.row(v)[2] = 0;
      }
      const Variable dst(terms, true);
      const Tape tape;
      const Variable y = gat_attention(graph, in.x, in.attn, dst, real(0.2));
      Tape::current()->backward(sum(y * y));
      double mixed = 0;
      for (Index v = 0; v < terms.num_rows(); ++v) {
        CHECK(dst.grad().row(v)[0] == 0);
        CHECK(dst.grad().row(v)[1] == 0);
        mixed += std::abs(static_cast<double>(dst.grad().row(v)[2]));
      }
      CHECK(comm.all_reduce(mixed) > 1e-3);
    }
}
