// SPDX-License-Identifier: MIT
#include "graph/test_graphs.hpp"
#include "support/reference.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <doctest/doctest.h>

#include <sar/autograd/gradcheck.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/message/typed_sum.hpp>

#include <array>
#include <string>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

constexpr Index num_types = 5;
constexpr HaloMode modes[] = {HaloMode::rematerialize, HaloMode::sequential, HaloMode::one_shot};

/// Of an edge of the whole graph; there is none of type 3.
Index type_of(Index edge, Index types) {
  const Index type = edge * edge % (types + 2) % types;
  return type == 3 ? 4 : type;
}

/// The whole problem in double precision.
struct Problem {
  const WholeGraph& whole;
  Index in, out, blocks, types;
  std::vector<double> x, w, c, upstream;

  Problem(const WholeGraph& graph, Index width_in, Index width_out, Index num_blocks,
          Index types_of_edges = num_types)
      : whole(graph),
        in(width_in),
        out(width_out),
        blocks(num_blocks),
        types(types_of_edges),
        x(random_values(graph.num_src * in, 1)),
        w(random_values(types * in * out / blocks, 2)),
        c(random_values(std::ssize(graph.src), 3)),
        upstream(random_values(graph.num_dst * out, 4)) {}

  [[nodiscard]] Shape weight_shape() const {
    return blocks == 1 ? Shape{types, in, out} : Shape{types, blocks, in / blocks, out / blocks};
  }
};

struct Results {
  std::vector<double> y, x, w, c;
};

Results by_definition(const Problem& p) {
  Results r{std::vector<double>(p.whole.num_dst * p.out), std::vector<double>(p.x.size()),
            std::vector<double>(p.w.size()), std::vector<double>(p.c.size())};
  const Index in = p.in / p.blocks, out = p.out / p.blocks;
  for (Index e = 0; e < std::ssize(p.whole.src); ++e)
    for (Index b = 0; b < p.blocks; ++b)
      for (Index i = 0; i < in; ++i)
        for (Index j = 0; j < out; ++j) {
          const Index at_x = p.whole.src[e] * p.in + b * in + i, at_y = p.whole.dst[e] * p.out + b * out + j;
          const Index at_w = ((type_of(e, p.types) * p.blocks + b) * in + i) * out + j;
          r.y[at_y] += p.c[e] * p.x[at_x] * p.w[at_w];
          r.x[at_x] += p.c[e] * p.w[at_w] * p.upstream[at_y];
          r.w[at_w] += p.c[e] * p.x[at_x] * p.upstream[at_y];
          r.c[e] += p.x[at_x] * p.w[at_w] * p.upstream[at_y];
        }
  return r;
}

/// A rank's part of a problem.
struct Part {
  Graph graph;
  EdgeTypes types;
  Variable x, w, c;
  Tensor upstream;
  Books books;

  Part(const Communicator& comm, const Problem& p, const Books& b, const GraphOptions& options)
      : graph(shard(comm, p.whole, b, options)),
        types([&] {
          std::vector<Index> mine;
          for (const Index id : graph.edge_ids()) mine.push_back(type_of(id, p.types));
          return EdgeTypes(std::move(mine));
        }()),
        x(local_rows(p.x, b.src, comm.rank(), p.in), true),
        w(to_tensor(p.w, p.weight_shape()), true),
        c(to_tensor(edge_values(p.c, graph), Shape{graph.num_edges(), 1}), true),
        upstream(local_rows(p.upstream, b.dst, comm.rank(), p.out)),
        books(b) {}

  /// Sum of the gradients of the matrices of all ranks.
  [[nodiscard]] Tensor weight_gradient() const {
    Tensor sum = w.grad().clone();
    graph.comm().all_reduce(sum.values());
    return sum;
  }
};

double error(const Tensor& mine, const std::vector<double>& want, const Tensor& part) {
  return error_of_part(mine, part, to_tensor(want, Shape{std::ssize(want)}));
}

/// Largest error of the result and of all gradients.
double error_of_pass(const Part& part, const Problem& p, const Results& want) {
  const int rank = part.graph.comm().rank();
  Tape tape;
  const Variable y = typed_sum(part.graph, part.x, part.w, part.types, part.c);
  tape.backward(y, part.upstream);
  return std::max({error(y.value(), want.y, local_rows(want.y, part.books.dst, rank, p.out)),
                   error(part.x.grad(), want.x, local_rows(want.x, part.books.src, rank, p.in)),
                   error(part.weight_gradient(), want.w, to_tensor(want.w, p.weight_shape())),
                   error(part.c.grad(), want.c, to_tensor(edge_values(want.c, part.graph), part.c.shape()))});
}

/// A graph whose first two nodes have rows in several parts: one as destination, one as source.
WholeGraph hubs() {
  WholeGraph g{"hubs", 300, 300, true, {}, {}};
  for (Index k = 0; k < 5000; ++k) {
    g.src.push_back(k * 31 % 300);
    g.dst.push_back(0);
    g.src.push_back(1);
    g.dst.push_back(k * 17 % 300);
  }
  return g;
}

}  // namespace

TEST_CASE("typed_sum agrees with the definition in every mode and on any partition") {
  const Communicator comm = Communicator::world();
  for (const WholeGraph& whole : test_graphs())
    for (const Index blocks : {1, 2}) {
      const Problem p(whole, 6, 4, blocks);
      const Results want = by_definition(p);
      for (const Books& books : test_books(whole, comm.size()))
        for (const HaloMode mode : modes)
          for (const Index max_halo_bytes : {0, 1}) {
            CAPTURE(whole.name);
            CAPTURE(blocks);
            CAPTURE(static_cast<int>(mode));
            CAPTURE(max_halo_bytes);
            const Part part(comm, p, books, {.mode = mode, .max_halo_bytes = max_halo_bytes});
            CHECK(error_of_pass(part, p, want) < tolerance());
          }
    }
}

TEST_CASE("typed_sum: rows of hubs come in parts, and bits do not depend on threads") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = hubs();
  const Problem p(whole, 17, 40, 1);
  const Results want = by_definition(p);
  const Books books = test_books(whole, comm.size()).front();
  std::vector<Tensor> results;
  for (const int threads : {1, 2, 3}) {
    const ThreadLimit limit(threads);
    const Part part(comm, p, books, {});
    CHECK(error_of_pass(part, p, want) < tolerance());
    const std::vector<Tensor> now{part.x.grad(), part.w.grad(), part.c.grad()};
    for (std::size_t i = 0; i < results.size(); ++i) CHECK(same_bits(results[i], now[i]));
    results = now;
  }
}

TEST_CASE("typed_sum: more types than edges of a rank, rows wider than a block of products") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 300, 8);
  for (const auto& [in, out, blocks, types] :
       {std::array<Index, 4>{3, 2, 1, 700}, {200, 130, 1, 6}, {1, 70, 1, 6}, {64, 96, 16, 6}}) {
    const Problem p(whole, in, out, blocks, types);
    const Part part(comm, p, test_books(whole, comm.size()).back(), {});
    CHECK(error_of_pass(part, p, by_definition(p)) < tolerance());
  }
}

TEST_CASE("typed_sum: memory grows with the matrices, not with edges and types") {
  const Communicator comm = Communicator::world();
  constexpr Index nodes = 2000, width = 64, edges = 160'000;
  const auto bytes_of_pass = [&](Index types) {
    WholeGraph whole{"many edges", nodes, nodes, true, {}, {}};
    for (Index k = 0; k < edges; ++k) {
      whole.src.push_back(k * 7 % nodes);
      whole.dst.push_back(k / 80 * 13 % nodes);
    }
    const Problem p(whole, width, width, 1, types);
    const Part part(comm, p, test_books(whole, comm.size()).front(), {});
    std::size_t bytes = 0;
    for (int pass = 0; pass < 2; ++pass) {  // the first one makes the transposes
      part.graph.comm().barrier();
      const std::size_t before = live_bytes();
      reset_peak_bytes();
      Tape tape;
      const Variable y = typed_sum(part.graph, part.x, part.w, part.types);
      tape.backward(y, part.upstream);
      bytes = peak_bytes() - before;
    }
    return static_cast<double>(bytes);
  };
  const double few = bytes_of_pass(2), many = bytes_of_pass(80);
  const double messages = static_cast<double>(edges) * width * sizeof(real);
  const double matrices = 80.0 * width * width * sizeof(real);
  CHECK(few < messages / 10);
  CHECK(many < few + 6 * matrices);
}

TEST_CASE("typed_sum without edge weights, with a base, and with constants") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  Problem p(whole, 5, 7, 1);
  p.c.assign(p.c.size(), 1);
  const Results want = by_definition(p);
  const Books books = test_books(whole, comm.size()).back();
  for (const bool wants_x : {true, false})
    for (const bool wants_w : {true, false}) {
      const Part part(comm, p, books, {});
      const Variable x(part.x.value(), wants_x), w(part.w.value(), wants_w);
      const Variable base(Tensor::full({part.graph.num_dst_nodes(), p.out}, 2), true);
      Tape tape;
      const Variable y = typed_sum(part.graph, x, w, part.types, {}, base);
      tape.backward(y, part.upstream);
      std::vector<double> sum = want.y;
      for (double& value : sum) value += 2;
      CHECK(error(y.value(), sum, local_rows(sum, books.dst, comm.rank(), p.out)) < tolerance());
      CHECK(base.value().values().empty() == (base.num_rows() == 0));
      for (const real value : base.value().values()) CHECK(value == 2);
      CHECK(same_bits(base.grad(), part.upstream));
      CHECK(x.grad().defined() == wants_x);
      CHECK(w.grad().defined() == wants_w);
      if (wants_x)
        CHECK(error(x.grad(), want.x, local_rows(want.x, books.src, comm.rank(), p.in)) < tolerance());
      Tensor gradient = wants_w ? w.grad().clone() : Tensor::zeros(w.shape());
      comm.all_reduce(gradient.values());
      if (wants_w) CHECK(error(gradient, want.w, to_tensor(want.w, w.shape())) < tolerance());
    }
}

TEST_CASE("typed_sum: finite differences") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 40, 40, 200, 6);
  for (const Index blocks : {1, 2}) {
    const Problem alone(whole, 4, 2, blocks);
    const Part part(Communicator::self(), alone, test_books(whole, 1).front(), {});
    CHECK_NOTHROW(gradcheck(
        [&](const std::vector<Variable>& in) {
          return typed_sum(part.graph, in[0], in[1], part.types, in[2]);
        },
        {part.x, part.w, part.c}));
  }
  const Problem p(whole, 4, 3, 1);
  const Part part(comm, p, test_books(whole, comm.size()).front(), {});
  const auto f = [&](const std::vector<Variable>& in) {
    return typed_sum(part.graph, in[0], part.w, part.types, in[1], in[2]);
  };
  const Variable base(part.upstream.clone(), true);
  CHECK_NOTHROW(gradcheck(f, {part.x, part.c, base},
                          {.directions = 4, .sum_over_ranks = [&](double x) { return comm.all_reduce(x); }}));
}

TEST_CASE("typed_sum: rounded rows travel, forward and back") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  const Problem p(whole, 16, 8, 1);
  const Results want = by_definition(p);
  for (const HaloFormat format : {HaloFormat::bf16, HaloFormat::int8}) {
    if (sizeof(real) == 8 && format == HaloFormat::int8) continue;
    const Part part(comm, p, test_books(whole, comm.size()).front(), {.halo_format = format});
    const double rounding = error_of_pass(part, p, want);
    CHECK(rounding < 0.02);
    if (comm.size() > 1) CHECK(comm.all_reduce(rounding, ReduceOp::max) > tolerance());
  }
}

TEST_CASE("typed_sum refuses what does not fit, on all ranks") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("shapes", 50, 50, 100, 5);
  const Problem p(whole, 6, 4, 1);
  const Part part(comm, p, test_books(whole, comm.size()).front(), {});
  const bool bad = comm.rank() == comm.size() - 1;
  const Index edges = part.graph.num_edges();
  const auto run = [&](const Variable& x, const Variable& w, const EdgeTypes& types, const Variable& c) {
    return typed_sum(part.graph, x, w, types, c);
  };
  const Tensor narrow(Shape{part.x.num_rows(), 5});
  CHECK_THROWS_AS((void)run(bad ? Variable(narrow) : part.x, part.w, part.types, {}), ShapeError);
  CHECK_THROWS_AS((void)run(part.x, bad ? Tensor({num_types, 24}) : part.w.value(), part.types, {}),
                  ShapeError);
  CHECK_THROWS_AS((void)run(part.x, part.w, part.types, Tensor({edges + (bad ? 1 : 0), 1})), ShapeError);
  const auto types = [&](Index count, Index last) {
    std::vector<Index> list(count, 0);
    if (bad && !list.empty()) list.back() = last;
    return EdgeTypes(std::move(list));
  };
  CHECK_THROWS_AS((void)run(part.x, part.w, types(edges + (bad ? 1 : 0), 0), {}), ShapeError);
  for (const Index type : {Index{5}, Index{-1}, Index{1} << 16})
    CHECK(thrown_by_all<InputError>(comm, [&] { (void)run(part.x, part.w, types(edges, type), {}); }) ==
          "typed_sum got the edge type " + std::to_string(type) + ", there are 5");
  if (comm.size() > 1)
    CHECK_THROWS_AS((void)run(part.x, bad ? Variable(Tensor({6, 6, 4})) : part.w, part.types, {}),
                    InputError);
  CHECK(run(part.x, part.w, part.types, {}).num_rows() == part.graph.num_dst_nodes());
}
