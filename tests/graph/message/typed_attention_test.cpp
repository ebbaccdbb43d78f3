// SPDX-License-Identifier: MIT

/// Attention with matrices for types of edges against its formula over the whole graph, in dense operations;
/// against difference quotients; and against what it may communicate and hold.
#include "graph/message/attention_options.hpp"
#include "graph/test_graphs.hpp"
#include "support/effort.hpp"
#include "support/random_tensor.hpp"
#include "support/reference.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <doctest/doctest.h>
#include <sar/autograd/gradcheck.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/message/attention.hpp>
#include <sar/graph/message/typed_sum.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

using namespace sar;
using namespace sar::test;

namespace {

struct Problem {
  const WholeGraph& whole;
  Index heads, dim, num_types;
  double score_factor = 1;
  std::vector<Index> types = {};
  Variable key_value = {}, query = {}, att = {}, msg = {};
  Tensor upstream = {}, out = {};

  /// The first of several types has most edges, the last has none.
  void make(bool wanted = true) {
    const Random random({.seed = 4, .stream = 9});
    for (std::size_t e = 0; e < whole.src.size(); ++e) {
      const double x = random.uniform(e);
      types.push_back(static_cast<Index>(x * x * static_cast<double>(std::max<Index>(num_types - 1, 1))));
    }
    key_value = Variable(random_tensor({whole.num_src, 2, heads, dim}, 1), wanted);
    query = Variable(random_tensor({whole.num_dst, heads, dim}, 2, -score_factor, score_factor), wanted);
    att = Variable(random_tensor({num_types, heads, dim, dim}, 3), wanted);
    msg = Variable(random_tensor({num_types, heads, dim, dim}, 4), wanted);
    upstream = random_tensor({whole.num_dst, heads, dim}, 5);
  }

  /// The formula, a row for each edge and head.
  void run() {
    const auto edges = static_cast<Index>(whole.src.size());
    std::vector<Index> heads_of_src, values_of_src, heads_of_dst, matrices;
    for (Index e = 0; e < edges; ++e)
      for (Index h = 0; h < heads; ++h) {
        heads_of_src.push_back(whole.src[e] * 2 * heads + h);
        values_of_src.push_back((whole.src[e] * 2 + 1) * heads + h);
        heads_of_dst.push_back(whole.dst[e] * heads + h);
        matrices.push_back(types[e] * heads + h);
      }
    const auto flat = [&](const Variable& x) { return reshape(x, {x.value().size() / dim, dim}); };
    const auto square = [&](const Variable& w) { return reshape(w, {num_types * heads, dim, dim}); };
    Tape tape;
    const Variable keys = gather_mm(gather_rows(flat(key_value), heads_of_src), square(att), matrices);
    const Variable scores = sum(keys * gather_rows(flat(query), heads_of_dst), ReduceDim::columns);
    Tensor most = Tensor::full({whole.num_dst * heads, 1}, real(-1e30)), of_edges(scores.shape());
    for (Index x = 0; x < edges * heads; ++x)
      *most.row(heads_of_dst[x]) = std::max(*most.row(heads_of_dst[x]), scores.value().data()[x]);
    for (Index x = 0; x < edges * heads; ++x) of_edges.data()[x] = *most.row(heads_of_dst[x]);
    const Variable exps = exp(scores - Variable(of_edges));
    const Variable sums = scatter_add_rows(exps, heads_of_dst, whole.num_dst * heads);
    const Variable alpha = exps / gather_rows(sums, heads_of_dst);
    const Variable values = gather_mm(gather_rows(flat(key_value), values_of_src), square(msg), matrices);
    const Variable y = scatter_add_rows(values * alpha, heads_of_dst, whole.num_dst * heads);
    out = y.value().reshape({whole.num_dst, heads, dim});
    if (edges > 0) tape.backward(y, upstream.reshape(y.shape()));
  }
};

/// This rank's part of the operands, as leaves.
struct Operands {
  Variable key_value, query, att, msg;
  Tensor upstream;
  EdgeTypes types;

  Operands(const Problem& p, const Graph& graph, const Books& books) {
    const int rank = graph.comm().rank();
    const bool wanted = p.query.requires_grad();
    key_value = Variable(my_rows(p.key_value.value(), books.src, rank), wanted);
    query = Variable(my_rows(p.query.value(), books.dst, rank), wanted);
    att = Variable(p.att.value().clone(), wanted);
    msg = Variable(p.msg.value().clone(), wanted);
    upstream = my_rows(p.upstream, books.dst, rank);
    std::vector<Index> mine;
    for (const Index id : graph.edge_ids()) mine.push_back(p.types[id]);
    types = std::move(mine);
  }
  [[nodiscard]] Variable attend(const Graph& graph) const {
    return typed_attention(graph, key_value, query, att, msg, types);
  }
};

/// Whether `part` is `want`, some of `whole`, to rounding; 0 where there is no gradient.
bool same(const Tensor& part, const Tensor& want, const Tensor& whole) {
  double scale = 1e-2;  // gradients that cancel to nothing have no relative error
  for (const real value : whole.values()) scale = std::max(scale, std::abs(static_cast<double>(value)));
  if (!(part.shape() == want.shape())) return false;
  for (Index i = 0; i < part.size(); ++i)
    if (!(std::abs(static_cast<double>(part.data()[i]) - want.data()[i]) < tolerance() * scale)) return false;
  return true;
}
bool same_rows(const Tensor& part, const Variable& whole, const PartitionBook& book, int rank) {
  const Tensor gradient = whole.grad().defined() ? whole.grad() : Tensor::zeros(whole.shape());
  return same(part, my_rows(gradient, book, rank), gradient);
}

void check_case(const Communicator& comm, const WholeGraph& whole, const Books& books,
                const std::vector<GraphOptions>& all, Problem p) {
  CAPTURE(whole.name);
  CAPTURE(p.heads);
  CAPTURE(p.dim);
  CAPTURE(p.num_types);
  p.make();
  p.run();
  for (const GraphOptions& options : all) {
    CAPTURE(static_cast<int>(options.mode));
    CAPTURE(options.max_halo_bytes);
    const Graph graph = shard(comm, whole, books, options);
    const Operands mine(p, graph, books);
    Tape tape;
    const Variable out = mine.attend(graph);
    CHECK(same(out.value(), my_rows(p.out, books.dst, comm.rank()), p.out));
    tape.backward(out, mine.upstream);
    CHECK(same_rows(mine.key_value.grad(), p.key_value, books.src, comm.rank()));
    CHECK(same_rows(mine.query.grad(), p.query, books.dst, comm.rank()));
    for (const auto& [found, expected] :
         {std::pair(mine.att.grad(), p.att.grad()), std::pair(mine.msg.grad(), p.msg.grad())}) {
      const Tensor sums = sum_over_ranks(comm, found);
      const Tensor want = expected.defined() ? expected : Tensor::zeros(sums.shape());
      CHECK(same(sums, want, want));
    }
  }
}

}  // namespace

TEST_CASE("the formula, for every mode, cut and partition") {
  const Communicator comm = Communicator::world();
  for (const WholeGraph& whole : test_graphs())
    for (const Books& books : test_books(whole, comm.size())) {
      check_case(comm, whole, books, all_options(), {whole, 2, 4, 3});
      check_case(comm, whole, books, all_options(), {whole, 3, 5, 1});
    }
}

TEST_CASE("any number of heads, features and types") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("shapes", 50, 50, 400, 6);
  const Books books = test_books(whole, comm.size()).front();
  for (const Index heads : {1, 4, 9})
    for (const Index dim : {1, 7, 16, 33})
      for (const Index num_types : {2, 300})
        check_case(comm, whole, books, {{}}, {whole, heads, dim, num_types});
}

TEST_CASE("graphs so large that blocks, batches and hubs are cut") {
  const Communicator comm = Communicator::world();
  WholeGraph whole = random_graph("large", 2000, 1800, 14000, 9, false);
  for (Index k = 0; k < 5000; ++k) {  // hubs at both ends
    whole.src.push_back(7);
    whole.dst.push_back(k % 1700);
    whole.src.push_back(k % 1900);
    whole.dst.push_back(11);
  }
  for (const Books& books : test_books(whole, comm.size()))
    check_case(comm, whole, books, {{}, {.max_halo_bytes = 30000}}, {whole, 2, 6, 4});
}

TEST_CASE("large scores of either sign") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("steep", 60, 60, 500, 2);
  const Books books = test_books(whole, comm.size()).front();
  // Scores have an error of their size times the precision.
  const double factor = sizeof(real) == 8 ? 1e4 : 10;
  Problem p{whole, 2, 4, 3, factor};
  check_case(comm, whole, books, {{}, {.max_halo_bytes = 1}}, p);
}

TEST_CASE("gradients are difference quotients") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("quotients", 30, 30, 150, 12);
  const Books books = test_books(whole, comm.size()).front();
  const Graph graph = shard(comm, whole, books, {.max_halo_bytes = 100});
  Problem p{whole, 2, 3, 3};
  p.make();
  const Operands mine(p, graph, books);
  CHECK_NOTHROW(gradcheck([&](const std::vector<Variable>&) { return mine.attend(graph); },
                          {mine.key_value, mine.query, mine.att, mine.msg},
                          {.step = sizeof(real) == 8 ? 1e-6 : 2e-3,
                           .tolerance = sizeof(real) == 8 ? 1e-6 : 5e-3,
                           .directions = 6,
                           .sum_over_ranks = [&](double x) { return comm.all_reduce(x); }}));
}

TEST_CASE("results have the same bits with one thread and with several, and in every run") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("threads", 3000, 3000, 60000, 9);
  const Books books = test_books(whole, comm.size()).front();
  Problem p{whole, 4, 8, 5};
  p.make();
  std::vector<std::vector<real>> results;
  for (const int threads : {1, 2, 4, 2}) {
    const ThreadLimit limit(threads);
    const Graph graph = shard(comm, whole, books, {.max_halo_bytes = 20000});
    const Operands mine(p, graph, books);
    Tape tape;
    const Variable out = mine.attend(graph);
    std::vector<real> bits(out.value().values().begin(), out.value().values().end());
    tape.backward(out, mine.upstream);
    for (const Variable& v : {mine.key_value, mine.query, mine.att, mine.msg})
      bits.insert(bits.end(), v.grad().values().begin(), v.grad().values().end());
    results.push_back(std::move(bits));
  }
  for (const auto& other : results) CHECK(other == results.front());
}

TEST_CASE("rows that are rounded on the wire: near the exact result, with the same gradient in every mode") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("rounded", 60, 60, 400, 1);
  const Books books = test_books(whole, comm.size()).front();
  Problem p{whole, 2, 4, 3};
  p.make();
  p.run();
  std::vector<Tensor> gradients;
  for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::sequential}) {
    const Graph graph =
        shard(comm, whole, books, {.mode = mode, .max_halo_bytes = 300, .halo_format = HaloFormat::bf16});
    const Operands mine(p, graph, books);
    Tape tape;
    const Variable out = mine.attend(graph);
    CHECK(error_of_part(out.value(), my_rows(p.out, books.dst, comm.rank()), p.out) < 0.02);
    tape.backward(out, mine.upstream);
    const Tensor expected = p.key_value.grad();
    CHECK(error_of_part(mine.key_value.grad(), my_rows(expected, books.src, comm.rank()), expected) < 0.05);
    gradients.push_back(mine.att.grad());
  }
  // rows that are fetched again are the rows of the forward pass
  CHECK(same_bits(gradients[0], gradients[1]));
}

TEST_CASE("rows travel once for all types, and only as often as they must") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("bytes", 200, 200, 3000, 5);
  const Books books = test_books(whole, comm.size()).front();
  const auto [sends, reads] = halo_traffic(whole, books, comm);
  Problem p{whole, 2, 4, 6};
  p.make();
  for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::sequential, HaloMode::one_shot}) {
    const Graph graph = shard(comm, whole, books, {.mode = mode});
    const Operands mine(p, graph, books);
    const std::uint64_t row = 2 * 2 * 4 * sizeof(real);
    Tape tape;
    const std::uint64_t start = comm_bytes(graph);
    const Variable out = mine.attend(graph);
    const std::uint64_t forward = comm_bytes(graph);
    CHECK(forward - start == sends * row);
    tape.backward(out, mine.upstream);
    CHECK(comm_bytes(graph) - forward == (reads + (mode == HaloMode::rematerialize ? sends : 0)) * row);
  }
}

TEST_CASE("memory grows neither with the edges nor with the types, beside their matrices" *
          doctest::skip(sanitized && !full_run())) {
  const Communicator comm = Communicator::world();
  const Index nodes = std::max<Index>(4000, Index{2000} * comm.size());
  const ThreadLimit one(1);  // each thread has buffers, and a busy machine may not run two at a time
  const auto peak_of = [&](Index degree, Index num_types) {
    const WholeGraph whole = random_graph("memory", nodes, nodes, nodes * degree, 5);
    const Books books = test_books(whole, comm.size()).front();
    const Graph graph = shard(comm, whole, books, {.max_halo_bytes = 1 << 18});
    Problem p{whole, 8, 8, num_types};
    p.make();
    const Operands mine(p, graph, books);
    std::size_t peak = 0;
    for (int i = 0; i < 2; ++i) {  // the first pass builds the transposes
      for (Variable v : {mine.key_value, mine.query, mine.att, mine.msg}) v.zero_grad();
      reset_peak_bytes();
      const std::size_t before = live_bytes();
      Tape tape;
      tape.backward(mine.attend(graph), mine.upstream);
      peak = peak_bytes() - before;
    }
    return static_cast<double>(peak);
  };
  const double least = peak_of(14, 2), of_many_edges = peak_of(56, 2), of_many_types = peak_of(14, 40);
  CAPTURE(least);
  CAPTURE(of_many_edges);
  CAPTURE(of_many_types);
  CHECK(of_many_edges < 1.1 * least);
  // sums of the gradients of att and msg for 32 ranges, in double precision, and then these gradients
  const double matrices = 38 * 8 * 8 * 8, copies = 2 * (32 * sizeof(double) + sizeof(double) + sizeof(real));
  CHECK(of_many_types < 1.1 * least + matrices * copies);
}

TEST_CASE(
    "without a tape nothing is kept, and each operand alone has the gradient that it has among others") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = test_graphs().front();
  const Books books = test_books(whole, comm.size()).front();
  const Graph graph = shard(comm, whole, books, {.mode = HaloMode::sequential});
  Problem p{whole, 2, 4, 3};
  p.make();
  {
    const Operands mine(p, graph, books);
    const std::size_t before = live_bytes();
    const Variable out = mine.attend(graph);
    CHECK(live_bytes() == before + out.value().bytes());
    CHECK(!out.requires_grad());
  }
  const auto gradients = [&](std::size_t wanted) {
    Operands some(p, graph, books);
    const std::vector<Variable*> all{&some.key_value, &some.query, &some.att, &some.msg};
    for (std::size_t i = 0; i < all.size(); ++i)
      if (wanted < all.size() && i != wanted) *all[i] = all[i]->detach();
    Tape tape;
    tape.backward(some.attend(graph), some.upstream);
    std::vector<Tensor> result;
    for (const Variable* v : all) result.push_back(v->grad());
    return result;
  };
  const auto together = gradients(99);
  for (std::size_t i = 0; i < together.size(); ++i) CHECK(same_bits(gradients(i)[i], together[i]));
}

TEST_CASE("wrong operands of one rank are the same error on all, and the graph works afterwards") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = test_graphs().front();
  const Books books = test_books(whole, comm.size()).front();
  const Graph graph = shard(comm, whole, books, {});
  const bool bad = comm.rank() == comm.size() - 1;
  Problem p{whole, 2, 3, 4};
  p.make();
  const Operands mine(p, graph, books);
  const auto text_of = [&](const Variable& key_value, const Variable& query, const Variable& att,
                           const EdgeTypes& types) {
    return thrown_by_all<Error>(
        comm, [&] { (void)typed_attention(graph, key_value, query, att, mine.msg, types); });
  };
  const auto ones = [](const Shape& shape) { return Variable(Tensor::full(shape, 1)); };
  const Index n = graph.num_src_nodes();
  CHECK(text_of(bad ? ones({n, 2, 3, 3}) : mine.key_value, mine.query, mine.att, mine.types)
            .find("key_value has shape") == 0);
  CHECK(text_of(mine.key_value, bad ? ones({n, 6}) : mine.query, mine.att, mine.types)
            .find("query has shape") == 0);
  CHECK(text_of(mine.key_value, mine.query, bad ? ones({4, 2, 3, 2}) : mine.att, mine.types)
            .find("att and msg have shapes [4, 2, 3, 2] and [4, 2, 3, 3]") == 0);
  CHECK(text_of(mine.key_value, mine.query, mine.att, bad ? EdgeTypes({0, 1}) : mine.types)
            .find("typed_attention got 2 edge types for") == 0);
  CHECK(text_of(
            mine.key_value, mine.query, mine.att,
            bad ? EdgeTypes(std::vector<Index>(static_cast<std::size_t>(graph.num_edges()), 4)) : mine.types)
            .find("typed_attention got the edge type 4, there are 4") == 0);
  if (comm.size() > 1)
    CHECK(text_of(bad ? mine.key_value.detach() : mine.key_value, mine.query, mine.att, mine.types)
              .find("typed_attention is called with a different") == 0);
  CHECK_NOTHROW((void)mine.attend(graph));
}

namespace {

/// GAT with a term for each type of edge, without gradients of x unless `wanted`.
struct TypedGat {
  Variable x, attn, score_dst, score_type;
  EdgeTypes types;

  TypedGat(const WholeGraph& whole, const Graph& graph, const Books& books, Index heads, Index dim,
           Index num_types) {
    const int rank = graph.comm().rank();
    x = Variable(my_rows(random_tensor({whole.num_src, heads, dim}, 1), books.src, rank), true);
    attn = Variable(random_tensor({1, heads, dim}, 2), true);
    score_dst = Variable(my_rows(random_tensor({whole.num_dst, heads}, 3), books.dst, rank), true);
    score_type = Variable(random_tensor({num_types, heads}, 4, -2, 2), true);
    std::vector<Index> mine;
    for (const Index id : graph.edge_ids()) mine.push_back(id * id % std::max<Index>(num_types - 1, 1));
    types = std::move(mine);
  }
  [[nodiscard]] Variable attend(const Graph& graph, const AttentionOptions& options = {}) const {
    return typed_gat_attention(graph, x, attn, score_dst, score_type, types, real(0.2), options);
  }
};

}  // namespace

TEST_CASE("GAT with a term for each type: difference quotients, and no term as without types") {
  const Communicator comm = Communicator::world();
  for (const WholeGraph& whole : test_graphs())
    for (const Books& books : test_books(whole, comm.size())) {
      const Graph graph = shard(comm, whole, books, {.max_halo_bytes = 100});
      const TypedGat mine(whole, graph, books, 2, 3, 4);
      AttentionOptions options{.dropout = 0.4, .dropout_key = {.seed = 3, .stream = 8, .step = 2}};
      CHECK_NOTHROW(gradcheck([&](const std::vector<Variable>&) { return mine.attend(graph, options); },
                              {mine.x, mine.attn, mine.score_dst, mine.score_type},
                              {.step = sizeof(real) == 8 ? 1e-6 : 2e-3,
                               .tolerance = sizeof(real) == 8 ? 1e-6 : 5e-3,
                               .directions = 4,
                               .sum_over_ranks = [&](double each) { return comm.all_reduce(each); }}));
      // a term that is equal for all types is one of the destinations
      TypedGat equal = mine;
      equal.score_type = Variable(Tensor::full({4, 2}, real(0.5)));
      const Variable plain = gat_attention(graph, mine.x, mine.attn, mine.score_dst + real(0.5));
      CHECK(same(equal.attend(graph).value(), plain.value(), plain.value()));
    }
}

TEST_CASE("GAT with a term for each type: the same bits with one thread and with several") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("threads", 3000, 3000, 60000, 9);
  const Books books = test_books(whole, comm.size()).front();
  std::vector<std::vector<real>> results;
  for (const int threads : {1, 4, 2}) {
    const ThreadLimit limit(threads);
    const Graph graph = shard(comm, whole, books, {.max_halo_bytes = 20000});
    const TypedGat mine(whole, graph, books, 4, 8, 5);
    Tape tape;
    const Variable out = mine.attend(graph);
    std::vector<real> bits(out.value().values().begin(), out.value().values().end());
    tape.backward(out, random_tensor(out.shape(), 9));
    for (const Variable& v : {mine.x, mine.attn, mine.score_dst, mine.score_type})
      bits.insert(bits.end(), v.grad().values().begin(), v.grad().values().end());
    results.push_back(std::move(bits));
  }
  for (const auto& other : results) CHECK(other == results.front());
}

TEST_CASE("GAT with a term of -infinity for a type: as without its edges, and 0 where there are no others") {
  const Communicator comm = Communicator::world();
  constexpr real masked = -std::numeric_limits<real>::infinity();
  for (const WholeGraph& whole : test_graphs())
    for (const Books& books : test_books(whole, comm.size()))
      for (const bool reproducible : {false, true}) {
        const GraphOptions options{.max_halo_bytes = 100, .reproducible = reproducible};
        const auto is_masked = [&](Index e) { return 2 * whole.src[e] < whole.num_src; };
        WholeGraph others = whole;
        others.src.clear();
        others.dst.clear();
        for (std::size_t e = 0; e < whole.src.size(); ++e) {
          if (is_masked(static_cast<Index>(e))) continue;
          others.src.push_back(whole.src[e]);
          others.dst.push_back(whole.dst[e]);
        }
        const Graph graph = shard(comm, whole, books, options), rest = shard(comm, others, books, options);
        TypedGat mine(whole, graph, books, 2, 3, 2);
        std::vector<Index> types;
        Tensor scores({graph.num_edges(), 1});
        for (const Index id : graph.edge_ids()) {
          scores.row(std::ssize(types))[0] = is_masked(id) ? masked : 0;
          types.push_back(is_masked(id) ? 1 : 0);
        }
        mine.types = std::move(types);
        mine.score_type = Variable(Tensor::from({2, 2}, {0, 0, masked, masked}));
        const Tensor upstream = my_rows(random_tensor({whole.num_dst, 2, 3}, 5), books.dst, comm.rank());
        std::vector<Tensor> found[2];
        for (const bool without : {false, true}) {
          Tape tape;
          const Variable out =
              without ? gat_attention(rest, mine.x, mine.attn, mine.score_dst) : mine.attend(graph);
          tape.backward(out, upstream);
          found[without] = {out.value(), mine.x.grad(), mine.attn.grad(), mine.score_dst.grad()};
          for (Variable* v : {&mine.x, &mine.attn, &mine.score_dst}) v->zero_grad();
        }
        for (std::size_t k = 0; k < found[0].size(); ++k) CHECK(same(found[0][k], found[1][k], found[1][k]));
        const Variable alpha = edge_softmax(graph, Variable(scores));
        for (Index k = 0; k < graph.num_edges(); ++k)
          if (is_masked(graph.edge_ids()[k])) CHECK(alpha.value().values()[static_cast<std::size_t>(k)] == 0);
      }
}
