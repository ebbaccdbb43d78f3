// SPDX-License-Identifier: MIT

/// Fused attention against loops over the edges of the whole graph, against difference quotients, and against
/// what it may communicate and hold.
#include "graph/message/attention_options.hpp"
#include "graph/message/attention_reference.hpp"
#include "support/effort.hpp"
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

#include <algorithm>
#include <optional>
#include <string>

using namespace sar;
using namespace sar::test;

namespace {

/// What is asked of an attention.
struct Ask {
  Score kind = Score::gat;
  Index heads = 1;
  Index dim = 1;
  Index value_dim = 0;  ///< 0: the key is the value
  bool weighted = false;
  double dropout = 0;
  double score_factor = 1;  ///< of the operands that scores are made from
};

AttentionProblem problem_of(const WholeGraph& whole, const Ask& ask) {
  AttentionProblem p{.graph = whole,
                     .kind = ask.kind,
                     .heads = ask.heads,
                     .dim = ask.dim,
                     .value_dim = ask.value_dim > 0 ? ask.value_dim : ask.dim};
  p.x = random_values(whole.num_src * ask.heads * ask.dim, 1);
  if (ask.value_dim > 0) p.value = random_values(whole.num_src * ask.heads * ask.value_dim, 2);
  if (ask.kind == Score::gat || ask.kind == Score::gatv2) p.attn = random_values(ask.heads * ask.dim, 3);
  p.dst = random_values(whole.num_dst * ask.heads * (ask.kind == Score::gat ? 1 : ask.dim), 4);
  for (double& t : p.dst) t = static_cast<real>(t * ask.score_factor);
  p.scale = static_cast<real>(ask.kind == Score::cosine ? 1.3 : 0.7);
  if (ask.weighted) p.weight = random_values(static_cast<Index>(whole.src.size()), 5);
  p.dropout = ask.dropout;
  p.key = {.seed = 3, .stream = 8, .step = 2};
  p.grad_out = random_values(whole.num_dst * ask.heads * p.value_dim, 6);
  return p;
}

/// This rank's part of the operands, as leaves.
struct Operands {
  Variable x, value, attn, dst, scale;
  AttentionOptions options;

  Operands(const AttentionProblem& p, const Graph& graph, const Books& books, bool wanted = true) {
    const int rank = graph.comm().rank();
    const auto rows = [&](const std::vector<double>& whole, const PartitionBook& book, Index dim) {
      return Variable(local_rows(whole, book, rank, p.heads * dim)
                          .reshape(p.kind == Score::cosine ? Shape{book.num_nodes(rank), dim}
                                                           : Shape{book.num_nodes(rank), p.heads, dim}),
                      wanted);
    };
    x = rows(p.x, books.src, p.dim);
    if (!p.value.empty()) value = rows(p.value, books.src, p.value_dim);
    if (!p.attn.empty()) attn = Variable(to_tensor(p.attn, Shape{1, p.heads, p.dim}), wanted);
    dst = rows(p.dst, books.dst, p.kind == Score::gat ? 1 : p.dim);
    scale = Variable(Tensor::full({1}, static_cast<real>(p.scale)), wanted);
    options.dropout = p.dropout;
    options.dropout_key = p.key;
    if (!p.weight.empty()) options.edge_weight = Variable(edge_rows(p.weight, graph), wanted);
  }

  [[nodiscard]] Variable attend(const AttentionProblem& p, const Graph& graph) const {
    const auto slope = static_cast<real>(p.slope);
    switch (p.kind) {
      case Score::gat:
        return gat_attention(graph, x, attn, dst, slope, options);
      case Score::gatv2:
        return gatv2_attention(graph, x, dst, attn, slope, options);
      case Score::dot:
        return dot_attention(graph, x, dst, value, static_cast<real>(p.scale), options);
      case Score::cosine:
        return cosine_attention(graph, x, dst, scale, options);
    }
    return {};
  }
};

/// Whether mine is `want`, a part of `all`, to rounding.
bool same(const Tensor& mine, const std::vector<double>& want, const std::vector<double>& all) {
  double scale = 1e-2;  // gradients that cancel to nothing have no relative error
  for (const double value : all) scale = std::max(scale, std::abs(value));
  if (mine.size() != static_cast<Index>(want.size())) return false;
  for (std::size_t i = 0; i < want.size(); ++i)
    if (!(std::abs(static_cast<double>(mine.data()[i]) - want[i]) < tolerance() * scale)) return false;
  return true;
}

/// The largest error of the result and of all gradients.
void check_case(const Communicator& comm, const WholeGraph& whole, const Books& books,
                const GraphOptions& options, const Ask& ask) {
  CAPTURE(whole.name);
  CAPTURE(static_cast<int>(options.mode));
  CAPTURE(options.max_halo_bytes);
  CAPTURE(static_cast<int>(ask.kind));
  CAPTURE(ask.heads);
  CAPTURE(ask.dim);
  AttentionProblem p = problem_of(whole, ask);
  p.run();
  const int rank = comm.rank();
  const Graph graph = shard(comm, whole, books, options);
  const Operands mine(p, graph, books);
  Tape tape;
  const Variable out = mine.attend(p, graph);
  const auto rows = [&](const std::vector<double>& all, const PartitionBook& book) {
    return slice(all, book, rank, static_cast<Index>(all.size()) / std::max<Index>(book.num_nodes(), 1));
  };
  CHECK(same(out.value(), rows(p.out, books.dst), p.out));
  tape.backward(out, local_rows(p.grad_out, books.dst, rank, p.heads * p.value_dim).reshape(out.shape()));
  CHECK(same(mine.x.grad(), rows(p.grad_x, books.src), p.grad_x));
  CHECK(same(mine.dst.grad(), rows(p.grad_dst, books.dst), p.grad_dst));
  if (mine.value.defined()) CHECK(same(mine.value.grad(), rows(p.grad_value, books.src), p.grad_value));
  if (mine.attn.defined()) CHECK(same(sum_over_ranks(comm, mine.attn.grad()), p.grad_attn, p.grad_attn));
  if (p.kind == Score::cosine)
    CHECK(same(sum_over_ranks(comm, mine.scale.grad()), {p.grad_scale}, {p.grad_scale}));
  if (ask.weighted)
    CHECK(same(mine.options.edge_weight.grad(), edge_values(p.grad_weight, graph), p.grad_weight));
}

const std::vector<Score> scores = {Score::gat, Score::gatv2, Score::dot, Score::cosine};

}  // namespace

TEST_CASE("attention agrees with the definition for every mode, cut and partition") {
  const Communicator comm = Communicator::world();
  for (const WholeGraph& whole : test_graphs()) {
    for (const Books& books : test_books(whole, comm.size())) {
      for (const GraphOptions& options : all_options()) {
        check_case(comm, whole, books, options, {.kind = Score::gat, .heads = 3, .dim = 5});
        check_case(comm, whole, books, options,
                   {.kind = Score::gat, .heads = 1, .dim = 17, .weighted = true, .dropout = 0.4});
        check_case(comm, whole, books, options,
                   {.kind = Score::gatv2, .heads = 3, .dim = 5, .weighted = true, .dropout = 0.4});
        check_case(comm, whole, books, options,
                   {.kind = Score::dot, .heads = 3, .dim = 5, .value_dim = 6, .dropout = 0.4});
        check_case(comm, whole, books, options, {.kind = Score::dot, .heads = 2, .dim = 9, .weighted = true});
        check_case(comm, whole, books, options, {.kind = Score::cosine, .dim = 7, .weighted = true});
      }
    }
  }
}

TEST_CASE("any number of heads and features, with everything at once") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("shapes", 50, 50, 400, 6);
  const Books books = test_books(whole, comm.size()).front();
  for (const Score kind : scores)
    for (const Index heads : {1, 4, 33})
      for (const Index dim : {1, 7, 16, 63, 100})
        if (kind != Score::cosine || heads == 1)
          for (const bool reproducible : {false, true})
            check_case(comm, whole, books, {.reproducible = reproducible},
                       {.kind = kind, .heads = heads, .dim = dim, .weighted = true, .dropout = 0.3});
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
    for (const Score kind : scores)
      for (const GraphOptions& options : {GraphOptions{}, GraphOptions{.max_halo_bytes = 30000}})
        check_case(comm, whole, books, options, {.kind = kind, .dim = 12, .weighted = true, .dropout = 0.2});
}

TEST_CASE("scores of either sign and of ten thousand") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("steep", 60, 60, 500, 2);
  const Books books = test_books(whole, comm.size()).front();
  // About +-10^4, in quarters: exact in single precision, and several of each node count.
  AttentionProblem p = problem_of(whole, {.heads = 2, .dim = 4});
  for (std::size_t i = 0; i < p.x.size(); ++i)
    p.x[i] = std::round(p.x[i] * 4) / 4 + (i % 4 > 0 ? 0 : i % 24 < 12 ? 10000 : -10000);
  for (std::size_t i = 0; i < p.attn.size(); ++i) p.attn[i] = i % 4 == 0 ? 1 : i % 4 == 1 ? -1 : 0;
  for (double& t : p.dst) t = std::round(t * 100);
  for (std::size_t i = 0; i < p.grad_out.size(); i += 4) p.grad_out[i] = 0;  // or gradients cancel, too
  p.slope = 0.25;
  p.run();
  for (const GraphOptions& options : all_options()) {
    const Graph graph = shard(comm, whole, books, options);
    const Operands mine(p, graph, books);
    Tape tape;
    const Variable out = mine.attend(p, graph);
    CHECK(same(out.value(), slice(p.out, books.dst, comm.rank(), 8), p.out));
    tape.backward(out, local_rows(p.grad_out, books.dst, comm.rank(), 8).reshape(out.shape()));
    CHECK(same(mine.x.grad(), slice(p.grad_x, books.src, comm.rank(), 8), p.grad_x));
    CHECK(same(mine.dst.grad(), slice(p.grad_dst, books.dst, comm.rank(), 2), p.grad_x));
    CHECK(same(sum_over_ranks(comm, mine.attn.grad()), p.grad_attn, {1e4}));
  }
}

TEST_CASE("gradients are difference quotients, dropout drawn again") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("quotients", 30, 30, 150, 12);
  const Books books = test_books(whole, comm.size()).front();
  const Graph graph = shard(comm, whole, books, {.max_halo_bytes = 100});
  for (const Score kind : scores) {
    CAPTURE(static_cast<int>(kind));
    const Ask ask{.kind = kind,
                  .heads = kind == Score::cosine ? 1 : 2,
                  .dim = 3,
                  .value_dim = kind == Score::dot ? 5 : 0,
                  .weighted = true,
                  .dropout = 0.4};
    const AttentionProblem p = problem_of(whole, ask);
    Operands mine(p, graph, books);
    std::vector<Variable> inputs{mine.x, mine.dst, mine.options.edge_weight};
    for (const Variable& more : {mine.value, mine.attn, mine.scale})
      if (more.defined() && (kind == Score::cosine || &more != &mine.scale)) inputs.push_back(more);
    CHECK_NOTHROW(gradcheck([&](const std::vector<Variable>&) { return mine.attend(p, graph); }, inputs,
                            {.step = sizeof(real) == 8 ? 1e-6 : 2e-3,
                             .tolerance = sizeof(real) == 8 ? 1e-6 : 5e-3,
                             .directions = 4,
                             .sum_over_ranks = [&](double x) { return comm.all_reduce(x); }}));
  }
}

TEST_CASE("results have the same bits with one thread and with several, and in every run") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("threads", 3000, 3000, 60000, 9);
  const Books books = test_books(whole, comm.size()).front();
  for (const Score kind : scores) {
    const Ask ask{
        .kind = kind, .heads = kind == Score::cosine ? 1 : 4, .dim = 16, .weighted = true, .dropout = 0.1};
    const AttentionProblem p = problem_of(whole, ask);
    for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::one_shot}) {
      std::vector<std::vector<real>> results;
      for (const int threads : {1, 2, 4, 2}) {
        const ThreadLimit limit(threads);
        const Graph graph = shard(comm, whole, books, {.mode = mode, .max_halo_bytes = 20000});
        const Operands mine(p, graph, books);
        Tape tape;
        const Variable out = mine.attend(p, graph);
        std::vector<real> bits(out.value().values().begin(), out.value().values().end());
        tape.backward(out,
                      local_rows(p.grad_out, books.dst, comm.rank(), ask.heads * 16).reshape(out.shape()));
        for (const Variable& v : {mine.x, mine.dst, mine.options.edge_weight, mine.attn, mine.scale})
          if (v.defined() && v.grad().defined())
            bits.insert(bits.end(), v.grad().values().begin(), v.grad().values().end());
        results.push_back(std::move(bits));
      }
      for (const auto& other : results) CHECK(other == results.front());
    }
  }
}

TEST_CASE("only source rows travel, and only as often as they must") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("bytes", 200, 200, 3000, 5);
  const Books books = test_books(whole, comm.size()).front();
  const auto [sends, reads] = halo_traffic(whole, books, comm);
  for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::sequential, HaloMode::one_shot}) {
    for (const Score kind : scores) {
      const Ask ask{.kind = kind, .heads = kind == Score::cosine ? 1 : 2, .dim = 4};
      const auto sent_by = [](const Graph& graph, auto&& action) {
        const std::uint64_t before = comm_bytes(graph);
        action();
        return comm_bytes(graph) - before;
      };
      const Graph graph = shard(comm, whole, books, {.mode = mode});
      const AttentionProblem p = problem_of(whole, ask);
      const Operands mine(p, graph, books);
      const std::uint64_t row = static_cast<std::uint64_t>(ask.heads * ask.dim) * sizeof(real);
      Tape tape;
      Variable out;
      CHECK(sent_by(graph, [&] { out = mine.attend(p, graph); }) == sends * row);
      const Tensor g =
          local_rows(p.grad_out, books.dst, comm.rank(), ask.heads * ask.dim).reshape(out.shape());
      CHECK(sent_by(graph, [&] { tape.backward(out, g); }) ==
            (reads + (mode == HaloMode::rematerialize ? sends : 0)) * row);
    }
  }
}

TEST_CASE("memory does not grow with the number of edges" * doctest::skip(sanitized && !full_run())) {
  const Communicator comm = Communicator::world();
  for (const Score kind : scores) {
    std::vector<std::size_t> peaks;
    for (const Index degree : {14, 56}) {
      const Index nodes = std::max<Index>(4000, Index{2000} * comm.size());
      const WholeGraph whole = random_graph("memory", nodes, nodes, nodes * degree, 5);
      const Books books = test_books(whole, comm.size()).front();
      const Graph graph = shard(comm, whole, books, {.max_halo_bytes = 1 << 18});
      const AttentionProblem p =
          problem_of(whole, {.kind = kind, .heads = kind == Score::cosine ? 1 : 4, .dim = 32});
      const Operands mine(p, graph, books);
      const Tensor g = local_rows(p.grad_out, books.dst, comm.rank(), p.heads * p.dim)
                           .reshape(kind == Score::cosine ? mine.dst.shape()
                                                          : Shape{graph.num_dst_nodes(), p.heads, p.dim});
      for (int i = 0; i < 2; ++i) {  // the first pass builds the transposes
        for (Variable v : {mine.x, mine.dst, mine.attn}) v.zero_grad();
        reset_peak_bytes();
        const std::size_t before = live_bytes();
        Tape tape;
        tape.backward(mine.attend(p, graph), g);
        if (i == 1) peaks.push_back(peak_bytes() - before);
      }
    }
    CAPTURE(peaks[0]);
    CAPTURE(peaks[1]);
    CHECK(static_cast<double>(peaks[1]) < 1.1 * static_cast<double>(peaks[0]));
  }
}

TEST_CASE("the result gives its memory back before the gradient of the sources takes as much") {
  const Communicator comm = Communicator::self();
  const Index nodes = 4000;
  const WholeGraph whole = random_graph("memory", nodes, nodes, nodes * 14, 5);
  const Books books = test_books(whole, comm.size()).front();
  const Graph graph = shard(comm, whole, books, {});
  for (const Score kind : scores) {
    const AttentionProblem p =
        problem_of(whole, {.kind = kind, .heads = kind == Score::cosine ? 1 : 4, .dim = 32});
    const Operands mine(p, graph, books);
    for (int i = 0; i < 2; ++i) {  // the first pass builds the transposes
      for (Variable v : {mine.x, mine.dst, mine.attn}) v.zero_grad();
      Tape tape;
      const Variable loss = sum(mine.attend(p, graph));
      reset_peak_bytes();
      const std::size_t before = live_bytes();
      tape.backward(loss);
      if (i == 0) continue;
      // of this size are the gradients of the result, of x and of dst, and the result, which goes
      const std::size_t result = mine.x.value().bytes();
      const std::size_t tensors = kind == Score::gat ? 2 : 3;
      CHECK(peak_bytes() - before < (tensors - 1) * result + result / 2);
    }
  }
}

TEST_CASE("without a tape nothing is kept, and constants get no gradient") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = test_graphs().front();
  const Books books = test_books(whole, comm.size()).front();
  const Graph graph = shard(comm, whole, books, {.mode = HaloMode::sequential});
  for (const Score kind : scores) {
    const AttentionProblem p = problem_of(whole, {.kind = kind, .dim = 4});
    const Operands mine(p, graph, books);
    const std::size_t before = live_bytes();
    const Variable out = mine.attend(p, graph);
    CHECK(live_bytes() == before + out.value().bytes());
    CHECK(!out.requires_grad());

    // Each operand alone has the gradient that it has among the others.
    const auto gradients = [&](std::size_t wanted) {
      Operands some(p, graph, books);
      const std::vector<Variable*> all{&some.x, &some.dst, &some.attn};
      for (std::size_t i = 0; i < all.size(); ++i)
        if (wanted < all.size() && i != wanted) *all[i] = all[i]->detach();
      some.scale = some.scale.detach();
      Tape tape;
      const Variable y = some.attend(p, graph);
      tape.backward(y, local_rows(p.grad_out, books.dst, comm.rank(), 4).reshape(y.shape()));
      std::vector<Tensor> result;
      for (const Variable* v : all) result.push_back(v->grad());
      return result;
    };
    const auto together = gradients(99);
    for (std::size_t i = 0; i < together.size(); ++i) {
      if (!together[i].defined()) continue;
      const Tensor alone = gradients(i)[i];
      const std::vector<double> want(together[i].values().begin(), together[i].values().end());
      CHECK(same(alone, want, want));
    }
  }
}

TEST_CASE("wrong operands of one rank are the same error on all, and the graph works afterwards") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = test_graphs().front();
  const Books books = test_books(whole, comm.size()).front();
  const Graph graph = shard(comm, whole, books, {});
  const bool bad = comm.rank() == comm.size() - 1;
  const Index n = graph.num_src_nodes();
  const auto text_of = [&](const auto& call) {
    return test::thrown_by_all<Error>(comm, [&] { (void)call(); });
  };
  const auto ones = [](const Shape& shape) { return Variable(Tensor::full(shape, 1)); };
  const Variable x = ones(Shape{n, 2, 3}), attn = ones(Shape{1, 2, 3}), dst = ones(Shape{n, 2});
  CHECK(text_of([&] {
          return gat_attention(graph, ones(Shape{n + (bad ? 1 : 0), 2, 3}), attn, dst);
        }).find("x has shape") == 0);
  CHECK(text_of([&] {
          return gat_attention(graph, x, bad ? ones(Shape{2, 3}) : attn, dst);
        }).find("attn_src has shape [2, 3]") == 0);
  CHECK(text_of([&] {
          return gat_attention(graph, x, attn, bad ? ones(Shape{n, 3}) : dst);
        }).find("score_dst has shape") == 0);
  CHECK(text_of([&] {
          return gat_attention(graph, x, attn, bad ? Variable() : dst);
        }).find("score_dst has shape") == 0);
  CHECK(text_of([&] {
          return gat_attention(graph, x, attn, dst, real(0.2),
                               {.dropout = bad ? 1.0 : 0.5, .dropout_key = {}, .edge_weight = {}});
        }).find("the probability of dropout") == 0);
  CHECK(
      text_of([&] {
        return gat_attention(
            graph, x, attn, dst, real(0.2),
            {.dropout = 0, .dropout_key = {}, .edge_weight = ones(Shape{graph.num_edges() + (bad ? 1 : 0)})});
      }).find("the edge weights have shape") == 0);
  CHECK(text_of([&] {
          AttentionOptions options;
          options.bias = ones(Shape{x.shape().row_size() + (bad ? 1 : 0)});
          return gat_attention(graph, x, attn, dst, real(0.2), options);
        }).find("the bias has shape") == 0);
  if (comm.size() > 1) {
    CHECK(text_of([&] {
            return gat_attention(graph, x, attn, dst, bad ? real(0.1) : real(0.2));
          }).find("gat_attention is called with a different negative slope") == 0);
    CHECK(text_of([&] {
            return gat_attention(graph, Variable(x.value(), bad), attn, dst);
          }).find("different wish for the gradient of x") != std::string::npos);
    CHECK(text_of([&] {
            std::optional<Tape> tape;
            if (bad) tape.emplace();
            return gat_attention(graph, x, attn, dst);
          }).find("different recording for a backward pass (Tape in scope)") != std::string::npos);
  }
  const Tensor out = gat_attention(graph, x, attn, dst).value();
  for (Index v = 0; v < graph.num_dst_nodes(); ++v)
    CHECK(out.row(v)[0] ==
          doctest::Approx(graph.in_degrees()[static_cast<std::size_t>(v)] > 0 ? 1 : 0).epsilon(1e-5));
}
