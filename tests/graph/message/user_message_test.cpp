// SPDX-License-Identifier: MIT

/// Messages of the caller's own against the same function on all edges of the whole graph at once.
#include "graph/message_formula.hpp"
#include "graph/test_graphs.hpp"
#include "support/effort.hpp"
#include "support/reference.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <doctest/doctest.h>
#include <sar/autograd/gradcheck.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/row_sums.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/comm/reproducible_scope.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/random.hpp>
#include <sar/graph/kernels/edge_walk.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <new>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

Tensor whole_tensor(const Shape& shape, std::uint64_t stream) {
  return to_tensor(random_values(shape.size(), stream), shape);
}

/// The rows of this rank's edges.
Tensor my_edge_rows(const Tensor& whole, const Graph& graph) {
  return gather_rows(Variable(whole), graph.edge_ids()).value();
}

/// Everything a message may depend on.
struct Operands {
  Variable a, b, v, e, weight, bias, outer;
};

/// tanh(W [a_u, b_u, v, e] + bias) * exp(outer): [n, 3, 2]
Variable edge_function(const Variable& a, const Variable& b, const Variable& v, const Variable& e,
                       const Operands& o, const Variable& factor) {
  const Index n = a.num_rows();
  const Variable input = concat_columns({reshape(a, {n, 4}), b, v, reshape(e, {n, 1})});
  return reshape(tanh(linear(input, o.weight, o.bias)) * factor, {n, 3, 2});
}

Operands whole_operands(const WholeGraph& g) {
  const auto variable = [](const Shape& shape, std::uint64_t stream) {
    return Variable(whole_tensor(shape, stream), true);
  };
  return {variable({g.num_src, 2, 2}, 1),
          variable({g.num_src, 3}, 2),
          variable({g.num_dst, 2}, 3),
          variable({static_cast<Index>(g.src.size())}, 4),
          variable({6, 10}, 5),
          variable({6}, 6),
          variable({6}, 7)};
}

/// Those of this rank.
Operands my_operands(const WholeGraph& g, const Books& books, const Graph& graph) {
  const Operands all = whole_operands(g);
  const auto mine = [&](const Variable& x, const PartitionBook& book) {
    return Variable(my_rows(x.value(), book, graph.comm().rank()), true);
  };
  return {mine(all.a, books.src),
          mine(all.b, books.src),
          mine(all.v, books.dst),
          Variable(my_edge_rows(all.e.value(), graph), true),
          all.weight,
          all.bias,
          all.outer};
}

/// Which message of all edges reaches the result: 1 for each element (max, min), or 1 (sum), 1 / in-degree.
Tensor selection(const WholeGraph& g, const Tensor& messages, Reduce reduce) {
  Tensor chosen = Tensor::full(messages.shape(), 1);
  const Index width = messages.row_size();
  std::vector<double> degree(static_cast<std::size_t>(g.num_dst), 0);
  for (const Index v : g.dst) degree[static_cast<std::size_t>(v)] += 1;
  if (!is_extremum(reduce)) {
    for (std::size_t k = 0; k < g.dst.size(); ++k)
      for (Index j = 0; j < width; ++j)
        chosen.row(static_cast<Index>(k))[j] =
            static_cast<real>(factor_of_sum(reduce, degree[static_cast<std::size_t>(g.dst[k])]));
    return chosen;
  }
  chosen.fill(0);
  std::vector<Index> winner(static_cast<std::size_t>(g.num_dst * width), -1);
  for (Index k = 0; k < messages.num_rows(); ++k) {
    for (Index j = 0; j < width; ++j) {
      Index& best = winner[static_cast<std::size_t>(g.dst[static_cast<std::size_t>(k)] * width + j)];
      if (best < 0 || (reduce == Reduce::max ? messages.row(k)[j] > messages.row(best)[j]
                                             : messages.row(k)[j] < messages.row(best)[j])) {
        if (best >= 0) chosen.row(best)[j] = 0;
        chosen.row(k)[j] = 1;
        best = k;
      }
    }
  }
  return chosen;
}

struct Result {
  Tensor out;
  std::vector<Tensor> gradients;
};

std::vector<Tensor> gradients_of(const Operands& o) {
  return {o.a.grad(), o.b.grad(), o.v.grad(), o.e.grad(), o.weight.grad(), o.bias.grad(), o.outer.grad()};
}

/// All edges at once; reduce empty: the messages themselves.
Result expected(const WholeGraph& g, std::optional<Reduce> reduce, const Tensor& grad_out) {
  const Operands o = whole_operands(g);
  Tape tape;
  Variable m = edge_function(gather_rows(o.a, g.src), gather_rows(o.b, g.src), gather_rows(o.v, g.dst), o.e,
                             o, exp(o.outer));
  if (reduce) m = scatter_add_rows(m * Variable(selection(g, m.value(), *reduce)), g.dst, g.num_dst);
  tape.backward(m, grad_out.clone());
  return {m.value(), gradients_of(o)};
}

void check_case(const Communicator& comm, const WholeGraph& g, const Books& books,
                const GraphOptions& options, std::optional<Reduce> reduce) {
  const Graph graph = shard(comm, g, books, options);
  const Tensor grad_out = whole_tensor({reduce ? g.num_dst : static_cast<Index>(g.src.size()), 3, 2}, 8);
  const Result want = expected(g, reduce, grad_out);

  const Operands o = my_operands(g, books, graph);
  const auto of_edges = [&](const Tensor& whole) { return my_edge_rows(whole, graph); };
  const auto of = [&](const Tensor& whole, const PartitionBook& book) {
    return my_rows(whole, book, comm.rank());
  };

  Tape tape;
  const Variable factor = exp(o.outer);
  const MessageFunction function = [=](const EdgeBatch& edges) {
    return edge_function(edges.src(o.a), edges.src(o.b), edges.dst(o.v), edges.edata(o.e), o, factor);
  };
  const Variable out = reduce ? graph.update_all(function, *reduce) : graph.apply_edges(function);
  CHECK(error_of_part(out.value(), reduce ? of(want.out, books.dst) : of_edges(want.out), want.out) <
        tolerance());
  tape.backward(out, reduce ? of(grad_out, books.dst) : of_edges(grad_out));

  const auto whole = [&](std::size_t i) { return want.gradients[i]; };
  CHECK(error_of_part(o.a.grad(), of(whole(0), books.src), whole(0)) < tolerance());
  CHECK(error_of_part(o.b.grad(), of(whole(1), books.src), whole(1)) < tolerance());
  CHECK(error_of_part(o.v.grad(), of(whole(2), books.dst), whole(2)) < tolerance());
  CHECK(error_of_part(o.e.grad(), of_edges(whole(3)), whole(3)) < tolerance());
  CHECK(error_of_part(sum_over_ranks(comm, o.weight.grad()), whole(4), whole(4)) < tolerance());
  CHECK(error_of_part(sum_over_ranks(comm, o.bias.grad()), whole(5), whole(5)) < tolerance());
  CHECK(error_of_part(sum_over_ranks(comm, o.outer.grad()), whole(6), whole(6)) < tolerance());
}

const HaloMode all_modes[] = {HaloMode::rematerialize, HaloMode::sequential, HaloMode::one_shot};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A message of everything, whose captured variables are operands of products, sums and quotients, and a
/// table.
std::vector<Tensor> reproducible_case(const Communicator& comm, const WholeGraph& g, const Books& books,
                                      GraphOptions options, std::optional<Reduce> reduce) {
  options.reproducible = true;
  const Graph graph = shard(comm, g, books, options);
  const Operands o = my_operands(g, books, graph);
  const Variable table(whole_tensor({4, 6}, 8), true), divisor(whole_tensor({3, 2}, 9), true);
  const ReproducibleScope scope(comm);
  Tape tape;
  const MessageFunction function = [=](const EdgeBatch& edges) {
    std::vector<Index> kinds;
    for (const Index id : edges.ids().span()) kinds.push_back(id % 4);
    const Variable y =
        edge_function(edges.src(o.a), edges.src(o.b), edges.dst(o.v), edges.edata(o.e), o, o.outer);
    const Variable scaled = (y - reshape(o.bias, {3, 2})) / divisor + y / real(2);
    return scaled * reshape(gather_shared_rows(table, std::move(kinds)), {edges.num_edges(), 3, 2});
  };
  const Variable y = reduce ? graph.update_all(function, *reduce) : graph.apply_edges(function);
  const Tensor seed = reduce ? my_rows(whole_tensor({g.num_dst, 3, 2}, 10), books.dst, comm.rank())
                             : my_edge_rows(whole_tensor({std::ssize(g.src), 3, 2}, 10), graph);
  tape.backward(y, seed);
  const auto of_edges = [&](const Tensor& rows) {  // in the order of ids
    Tensor sorted = Tensor::zeros(rows.shape().with_rows(std::ssize(g.src)));
    for (Index e = 0; e < rows.num_rows(); ++e)
      std::copy_n(rows.row(e), rows.row_size(), sorted.row(graph.edge_ids()[static_cast<std::size_t>(e)]));
    return sum_over_ranks(comm, sorted);
  };
  std::vector<Tensor> results{reduce ? y.value() : of_edges(y.value()), o.v.grad(), o.a.grad(), o.b.grad(),
                              of_edges(o.e.grad())};
  for (const Variable& x : {o.weight, o.bias, o.outer, table, divisor})
    results.push_back(sum_over_ranks(comm, x.grad()));
  return results;
}

}  // namespace

TEST_CASE("a message function agrees with the same function on all edges at once") {
  const Communicator comm = Communicator::world();
  for (const WholeGraph& g : test_graphs()) {
    for (const Books& books : test_books(g, comm.size())) {
      for (const HaloMode mode : all_modes) {
        CAPTURE(g.name);
        CAPTURE(static_cast<int>(mode));
        check_case(comm, g, books, {.mode = mode}, Reduce::sum);
        check_case(comm, g, books, {.mode = mode, .edge_chunk = 1}, Reduce::mean);
        check_case(comm, g, books, {.mode = mode, .max_halo_bytes = 1, .edge_chunk = 7}, Reduce::max);
        check_case(comm, g, books,
                   {.mode = mode, .pipeline_depth = 3, .max_halo_bytes = 200, .edge_chunk = 7}, Reduce::min);
        check_case(comm, g, books, {.mode = mode, .max_halo_bytes = 100, .edge_chunk = 7}, Reduce::sum);
        check_case(comm, g, books, {.mode = mode, .max_halo_bytes = 1, .edge_chunk = 7}, std::nullopt);
        check_case(comm, g, books, {.mode = mode}, std::nullopt);
        check_case(comm, g, books, {.mode = mode, .edge_chunk = 7, .reproducible = true}, Reduce::mean);
      }
    }
  }
}

TEST_CASE("returning edges.src(h) is copy_u") {
  const Communicator comm = Communicator::world();
  for (const WholeGraph& g : test_graphs()) {
    const Books books = test_books(g, comm.size()).back();
    for (const auto& [reduce, name] : reduce_names) {
      const Graph graph = shard(comm, g, books, {.max_halo_bytes = 300, .edge_chunk = 5});
      const Tensor h = my_rows(whole_tensor({g.num_src, 6}, 1), books.src, comm.rank());
      const Tensor grad = my_rows(whole_tensor({g.num_dst, 6}, 2), books.dst, comm.rank());
      const Variable one(h, true), two(h, true);
      Tape tape;
      const Variable x = graph.update_all(fn::copy_u(one), reduce);
      tape.backward(x, grad.clone());
      Tape other;
      const Variable y = graph.update_all([=](const EdgeBatch& edges) { return edges.src(two); }, reduce);
      other.backward(y, grad.clone());
      CHECK(relative_error(y.value(), x.value()) < tolerance());
      CHECK(relative_error(two.grad(), one.grad()) < tolerance());
    }
  }
}

TEST_CASE("the smallest edge id takes the gradient of equal messages and of NaN, whatever the blocks") {
  const Communicator comm = Communicator::world();
  const WholeGraph g = random_graph("ties", 40, 40, 300, 8);
  const auto edges_of_graph = static_cast<Index>(g.src.size());
  for (const Reduce reduce : {Reduce::max, Reduce::min})
    for (const real special : {real{1}, std::numeric_limits<real>::quiet_NaN()}) {  // of half of the edges
      Tensor messages = whole_tensor({edges_of_graph, 1}, 3);
      for (real& x : messages.values()) x = x > 0 ? (reduce == Reduce::max ? 1 : -1) : real{0};
      const Tensor chosen = selection(g, messages, reduce), grad = whole_tensor({g.num_dst, 1}, 2);
      for (real& x : messages.values())
        if (x != 0) x *= special;
      for (const Books& books : test_books(g, comm.size())) {
        const Graph graph = shard(comm, g, books, {.max_halo_bytes = 8, .edge_chunk = 3});
        const Variable e(my_edge_rows(messages, graph), true);
        const Variable h(Tensor::zeros({graph.num_src_nodes(), 1}));
        Tape tape;
        tape.backward(
            graph.update_all([=](const EdgeBatch& edges) { return edges.edata(e) + edges.src(h); }, reduce),
            my_rows(grad, books.dst, comm.rank()));
        Tensor want(chosen.shape());
        for (Index k = 0; k < edges_of_graph; ++k)
          want.data()[k] = chosen.data()[k] * grad.data()[g.dst[static_cast<std::size_t>(k)]];
        CHECK(error_of_part(e.grad(), my_edge_rows(want, graph), want) < tolerance());
      }
    }
}

TEST_CASE("a message that is not a number reaches the largest and the smallest, wherever its edge lies") {
  const Communicator comm = Communicator::world();
  const WholeGraph g = random_graph("hubs", 40, 40, 300, 8);
  const Index bad = g.src[7];
  Tensor whole = whole_tensor({g.num_src, 3}, 1);
  whole.row(bad)[1] = std::numeric_limits<real>::quiet_NaN();
  std::vector<bool> reached(static_cast<std::size_t>(g.num_dst), false);
  for (std::size_t k = 0; k < g.src.size(); ++k)
    if (g.src[k] == bad) reached[static_cast<std::size_t>(g.dst[k])] = true;
  for (const Books& books : test_books(g, comm.size())) {
    const Graph graph = shard(comm, g, books, {.max_halo_bytes = 300, .edge_chunk = 5});
    const Variable h = my_rows(whole, books.src, comm.rank());
    for (const Reduce reduce : {Reduce::max, Reduce::min})
      for (const Tensor& y :
           {graph.update_all(fn::copy_u(h), reduce).value(),
            graph.update_all(fn::u_add_v(h, h), reduce).value(),
            graph.update_all([=](const EdgeBatch& edges) { return edges.src(h); }, reduce).value()})
        for (Index i = 0; i < y.num_rows(); ++i) {
          CHECK(!std::isnan(y.row(i)[0]));
          const auto v = static_cast<std::size_t>(books.dst.begin(comm.rank()) + i);
          if (reached[v]) CHECK(std::isnan(y.row(i)[1]));
        }
  }
}

TEST_CASE("captured parameters receive gradients without being declared") {
  const Communicator comm = Communicator::world();
  const WholeGraph g = random_graph("random", 30, 30, 120, 1);
  for (const Books& books : test_books(g, comm.size())) {
    for (const HaloMode mode : all_modes) {
      // The only wish for a gradient is that of the parameter: the sources are constants.
      const Graph graph = shard(comm, g, books, {.mode = mode, .max_halo_bytes = 40, .edge_chunk = 7});
      const Tensor h = my_rows(whole_tensor({g.num_src, 4}, 1), books.src, comm.rank());
      const auto layer = [&](const std::vector<Variable>& in) {
        return graph.update_all(
            [h = Variable(h), w = in[0], b = in[1]](const EdgeBatch& edges) {
              return tanh(linear(edges.src(h) * edges.dst(h), w, b));
            },
            Reduce::mean);
      };
      GradcheckOptions options;
      options.directions = 3;
      options.sum_over_ranks = [&](double x) { return comm.all_reduce(x); };
      const Variable w(whole_tensor({3, 4}, 2), true), b(whole_tensor({3}, 3), true);
      CHECK(thrown<Error>([&] { gradcheck(layer, {w, b}, options); }) == "nothing");
      // An intermediate result of the outer tape, on all wishes at once.
      const auto nested = [&](const std::vector<Variable>& in) {
        const Variable x = tanh(in[2]);
        const Variable w2 = tanh(in[0]);
        return graph.update_all(
            [=](const EdgeBatch& edges) { return tanh(linear(edges.src(x) - edges.dst(x), w2, in[1])); },
            Reduce::sum);
      };
      CHECK(thrown<Error>([&] { gradcheck(nested, {w, b, Variable(h, true)}, options); }) == "nothing");
    }
  }
}

TEST_CASE("finite differences of messages on edges alone and on nothing but parameters") {
  const Communicator comm = Communicator::world();
  const WholeGraph g = random_graph("bipartite", 20, 11, 60, 3, false);
  for (const Books& books : test_books(g, comm.size())) {
    const Graph graph = shard(comm, g, books, {.edge_chunk = 7});
    GradcheckOptions options;
    options.directions = 3;
    options.sum_over_ranks = [&](double x) { return comm.all_reduce(x); };
    const Variable e(my_edge_rows(whole_tensor({static_cast<Index>(g.src.size()), 3}, 1), graph), true);
    const Variable w(whole_tensor({2, 3}, 2), true);
    const auto on_edges = [&](const std::vector<Variable>& in) {
      return graph.update_all([=](const EdgeBatch& edges) { return tanh(linear(edges.edata(in[0]), in[1])); },
                              Reduce::sum);
    };
    CHECK(thrown<Error>([&] { gradcheck(on_edges, {e, w}, options); }) == "nothing");
    const auto on_ids = [&](const std::vector<Variable>& in) {
      return graph.apply_edges([=](const EdgeBatch& edges) {
        Tensor numbers({edges.num_edges(), 3});
        const RowIds ids = edges.ids(), rows = edges.rows();
        CHECK((ids.size() == edges.num_edges() && rows.size() == edges.num_edges()));
        for (std::size_t k = 0; k < ids.span().size(); ++k) {
          CHECK(graph.edge_ids()[static_cast<std::size_t>(rows.span()[k])] == ids.span()[k]);
          for (Index j = 0; j < 3; ++j)
            numbers.row(static_cast<Index>(k))[j] = static_cast<real>(ids.span()[k] % (3 + j));
        }
        return linear(numbers, in[0]);
      });
    };
    CHECK(thrown<Error>([&] { gradcheck(on_ids, {w}, options); }) == "nothing");
  }
}

TEST_CASE("in a ReproducibleScope, parameters of messages on another graph get the gradients of each rank") {
  const Communicator comm = Communicator::world();
  const WholeGraph g = random_graph("random", 24, 24, 100, 5);
  for (const Books& books : test_books(g, comm.size())) {
    const Graph graph = shard(comm, g, books, {.edge_chunk = 7});
    const Variable h(my_rows(whole_tensor({g.num_src, 2}, 1), books.src, comm.rank()), true);
    const auto gradient = [&](bool reproducible) {
      const ReproducibleScope scope(comm, reproducible);
      const Variable w(whole_tensor({3, 2}, 2), true);
      Tape tape;
      const Variable y = graph.update_all(
          [&](const EdgeBatch& edges) { return linear(edges.src(h), w) + sum(w); }, Reduce::sum);
      tape.backward(y, Tensor::full(y.shape(), 1));
      Tensor total = w.grad().clone();
      comm.all_reduce(std::span<real>(total.data(), static_cast<std::size_t>(total.size())));
      return total;
    };
    CHECK(same_bits(gradient(true), gradient(false)));
  }
}

TEST_CASE("on a reproducible graph, a message function has the same bits for any ranks, stages and chunks") {
  const Communicator comm = Communicator::world();
  for (const WholeGraph& g : test_graphs())
    for (const std::optional<Reduce> reduce : {std::optional(Reduce::sum), std::optional(Reduce::mean),
                                               std::optional(Reduce::max), std::optional<Reduce>()}) {
      const std::vector<Tensor> want =
          reproducible_case(Communicator::self(), g, test_books(g, 1).front(), {}, reduce);
      for (const Books& books : test_books(g, comm.size()))
        for (const GraphOptions& options :
             {GraphOptions{.edge_chunk = 7}, GraphOptions{.max_halo_bytes = 1, .edge_chunk = 1},
              GraphOptions{.mode = HaloMode::one_shot, .max_halo_bytes = 200, .edge_chunk = 30},
              GraphOptions{.mode = HaloMode::sequential}}) {
          CAPTURE(g.name);
          CAPTURE(options.edge_chunk);
          const std::vector<Tensor> found = reproducible_case(comm, g, books, options, reduce);
          for (std::size_t i = 0; i < want.size(); ++i) {
            CAPTURE(i);
            const bool of_dst = i == 1 || (i == 0 && reduce), of_src = i == 2 || i == 3;
            CHECK(same_bits(found[i], of_dst   ? my_rows(want[i], books.dst, comm.rank())
                                      : of_src ? my_rows(want[i], books.src, comm.rank())
                                               : want[i]));
          }
        }
    }
}

TEST_CASE("on a reproducible graph, a function that computes with captured variables alone is refused") {
  const Communicator comm = Communicator::world();
  const WholeGraph g = random_graph("random", 24, 24, 100, 5);
  for (const Books& books : test_books(g, comm.size())) {
    const Graph graph = shard(comm, g, books, {.edge_chunk = 7, .reproducible = true});
    const Variable h(my_rows(whole_tensor({g.num_src, 2}, 1), books.src, comm.rank()), true);
    const Variable w(whole_tensor({3, 2}, 2), true);
    const MessageFunction function = [=](const EdgeBatch& edges) { return linear(edges.src(h), exp(w)); };
    const auto sums = [&] { (void)graph.update_all(function, Reduce::sum); };
    CHECK(thrown<Error>(sums) == "nothing");  // nothing is differentiated
    const ReproducibleScope scope(comm);
    Tape tape;
    CHECK(contains(thrown<InputError>(sums),
                   "computes a tensor of shape [3, 2] from captured variables alone"));
    const Variable before = exp(w);
    const Variable y =
        graph.update_all([=](const EdgeBatch& edges) { return linear(edges.src(h), before); }, Reduce::sum);
    tape.backward(y, Tensor::full(y.shape(), 1));
    CHECK(w.grad().defined());
    CHECK(h.grad().defined());
  }
}

TEST_CASE("a variable that is source, destination and captured at once collects all its gradients") {
  const Communicator comm = Communicator::world();
  const WholeGraph g = random_graph("random", 24, 24, 100, 5);
  for (const Books& books : test_books(g, comm.size())) {
    const Graph graph = shard(comm, g, books, {.max_halo_bytes = 16, .edge_chunk = 7});
    const Variable h(my_rows(whole_tensor({g.num_src, 2}, 1), books.src, comm.rank()), true);
    const auto layer = [&](const std::vector<Variable>& in) {
      return graph.update_all(
          [x = in[0]](const EdgeBatch& edges) {
            return edges.src(x) * edges.dst(x) + edges.src(x) * sum(x, ReduceDim::rows) * real(0.1);
          },
          Reduce::sum);
    };
    GradcheckOptions options;
    options.directions = 3;
    options.sum_over_ranks = [&](double x) { return comm.all_reduce(x); };
    CHECK(thrown<Error>([&] { gradcheck(layer, {h}, options); }) == "nothing");
  }
}

TEST_CASE("messages, built-in and of the caller's own, of features of width 0") {
  const Communicator comm = Communicator::world();
  for (const WholeGraph& g : test_graphs()) {
    for (const Books& books : test_books(g, comm.size())) {
      for (const HaloMode mode : all_modes) {
        const Graph graph = shard(comm, g, books, {.mode = mode, .max_halo_bytes = 1, .edge_chunk = 7});
        const Variable h(Tensor::zeros({graph.num_src_nodes(), 0}), true);
        const Variable v(Tensor::zeros({graph.num_dst_nodes(), 0}), true);
        const Variable e(Tensor::full({graph.num_edges(), 1}, 1), true);
        const auto check = [&](const Variable& out, Index rows, Index width) {
          CHECK(out.shape() == Shape{rows, width});
          for (const real x : out.value().values()) CHECK(x == 0);
          Tape::current()->backward(out, Tensor::full(out.shape(), 1));
          CHECK(h.grad().shape() == h.shape());
        };
        for (const auto& [reduce, name] : reduce_names) {
          const Index rows = graph.num_dst_nodes();
          Tape tape;
          check(graph.update_all(fn::u_mul_e(h, e), reduce), rows, 0);
          check(graph.update_all(fn::u_add_v(h, v), reduce), rows, 0);
          check(graph.update_all(fn::u_dot_v(h, v), reduce), rows, 1);
          check(graph.update_all(
                    [=](const EdgeBatch& edges) { return edges.src(h) * edges.dst(v) * edges.edata(e); },
                    reduce),
                rows, 0);
        }
        Tape tape;
        check(graph.apply_edges([=](const EdgeBatch& edges) { return edges.src(h) * edges.dst(v); }),
              graph.num_edges(), 0);
      }
    }
  }
}

TEST_CASE("what is captured goes back on ranks without edges, too") {
  const Communicator comm = Communicator::world();
  const WholeGraph g = random_graph("random", 24, 24, 100, 5);
  for (const Books& books : test_books(g, comm.size())) {
    const Graph graph = shard(comm, g, books, {});
    const Variable h(my_rows(whole_tensor({g.num_src, 2}, 1), books.src, comm.rank()), true);
    const auto layer = [&](const std::vector<Variable>& in) {
      const Variable y = graph.update_all(fn::copy_u(in[0]), Reduce::mean);  // its way back is collective
      return graph.update_all(
          [=](const EdgeBatch& edges) { return edges.src(in[0]) * tanh(sum(y, ReduceDim::rows)); },
          Reduce::mean);
    };
    GradcheckOptions options;
    options.directions = 3;
    options.sum_over_ranks = [&](double x) { return comm.all_reduce(x); };
    CHECK(thrown<Error>([&] { gradcheck(layer, {h}, options); }) == "nothing");
  }
}

TEST_CASE("constants without rows are told apart on ranks that own no sources") {
  const Communicator comm = Communicator::world();
  const WholeGraph g = random_graph("bipartite", 20, 11, 60, 3, false);
  const Tensor a = whole_tensor({g.num_src, 2}, 1), b = whole_tensor({g.num_src, 2}, 2);
  const Tensor want =
      scatter_add_rows(gather_rows(Variable(a), g.src) - gather_rows(Variable(b), g.src), g.dst, g.num_dst)
          .value();
  for (const Books& books : test_books(g, comm.size())) {
    const Graph graph = shard(comm, g, books, {});
    const auto mine = [&](const Tensor& whole) {
      return Variable(graph.num_src_nodes() > 0 ? my_rows(whole, books.src, comm.rank())
                                                : Tensor::borrow(static_cast<real*>(nullptr), Shape{0, 2}));
    };
    const Variable mine_a = mine(a), mine_b = mine(b);
    const Variable out = graph.update_all(
        [=](const EdgeBatch& edges) { return edges.src(mine_a) - edges.src(mine_b); }, Reduce::sum);
    CHECK(error_of_part(out.value(), my_rows(want, books.dst, comm.rank()), want) < tolerance());
  }
}

TEST_CASE("dropout keyed by the ids of the edges is the same on any number of ranks") {
  const Communicator comm = Communicator::world();
  const WholeGraph g = random_graph("random", 60, 60, 400, 1);
  const RandomKey key{.seed = 3, .stream = 4, .step = 5};
  std::vector<Index> ids(g.src.size());
  std::iota(ids.begin(), ids.end(), Index{0});
  const Variable whole(whole_tensor({g.num_src, 5}, 1), true);
  const Tensor grad = whole_tensor({g.num_dst, 5}, 2);
  Tape outer;
  const Variable want = scatter_add_rows(dropout(gather_rows(whole, g.src), 0.5, key, ids), g.dst, g.num_dst);
  outer.backward(want, grad.clone());
  for (const Books& books : test_books(g, comm.size())) {
    const Graph graph = shard(comm, g, books, {.max_halo_bytes = 100, .edge_chunk = 7});
    const Variable h(my_rows(whole.value(), books.src, comm.rank()), true);
    Tape tape;
    const Variable out = graph.update_all(
        [=](const EdgeBatch& edges) { return dropout(edges.src(h), 0.5, key, edges.ids()); }, Reduce::sum);
    tape.backward(out, my_rows(grad, books.dst, comm.rank()));
    CHECK(error_of_part(out.value(), my_rows(want.value(), books.dst, comm.rank()), want.value()) <
          tolerance());
    CHECK(error_of_part(h.grad(), my_rows(whole.grad(), books.src, comm.rank()), whole.grad()) < tolerance());
  }
}

TEST_CASE("the same bits for every number of threads, and where one thread calls the function") {
  const Communicator comm = Communicator::world();
  for (const bool hub : {false, true}) {
    WholeGraph g = random_graph("large", 3000, 3000, 40000, 5);
    for (std::size_t k = 0; hub && k < g.src.size(); k += 3) (k % 2 == 0 ? g.dst : g.src)[k] = 7;
    const Books books = test_books(g, comm.size()).front();
    const Tensor rows = my_rows(whole_tensor({g.num_src, 16}, 1), books.src, comm.rank());
    const Tensor weight = whole_tensor({16, 32}, 2);
    for (const Reduce reduce : {Reduce::mean, Reduce::max}) {
      std::vector<Tensor> results;
      for (const int threads : {1, 2, 4, -4}) {
        const ThreadLimit limit(std::abs(threads));
        const Graph graph = shard(comm, g, books, {.edge_chunk = 1000, .serial_messages = threads < 0});
        const Variable h(rows, true), w(weight, true);
        Tape tape;
        const Variable out = graph.update_all(
            [=](const EdgeBatch& edges) {
              return relu(linear(concat_columns({edges.src(h), edges.dst(h)}), w));
            },
            reduce);
        tape.backward(out, Tensor::full(out.shape(), 1));
        for (const Tensor& result : {out.value(), h.grad(), w.grad()}) results.push_back(result);
      }
      for (std::size_t i = 3; i < results.size(); ++i) CHECK(same_bits(results[i], results[i % 3]));
    }
  }
}

TEST_CASE("gradients on several threads, with many blocks that share a row") {
  const Communicator comm = Communicator::world();
  const ThreadLimit limit(4);
  WholeGraph g = random_graph("hubs", 30, 30, 120, 8);
  for (std::size_t k = 0; k < 30; ++k) g.dst[k] = g.src[k + 30] = 3;
  for (const Books& books : test_books(g, comm.size())) {
    for (const Reduce reduce : {Reduce::sum, Reduce::mean, Reduce::max})
      check_case(comm, g, books, {.max_halo_bytes = 60, .edge_chunk = 4}, reduce);
    const Graph graph = shard(comm, g, books, {.max_halo_bytes = 60, .edge_chunk = 4});
    const Variable h(my_rows(whole_tensor({g.num_src, 3}, 1), books.src, comm.rank()), true);
    const Variable w(whole_tensor({4, 3}, 2), true), b(whole_tensor({4}, 3), true);
    GradcheckOptions options;
    options.directions = 3;
    options.sum_over_ranks = [&](double x) { return comm.all_reduce(x); };
    for (const Reduce reduce : {Reduce::sum, Reduce::mean}) {
      const auto layer = [&](const std::vector<Variable>& in) {
        const Variable w2 = tanh(in[1]);
        return graph.update_all(
            [=](const EdgeBatch& edges) {
              const Variable own(Tensor::full({edges.num_edges(), 3}, real(0.5)), true);  // of the block
              return tanh(linear(edges.src(in[0]) * edges.dst(in[0]) + own, w2, in[2]));
            },
            reduce);
      };
      CHECK(thrown<Error>([&] { gradcheck(layer, {h, w, b}, options); }) == "nothing");
    }
  }
}

TEST_CASE("of what several blocks throw at once, all ranks throw that of the first block") {
  const Communicator comm = Communicator::world();
  const WholeGraph g = random_graph("random", 60, 60, 900, 1);
  const Books books = test_books(g, comm.size()).front();
  for (const bool backward : {false, true}) {
    std::vector<std::string> texts;
    for (const int threads : {1, 2, 4}) {
      const ThreadLimit limit(threads);
      const Graph graph = shard(comm, g, books, {.edge_chunk = 2});
      const Variable h(my_rows(whole_tensor({g.num_src, 2}, 1), books.src, comm.rank()), true);
      bool fails = !backward;
      texts.push_back(thrown_by_all<InputError>(comm, [&] {
        Tape tape;
        const Variable out = graph.update_all(
            [&](const EdgeBatch& edges) {
              const Index first = edges.num_edges() > 0 ? edges.rows().span()[0] : 0;
              if (fails && comm.rank() == 0 && first >= 20) throw InputError("edge " + std::to_string(first));
              return edges.src(h) * real(2);
            },
            Reduce::sum);
        fails = true;
        tape.backward(out, Tensor::full(out.shape(), 1));
      }));
    }
    if (!backward && comm.size() == 1) CHECK(texts[0] == "edge 20");
    CHECK(contains(texts[0], "edge "));
    for (const std::string& text : texts) CHECK(text == texts[0]);
  }
}

TEST_CASE("with serial_messages a function may change what it captures") {
  const Communicator comm = Communicator::world();
  const ThreadLimit limit(4);
  const WholeGraph g = random_graph("large", 500, 500, 6000, 5);
  const Books books = test_books(g, comm.size()).front();
  const Graph graph = shard(comm, g, books, {.edge_chunk = 50, .serial_messages = true});
  const Variable h(my_rows(whole_tensor({g.num_src, 4}, 1), books.src, comm.rank()), true);
  Index edges_seen = 0;  // forward and backward
  Tape tape;
  const Variable out = graph.update_all(
      [&](const EdgeBatch& edges) {
        edges_seen += edges.num_edges();
        return edges.src(h) * edges.dst(h);
      },
      Reduce::sum);
  tape.backward(out, Tensor::full(out.shape(), 1));
  CHECK(edges_seen == 2 * graph.num_edges());
}

TEST_CASE("memory does not depend on the number of edges") {
  const Communicator comm = Communicator::world();
  std::vector<double> bytes;
  for (const Index edges : {20000, sanitized ? 80000 : 160000}) {
    const WholeGraph g = random_graph("large", 2000, 2000, edges, 5);
    const Books books = test_books(g, comm.size()).front();
    for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::one_shot}) {
      if (mode == HaloMode::one_shot && comm.size() > 1) continue;  // holds all halo rows
      const Graph graph = shard(comm, g, books, {.mode = mode, .max_halo_bytes = 8000, .edge_chunk = 16});
      const Variable h(my_rows(whole_tensor({g.num_src, 16}, 1), books.src, comm.rank()), true);
      Variable w(whole_tensor({16, 32}, 2), true);
      for (int repetition = 0; repetition < 2; ++repetition) {  // the first makes the transposes
        Variable leaf = h;
        leaf.zero_grad();
        w.zero_grad();
        const std::size_t before = live_bytes();
        reset_peak_bytes();
        Tape tape;
        const Variable out = graph.update_all(
            [=](const EdgeBatch& block) {
              return relu(linear(concat_columns({block.src(h), block.dst(h)}), w));
            },
            Reduce::mean);
        tape.backward(out, Tensor::full(out.shape(), 1));
        if (repetition == 1) bytes.push_back(static_cast<double>(peak_bytes() - before));
      }
    }
  }
  for (std::size_t i = 0; i < bytes.size() / 2; ++i) CHECK(bytes[bytes.size() / 2 + i] < 1.05 * bytes[i]);
}

TEST_CASE("rows travel once forward, gradients once back, rows again where they are not kept") {
  const Communicator comm = Communicator::world();
  const WholeGraph g = random_graph("random", 60, 60, 400, 1);
  const Books books = test_books(g, comm.size()).front();
  std::uint64_t rows = 0;
  for (int reader = 0; reader < comm.size(); ++reader)
    for (int owner = 0; owner < comm.size(); ++owner)
      if (reader != owner) rows += sources_read(g, books, reader, owner);
  for (const HaloMode mode : all_modes) {
    const Graph graph = shard(comm, g, books, {.mode = mode});
    // {forward, backward} bytes of all ranks; agreements do not depend on the width
    const auto volume = [&](Index width, bool wants_gradient, bool reads_sources) {
      const Variable h(Tensor::full({graph.num_src_nodes(), width}, 1), wants_gradient);
      const Variable w(Tensor::full({width}, 1), true);
      std::vector<std::uint64_t> bytes;
      Tape tape;
      const std::uint64_t start = comm_bytes(graph);
      const Variable out = graph.update_all(
          [=](const EdgeBatch& edges) { return (reads_sources ? edges.src(h) : edges.dst(h)) * w; },
          Reduce::sum);
      const std::uint64_t middle = comm_bytes(graph);
      tape.backward(out, Tensor::full(out.shape(), 1));
      const std::uint64_t end = comm_bytes(graph);
      return std::pair(comm.all_reduce(middle - start), comm.all_reduce(end - middle));
    };
    const std::uint64_t once = 3 * sizeof(real) * rows;
    for (const bool wants_gradient : {true, false}) {
      for (const bool reads_sources : {true, false}) {
        const auto narrow = volume(2, wants_gradient, reads_sources);
        const auto wide = volume(5, wants_gradient, reads_sources);
        CHECK(wide.first - narrow.first == (reads_sources ? once : 0));
        const std::uint64_t times = (wants_gradient ? 1 : 0) + (mode == HaloMode::rematerialize ? 1 : 0);
        CHECK(wide.second - narrow.second == (reads_sources ? times * once : 0));
      }
    }
  }
}

TEST_CASE("what a function does wrong on one rank is told on all, and the graph can be used afterwards") {
  const Communicator comm = Communicator::world();
  const WholeGraph g = random_graph("random", 60, 60, 400, 1);
  for (const Books& books : test_books(g, comm.size())) {
    std::vector<GraphOptions> ways;
    for (const HaloMode mode : all_modes)
      ways.push_back({.mode = mode, .max_halo_bytes = 60, .edge_chunk = 2, .serial_messages = true});
    ways.push_back(ways.back());
    ways.back().reproducible = true;
    for (const GraphOptions& options : ways) {
      CAPTURE(options.reproducible);
      const Graph graph = shard(comm, g, books, options);
      std::optional<ReproducibleScope> scope;
      if (options.reproducible) scope.emplace(comm);
      const bool here = comm.rank() == comm.size() - 1;  // owns edges in all partitions
      const Variable h(my_rows(whole_tensor({g.num_src, 2}, 1), books.src, comm.rank()), true);
      const Variable other(my_rows(whole_tensor({g.num_src, 2}, 1), books.src, comm.rank()), true);
      const Variable two(Tensor::full({2}, 2), true);

      const auto update = [&](const MessageFunction& function) {
        return thrown_by_all<Error>(comm, [&] { (void)graph.update_all(function, Reduce::sum); });
      };
      // `wrong` in the third call with edges on one rank; forward, or on the way back.
      enum class When { forward, backward };
      const auto there_and_back = [&](When when, const MessageFunction& wrong) {
        int calls = 0;
        bool forward = true;
        Tape tape;
        const Variable out = graph.update_all(
            [&](const EdgeBatch& edges) {
              const bool now = forward == (when == When::forward) && here && edges.num_edges() > 0;
              if (now && ++calls == 3) return wrong(edges);
              return edges.src(h) * two;
            },
            Reduce::sum);
        forward = false;
        tape.backward(out, Tensor::full(out.shape(), 1));
      };
      const auto in_a_block = [&](When when, const MessageFunction& wrong) {
        return thrown_by_all<Error>(comm, [&] { there_and_back(when, wrong); });
      };
      for (const When when : {When::forward, When::backward}) {
        CAPTURE(static_cast<int>(when));
        CHECK(in_a_block(when, [](const EdgeBatch&) -> Variable { throw InputError("no message"); }) ==
              "no message");
        CHECK(in_a_block(when, [](const EdgeBatch&) -> Variable { throw std::runtime_error("foreign"); }) ==
              "foreign");
        CHECK(in_a_block(when, [](const EdgeBatch&) -> Variable { throw 42; }) ==
              "an exception of unknown type");
        CHECK(thrown_by_all<MemoryError>(comm, [&] {
                there_and_back(when, [](const EdgeBatch&) -> Variable { throw std::bad_alloc(); });
              }) == "no memory left");
        CHECK(contains(in_a_block(when,
                                  [&](const EdgeBatch& edges) {
                                    return slice_rows(edges.src(h), 0, edges.num_edges() - 1);
                                  }),
                       "a message function returns a tensor of shape"));
        CHECK(contains(in_a_block(when,
                                  [&](const EdgeBatch& edges) {
                                    return concat_columns({edges.src(h), edges.src(h)});
                                  }),
                       "a message function returns a tensor of shape"));
        CHECK(contains(in_a_block(when, [&](const EdgeBatch& edges) { return edges.src(other); }),
                       "did not ask for when it was called without edges"));
        CHECK(contains(in_a_block(when, [&](const EdgeBatch& edges) { return edges.dst("h"); }),
                       "the field \"h\", which it did not ask for"));
      }
      // before anything travels
      CHECK(update([&](const EdgeBatch& edges) -> Variable {
              if (here) throw InputError("no probe");
              return edges.src(h);
            }) == "no probe");
      CHECK(update([&](const EdgeBatch& edges) -> Variable {
              if (here) throw 42;
              return edges.src(h);
            }) == "an exception of unknown type");
      const Variable short_rows(Tensor::full({graph.num_src_nodes() + (here ? 1 : 0), 2}, 1));
      CHECK(contains(update([&](const EdgeBatch& edges) { return edges.src(short_rows); }), "source nodes"));
      CHECK(contains(update([&](const EdgeBatch& edges) { return edges.dst(short_rows); }),
                     "destination nodes"));
      CHECK(
          contains(update([&](const EdgeBatch& edges) { return edges.edata(Variable()); }), "edges on rank"));
      CHECK(
          contains(update([&](const EdgeBatch&) { return Variable(Tensor::full({3}, 1)); }), "for 0 edges"));
      CHECK(contains(update([&](const EdgeBatch&) { return Variable(); }), "for 0 edges"));
      CHECK(contains(update(MessageFunction()), "empty message function"));
      CHECK(contains(update([&](const EdgeBatch& edges) { return edges.src("h"); }),
                     "ndata has no field \"h\""));
      if (comm.size() > 1) {
        const Variable sometimes(h.value(), here);
        CHECK(contains(thrown_by_all<InputError>(
                           comm,
                           [&] {
                             const Tape tape;
                             (void)graph.update_all(
                                 [&](const EdgeBatch& edges) { return edges.src(sometimes); }, Reduce::sum);
                           }),
                       "wish for"));
        CHECK(contains(update([&](const EdgeBatch& edges) {
                         return here ? edges.src(h) : edges.src(h) + edges.src(other);
                       }),
                       "calls of edges.src()"));
        CHECK(contains(update([&](const EdgeBatch& edges) {
                         return here ? edges.src(h) : concat_columns({edges.src(h), edges.dst(h)});
                       }),
                       "shape of the message"));
      }
      if (comm.size() > 1 && options.reproducible)
        CHECK(contains(thrown_by_all<InputError>(comm,
                                                 [&] {
                                                   Tape tape;
                                                   const Variable out = graph.update_all(
                                                       [&](const EdgeBatch& edges) {
                                                         return here ? edges.src(h) * two
                                                                     : edges.src(h) * real(2);
                                                       },
                                                       Reduce::sum);
                                                   tape.backward(out, Tensor::full(out.shape(), 1));
                                                 }),
                       "does not compute the same on all ranks"));
      CHECK_FALSE(h.grad().defined());  // nothing of the calls that failed
      CHECK_FALSE(two.grad().defined());
      scope.reset();
      check_case(comm, g, books, graph.options(), Reduce::sum);
      Tape tape;
      const Variable out =
          graph.update_all([&](const EdgeBatch& edges) { return edges.src(h); }, Reduce::sum);
      CHECK(relative_error(out.value(), graph.update_all(fn::copy_u(h), Reduce::sum).value()) < tolerance());
    }
  }
}

TEST_CASE("positions of a block by row") {
  for (const local_index rows : {1, 7, 3000, 5'000'000}) {
    for (const std::size_t n : {0, 1, 500}) {
      const Random random({.seed = 9});
      Array<local_index> ids(n);
      for (std::size_t k = 0; k < n; ++k)
        ids[k] = static_cast<local_index>(random.uniform(k) * static_cast<double>(rows));
      BlockGroups groups;
      groups.build(ids);
      std::vector<std::pair<local_index, local_index>> want, found;
      for (std::size_t k = 0; k < n; ++k) want.emplace_back(ids[k], static_cast<local_index>(k));
      std::sort(want.begin(), want.end());
      for (std::size_t i = 0; i < groups.rows.size(); ++i) {
        if (i > 0) CHECK(groups.rows[i - 1] < groups.rows[i]);
        for (local_index k = groups.begin[i]; k < groups.begin[i + 1]; ++k)
          found.emplace_back(groups.rows[i], static_cast<local_index>(groups.position(k)));
      }
      CHECK(found == want);
    }
  }
}
