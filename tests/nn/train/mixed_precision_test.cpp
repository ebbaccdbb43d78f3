// SPDX-License-Identifier: MIT

/// Mixed precision: what is stored in bfloat16 and what is not, layers within a bound that follows from the
/// number of roundings, trainings on any number of ranks and threads.
#include <doctest/doctest.h>

#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/numbers.hpp>
#include <sar/core/threads/mixed_precision.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/data.hpp>
#include <sar/models.hpp>

#include "curve.hpp"
#include "graph/test_graphs.hpp"
#include "support/random_tensor.hpp"
#include "support/rows.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

using namespace sar;
using namespace sar::test;

#if SAR_DOUBLE

TEST_CASE("mixed precision is refused in double precision") {
  CHECK_THROWS_AS((void)MixedPrecisionScope(), InputError);
  CHECK_FALSE(mixed_precision());
  const MixedPrecisionScope full(false);
  CHECK_FALSE(mixed_precision());
}

#else

namespace {

constexpr double unit = 0x1p-8;  // of rounding to bfloat16

real rounded(real x) {
  return bfloat16_to_float(float_to_bfloat16(static_cast<double>(x)));
}

Tensor absolute(const Tensor& x) {
  Tensor y = x.clone();
  for (real& value : y.values()) value = std::abs(value);
  return y;
}

/// Sets parameters to their magnitudes.
void make_absolute(Module& module) {
  for (const auto& [name, parameter] : module.named_parameters())
    module.set_parameter(name, absolute(parameter.value()));
}

/// The leaf, or in mixed precision a result of type bfloat16 with its numbers, which are the same in both.
/// With `typed_gradient`, its gradient must arrive in bfloat16, too.
Variable operand(const Variable& leaf, bool mixed, bool typed_gradient = false) {
  if (!mixed) return leaf;
  return record(Variable(TypedRows(leaf.value(), NumberType::bfloat16)),
                [to = leaf.gradient(), typed_gradient](const TypedRows& grad) {
                  CHECK((!typed_gradient || grad.type() == NumberType::bfloat16));
                  to->add(grad.to_tensor());
                });
}

struct Pass {
  Tensor y, dx;
  std::vector<Tensor> dw;
};

/// Forward and backward with the gradient `g` of the result.
Pass run(Module& module, const std::function<Variable(const Variable&)>& layer, const Tensor& x0,
         const Tensor& g, bool mixed) {
  const MixedPrecisionScope precision(mixed);
  module.zero_grad();
  const Variable leaf(x0.clone(), true);
  Pass pass;
  {
    Tape tape;
    const Variable x = operand(leaf, mixed);
    const Variable y = layer(x);
    CHECK(y.type() == (mixed ? NumberType::bfloat16 : NumberType::reals));
    pass.y = y.value().clone();
    tape.backward(y, g.clone());
  }
  pass.dx = leaf.grad();
  for (const auto& [name, parameter] : module.named_parameters()) {
    CHECK((!parameter.gradient()->defined() || parameter.gradient()->type() == NumberType::reals));
    pass.dw.push_back(parameter.grad());
  }
  return pass;
}

/// |a - b| <= share * bound for each number.
bool within(const Tensor& a, const Tensor& b, const Tensor& bound, double share) {
  if (!(a.shape() == b.shape()) || !(a.shape() == bound.shape())) return false;
  for (Index i = 0; i < a.size(); ++i)
    if (!(std::abs(static_cast<double>(a.data()[i]) - static_cast<double>(b.data()[i])) <=
          share * static_cast<double>(bound.data()[i]) + 1e-30))
      return false;
  return true;
}

Tensor rounded_tensor(const Shape& shape, std::uint64_t stream) {
  Tensor x = random_tensor(shape, stream);
  for (real& value : x.values()) value = rounded(value);
  return x;
}

/// A layer that is linear in x and in its parameters, up to signs: with magnitudes in place of all operands
/// it computes the sum of the magnitudes of all terms. A path from operand to result with r roundings changes
/// a term by at most (1 + unit)^r - 1 of its magnitude.
void check_linear_layer(Module& module, const std::function<Variable(const Variable&)>& layer,
                        const Tensor& x, const Tensor& g, int roundings) {
  const Pass mixed = run(module, layer, x, g, true), full = run(module, layer, x, g, false);
  make_absolute(module);
  const Pass bound = run(module, layer, absolute(x), absolute(g), false);
  const double share = std::pow(1 + unit, roundings) - 1;
  CHECK(within(mixed.y, full.y, bound.y, share));
  CHECK(within(mixed.dx, full.dx, bound.dx, share));
  for (std::size_t i = 0; i < full.dw.size(); ++i)
    if (full.dw[i].defined()) CHECK(within(mixed.dw[i], full.dw[i], bound.dw[i], share));
}

}  // namespace

TEST_CASE("scopes of mixed precision nest") {
  CHECK_FALSE(mixed_precision());
  {
    const MixedPrecisionScope mixed;
    CHECK(mixed_precision());
    {
      const MixedPrecisionScope full(false);
      CHECK_FALSE(mixed_precision());
    }
    CHECK(mixed_precision());
  }
  CHECK_FALSE(mixed_precision());
}

TEST_CASE("sums over neighbors of rows in bfloat16 are those of the widened rows, rounded once") {
  const Communicator comm = Communicator::world();
  for (const WholeGraph& whole : square_graphs())
    for (const Books& books : test_books(whole, comm.size()))
      for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::one_shot}) {
        const Graph graph = shard(comm, whole, books, {.mode = mode});
        const Tensor all = rounded_tensor({whole.num_src, 19}, 1),
                     all_base = rounded_tensor({whole.num_src, 19}, 2);
        const Tensor x = my_rows(all, books.src, comm.rank()),
                     base = my_rows(all_base, books.src, comm.rank());
        for (const Reduce reduce : {Reduce::sum, Reduce::mean}) {
          const Tensor sum = graph.update_all(fn::copy_u(x), reduce, Variable(base.clone())).value();
          const MixedPrecisionScope mixed;
          const Variable found = graph.update_all(fn::copy_u(TypedRows(x, NumberType::bfloat16)), reduce,
                                                  Variable(TypedRows(base, NumberType::bfloat16)));
          CHECK(found.type() == NumberType::bfloat16);
          // one rounding of a sum whose terms, all of them below 1, are added in `real`, fused or not
          const double of_sums = 0x1p-22 * static_cast<double>(whole.src.size() + 1);
          bool near = true;
          for (Index i = 0; i < sum.size(); ++i) {
            const double want = static_cast<double>(sum.data()[i]),
                         is = static_cast<double>(found.value().data()[i]);
            near &= std::abs(is - want) <= unit * std::abs(want) + of_sums;
          }
          CHECK(near);
        }
      }
}

TEST_CASE("linear layers agree with full precision within their roundings") {
  Generator gen(1);
  Linear layer(24, 17, gen);
  // x and w are factors of bfloat16 (x has them, 1), the result is rounded (2), its gradient is stored (3),
  // and so is that of x (4)
  check_linear_layer(
      layer, [&](const Variable& x) { return layer(x); }, rounded_tensor({33, 24}, 1),
      rounded_tensor({33, 17}, 2), 4);
}

TEST_CASE("layers that sum over neighbors agree with full precision within their roundings") {
  const Communicator comm = Communicator::world();
  for (const WholeGraph& whole : square_graphs()) {
    const Books books = test_books(whole, comm.size()).back();
    const Graph graph = shard(comm, whole, books, {});
    const auto mine = [&](Index width, std::uint64_t stream) {
      return my_rows(rounded_tensor({whole.num_src, width}, stream), books.src, comm.rank());
    };
    const Tensor x = mine(12, 1), g = mine(9, 2), narrow_g = mine(20, 3);
    // each of product, sum and gradients rounds; gradients of halo rows are rounded where they are sent, and
    // added for each layer twice (self and neighbors)
    const int roundings = 9;
    {
      Generator gen(2);
      SAGEConv conv(12, 9, gen);
      check_linear_layer(
          conv, [&](const Variable& h) { return conv(graph, h); }, x, g, roundings);
    }
    {
      Generator gen(3);
      SAGEConv conv(12, 20, gen);
      check_linear_layer(
          conv, [&](const Variable& h) { return conv(graph, h); }, x, narrow_g, roundings);
    }
    {
      Generator gen(4);
      SAGEConv conv(12, 9, gen, {.aggregator = SAGEAggregator::gcn});
      check_linear_layer(
          conv, [&](const Variable& h) { return conv(graph, h); }, x, g, roundings);
    }
    {
      Generator gen(5);
      GraphConv conv(12, 9, gen);
      check_linear_layer(
          conv, [&](const Variable& h) { return conv(graph, h); }, x, g, roundings);
    }
    {
      Generator gen(6);
      GINConv conv(std::make_shared<Linear>(12, 9, gen));
      check_linear_layer(
          conv, [&](const Variable& h) { return conv(graph, h); }, x, g, roundings);
    }
  }
}

namespace {

/// 1,300 edges into node 0 and as many out of it, which kernels divide into parts.
WholeGraph star() {
  WholeGraph g{"star", 40, 40, true, {}, {}};
  for (Index k = 0; k < 1300; ++k) {
    g.src.insert(g.src.end(), {k % 39, 0});
    g.dst.insert(g.dst.end(), {0, k % 39});
  }
  return g;
}

/// The number of edges out of each node, [nodes, 1].
Tensor out_degrees(const WholeGraph& g) {
  Tensor degrees = Tensor::zeros({g.num_src, 1});
  for (const Index u : g.src) degrees.row(u)[0] += 1;
  return degrees;
}

double most(const Tensor& t) {
  double largest = 0;
  for (const real v : t.values()) largest = std::max(largest, std::abs(static_cast<double>(v)));
  return largest;
}

}  // namespace

TEST_CASE("attention in bfloat16: coefficients of rounded rows, in full precision") {
  struct Kind {
    const char* name;
    bool dst_rows;  ///< dst has rows, not scores
    std::function<Variable(const Graph&, const Variable& x, const Variable& a, const Variable& dst)> attend;
  };
  const Kind kinds[] = {
      {"GAT", false,
       [](const auto& graph, const Variable& x, const Variable& a, const Variable& dst) {
         return gat_attention(graph, x, a, dst, real(0.2));
       }},
      {"GATv2", true,
       [](const auto& graph, const Variable& x, const Variable& a, const Variable& dst) {
         return gatv2_attention(graph, x, dst, a, real(0.2));
       }},
      {"dot", true,
       [](const auto& graph, const Variable& x, const Variable&, const Variable& dst) {
         return dot_attention(graph, x, dst, {}, real(0.5));
       }},
      {"dot with values", true,
       [](const auto& graph, const Variable& x, const Variable&, const Variable& dst) {
         return dot_attention(graph, x, dst, x, real(0.5));
       }},
  };
  const Communicator comm = Communicator::world();
  std::vector<WholeGraph> graphs = square_graphs();
  graphs.push_back(star());
  graphs.push_back(random_graph("several blocks of rows", 4000, 4000, 16000, 9));
  for (const WholeGraph& whole : graphs)
    for (const Kind& kind : kinds)
      for (const bool twice : {false, true}) {
        CAPTURE(whole.name);
        CAPTURE(kind.name);
        const Books books = test_books(whole, comm.size()).back();
        const Graph graph = shard(comm, whole, books, {});
        const auto mine = [&](Index width, std::uint64_t stream) {
          return my_rows(rounded_tensor({whole.num_src, width}, stream), books.src, comm.rank());
        };
        const Tensor rows = mine(24, 1), g = mine(24, 4), dst = mine(kind.dst_rows ? 24 : 3, 3);
        const Tensor attn = random_tensor({1, 3, 8}, 2);
        const auto attend = [&](bool mixed) {
          const MixedPrecisionScope precision(mixed);
          const Shape heads{rows.num_rows(), 3, 8};
          const Variable leaf(rows.reshape(heads), true),
              dst_leaf(kind.dst_rows ? dst.reshape(heads) : dst.clone(), true);
          Variable a(attn.clone(), true);
          Tape tape;
          const Variable x = operand(leaf, mixed), d = operand(dst_leaf, mixed && kind.dst_rows);
          Variable y = kind.attend(graph, x, a, d);
          CHECK(y.type() == (mixed ? NumberType::bfloat16 : NumberType::reals));
          if (twice) y = y + kind.attend(graph, x, a, d);
          const Tensor value = y.value().clone();
          tape.backward(y, TypedRows(g.reshape(y.shape()), y.type()));
          return std::tuple(value, leaf.grad(), a.grad(), dst_leaf.grad());
        };
        const auto [y, dx, da, dd] = attend(true);
        const auto [want_y, want_dx, want_da, want_dd] = attend(false);
        // The scores are the same. The result is rounded once. D = <g, out> of the backward pass reads it
        // rounded, so that ds has an error of unit sum_j |g_j out_j| alpha. The derivatives of a score in an
        // operand are at most 2, for each edge of a source. Gradients of rows are rounded where they are
        // stored, for each operand and part of it, and where they travel.
        CHECK(within(y, want_y, absolute(want_y), (twice ? 2.02 : 1.01) * unit));
        const double of_d = 8 * most(g) * most(want_y) * (twice ? 2 : 1);  // <g, out> of 8 columns
        const double of_edge = 2 * unit * of_d;
        const auto close = [&](const Tensor& found, const Tensor& want, double share, const auto& edges_of) {
          if (found.defined() != want.defined()) return false;
          if (!found.defined()) return true;
          const double rounded_share = share * most(want);
          for (Index i = 0; i < found.size(); ++i)
            if (!(std::abs(static_cast<double>(found.data()[i] - want.data()[i])) <=
                  rounded_share + of_edge * static_cast<double>(edges_of(i / found.row_size()))))
              return false;
          return true;
        };
        const Tensor degrees = my_rows(out_degrees(whole), books.src, comm.rank());
        CHECK(close(dx, want_dx, 4 * unit, [&](Index u) { return degrees.row(u)[0]; }));
        CHECK(close(dd, want_dd, 4 * unit, [](Index) { return 1; }));  // sum of alpha
        CHECK(close(da, want_da, unit, [&](Index) { return graph.num_global_edges(); }));
      }
}

TEST_CASE("kernels of reals: the same sums of widened rows, rounded once; gradients rounded once") {
  struct Kind {
    const char* name;
    Index width;   ///< of x
    Shape weight;  ///< without its first dimension where that is the number of edges
    bool weight_of_edges;
    int roundings;  ///< of a term of a result, and of one of the gradient of w
    /// With `all`, a sum of all terms from which a result may be chosen.
    std::function<Variable(const Graph&, const Variable& x, const Variable& w, const EdgeTypes&, bool all)>
        run;
  };
  const Kind kinds[] = {
      // sums of rows are factors of a product, which rounds them
      {"a matrix for each type",
       6,
       {3, 6, 5},
       false,
       2,
       [](const auto& graph, const Variable& x, const Variable& w, const EdgeTypes& types, bool) {
         return typed_sum(graph, x, w, types);
       }},
      {"a number for each head of an edge",
       6,
       {3},
       true,
       1,
       [](const auto& graph, const Variable& x, const Variable& w, const EdgeTypes&, bool) {
         return graph.update_all(
             fn::u_mul_e(reshape(x, {x.num_rows(), 3, 2}), reshape(w, {w.num_rows(), 3, 1})), Reduce::sum);
       }},
      {"rows of edges",
       6,
       {6},
       true,
       1,
       [](const auto& graph, const Variable& x, const Variable& w, const EdgeTypes&, bool) {
         return graph.update_all(fn::u_mul_e(x, w), Reduce::mean);
       }},
      {"maximum",
       6,
       {6},
       true,
       1,
       [](const auto& graph, const Variable& x, const Variable& w, const EdgeTypes&, bool all) {
         return graph.update_all(fn::u_mul_e(x, w), all ? Reduce::sum : Reduce::max);
       }},
      {"a function, reduced",
       6,
       {6},
       true,
       1,
       [](const auto& graph, const Variable& x, const Variable& w, const EdgeTypes&, bool all) {
         return graph.update_all(
             [=](const EdgeBatch& edges) { return (edges.src(x) + edges.dst(x)) * edges.edata(w); },
             all ? Reduce::sum : Reduce::min);
       }},
      // rows of edges are rounded, and so are their gradients
      {"a function of edges that are rows of edges",
       6,
       {6},
       true,
       3,
       [](const auto& graph, const Variable& x, const Variable& w, const EdgeTypes&, bool) {
         const Variable first = graph.apply_edges(
             [=](const EdgeBatch& edges) { return (edges.src(x) + edges.dst(x)) * edges.edata(w); });
         const Variable second =
             graph.apply_edges([=](const EdgeBatch& edges) { return edges.edata(first) * edges.src(x); });
         return graph.update_all(fn::copy_e(second), Reduce::mean);
       }},
  };
  const Communicator comm = Communicator::world();
  std::vector<WholeGraph> graphs = square_graphs();
  graphs.push_back(random_graph("several stages", 400, 400, 3000, 5));
  for (const WholeGraph& whole : graphs)
    for (const Kind& kind : kinds)
      for (const GraphOptions& options :
           {GraphOptions{.mode = HaloMode::rematerialize}, GraphOptions{.mode = HaloMode::one_shot},
            // stages of 56 rows in bfloat16; of reals, they would be sent in parts of 3
            GraphOptions{.mode = HaloMode::sequential, .max_halo_bytes = 56 * 6 * 2}}) {
        CAPTURE(whole.name);
        CAPTURE(kind.name);
        const Books books = test_books(whole, comm.size()).back();
        const Graph graph = shard(comm, whole, books, options);
        const Tensor rows = my_rows(rounded_tensor({whole.num_src, kind.width}, 1), books.src, comm.rank());
        const Shape w_shape = kind.weight_of_edges ? Shape{graph.num_edges(), kind.weight[0]} : kind.weight;
        std::vector<Index> types(static_cast<std::size_t>(graph.num_edges()));
        for (std::size_t i = 0; i < types.size(); ++i) types[i] = static_cast<Index>(i % 3);
        const auto pass = [&](bool mixed, bool magnitudes) {
          const auto given = [&](const Tensor& x) { return magnitudes ? absolute(x) : x.clone(); };
          const MixedPrecisionScope precision(mixed);
          const Variable leaf(given(rows), true);
          Variable w(given(rounded_tensor(w_shape, 2)), true);
          Tape tape;
          const Variable x = operand(leaf, mixed, /*typed_gradient=*/true);
          // twice, so that gradients of x are added to
          const Variable y =
              kind.run(graph, x, w, types, magnitudes) + kind.run(graph, x, w, types, magnitudes);
          CHECK(y.type() == (mixed ? NumberType::bfloat16 : NumberType::reals));
          const Tensor value = y.value().clone();
          const Tensor g = given(
              my_rows(rounded_tensor({whole.num_src, y.shape().row_size()}, 3), books.src, comm.rank()));
          tape.backward(y, TypedRows(g.reshape(y.shape()), y.type()));
          if (mixed) CHECK((!x.requires_grad() || x.deferred()->computed().is_bfloat16()));
          return std::tuple(value, leaf.grad(), w.grad());
        };
        const auto [y, dx, dw] = pass(true, false);
        const auto [want_y, want_dx, want_dw] = pass(false, false);
        const auto [most_y, most_dx, most_dw] = pass(false, true);
        CHECK(within(y, want_y, kind.roundings > 1 ? most_y : absolute(want_y),
                     1.01 * (kind.roundings + 1) * unit));
        // rounded where they are made (as factors, too), sent and stored
        CHECK(within(dx, want_dx, most_dx, (kind.roundings + 3) * unit));
        CHECK(within(dw, want_dw, most_dw, kind.roundings > 1 ? kind.roundings * unit : 0x1p-16));
      }
}

TEST_CASE("extrema of rows in bfloat16 are those of the widened rows, with the gradients at the same edges") {
  const Communicator comm = Communicator::world();
  std::vector<WholeGraph> graphs = square_graphs();
  graphs.push_back(star());
  graphs.push_back(random_graph("several blocks of rows", 4000, 4000, 16000, 9));
  // Few small integers: many columns are equal, and every sum of gradients is exact in 8 bits.
  const auto few = [](Shape shape, std::uint64_t stream) {
    Tensor x = random_tensor(std::move(shape), stream);
    for (real& value : x.values()) value = std::round(2 * value);
    return x;
  };
  for (const WholeGraph& whole : graphs)
    for (const Reduce reduce : {Reduce::max, Reduce::min})
      for (const bool stored : {true, false})
        for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::one_shot}) {
          CAPTURE(whole.name);
          CAPTURE(stored);
          const Books books = test_books(whole, comm.size()).back();
          const Graph graph = shard(comm, whole, books, {.mode = mode});
          Tensor all = few({whole.num_src, 37}, 1);
          for (const Index row : {1, 3})
            if (row < whole.num_src) all.row(row)[2] = std::numeric_limits<real>::quiet_NaN();
          const Tensor rows = my_rows(all, books.src, comm.rank());
          const Tensor g = my_rows(few({whole.num_src, 37}, 2), books.src, comm.rank());
          const auto pass = [&](bool mixed) {
            const MixedPrecisionScope precision(mixed);
            const Variable leaf(rows.clone(), true);
            Tape tape;
            const Variable x = operand(leaf, mixed && stored, /*typed_gradient=*/true);
            const Variable y = graph.update_all(fn::copy_u(x), reduce);
            CHECK(y.type() == (mixed ? NumberType::bfloat16 : NumberType::reals));
            const Tensor value = y.value().clone();
            tape.backward(y, TypedRows(g, y.type()));
            return std::pair(value, leaf.grad());
          };
          const auto [y, dx] = pass(true);
          const auto [want_y, want_dx] = pass(false);
          CHECK(same_bits(y, want_y));
          CHECK(same_bits(dx, want_dx));
        }
}

TEST_CASE("ranks in different precisions, or with source rows of different types, are an error on all") {
  const Communicator comm = Communicator::world();
  if (comm.size() == 1) return;
  const WholeGraph whole = square_graphs().front();
  const Books books = test_books(whole, comm.size()).back();
  const Graph graph = shard(comm, whole, books, {});
  const Tensor rows = my_rows(rounded_tensor({whole.num_src, 4}, 1), books.src, comm.rank());
  const std::function<Variable(const Variable&)> calls[] = {
      [&](const Variable& x) { return graph.update_all(fn::copy_u(x), Reduce::max); },
      [&](const Variable& x) {
        return graph.update_all([=](const EdgeBatch& e) { return e.src(x); }, Reduce::sum);
      },
  };
  for (const auto& call : calls) {
    const bool other = comm.rank() == 1;
    const Variable typed(TypedRows(rows, other ? NumberType::bfloat16 : NumberType::reals));
    CHECK_THROWS_AS((void)call(typed), InputError);
    const MixedPrecisionScope mixed(other);
    CHECK_THROWS_AS((void)call(rows), InputError);
  }
}

TEST_CASE("reproducible sums read source rows in bfloat16 widened") {
  const Communicator comm = Communicator::world();
  for (const WholeGraph& whole : square_graphs()) {
    CAPTURE(whole.name);
    const Books books = test_books(whole, comm.size()).back();
    const Graph graph = shard(comm, whole, books, {.reproducible = true});
    const TypedRows rows(my_rows(random_tensor({whole.num_src, 6}, 1), books.src, comm.rank()),
                         NumberType::bfloat16);
    const auto sum_of = [&](const Variable& x) {
      return graph.update_all(fn::copy_u(x), Reduce::sum).value();
    };
    CHECK(same_bits(sum_of(Variable(rows)), sum_of(rows.to_tensor())));
  }
}

TEST_CASE("typed attention in bfloat16: the same coefficients, of products with rounded factors") {
  const Communicator comm = Communicator::world();
  for (const WholeGraph& whole : square_graphs()) {
    CAPTURE(whole.name);
    const Books books = test_books(whole, comm.size()).back();
    const Graph graph = shard(comm, whole, books, {});
    const auto mine = [&](Index width, std::uint64_t stream) {
      return my_rows(rounded_tensor({whole.num_src, width}, stream), books.src, comm.rank());
    };
    const Tensor kv = mine(16, 1), q = mine(8, 2), g = mine(8, 3);
    std::vector<Index> types(static_cast<std::size_t>(graph.num_edges()));
    for (std::size_t i = 0; i < types.size(); ++i) types[i] = static_cast<Index>(i % 2);
    const auto pass = [&](bool mixed) {
      const MixedPrecisionScope precision(mixed);
      const Index n = kv.num_rows();
      const Variable leaf(kv.reshape({n, 2, 2, 4}), true), query_leaf(q.reshape({n, 2, 4}), true);
      Variable att(rounded_tensor({2, 2, 4, 4}, 4), true), msg(rounded_tensor({2, 2, 4, 4}, 5), true);
      Tape tape;
      const Variable y =
          typed_attention(graph, operand(leaf, mixed), operand(query_leaf, mixed), att, msg, types);
      CHECK(y.type() == (mixed ? NumberType::bfloat16 : NumberType::reals));
      const Tensor value = y.value().clone();
      tape.backward(y, TypedRows(g.reshape(y.shape()), y.type()));
      return std::tuple(value, leaf.grad(), query_leaf.grad(), att.grad(), msg.grad());
    };
    const auto [y, dkv, dq, datt, dmsg] = pass(true);
    const auto [want_y, want_dkv, want_dq, want_datt, want_dmsg] = pass(false);
    // Products round the means of values, which are factors; the result is rounded: sums of 4 terms below 1.
    CHECK(within(y, want_y, Tensor::full(y.shape(), 4), 2.02 * unit));
    // D has an error of 4 unit |g| |out|, which the derivative of a score, at most 4 products of magnitude 1,
    // passes on for each edge, and so do the rounded factors of a product, 4 terms for each edge.
    const double of_edges =
        4 * unit * (4 * most(g) * most(want_y) + 4) * static_cast<double>(graph.num_global_edges());
    const auto close = [&](const Tensor& found, const Tensor& want, double share) {
      const double most_error = share * most(want) + of_edges;
      for (Index i = 0; i < found.size(); ++i)
        if (!(std::abs(static_cast<double>(found.data()[i] - want.data()[i])) <= most_error)) return false;
      return found.shape() == want.shape();
    };
    CHECK(close(dkv, want_dkv, 3 * unit));
    CHECK(close(dq, want_dq, 3 * unit));
    CHECK(close(datt, want_datt, unit));
    CHECK(close(dmsg, want_dmsg, unit));
  }
}

TEST_CASE("norms, activations and dropout keep the type of their rows") {
  const Communicator comm = Communicator::world();
  Generator gen(1);
  DistributedBN1D batch(24, comm);
  LayerNorm layer(24);
  Dropout dropout(0.5, gen);
  const Tensor x0 = rounded_tensor({1500, 24}, 7);
  std::vector<Index> ids(1500);
  for (Index i = 0; i < 1500; ++i) ids[static_cast<std::size_t>(i)] = 1500 * comm.rank() + i;
  struct Step {
    const char* name;
    std::function<Variable(const Variable&)> apply;
    double magnitude;  ///< of results and gradients
  };
  const Step steps[] = {
      {"batch norm", [&](const Variable& x) { return batch(x); }, 16},
      {"batch norm, relu", [&](const Variable& x) { return batch_norm_relu_dropout(x, batch, dropout, ids); },
       16},
      {"layer norm", [&](const Variable& x) { return layer(x); }, 16},
      {"relu", [](const Variable& x) { return relu(x); }, 2},
      {"elu", [](const Variable& x) { return elu(x); }, 2},
      {"silu", [](const Variable& x) { return silu(x); }, 2},
      {"sum", [](const Variable& x) { return x + x; }, 4},
      {"sum with a column", [](const Variable& x) { return slice_columns(x, 0, 1) + x; }, 25},
      {"difference", [](const Variable& x) { return x - relu(x); }, 4},
      {"difference with a row", [](const Variable& x) { return x - Tensor::full({24}, 1); }, 2},
      {"product", [](const Variable& x) { return x * x; }, 4},
      {"product with a column", [](const Variable& x) { return x * slice_columns(x, 0, 1); }, 25},
      {"product with a row", [](const Variable& x) { return Tensor::full({24}, 3) * x; }, 4},
      {"rows", [](const Variable& x) { return slice_rows(x, 0, 1500); }, 2},
      {"columns", [](const Variable& x) { return slice_columns(x, 3, 9); }, 2},
      {"joined rows",
       [](const Variable& x) {
         return concat_rows({slice_rows(x, 50, 1500), x});
       },
       4},
      {"joined columns",
       [](const Variable& x) {
         return concat_columns({slice_columns(x, 9, 24), x, slice_columns(x, 0, 9)});
       },
       4},
      {"scaled", [](const Variable& x) { return x * 3 + 1; }, 8},
  };
  dropout.train(false);
  for (const Step& step : steps) {
    CAPTURE(step.name);
    const auto pass = [&](bool mixed) {
      const MixedPrecisionScope precision(mixed);
      const Variable leaf(x0.clone(), true);
      Tape tape;
      const Variable x = operand(leaf, mixed, /*typed_gradient=*/true);
      const Variable y = step.apply(x);
      CHECK(y.type() == (mixed ? NumberType::bfloat16 : NumberType::reals));
      const Tensor value = y.value().clone();
      const Tensor g = rounded_tensor(y.shape(), 8);
      tape.backward(y, mixed ? TypedRows(g, NumberType::bfloat16) : TypedRows(g));
      return std::pair(value, leaf.grad());
    };
    const auto [y, dx] = pass(true);
    const auto [want_y, want_dx] = pass(false);
    const auto magnitude = static_cast<real>(step.magnitude);
    CHECK(within(y, want_y, Tensor::full(y.shape(), magnitude), unit));
    CHECK(within(dx, want_dx, Tensor::full(dx.shape(), magnitude), 2 * unit));
  }
}

TEST_CASE("products of heads read rows of either type") {
  const Tensor x0 = rounded_tensor({4000, 3, 5}, 1), a0 = random_tensor({1, 3, 5}, 2);
  const Tensor g = random_tensor({4000, 3}, 3);
  const auto pass = [&](bool mixed) {
    const Variable leaf(x0.clone(), true);
    Variable a(a0.clone(), true);
    Tape tape;
    const Variable x = operand(leaf, mixed, /*typed_gradient=*/true);
    const Variable y = head_dots(x, a) + head_dots(x, a);
    CHECK(y.type() == NumberType::reals);  // scores
    const Tensor value = y.value().clone();
    tape.backward(y, g.clone());
    return std::tuple(value, leaf.grad(), a.grad());
  };
  const auto [y, dx, da] = pass(true);
  const auto [want_y, want_dx, want_da] = pass(false);
  CHECK(std::ranges::equal(y.values(), want_y.values()));
  CHECK(std::ranges::equal(da.values(), want_da.values()));
  CHECK(within(dx, want_dx, absolute(want_dx), 2.02 * unit));  // rounded twice
}

TEST_CASE("sums of several stages are added to a base in full precision, which has the same numbers") {
  const Communicator comm = Communicator::world();
  constexpr Index nodes = 600, width = 64;
  const WholeGraph whole = random_graph("random", nodes, nodes, 3 * nodes, 3);
  const Books books = test_books(whole, comm.size()).back();
  const Graph graph = shard(comm, whole, books, {.max_halo_bytes = 1 << 12});
  const TypedRows x(my_rows(random_tensor({nodes, width}, 2), books.src, comm.rank()), NumberType::bfloat16);
  const Tensor weight = random_tensor({width, width}, 3), bias = random_tensor({width}, 4);
  const MixedPrecisionScope mixed;
  StartedSum sum = graph.start_update_all(fn::copy_u(Variable(x)), fn::sum);
  const NumberType type = sum.base_type();
  CHECK(type == (comm.size() > 1 ? NumberType::reals : NumberType::bfloat16));
  const Variable base = linear(Variable(x), weight, bias, type);
  CHECK(base.type() == type);
  const Tensor numbers = linear(Variable(x), weight, bias).value();
  CHECK(std::ranges::equal(std::as_const(numbers).values(), base.value().values()));
  const Variable y = sum.finish(base);
  CHECK(y.type() == NumberType::bfloat16);
  CHECK_THROWS_AS((void)sum.base_type(), InputError);
  StartedSum maximum = graph.start_update_all(fn::copy_u(Variable(x)), fn::max);
  CHECK(maximum.base_type() == NumberType::bfloat16);
  CHECK(maximum.finish(Variable(x)).type() == NumberType::bfloat16);
  const MixedPrecisionScope full(false);
  const Tensor want = graph.update_all(fn::copy_u(Variable(x.to_tensor())), fn::sum, numbers.clone()).value();
  CHECK(within(y.value(), want, absolute(want), 1.01 * unit));
}

TEST_CASE("projections of attention are not in memory between the forward and the backward pass") {
  const Communicator comm = Communicator::world();
  constexpr Index nodes = 6000, heads = 4, dim = 16;
  const WholeGraph whole = random_graph("random", nodes, nodes, 5 * nodes, 3);
  const Books books = test_books(whole, comm.size()).front();
  const Graph graph = shard(comm, whole, books, {});
  const MixedPrecisionScope mixed;
  Generator gen(1);
  GATConv gat({heads * dim}, dim, heads, gen);
  GATv2Conv gatv2({heads * dim}, dim, heads, gen);
  DotGatConv dot({heads * dim}, dim, heads, gen);
  const TypedRows x(my_rows(random_tensor({nodes, heads * dim}, 2), books.src, comm.rank()),
                    NumberType::bfloat16);
  const auto bytes = static_cast<double>(2 * x.size());  // of a projection
  const auto projections = [&](const auto& layer) {
    const std::size_t before = live_bytes();
    Tape tape;
    const Variable y = layer(Variable(x, true));
    const double held = bytes > 0 ? static_cast<double>(live_bytes() - before) / bytes : 0;
    tape.backward(y, TypedRows(Tensor::full(y.shape(), 1), y.type()));
    return held;
  };
  // the graph makes some of its index arrays in the first pass
  const auto after_a_pass = [&](const auto& layer) { return projections(layer), projections(layer); };
  // the result, 1; scores and their statistics, [nodes, heads] in `real`, 2 / dim each and at most 5
  const double most_scores = 5.0 * 2 / dim;
  CHECK(after_a_pass([&](const Variable& h) { return gat(graph, h); }) < 1.05 + most_scores);
  CHECK(after_a_pass([&](const Variable& h) { return gatv2(graph, h); }) < 1.05 + most_scores);
  CHECK(after_a_pass([&](const Variable& h) { return dot(graph, h); }) < 1.05 + most_scores);
}

TEST_CASE("layers of attention whose projections are computed again have the same bits") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 300, 300, 2000, 3);
  const Books books = test_books(whole, comm.size()).back();
  const Graph graph = shard(comm, whole, books, {});
  const MixedPrecisionScope mixed;
  Generator gen(1);
  GATConv conv({12}, 8, 3, gen);
  const TypedRows x(my_rows(random_tensor({300, 12}, 2), books.src, comm.rank()), NumberType::bfloat16);
  const Tensor g = my_rows(random_tensor({300, 24}, 4), books.src, comm.rank());
  const auto outcome = [&](const auto& layer) {
    for (const auto& [name, parameter] : conv.named_parameters()) Variable(parameter).zero_grad();
    const Variable leaf(x, true);
    Tape tape;
    const Variable y = layer(leaf);
    std::vector<Tensor> found{y.value().clone()};
    tape.backward(y, TypedRows(g.reshape(y.shape()), y.type()));
    found.push_back(leaf.grad());
    for (const auto& [name, parameter] : conv.named_parameters()) found.push_back(parameter.grad());
    return found;
  };
  const auto parameter = [&](const std::string& wanted) {
    for (const auto& [name, each] : conv.named_parameters())
      if (name == wanted) return each;
    throw Error("no parameter " + wanted);
  };
  const std::vector<Tensor> got = outcome([&](const Variable& h) { return conv(graph, h); });
  const std::vector<Tensor> want = outcome([&](const Variable& h) {
    const Variable z = reshape(linear(h, parameter("fc.weight")), {h.num_rows(), 3, 8});
    AttentionOptions options;
    options.bias = parameter("bias");
    return gat_attention(graph, z, parameter("attn_l"), head_dots(z, parameter("attn_r")), real(0.2),
                         options);
  });
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    REQUIRE(got[i].defined() == want[i].defined());
    if (got[i].defined())
      CHECK(std::ranges::equal(std::as_const(got[i]).values(), std::as_const(want[i]).values()));
  }
}

TEST_CASE("rows of a table in bfloat16 are gathered where they are read") {
  const TypedRows table(random_tensor({50, 21}, 1), NumberType::bfloat16);
  const std::vector<Index> ids{7, 0, 49, 7, 30, 30, 12};
  Tensor copied({7, 21});
  const Tensor all = table.to_tensor();
  for (Index i = 0; i < 7; ++i) std::copy_n(all.row(ids[static_cast<std::size_t>(i)]), 21, copied.row(i));
  const Variable rows = deferred_gather_rows(table, ids);
  CHECK(rows.type() == NumberType::bfloat16);
  std::vector<Bfloat16> some(4 * 21);
  rows.deferred()->compute_rounded(2, 4, some.data());
  for (Index i = 0; i < std::ssize(some); ++i)
    CHECK(bfloat16_to_float(some[static_cast<std::size_t>(i)].bits) == copied.row(2)[i]);
  Generator gen(1);
  const Linear layer(21, 5, gen);
  const MixedPrecisionScope mixed;
  const Tensor y = layer(rows).value();
  CHECK_FALSE(rows.deferred()->computed().defined());  // no copy was made
  CHECK(std::ranges::equal(y.values(),
                           layer(Variable(TypedRows(copied, NumberType::bfloat16))).value().values()));
  CHECK(std::ranges::equal(rows.value().values(), copied.values()));

  // sums read the table by number on one rank
  const Communicator self = Communicator::self();
  WholeGraph ring{"ring", 7, 7, true, {}, {}};
  for (Index v = 0; v < 7; ++v) ring.src.push_back((v + 3) % 7), ring.dst.push_back(v);
  const Books books{PartitionBook::even(7, 1), PartitionBook::even(7, 1)};
  const Graph graph = shard(self, ring, books, {});
  const Variable gathered = deferred_gather_rows(table, ids);
  const Tensor sums = graph.update_all(fn::copy_u(gathered), Reduce::sum).value();
  CHECK_FALSE(gathered.deferred()->computed().defined());
  for (Index v = 0; v < 7; ++v) CHECK(std::equal(sums.row(v), sums.row(v) + 21, copied.row((v + 3) % 7)));
}

TEST_CASE("features in bfloat16 in full precision: everything else is as of the widened features") {
  const TypedRows stored(random_tensor({130, 40}, 1), NumberType::bfloat16);
  Generator gen(1);
  const Linear layer(40, 9, gen);
  const Variable scale(random_tensor({1}, 2), true), row(random_tensor({40}, 3), true);
  std::vector<Index> ids(130);
  for (Index i = 0; i < 130; ++i) ids[static_cast<std::size_t>(i)] = i;
  const auto values = [&](const std::function<Variable(const Variable&)>& operation, const Variable& x) {
    std::vector<real> all;
    std::vector<NamedParameter> parameters = layer.named_parameters();
    for (Variable each : {scale, row}) each.zero_grad();
    for (NamedParameter& each : parameters) each.parameter.zero_grad();
    Tape tape;
    const Variable y = operation(x);
    CHECK(y.type() == NumberType::reals);
    const auto add = [&](const Tensor& some) {
      if (some.defined()) all.insert(all.end(), some.values().begin(), some.values().end());
    };
    add(y.value());
    tape.backward(y, random_tensor(y.shape(), 5));
    for (const Variable& each : {scale, row}) add(each.grad());
    for (const NamedParameter& each : parameters) add(each.parameter.grad());
    return all;
  };
  const std::function<Variable(const Variable&)> operations[] = {
      [&](const Variable& x) { return layer(x); },
      [&](const Variable& x) { return mul(x, scale + 1); },
      [&](const Variable& x) { return mul(add(x, x), row); },
      [&](const Variable& x) { return layer(scale_shift(x, real{1} / 3)); },
      [&](const Variable& x) { return layer(layer_norm(x)); },
      [&](const Variable& x) { return layer(elu(x)); },
      [&](const Variable& x) { return layer(dropout(x, 0.3, RandomKey{.seed = 1}, RowIds(ids))); }};
  for (const auto& operation : operations)
    CHECK(values(operation, Variable(stored)) == values(operation, Variable(stored.to_tensor())));
}

TEST_CASE("cross entropy reads rows in bfloat16 and rounds its gradient once") {
  const Communicator comm = Communicator::world();
  constexpr Index classes = 5;
  const Index rows = comm.rank() == 1 ? 0 : 20'000;  // several blocks; rank 1 has none
  const Tensor x = TypedRows(random_tensor({rows, classes}, 71 + static_cast<unsigned>(comm.rank()), 3),
                             NumberType::bfloat16)
                       .to_tensor();
  std::vector<std::int64_t> labels;
  std::vector<std::uint8_t> mask;
  std::vector<real> of_row;
  const std::vector<double> of_class{1, 2, 3, 4, 5};
  for (Index i = 0; i < rows; ++i) {
    labels.push_back(i % classes);
    mask.push_back(i % 3 != 0);
    of_row.push_back(static_cast<real>(1 + i % 7));
  }
  for (const bool weighted : {false, true}) {
    CrossEntropyOptions options;
    if (weighted)
      options = {
          .class_weights = of_class, .label_smoothing = 0.1, .row_weights = std::span<const real>(of_row)};
    std::vector<Tensor> gradients;
    std::vector<double> losses;
    for (const bool mixed : {false, true}) {
      const Variable leaf(x.clone(), true);
      Tape tape;
      const Variable loss =
          cross_entropy(operand(leaf, mixed, /*typed_gradient=*/true), labels, mask, comm, options);
      tape.backward(loss);
      losses.push_back(static_cast<double>(loss.value().item()));
      gradients.push_back(leaf.grad());
    }
    CHECK(losses[1] == doctest::Approx(losses[0]).epsilon(1e-6));
    bool equal = true;
    for (Index i = 0; i < gradients[0].size(); ++i)
      equal = equal && gradients[1].data()[i] == rounded(gradients[0].data()[i]);
    CHECK(equal);
  }
}

TEST_CASE("NaN and infinities stay what they are") {
  const MixedPrecisionScope mixed;
  Generator gen(1);
  const Linear layer(4, 3, gen);
  Tensor x = Tensor::full({3, 4}, 1);
  x.row(1)[2] = std::numeric_limits<real>::quiet_NaN();
  x.row(2)[2] = std::numeric_limits<real>::infinity();
  const Tensor y = layer(x).value();
  for (Index j = 0; j < 3; ++j) {
    CHECK(std::isfinite(y.row(0)[j]));
    CHECK(std::isnan(y.row(1)[j]));
    CHECK(std::isinf(y.row(2)[j]));
  }
}

TEST_CASE("a training in mixed precision: any number of ranks and threads, less memory, parameters in full") {
  const Communicator comm = Communicator::world();
  const auto train = [](const Communicator& on, int threads, bool is_mixed) {
    const ThreadLimit limit(threads);
    const MixedPrecisionScope mixed(is_mixed);
    return curve(on, make_sbm(on, {.nodes = 400, .degree = 8, .classes = 4, .features = 16}), {}, 20);
  };
  const std::vector<double> full = train(comm, 2, false), mixed = train(comm, 2, true);
  CHECK(mixed == train(comm, 1, true));  // the same bits
  CHECK(mixed.back() < mixed.front() / 2);
  // The first loss is computed from the same parameters. Three layers of at most 4 roundings each change
  // logits of magnitude 2 by at most 12 units of it, and a loss by no more than the logits.
  CHECK(std::abs(mixed.front() - full.front()) < 12 * unit * 2);
  const std::vector<double> alone = train(Communicator::self(), 2, true);
  CHECK(std::abs(mixed.front() - alone.front()) < 12 * unit * 2);
  CHECK(std::abs(mixed.back() - full.back()) < 0.1);

  const auto peak = [&](bool is_mixed) {
    const MixedPrecisionScope scope(is_mixed);
    NodeData data = make_sbm(comm, {.nodes = 3000, .degree = 4, .classes = 4, .features = 8});
    const Graph graph = construct_full_graph(comm, data, {});
    Net net({8, 128, 128, 4}, 0.5, comm, 3);
    Adam adam(net.named_parameters(), {.lr = 0.01});
    for (int epoch = 0; epoch < 2; ++epoch) {
      reset_peak_bytes();
      (void)step(net, adam, graph, data, comm);
    }
    for (const auto& [name, parameter] : net.named_parameters()) CHECK(parameter.type() == NumberType::reals);
    return peak_bytes();
  };
  const auto in_full = peak(false), in_mixed = peak(true);
  if (comm.size() == 1) CHECK(static_cast<double>(in_mixed) < 0.75 * static_cast<double>(in_full));
}

TEST_CASE("MeshGraphNet in mixed precision: any number of threads, rows of edges in half the memory") {
  const Communicator comm = Communicator::world();
  NodeData data = make_sbm(comm, {.nodes = 3000, .degree = 4, .classes = 4, .features = 8});
  const Graph graph = construct_full_graph(comm, data, {.edge_chunk = 256});
  Tensor of_edges({graph.num_edges(), 3});
  for (Index i = 0; i < of_edges.size(); ++i) of_edges.data()[i] = std::sin(static_cast<real>(i));
  struct Outcome {
    Tensor y, gradient;
    double peak;
  };
  const auto pass = [&](int threads, bool is_mixed) {
    const ThreadLimit limit(threads);
    const MixedPrecisionScope scope(is_mixed);
    Generator gen(5);
    MeshGraphNet net({.node_feats = 8, .edge_feats = 3, .out_feats = 2, .hidden = 32, .blocks = 6}, gen);
    reset_peak_bytes();
    Tape tape;
    const Variable y = net(graph, data.features, of_edges);
    tape.backward(mse(y, Tensor::full(y.shape(), 1), comm));
    gather_grads(comm, net);
    return Outcome{y.value(), net.named_parameters().front().parameter.grad(),
                   static_cast<double>(peak_bytes())};
  };
  const Outcome one = pass(1, true), two = pass(2, true), full = pass(2, false);
  CHECK(same_bits(one.y, two.y));
  CHECK(same_bits(one.gradient, two.gradient));
  if (comm.size() == 1) CHECK(two.peak < 0.6 * full.peak);
}

#endif
