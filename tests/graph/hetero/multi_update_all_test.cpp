// SPDX-License-Identifier: MIT

/// multi_update_all: results and gradients against one process and finite differences, what travels and what
/// is kept, wrong input.
#include "graph/hetero/typed_test_graph.hpp"
#include "support/reference.hpp"
#include "support/thrown.hpp"

#include <doctest/doctest.h>

#include <sar/autograd/gradcheck.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/topology/sharded_graph.hpp>

#include <algorithm>
#include <limits>
#include <set>

using namespace sar;
using namespace sar::test;

namespace {

constexpr Index width = 4;
constexpr CrossReduce all_reducers[] = {CrossReduce::sum, CrossReduce::mean, CrossReduce::max,
                                        CrossReduce::min, CrossReduce::stack};

using Books_of_types = std::map<std::string, PartitionBook>;

/// Operands of a rank.
struct Operands {
  std::map<std::string, Variable> x;  ///< by node type
  std::map<EdgeType, Variable> w;     ///< a number for each edge
  std::map<EdgeType, Variable> z;     ///< rows of a relation's own for its sources
};

Operands operands(const TypedGraph& typed, const Books_of_types& books, const Graph& graph) {
  Operands o;
  const int rank = graph.comm().rank();
  std::uint64_t stream = 10;
  for (const auto& [type, size] : typed.nodes)
    o.x[type] =
        Variable(local_rows(random_values(size * width, stream++), books.at(type), rank, width), true);
  for (const auto& [type, whole] : typed.relations) {
    o.w[type] = Variable(edge_rows(random_values(std::ssize(whole.src), stream++), graph[type]), true);
    o.z[type] = Variable(
        local_rows(random_values(whole.num_src * width, stream++), books.at(type.source), rank, width), true);
  }
  return o;
}

/// Papers are read by three relations as one variable, and by none as another.
std::map<EdgeType, Graph::MessageReduce> messages(const Operands& o) {
  const EdgeType writes{"author", "writes", "paper"}, cites{"paper", "cites", "paper"};
  const EdgeType written_by{"paper", "written_by", "author"}, about{"paper", "about", "field"};
  const EdgeType of{"field", "of", "paper"}, knows{"author", "knows", "author"};
  return {{writes, {fn::u_mul_e(o.x.at("author"), o.w.at(writes)), Reduce::sum}},
          {cites, {fn::u_mul_e(o.x.at("paper"), o.w.at(cites)), Reduce::mean}},
          {written_by, {fn::copy_u(o.x.at("paper")), Reduce::max}},
          {about, {fn::u_add_v(o.x.at("paper"), o.x.at("field")), Reduce::sum}},
          {of, {fn::copy_u(o.z.at(of)), Reduce::mean}},
          {knows, {fn::copy_u(o.x.at("author")), Reduce::sum}}};
}

/// The rows of this rank of a result or gradient on one process.
Tensor mine(const Tensor& whole, const PartitionBook& book, int rank) {
  return whole.slice_rows(book.begin(rank), book.end(rank)).clone();
}

/// The sum of the results, each weighted by its value of `weights`, backward.
void run_backward(Tape& tape, const Graph::Rows& results, const std::map<std::string, Tensor>& weights) {
  Variable total;
  for (const auto& [type, y] : results) {
    const Variable part = sum(y * Variable(weights.at(type)));
    total = total.defined() ? total + part : part;
  }
  tape.backward(total);
}

struct Outcome {
  std::map<std::string, Tensor> results, grad_x;
  std::map<EdgeType, Tensor> grad_w, grad_z;
};

Outcome outcome(const TypedGraph& typed, const Books_of_types& books, const Graph& graph, CrossReduce op) {
  const Operands o = operands(typed, books, graph);
  Tape tape;
  const Graph::Rows results = graph.multi_update_all(messages(o), op);
  std::map<std::string, Tensor> weights;
  Outcome found;
  for (const auto& [type, y] : results) {
    const Index row = y.shape().row_size();
    weights[type] =
        local_rows(random_values(typed.size(type) * row, 99), books.at(type), graph.comm().rank(), row)
            .reshape(y.shape());
    found.results[type] = y.value();
  }
  run_backward(tape, results, weights);
  for (const auto& [type, x] : o.x) found.grad_x[type] = x.grad();
  for (const auto& [type, w] : o.w) found.grad_w[type] = w.grad();
  for (const auto& [type, z] : o.z) found.grad_z[type] = z.grad();
  return found;
}

Books_of_types whole_books(const TypedGraph& typed) {
  return typed_books(typed, 1).front();
}

double error_of(const Tensor& found, const Tensor& want) {
  if (!found.defined() || !want.defined()) return found.defined() == want.defined() ? 0 : 1;
  return relative_error(found, want);
}

}  // namespace

TEST_CASE("results and gradients are those of one process, in every mode and for every partition") {
  const Communicator comm = Communicator::world();
  const TypedGraph typed = typed_graph();
  const Graph alone = shard(Communicator::self(), typed, whole_books(typed));
  for (const CrossReduce op : all_reducers) {
    const Outcome want = outcome(typed, whole_books(typed), alone, op);
    for (const auto& books : typed_books(typed, comm.size())) {
      for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::sequential, HaloMode::one_shot}) {
        for (const Index bytes : {Index{0}, Index{100}}) {
          CAPTURE(static_cast<int>(op));
          CAPTURE(static_cast<int>(mode));
          CAPTURE(bytes);
          const Graph graph = shard(comm, typed, books, {.mode = mode, .max_halo_bytes = bytes});
          const Outcome found = outcome(typed, books, graph, op);
          for (const auto& [type, size] : typed.nodes) {
            CAPTURE(type);
            CHECK(relative_error(found.results.at(type),
                                 mine(want.results.at(type), books.at(type), comm.rank())) < tolerance());
            CHECK(relative_error(found.grad_x.at(type),
                                 mine(want.grad_x.at(type), books.at(type), comm.rank())) < tolerance());
          }
          for (const auto& [type, whole] : typed.relations) {
            CAPTURE(type.relation);
            if (want.grad_z.at(type).defined())
              CHECK(error_of(found.grad_z.at(type),
                             mine(want.grad_z.at(type), books.at(type.source), comm.rank())) < tolerance());
            if (!want.grad_w.at(type).defined()) continue;
            std::vector<double> by_id(whole.src.size());
            for (Index e = 0; e < alone[type].num_edges(); ++e)
              by_id[static_cast<std::size_t>(alone[type].edge_ids()[e])] = want.grad_w.at(type).data()[e];
            CHECK(relative_error(found.grad_w.at(type), edge_values(by_id, graph[type])) < tolerance());
          }
        }
      }
    }
  }
}

TEST_CASE("results on one process are those of the definition") {
  const TypedGraph typed = typed_graph();
  const Graph graph = shard(Communicator::self(), typed, whole_books(typed));
  const Operands o = operands(typed, whole_books(typed), graph);
  const auto work = messages(o);
  for (const CrossReduce op : all_reducers) {
    const Graph::Rows found = graph.multi_update_all(work, op);
    for (const auto& [type, size] : typed.nodes) {
      std::vector<Tensor> parts;  // in the order of the graph's edge types
      for (const EdgeType& edge : graph.edge_types())
        if (edge.destination == type)
          parts.push_back(graph[edge].update_all(work.at(edge).message, work.at(edge).reduce).value());
      std::vector<double> want;
      const Index n = parts.front().size();
      for (Index i = 0; i < n; ++i) {
        std::vector<double> values;
        for (const Tensor& part : parts) values.push_back(std::as_const(part).data()[i]);
        double total = 0;
        for (const double value : values) total += value;
        if (op == CrossReduce::sum) want.push_back(total);
        if (op == CrossReduce::mean) want.push_back(total / static_cast<double>(values.size()));
        if (op == CrossReduce::max) want.push_back(*std::max_element(values.begin(), values.end()));
        if (op == CrossReduce::min) want.push_back(*std::min_element(values.begin(), values.end()));
      }
      if (op == CrossReduce::stack)
        for (Index v = 0; v < size; ++v)
          for (const Tensor& part : parts)
            for (Index j = 0; j < width; ++j) want.push_back(part.row(v)[j]);
      CHECK(relative_error(found.at(type).value(), want) < tolerance());
      if (op == CrossReduce::stack) CHECK(found.at(type).shape() == Shape{size, std::ssize(parts), width});
    }
  }
}

TEST_CASE("the first relation gets the gradient of equal results and of NaN, in whatever order they come") {
  const real nan = std::numeric_limits<real>::quiet_NaN();
  for (const CrossReduce op : {CrossReduce::max, CrossReduce::min})
    for (const real largest : {op == CrossReduce::max ? real{1} : real{-1}, nan}) {
      std::vector<std::size_t> order{0, 1, 2, 3};
      do {
        std::vector<Variable> results;
        for (const real x : {real{0}, largest, largest, real{0}})
          results.emplace_back(Tensor::full({2, 1}, x), true);
        CrossReducer reducer(op, results.size());
        Tape tape;
        for (const std::size_t k : order) reducer.take(k, results[k]);
        tape.backward(reducer.result(), Tensor::full({2, 1}, 1));
        for (std::size_t k = 0; k < results.size(); ++k)
          CHECK(results[k].grad().row(1)[0] == (k == 1 ? 1 : 0));
      } while (std::next_permutation(order.begin(), order.end()));
    }
}

TEST_CASE("gradients agree with finite differences") {
  const Communicator comm = Communicator::world();
  const TypedGraph typed = typed_graph();
  const auto books = typed_books(typed, comm.size()).back();
  for (const CrossReduce op : {CrossReduce::sum, CrossReduce::mean, CrossReduce::stack}) {
    const Graph graph = shard(comm, typed, books);
    const Operands o = operands(typed, books, graph);
    const auto f = [&](const std::vector<Variable>& in) {
      Operands moved = o;
      moved.x = {{"paper", in[0]}, {"author", in[1]}, {"field", in[2]}};
      auto work = messages(moved);
      work.at({"paper", "written_by", "author"}).reduce = Reduce::mean;  // smooth
      std::vector<Variable> parts;
      for (const auto& [type, y] : graph.multi_update_all(work, op))
        parts.push_back(sum(y * y, ReduceDim::all));
      return concat_rows(parts);
    };
    CHECK(gradcheck(f, {o.x.at("paper"), o.x.at("author"), o.x.at("field")},
                    {.directions = 4, .sum_over_ranks = [&](double x) { return comm.all_reduce(x); }}) < 1);
  }
}

TEST_CASE("rows that several relations read travel once, and their gradients once back") {
  const Communicator comm = Communicator::world();
  const TypedGraph typed = typed_graph();
  bool even = true;
  for (const auto& books : typed_books(typed, comm.size())) {
    std::uint64_t of_union = 0, one_by_one = 0;  // rows of papers that change ranks
    for (int reader = 0; reader < comm.size(); ++reader) {
      std::set<Index> all;
      for (const auto& [type, whole] : typed.relations) {
        if (type.source != "paper") continue;
        std::set<Index> rows;
        for (std::size_t k = 0; k < whole.src.size(); ++k)
          if (books.at(type.destination).owner(whole.dst[k]) == reader &&
              books.at("paper").owner(whole.src[k]) != reader)
            rows.insert(whole.src[k]);
        one_by_one += rows.size();
        all.insert(rows.begin(), rows.end());
      }
      of_union += all.size();
    }
    if (std::exchange(even, false) && comm.size() > 1) CHECK(of_union < one_by_one);
    for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::sequential, HaloMode::one_shot}) {
      for (const bool reads_values : {false, true}) {
        CAPTURE(static_cast<int>(mode));
        CAPTURE(reads_values);
        const Graph graph = shard(comm, typed, books, {.mode = mode});
        const Variable x(Tensor::full({graph.num_nodes("paper"), width}, 1), true);
        std::map<EdgeType, Graph::MessageReduce> work;
        for (const EdgeType& type : graph.edge_types()) {
          if (type.source != "paper") continue;
          const Variable w(Tensor::full({graph[type].num_edges(), 1}, 1), true);
          work.emplace(type,
                       Graph::MessageReduce{reads_values ? fn::u_mul_e(x, w) : fn::copy_u(x), Reduce::sum});
        }
        const auto sent = [&] { return comm.all_reduce(static_cast<std::int64_t>(comm.stats().bytes_sent)); };
        (void)graph.multi_update_all(work, CrossReduce::sum);  // makes what the graph keeps
        Tape tape;
        const auto start = sent(), idle = sent() - start, before = sent();
        const Graph::Rows y = graph.multi_update_all(work, CrossReduce::sum);
        const auto forward = sent() - before - idle;
        Variable total;
        for (const auto& [type, rows] : y) total = total.defined() ? total + sum(rows) : sum(rows);
        const auto middle = sent();
        tape.backward(total);
        const auto backward = sent() - middle - idle;
        const auto rows = static_cast<std::int64_t>(of_union * width * sizeof(real));
        // which relations read the same variable: a number for each of the three, from each rank
        const std::int64_t agreement = comm.size() > 1 ? 3 * 8 * comm.size() : 0;
        CHECK(forward == rows + agreement);
        CHECK(backward == (reads_values && mode == HaloMode::rematerialize ? 2 : 1) * rows);
      }
    }
  }
}

TEST_CASE("fields of the frames are reduced to a field of the destinations") {
  const Communicator comm = Communicator::world();
  const TypedGraph typed = typed_graph();
  const auto books = typed_books(typed, comm.size()).front();
  const Graph graph = shard(comm, typed, books);
  const Operands o = operands(typed, books, graph);
  for (const auto& [type, x] : o.x) graph.ndata(type)["h"] = x;
  const EdgeType writes{"author", "writes", "paper"}, cites{"paper", "cites", "paper"};
  graph.edata(writes)["w"] = o.w.at(writes);
  graph.multi_update_all({{writes, {fn::u_mul_e("h", "w", "m"), fn::sum("m", "y")}},
                          {cites, {fn::copy_u("h", "m"), fn::mean("m", "y")}}},
                         CrossReduce::sum);
  const Tensor want =
      graph
          .multi_update_all({{writes, {fn::u_mul_e(o.x.at("author"), o.w.at(writes)), Reduce::sum}},
                             {cites, {fn::copy_u(o.x.at("paper")), Reduce::mean}}},
                            CrossReduce::sum)
          .at("paper")
          .value();
  CHECK(relative_error(graph.ndata("paper").at("y").value(), want) == 0);
  CHECK_FALSE(graph.ndata("author").contains("y"));
  const auto refused = [&](const std::map<EdgeType, Graph::NamedMessageReduce>& work) {
    return thrown_by_all<InputError>(comm, [&] { graph.multi_update_all(work, CrossReduce::sum); });
  };
  CHECK(refused({{writes, {fn::copy_u("h", "m"), fn::sum("m", "y")}},
                 {cites, {fn::copy_u("h", "m"), fn::sum("m", "z")}}}) ==
        "multi_update_all: relations into 'paper' write the fields \"y\" and \"z\", expected one");
  CHECK(refused({{writes, {fn::copy_u("h", "m"), fn::sum("n", "y")}}}) ==
        "multi_update_all: the message of 'author:writes:paper' is called \"m\", the reduction wants \"n\"");
  CHECK(refused({{writes, {fn::copy_u("g", "m"), fn::sum("m", "y")}}})
            .starts_with("ndata of 'author' has no field \"g\""));
  CHECK(refused({{{"a", "b", "c"}, {fn::copy_u("g", "m"), fn::sum("m", "y")}}})
            .starts_with("there is no edge type 'a:b:c'; the edge types are "));
}

TEST_CASE("wrong operands are refused on all ranks, and the graph works afterwards") {
  const Communicator comm = Communicator::world();
  const TypedGraph typed = typed_graph();
  const auto books = typed_books(typed, comm.size()).front();
  const Graph graph = shard(comm, typed, books);
  const bool bad = comm.rank() == comm.size() - 1;
  const Index papers = graph.num_nodes("paper");
  const EdgeType cites{"paper", "cites", "paper"}, about{"paper", "about", "field"};
  const EdgeType written_by{"paper", "written_by", "author"}, writes{"author", "writes", "paper"};
  const auto refused = [&](const Variable& x, const Variable& a) {
    return thrown_by_all<Error>(comm, [&] {
      (void)graph.multi_update_all({{cites, {fn::copy_u(x), Reduce::sum}},
                                    {about, {fn::copy_u(x), Reduce::sum}},
                                    {writes, {fn::copy_u(a), Reduce::sum}}},
                                   CrossReduce::max);
    });
  };
  const Variable x(Tensor::full({papers, 2}, 1)), a(Tensor::full({graph.num_nodes("author"), 2}, 1));
  CHECK(refused(Tensor(Shape{papers + (bad ? 1 : 0), 2}), a).find("source rows of shape [") == 0);
  CHECK(refused(bad ? Variable() : x, a) ==
        "multi_update_all: an operand of the message of 'paper:cites:paper' is undefined");
  CHECK(refused(x, Tensor(Shape{a.num_rows(), 3})).find("relations give results of shapes [") == 0);
  if (comm.size() > 1)
    CHECK(refused(Tensor(bad ? Shape{papers, 1, 2} : Shape{papers, 2}), a)
              .find("different shape of the source rows") != std::string::npos);
  CHECK(refused(x, a) == "nothing");
}

TEST_CASE("memory of the backward pass does not grow with the number of relations") {
  const Communicator comm = Communicator::world();
  constexpr Index nodes = 4000, wide = 64;
  const PartitionBook book = PartitionBook::even(nodes, comm.size());
  std::vector<std::size_t> peaks;
  for (const int relations : {2, 6}) {
    std::vector<EdgeTypeSpec> types;
    for (int r = 0; r < relations; ++r)
      types.push_back({.type = {"v", "r" + std::to_string(r), "v"},
                       .edges = edges_of_rank(comm, random_graph("r", nodes, nodes, 8000, 20 + r), book)});
    const Graph graph(comm, {{.name = "v", .book = book}}, std::move(types));
    const Variable x(Tensor::full({graph.num_nodes("v"), wide}, 1), true);
    const auto run = [&] {
      std::map<EdgeType, Graph::MessageReduce> work;
      for (const EdgeType& type : graph.edge_types())
        work.emplace(type, Graph::MessageReduce{fn::copy_u(x), Reduce::sum});
      Tape tape;
      const Variable y = graph.multi_update_all(work, CrossReduce::sum).at("v");
      tape.backward(y, Tensor::full(y.shape(), 1));
    };
    run();  // what the graph keeps
    Variable leaf = x;
    leaf.zero_grad();
    const std::size_t before = live_bytes();
    reset_peak_bytes();
    run();
    peaks.push_back(peak_bytes() - before);
  }
  // random parts of few edges: with more relations the union of what they read is larger
  const std::size_t more_halo = comm.size() > 1 ? 3 * nodes * wide * sizeof(real) : 0;
  CHECK(peaks[1] <= peaks[0] + more_halo + 200000);
}
