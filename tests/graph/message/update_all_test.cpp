// SPDX-License-Identifier: MIT

/// update_all on sharded graphs against a loop over the edges of the whole graph.
#include "graph/test_graphs.hpp"
#include "support/golden_graph.hpp"
#include "support/reference.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <doctest/doctest.h>

#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/topology/sharded_graph.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

using namespace sar;
using namespace sar::test;

namespace {

/// Whole-graph results by the definition, in double precision.
struct Expected {
  std::vector<double> out, grad_u, grad_e;
};

Expected expected(const WholeGraph& g, Index width, Reduce reduce, const std::vector<double>& u,
                  const std::vector<double>& e, const std::vector<double>& grad_out) {
  Expected r;
  r.out.assign(static_cast<std::size_t>(g.num_dst * width), 0);
  r.grad_u.assign(static_cast<std::size_t>(g.num_src * width), 0);
  r.grad_e.assign(g.src.size(), 0);
  std::vector<double> degree(static_cast<std::size_t>(g.num_dst), 0);
  for (const Index v : g.dst) degree[static_cast<std::size_t>(v)] += 1;
  if (reduce == Reduce::max || reduce == Reduce::min) {
    std::vector<std::ptrdiff_t> winner(r.out.size(), -1);
    for (std::size_t k = 0; k < g.src.size(); ++k) {  // in the order of ids: the first of equals stays
      for (Index j = 0; j < width; ++j) {
        const auto at_v = static_cast<std::size_t>(g.dst[k] * width + j);
        const double message = e[k] * u[static_cast<std::size_t>(g.src[k] * width + j)];
        if (winner[at_v] >= 0 && (reduce == Reduce::max ? message <= r.out[at_v] : message >= r.out[at_v]))
          continue;
        winner[at_v] = static_cast<std::ptrdiff_t>(k);
        r.out[at_v] = message;
      }
    }
    for (std::size_t i = 0; i < winner.size(); ++i) {
      if (winner[i] < 0) continue;
      const auto k = static_cast<std::size_t>(winner[i]);
      const auto at_u = static_cast<std::size_t>(g.src[k] * width) + i % static_cast<std::size_t>(width);
      r.grad_u[at_u] += e[k] * grad_out[i];
      r.grad_e[k] += u[at_u] * grad_out[i];
    }
    return r;
  }
  for (std::size_t k = 0; k < g.src.size(); ++k) {
    const double s = reduce == Reduce::mean ? 1 / degree[static_cast<std::size_t>(g.dst[k])] : 1;
    for (Index j = 0; j < width; ++j) {
      const auto at_u = static_cast<std::size_t>(g.src[k] * width + j);
      const auto at_v = static_cast<std::size_t>(g.dst[k] * width + j);
      r.out[at_v] += s * e[k] * u[at_u];
      r.grad_u[at_u] += s * e[k] * grad_out[at_v];
      r.grad_e[k] += s * u[at_u] * grad_out[at_v];
    }
  }
  return r;
}

void check_case(const Communicator& comm, const WholeGraph& whole, const Books& books,
                const GraphOptions& options, Index width, Reduce reduce, bool weighted, bool with_base) {
  const Graph graph = shard(comm, whole, books, options);
  const auto u = random_values(whole.num_src * width, 1);
  const auto e = weighted ? random_values(static_cast<Index>(whole.src.size()), 2)
                          : std::vector<double>(whole.src.size(), 1);
  const auto base = random_values(whole.num_dst * width, 3);
  const auto g = random_values(whole.num_dst * width, 4);
  Expected want = expected(whole, width, reduce, u, e, g);
  if (with_base)
    for (std::size_t i = 0; i < base.size(); ++i) want.out[i] += base[i];

  const int p = comm.rank();
  const Variable u_local(local_rows(u, books.src, p, width), true);
  Variable e_local;
  if (weighted) e_local = Variable(edge_rows(e, graph), true);
  Variable base_local;
  if (with_base) base_local = Variable(local_rows(base, books.dst, p, width), true);

  Tape tape;
  const Message message = weighted ? fn::u_mul_e(u_local, e_local) : fn::copy_u(u_local);
  const Variable out = graph.update_all(message, reduce, base_local);
  CHECK(relative_error(out.value(), slice(want.out, books.dst, p, width)) < tolerance());
  tape.backward(out, local_rows(g, books.dst, p, width));
  CHECK(relative_error(u_local.grad(), slice(want.grad_u, books.src, p, width)) < tolerance());
  if (weighted) CHECK(relative_error(e_local.grad(), edge_values(want.grad_e, graph)) < tolerance());
  if (with_base) CHECK(relative_error(base_local.grad(), slice(g, books.dst, p, width)) < tolerance());
}

}  // namespace

TEST_CASE("update_all agrees with the definition for every mode, cut and partition") {
  const Communicator comm = Communicator::world();
  for (const WholeGraph& whole : test_graphs()) {
    for (const Books& books : test_books(whole, comm.size())) {
      for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::sequential, HaloMode::one_shot}) {
        for (const GraphOptions& options :
             {GraphOptions{.mode = mode},
              GraphOptions{.mode = mode, .pipeline_depth = 3, .max_halo_bytes = 1},
              GraphOptions{.mode = mode, .pipeline_depth = 1, .max_halo_bytes = 200},
              GraphOptions{.mode = mode, .max_halo_bytes = 200, .edge_chunk = 5, .reproducible = true}}) {
          CAPTURE(whole.name);
          CAPTURE(static_cast<int>(mode));
          CAPTURE(options.max_halo_bytes);
          check_case(comm, whole, books, options, 5, Reduce::sum, false, false);
          check_case(comm, whole, books, options, 3, Reduce::mean, true, true);
          check_case(comm, whole, books, options, 1, Reduce::mean, false, true);
          check_case(comm, whole, books, options, 17, Reduce::sum, true, false);
          check_case(comm, whole, books, options, 6, Reduce::max, false, false);
          check_case(comm, whole, books, options, 5, Reduce::min, true, true);
        }
      }
    }
  }
}

TEST_CASE("what is computed of the same sources while rows travel is differentiated while gradients travel") {
  const Communicator comm = Communicator::world();
  const Index width = 4;
  for (const WholeGraph& whole : test_graphs()) {
    if (whole.num_src != whole.num_dst) continue;
    const Books books = test_books(whole, comm.size()).front();
    if (!(books.src == books.dst)) continue;
    const auto u = random_values(whole.num_src * width, 1), g = random_values(whole.num_dst * width, 4);
    const std::vector<double> e = random_values(static_cast<Index>(whole.src.size()), 2);
    for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::sequential, HaloMode::one_shot})
      for (const bool in_double : {false, true})
        for (const Reduce reduce : {Reduce::sum, Reduce::mean, Reduce::max})
          for (const bool added : {true, false}) {  // by update_all, or by the caller
            CAPTURE(whole.name);
            CAPTURE(static_cast<int>(mode));
            const Graph graph =
                shard(comm, whole, books, {.mode = mode, .max_halo_bytes = 100, .reproducible = in_double});
            Expected want = expected(whole, width, reduce, u, e, g);
            for (std::size_t i = 0; i < u.size(); ++i) want.out[i] += 3 * u[i], want.grad_u[i] += 3 * g[i];
            const Variable x(local_rows(u, books.src, comm.rank(), width), true);
            const Variable weights(edge_rows(e, graph), true);
            bool differentiated = false, between_halves = false;
            Tape tape;
            StartedSum sum = graph.start_update_all(fn::u_mul_e(x, weights), reduce);
            Variable self_term = x * real{3};
            self_term =
                record(self_term, [&, dx = self_term.gradient(), w = weights.gradient()](Tensor grad) {
                  differentiated = true;
                  between_halves = w->value().defined();
                  dx->add(std::move(grad));
                });
            const Variable y = added ? sum.finish(self_term) : add(self_term, sum.finish());
            CHECK(relative_error(y.value(), slice(want.out, books.dst, comm.rank(), width)) < tolerance());
            tape.backward(y, local_rows(g, books.dst, comm.rank(), width));
            CHECK(differentiated);
            // where the order must not matter, an extremum is computed when it is finished
            CHECK((between_halves || (in_double && reduce == Reduce::max)));
            CHECK(relative_error(x.grad(), slice(want.grad_u, books.src, comm.rank(), width)) < tolerance());
          }
  }
}

TEST_CASE("the smallest edge id takes the gradient of equal messages and of NaN, on any number of ranks") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("ties", 40, 40, 300, 8);
  const Index width = 37;
  const auto g = random_values(whole.num_dst * width, 4);
  for (const Reduce reduce : {Reduce::max, Reduce::min})
    for (const real special :
         {real{1}, std::numeric_limits<real>::quiet_NaN()}) {  // of a third of the numbers
      auto u = random_values(whole.num_src * width, 5);
      for (double& x : u) x = x > 0.3 ? (reduce == Reduce::max ? 1 : -1) : 0;
      const Expected want = expected(whole, width, reduce, u, std::vector<double>(whole.src.size(), 1), g);
      for (double& x : u)
        if (x != 0) x *= double{special};
      for (const Books& books : test_books(whole, comm.size()))
        for (const Index max_halo_bytes : {0, 300})
          for (const bool copies : {true, false}) {
            CAPTURE(copies);
            CAPTURE(double{special});
            const Graph graph = shard(comm, whole, books, {.max_halo_bytes = max_halo_bytes});
            const Variable u_local(local_rows(u, books.src, comm.rank(), width), true);
            const Variable ones(Tensor::full({graph.num_edges()}, 1));
            Tape tape;
            tape.backward(graph.update_all(copies ? fn::copy_u(u_local) : fn::u_mul_e(u_local, ones), reduce),
                          local_rows(g, books.dst, comm.rank(), width));
            CHECK(relative_error(u_local.grad(), slice(want.grad_u, books.src, comm.rank(), width)) <
                  tolerance());
          }
    }
}

TEST_CASE("sums in double precision are rounded once, on any number of ranks") {
  const Communicator comm = Communicator::world();
  const Index width = 3;
  // sums of these are exact in double precision, and far from it in single precision
  const auto numbers = [](Index n, std::uint64_t seed) {
    auto values = random_values(n, seed);
    for (double& x : values) x = std::round(x * 500) * 1024 + (x > 0 ? 0.0625 : -0.125);
    return values;
  };
  const auto rounded = [](const Tensor& mine, const std::vector<double>& want) {
    REQUIRE(mine.size() == std::ssize(want));
    for (Index i = 0; i < mine.size(); ++i) CHECK(mine.data()[i] == static_cast<real>(want[i]));
  };
  for (const WholeGraph& whole : test_graphs())
    for (const Books& books : test_books(whole, comm.size()))
      for (const GraphOptions& options :
           {GraphOptions{.reproducible = true},
            GraphOptions{.mode = HaloMode::sequential, .max_halo_bytes = 1, .reproducible = true},
            GraphOptions{.mode = HaloMode::one_shot, .pipeline_depth = 2, .reproducible = true}}) {
        CAPTURE(whole.name);
        const int p = comm.rank();
        const auto edges = std::ssize(whole.src);
        const auto u = numbers(whole.num_src * width, 1), g = numbers(whole.num_dst * width, 2);
        auto e = numbers(edges, 3);
        for (double& x : e) x = x > 0 ? 2 : -1;
        const Expected want = expected(whole, width, Reduce::sum, u, e, g);
        const Graph graph = shard(comm, whole, books, options);
        const Variable u_local(local_rows(u, books.src, p, width), true);
        const Variable e_local(edge_rows(e, graph), true);
        const Variable base(local_rows(g, books.dst, p, width), true);
        Tape tape;
        const Variable out = graph.update_all(fn::u_mul_e(u_local, e_local), Reduce::sum, base);
        std::vector<double> sums = want.out;
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += g[i];
        rounded(out.value(), slice(sums, books.dst, p, width));
        tape.backward(out, local_rows(g, books.dst, p, width));
        rounded(u_local.grad(), slice(want.grad_u, books.src, p, width));

        // rows of edges: the rows of their sources
        std::vector<double> rows;
        for (const Index from : whole.src)
          rows.insert(rows.end(), u.begin() + from * width, u.begin() + (from + 1) * width);
        const Tensor of_edges = graph.local_edge_rows(to_tensor(rows, {edges, width}));
        const auto ones = std::vector<double>(edges, 1);
        rounded(graph.update_all(fn::copy_e(Variable(of_edges)), Reduce::sum).value(),
                slice(expected(whole, width, Reduce::sum, u, ones, g).out, books.dst, p, width));
      }
}

TEST_CASE("golden vectors of update_all") {
  const Communicator comm = Communicator::world();
  for (const std::string name :
       {"copy_u__sum", "copy_u__mean", "copy_u__max", "copy_u__min", "copy_u__sum__bipartite",
        "copy_u__mean__bipartite", "copy_u__max__bipartite", "copy_u__min__bipartite",
        "u_mul_e__sum__bcast_scalar", "u_mul_e__mean__bcast_scalar", "u_mul_e__max__bcast_scalar",
        "u_mul_e__min__bcast_scalar"}) {
    const Case golden("update_all/" + name);
    const std::string word = golden.arg("reduce");
    const Reduce reduce = word == "sum"    ? fn::sum
                          : word == "mean" ? fn::mean
                          : word == "max"  ? fn::max
                                           : fn::min;
    for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::sequential, HaloMode::one_shot}) {
      for (const Index max_halo_bytes : {0, 50}) {
        CAPTURE(name);
        CAPTURE(static_cast<int>(mode));
        const GoldenGraph g = golden_graph(comm, golden, {.mode = mode, .max_halo_bytes = max_halo_bytes});
        const Variable u(g.src_rows(golden.tensor("in.u")), true);
        Variable e;
        if (golden.has("in.e")) e = Variable(g.edge_rows(golden.tensor("in.e")), true);
        Tape tape;
        const Variable out = g.graph.update_all(e.defined() ? fn::u_mul_e(u, e) : fn::copy_u(u), reduce);
        const auto compare = [&](const Tensor& mine, const Tensor& expected_rows, const std::string& file) {
          CAPTURE(file);
          CHECK(error_of_part(mine, expected_rows, golden.tensor(file)) < tolerance());
        };
        compare(out.value(), g.dst_rows(golden.tensor("out")), "out");
        tape.backward(out, g.dst_rows(golden.tensor("grad_out")));
        compare(u.grad(), g.src_rows(golden.tensor("grad_in.u")), "grad_in.u");
        if (e.defined()) compare(e.grad(), g.edge_rows(golden.tensor("grad_in.e")), "grad_in.e");
      }
    }
  }
}

TEST_CASE("a gradient that is wanted by several uses is the sum of all") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = test_graphs().front();
  const Books books = test_books(whole, comm.size()).front();
  const Graph graph = shard(comm, whole, books, {});
  const auto u = random_values(whole.num_src * 4, 1);
  const auto g = random_values(whole.num_dst * 4, 2);
  const Variable u_local(local_rows(u, books.src, comm.rank(), 4), true);
  for (int i = 0; i < 2; ++i) {
    Tape tape;
    tape.backward(graph.update_all(fn::copy_u(u_local), fn::sum), local_rows(g, books.dst, comm.rank(), 4));
  }
  auto want = expected(whole, 4, Reduce::sum, u, std::vector<double>(whole.src.size(), 1), g).grad_u;
  for (double& x : want) x *= 2;
  CHECK(relative_error(u_local.grad(), slice(want, books.src, comm.rank(), 4)) < tolerance());
}

TEST_CASE("results have the same bits with one thread and with several, and in every run") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("threads", 3000, 3000, 60000, 9);
  const Books books = test_books(whole, comm.size()).front();
  const auto u = random_values(whole.num_src * 32, 1);
  const auto e = random_values(static_cast<Index>(whole.src.size()), 2);
  const auto g = random_values(whole.num_dst * 32, 3);
  for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::one_shot}) {
    std::vector<std::vector<real>> results;
    for (const int threads : {1, 2, 4, 2}) {
      const ThreadLimit limit(threads);
      const Graph graph = shard(comm, whole, books, {.mode = mode, .max_halo_bytes = 10000});
      const Variable u_local(local_rows(u, books.src, comm.rank(), 32), true);
      const Variable e_local(edge_rows(e, graph), true);
      Tape tape;
      const Variable out = graph.update_all(fn::u_mul_e(u_local, e_local), fn::mean);
      tape.backward(out, local_rows(g, books.dst, comm.rank(), 32));
      std::vector<real> bits(out.value().values().begin(), out.value().values().end());
      for (const Tensor& t : {u_local.grad(), e_local.grad()})
        bits.insert(bits.end(), t.values().begin(), t.values().end());
      results.push_back(std::move(bits));
    }
    for (const auto& other : results) CHECK(other == results.front());
  }
}

TEST_CASE("communication is what sequential aggregation needs and no more") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("bytes", 200, 200, 3000, 5);
  const Books books = test_books(whole, comm.size()).front();
  const Index width = 8;
  for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::sequential, HaloMode::one_shot}) {
    const Graph graph = shard(comm, whole, books, {.mode = mode});
    const auto [sends, reads] = halo_traffic(whole, books, comm);
    const std::uint64_t row = width * sizeof(real);
    const auto sent_by = [&](auto&& action) {
      const std::uint64_t before = comm_bytes(graph);
      action();
      return comm_bytes(graph) - before;
    };
    Variable u(local_rows(random_values(whole.num_src * width, 1), books.src, comm.rank(), width), true);
    Variable e(edge_rows(random_values(static_cast<Index>(whole.src.size()), 2), graph), true);
    const Tensor g = local_rows(random_values(whole.num_dst * width, 3), books.dst, comm.rank(), width);
    {
      Tape tape;
      Variable out;
      CHECK(sent_by([&] { out = graph.update_all(fn::copy_u(u), fn::mean); }) == sends * row);
      CHECK(sent_by([&] { tape.backward(out, g); }) == reads * row);
    }
    {
      Tape tape;
      Variable out;
      CHECK(sent_by([&] { out = graph.update_all(fn::u_mul_e(u, e), fn::sum); }) == sends * row);
      CHECK(sent_by([&] { tape.backward(out, g); }) ==
            (reads + (mode == HaloMode::rematerialize ? sends : 0)) * row);
    }
    {
      Tape tape;  // no gradient of u: nothing to push
      Variable out;
      CHECK(sent_by([&] { out = graph.update_all(fn::u_mul_e(u.detach(), e.detach()), fn::sum); }) ==
            sends * row);
      CHECK(!out.requires_grad());
    }
  }
}

TEST_CASE("a stage's rows are gone after the pass, and a base is added to in place") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("memory", 400, 400, 6000, 5);
  const Books books = test_books(whole, comm.size()).front();
  const Graph graph = shard(comm, whole, books, {});
  const Index width = 64;
  const Variable u(local_rows(random_values(whole.num_src * width, 1), books.src, comm.rank(), width), true);
  Variable base(Tensor::full(Shape{graph.num_dst_nodes(), width}, 1));
  const real* memory = base.value().data();
  const std::size_t before = live_bytes();
  const Variable out = graph.update_all(fn::copy_u(u), fn::sum, std::move(base));
  CHECK(live_bytes() == before);
  if (graph.num_dst_nodes() > 0) CHECK(out.value().data() == memory);
}

TEST_CASE("a pass holds no more buffers than the law allows") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("law", 8000, 8000, 80000, 5);
  const Books books = test_books(whole, comm.size()).front();
  const Index width = 1024;
  for (const GraphOptions& options : {GraphOptions{}, GraphOptions{.max_halo_bytes = 1 << 20}}) {
    const Graph graph = shard(comm, whole, books, options);
    const Variable u(Tensor::full(Shape{graph.num_src_nodes(), width}, 1), true);
    const Tensor gradient = Tensor::full(Shape{graph.num_dst_nodes(), width}, 1);
    {
      Tape tape;
      tape.backward(graph.update_all(fn::copy_u(u), fn::sum), gradient);
    }  // builds the transposes
    Variable leaf = u;
    leaf.zero_grad();
    const auto rows = static_cast<std::size_t>(comm.all_reduce(graph.num_src_nodes(), ReduceOp::max));
    const std::size_t stage =
        std::min(rows * width * sizeof(real), options.max_halo_bytes > 0 ? std::size_t{1} << 20 : SIZE_MAX);
    const std::size_t messages = 9 << 19;  // packed rows in flight: eight messages of half a MiB, and one
    const std::size_t cursors = 100000;
    Tape tape;
    reset_peak_bytes();
    std::size_t before = live_bytes();
    const Variable out = graph.update_all(fn::copy_u(u), fn::sum);
    CHECK(peak_bytes() <=
          before + out.value().bytes() + (comm.size() > 1 ? 2 * stage + messages + cursors : 0));
    reset_peak_bytes();
    before = live_bytes();
    tape.backward(out, gradient);
    // leaving: five quarters of a stage; arriving: four, or what comes of one quarter of each reader's and a
    // packet
    const std::size_t quarter = stage / 4 / (width * sizeof(real));
    std::size_t together = 0;
    for (std::size_t k = 0; options.max_halo_bytes > 0 && k * quarter < 8000; ++k) {
      std::size_t rows_of_stage = 0;
      for (const HaloRound& round : graph.topology().rounds())
        for (std::size_t i = 0; i < round.send_rows.size(); ++i)
          rows_of_stage += (static_cast<std::size_t>(round.reader_first) + i) / quarter == k ? 1 : 0;
      together = std::max(together, rows_of_stage * width * sizeof(real));
    }
    CHECK(peak_bytes() <=
          before + u.grad().bytes() +
              (comm.size() > 1 ? stage * 5 / 4 + std::max(stage, together + stage / 4) + cursors : 0));
  }
}

TEST_CASE("wrong operands of one rank are the same error on all, and the graph works afterwards") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("shapes", 50, 50, 100, 5);
  const Books books = test_books(whole, comm.size()).front();
  Graph graph = shard(comm, whole, books, {});
  const bool bad = comm.rank() == comm.size() - 1;
  const Index n = graph.num_src_nodes();
  const Variable good(Tensor::full(Shape{n, 2}, 1));
  const auto text_of = [&](const Message& message) {
    return test::thrown_by_all<Error>(comm, [&] { (void)graph.update_all(message, fn::sum); });
  };
  CHECK(text_of(fn::copy_u(bad ? Tensor(Shape{n + 1, 2}) : good.value()))
            .find("the message's source rows have shape") == 0);
  CHECK(text_of(fn::u_mul_e(good, Tensor(Shape{graph.num_edges() + (bad ? 1 : 0)})))
            .find("the message's edge rows have shape") == 0);
  CHECK(text_of(fn::u_mul_e(good, bad ? Variable() : Variable(Tensor(Shape{graph.num_edges()}))))
            .find("the message's edge rows") == 0);
  if (comm.size() > 1) {
    CHECK(text_of(fn::copy_u(Tensor(Shape{n, bad ? 3 : 2})))
              .find("different shape of the source rows on different ranks: [*, 2] on rank 0, [*, 3]") !=
          std::string::npos);
    CHECK(text_of(fn::copy_u(Tensor(bad ? Shape{n, 1, 2} : Shape{n, 2}))).find("[*, 1, 2] on rank") !=
          std::string::npos);
    CHECK(text_of(fn::copy_u(Variable(good.value(), bad)))
              .find("different wish for the gradient of the source rows") != std::string::npos);
    if (bad) graph.set_options({.mode = HaloMode::one_shot});
    CHECK(text_of(fn::copy_u(good)).find("different mode") != std::string::npos);
    graph.set_options({});
  }
  const Tensor degrees = graph.update_all(fn::copy_u(good), fn::sum).value();
  for (Index v = 0; v < graph.num_dst_nodes(); ++v)
    CHECK(degrees.row(v)[1] == static_cast<real>(graph.in_degrees()[static_cast<std::size_t>(v)]));
  CHECK_THROWS_AS((void)graph.update_all(fn::copy_u(good), fn::sum, Tensor(Shape{graph.num_dst_nodes(), 3})),
                  ShapeError);
}

TEST_CASE("rows may have several dimensions, or none") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = test_graphs().front();
  const Books books = test_books(whole, comm.size()).front();
  const Graph graph = shard(comm, whole, books, {});
  const auto u = random_values(whole.num_src * 6, 1);
  const Tensor flat =
      graph.update_all(fn::copy_u(local_rows(u, books.src, comm.rank(), 6)), fn::mean).value();
  const Tensor cube =
      graph
          .update_all(
              fn::copy_u(
                  local_rows(u, books.src, comm.rank(), 6).reshape(Shape{graph.num_src_nodes(), 2, 3})),
              fn::mean)
          .value();
  CHECK(cube.shape() == Shape{graph.num_dst_nodes(), 2, 3});
  CHECK(std::equal(flat.values().begin(), flat.values().end(), cube.values().begin(), cube.values().end()));
  const Tensor line =
      graph.update_all(fn::copy_u(Tensor::full(Shape{graph.num_src_nodes()}, 1)), fn::sum).value();
  CHECK(line.shape() == Shape{graph.num_dst_nodes()});
  for (Index v = 0; v < graph.num_dst_nodes(); ++v)
    CHECK(line.data()[v] == static_cast<real>(graph.in_degrees()[static_cast<std::size_t>(v)]));
}
