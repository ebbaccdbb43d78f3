// SPDX-License-Identifier: MIT

/// Graph: types, relations with a halo in common, frames, the homogeneous form, wrong input.
#include "graph/hetero/typed_test_graph.hpp"
#include "support/reference.hpp"
#include "support/thrown.hpp"

#include <doctest/doctest.h>

#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/topology/sharded_graph.hpp>

#include <algorithm>
#include <set>

using namespace sar;
using namespace sar::test;

namespace {

/// The whole graph of the homogeneous form: nodes of type t begin at the sum of the sizes before.
WholeGraph homogeneous(const TypedGraph& typed) {
  std::map<std::string, Index> first;
  WholeGraph whole{"homogeneous", 0, 0, true, {}, {}};
  for (const auto& [type, size] : typed.nodes) {
    first[type] = whole.num_src;
    whole.num_src = whole.num_dst += size;
  }
  for (const auto& [type, graph] : typed.relations) {
    for (const Index u : graph.src) whole.src.push_back(first[type.source] + u);
    for (const Index v : graph.dst) whole.dst.push_back(first[type.destination] + v);
  }
  return whole;
}

}  // namespace

TEST_CASE("types are found by name, and sizes are those of the rank and of the graph") {
  const Communicator comm = Communicator::world();
  const TypedGraph typed = typed_graph();
  for (const auto& books : typed_books(typed, comm.size())) {
    const Graph graph = shard(comm, typed, books);
    CHECK(graph.node_types() == std::vector<std::string>{"paper", "author", "field"});
    CHECK(graph.edge_types().size() == 6);
    for (const auto& [type, size] : typed.nodes) {
      CHECK(graph.num_global_nodes(type) == size);
      CHECK(graph.num_nodes(type) == books.at(type).num_nodes(comm.rank()));
      CHECK(graph.book(type) == books.at(type));
      CHECK(std::ssize(graph.node_ids(type)) == graph.num_nodes(type));
    }
    for (const auto& [type, whole] : typed.relations) {
      CHECK(graph[type].num_global_edges() == std::ssize(whole.src));
      CHECK(graph[type].num_dst_nodes() == graph.num_nodes(type.destination));
      CHECK(graph[type.relation].shards() == graph[type].shards());
      CHECK(graph[type.canonical_name()].shards() == graph[type].shards());
      CHECK(&graph[type].srcdata() == &graph.ndata(type.source));
      CHECK(&graph[type].dstdata() == &graph.dstdata(type.destination));
      CHECK(graph[type].is_block() == (type.source == type.destination));
    }
    CHECK(&graph[{"author", "writes", "paper"}].edata() == &graph.edata("writes"));
  }
}

TEST_CASE("relations with the same sources share a halo, and give what they give alone") {
  const Communicator comm = Communicator::world();
  const TypedGraph typed = typed_graph();
  for (const auto& books : typed_books(typed, comm.size())) {
    for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::sequential, HaloMode::one_shot}) {
      const GraphOptions options{.mode = mode, .max_halo_bytes = mode == HaloMode::sequential ? 100 : 0};
      const Graph graph = shard(comm, typed, books, options);
      CHECK(graph["cites"].topology().shared_rounds == graph["about"].topology().shared_rounds);
      for (const auto& [type, whole] : typed.relations) {
        CAPTURE(type.relation);
        const Books ends{books.at(type.source), books.at(type.destination)};
        const Graph alone = shard(comm, whole, ends, options);
        const auto u = random_values(whole.num_src * 5, 1), g = random_values(whole.num_dst * 5, 2);
        const auto e = random_values(std::ssize(whole.src), 3);
        for (const Reduce reduce : {Reduce::sum, Reduce::mean, Reduce::max, Reduce::min}) {
          std::vector<Tensor> results;
          for (const Graph& each : {alone, graph[type]}) {
            const Variable x(local_rows(u, ends.src, comm.rank(), 5), true);
            const Variable w(edge_rows(e, each), true);
            Tape tape;
            const Variable y = each.update_all(fn::u_mul_e(x, w), reduce);
            tape.backward(y, local_rows(g, ends.dst, comm.rank(), 5));
            for (const Tensor& t : {y.value(), x.grad(), w.grad()}) results.push_back(t);
          }
          for (std::size_t k = 0; k < 3; ++k)
            CHECK(relative_error(results[k + 3], {results[k].data(), results[k].data() + results[k].size()}) <
                  tolerance());
        }
      }
    }
  }
}

TEST_CASE("the homogeneous form has the nodes and edges of all types") {
  const Communicator comm = Communicator::world();
  const TypedGraph typed = typed_graph();
  const WholeGraph whole = homogeneous(typed);
  for (const auto& books : typed_books(typed, comm.size())) {
    const Graph graph = shard(comm, typed, books);
    const HomogeneousForm& form = graph.to_homogeneous();
    CHECK(&form == &graph.to_homogeneous());
    CHECK(form.graph.num_global_nodes() == whole.num_src);
    CHECK(form.graph.num_global_edges() == std::ssize(whole.src));
    REQUIRE(form.first_row.size() == 4);
    CHECK(form.first_row.back() == form.graph.num_nodes());
    for (Index e = 0; e < form.graph.num_edges(); ++e) {
      Index id = form.graph.edge_ids()[e];
      std::size_t type = 0;
      while (id >= std::ssize(typed.relations[type].second.src))
        id -= std::ssize(typed.relations[type++].second.src);
      CHECK(form.etypes.numbers()[e] == type);
    }

    // a sum over all in-edges, by the definition on the whole graph
    std::vector<double> x = random_values(whole.num_src * 3, 4), y(x.size(), 0);
    for (std::size_t k = 0; k < whole.src.size(); ++k)
      for (Index j = 0; j < 3; ++j)
        y[static_cast<std::size_t>(whole.dst[k] * 3 + j)] +=
            x[static_cast<std::size_t>(whole.src[k] * 3 + j)];
    std::map<std::string, Variable> rows;
    std::vector<double> want;
    Index first = 0;
    for (const auto& [type, size] : typed.nodes) {
      const PartitionBook& book = books.at(type);
      const auto part = [&](const std::vector<double>& all) {
        return slice({all.begin() + first * 3, all.begin() + (first + size) * 3}, book, comm.rank(), 3);
      };
      rows[type] = Variable(to_tensor(part(x), {book.num_nodes(comm.rank()), 3}), true);
      const auto mine = part(y);
      want.insert(want.end(), mine.begin(), mine.end());
      for (Index v = book.begin(comm.rank()); v < book.end(comm.rank()); ++v)
        CHECK(form.graph.src_ids()[form.first_row[rows.size() == 1 ? 0
                                                  : first == 50    ? 1
                                                                   : 2] +
                                   v - book.begin(comm.rank())] == first + v);
      first += size;
    }
    Tape tape;
    const Variable all = form.concat(rows);
    const Variable sum = form.graph.update_all(fn::copy_u(all), fn::sum);
    CHECK(relative_error(sum.value(), want) < tolerance());
    const Variable papers = form.rows_of(sum, "paper");
    CHECK(papers.num_rows() == graph.num_nodes("paper"));
    tape.backward(papers, Tensor::full(papers.shape(), 1));
    CHECK(rows.at("author").grad().defined());
  }
}

TEST_CASE("one type is the homogeneous graph, bit for bit") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  for (const Books& books : test_books(whole, comm.size())) {
    const Graph plain = shard(comm, whole, books, {});
    const Graph typed(comm, {{.name = "v", .book = books.src}},
                      {{.type = {"v", "e", "v"}, .edges = edges_of_rank(comm, whole, books.dst)}});
    for (const Graph& graph : {typed["e"], typed.to_homogeneous().graph}) {
      CHECK(graph.edge_ids() == plain.edge_ids());
      CHECK(graph.src_ids() == plain.src_ids());
      CHECK(graph.in_degrees() == plain.in_degrees());
      CHECK(graph.out_degrees() == plain.out_degrees());
      CHECK(graph.topology().remote.src == plain.topology().remote.src);
    }
  }
}

TEST_CASE("ids within a type may be any numbers") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = PartitionBook::even(6, comm.size());
  Array<Index> ids;
  for (Index v = book.begin(comm.rank()); v < book.end(comm.rank()); ++v) ids.push_back(1000 - v);
  EdgeList edges;
  for (Index v = book.begin(comm.rank()); v < book.end(comm.rank()); ++v) {
    edges.src.push_back((v + 1) % 6);
    edges.dst.push_back(v);
    edges.id.push_back(500 + v);
  }
  const Graph graph(comm, {{.name = "a", .book = book, .ids = ids}, {.name = "b", .book = book}},
                    {{.type = {"a", "r", "a"}, .edges = edges}, {.type = {"a", "s", "b"}, .edges = edges}});
  CHECK(graph.node_ids("a") == ids);
  const HomogeneousForm& form = graph.to_homogeneous();
  CHECK(form.first_edge_id == std::vector<Index>{0, 506, 1012});
  for (std::size_t i = 0; i < ids.size(); ++i) {
    CHECK(form.graph.src_ids()[i] == ids[i]);
    CHECK(form.graph.src_ids()[ids.size() + i] == 1001 + book.begin(comm.rank()) + static_cast<Index>(i));
  }
  for (Index e = 0; e < form.graph.num_edges(); ++e)
    CHECK(form.etypes.numbers()[e] == (form.graph.edge_ids()[e] < 506 ? 0 : 1));
}

TEST_CASE("wrong types and wrong edges are refused on all ranks") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = PartitionBook::even(4, comm.size());
  const auto make = [&](std::vector<NodeTypeSpec> nodes, std::vector<EdgeTypeSpec> edges) {
    return thrown_by_all<InputError>(comm, [&] { Graph(comm, nodes, edges); });
  };
  const NodeTypeSpec a{.name = "a", .book = book}, b{.name = "b", .book = book};
  CHECK(make({}, {}) == "Graph: there are no node types");
  CHECK(make({a, a}, {}) == "Graph: the node type 'a' is given twice");
  CHECK(make({{.name = "", .book = book}}, {}) == "Graph: a node type has no name");
  CHECK(make({{.name = "a", .book = PartitionBook::even(4, comm.size() + 1)}}, {})
            .starts_with("Graph: the book of the node type 'a' has "));
  CHECK(make({{.name = "a", .book = PartitionBook::even(4 * comm.size(), comm.size()), .ids = {1}}}, {})
            .ends_with(" gives 1 original ids for 4 nodes of type 'a'"));
  CHECK(make({a, b}, {{.type = {"a", "r", "c"}, .edges = {}}}) ==
        "Graph: the edge type 'a:r:c' has the end 'c', which is no node type; the node types are 'a', "
        "'b'");
  CHECK(make({a, b}, {{.type = {"a", "", "b"}, .edges = {}}}) ==
        "Graph: the relation of the edge type from 'a' to 'b' has no name");
  CHECK(make({a, b}, {{.type = {"a", "r", "b"}, .edges = {}}, {.type = {"a", "r", "b"}, .edges = {}}}) ==
        "Graph: the edge type 'a:r:b' is given twice");
  EdgeList no_source, no_destination;
  if (comm.rank() == comm.size() - 1) {
    no_source = {.src = {4}, .dst = {3}, .id = {9}, .weight = {}};
    no_destination = {.src = {0}, .dst = {4}, .id = {9}, .weight = {}};
  }
  CHECK(
      make({a, b}, {{.type = {"a", "r", "b"}, .edges = no_source}})
          .ends_with(
              "edge type 'a:r:b': edge 0 of the rank comes from node 4, but there are 4 nodes of type 'a'"));
  const std::string text = make({a, b}, {{.type = {"a", "r", "b"}, .edges = no_destination}});
  CHECK(text.starts_with("edge type 'a:r:b': "));
  CHECK(text.find("edge 9 goes to node 4, but rank ") != std::string::npos);
  if (comm.size() > 1)
    CHECK(make({{.name = comm.rank() == 0 ? "a" : "b", .book = book}}, {})
              .find("different list of node types") != std::string::npos);

  const Graph graph(comm, {a, b},
                    {{.type = {"a", "r", "b"}, .edges = {}},
                     {.type = {"b", "r", "a"}, .edges = {}},
                     {.type = {"b", "s", "a"}, .edges = {}}});
  CHECK(thrown<InputError>([&] { (void)graph["t"]; }) ==
        "there is no edge type 't'; the edge types are 'a:r:b', 'b:r:a', 'b:s:a'");
  CHECK(thrown<InputError>([&] { (void)graph["r"]; }) ==
        "several edge types are called 'r': 'a:r:b', 'b:r:a'; give the canonical name");
  CHECK(thrown<InputError>([&] {
          (void)graph[{"a", "s", "b"}];
        }) == "there is no edge type 'a:s:b'; the edge types are 'a:r:b', 'b:r:a', 'b:s:a'");
  CHECK(thrown<InputError>([&] { (void)graph.num_nodes("c"); }) ==
        "there is no node type 'c'; the node types are 'a', 'b'");
  CHECK(thrown<InputError>([&] {
          (void)graph.to_homogeneous().concat({{"a", Tensor({1, 1})}});
        }) != "nothing");
}

TEST_CASE("a type may have no nodes at all") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = PartitionBook::even(4, comm.size()), none = PartitionBook::even(0, comm.size());
  const Graph graph(comm, {{.name = "a", .book = book}, {.name = "b", .book = none}},
                    {{.type = {"a", "r", "b"}, .edges = {}}, {.type = {"b", "s", "a"}, .edges = {}}});
  const Variable x(Tensor::full({graph.num_nodes("a"), 2}, 1), true);
  Tape tape;
  const Variable y = graph["r"].update_all(fn::copy_u(x), fn::sum);
  CHECK(y.num_rows() == 0);
  const Variable z = graph["s"].update_all(fn::copy_u(y), fn::sum);
  CHECK(z.num_rows() == graph.num_nodes("a"));
  CHECK(graph.to_homogeneous().graph.num_global_nodes() == 4);
}

TEST_CASE("a graph without types has one node type and one edge type, which are the graph itself") {
  const Communicator comm = Communicator::world();
  for (const WholeGraph& whole : square_graphs()) {
    CAPTURE(whole.name);
    const Books books = test_books(whole, comm.size()).back();
    const Graph graph = test::shard(comm, whole, books, {});
    CHECK(graph.node_types() == std::vector<std::string>{"_N"});
    CHECK(graph.edge_types() == std::vector<EdgeType>{{"_N", "_E", "_N"}});
    CHECK(graph["_E"].shards() == graph.shards());
    CHECK(graph.relation().shards() == graph.shards());
    CHECK(graph.num_nodes("_N") == graph.num_nodes());
    CHECK(graph.num_global_nodes("_N") == whole.num_src);
    CHECK(&graph.ndata("_N") == &graph.ndata());
    // several calls of the only relation fetch for themselves
    const Variable x(Tensor::full({graph.num_nodes(), 2}, 1), true);
    const Graph::RelationCall call{
        {"_N", "_E", "_N"},
        [](const Graph& g, const Variable& rows) { return g.update_all(fn::copy_u(rows), fn::sum); }};
    const Tensor want = graph.update_all(fn::copy_u(x), fn::sum).value();
    std::size_t taken = 0;
    graph.call(x, std::vector<Graph::RelationCall>{call, call}, [&](std::size_t, Variable y) {
      CHECK(std::ranges::equal(y.value().values(), want.values()));
      ++taken;
    });
    CHECK(taken == 2);
    // the homogeneous form is the same graph: its edges are not copied
    const HomogeneousForm& form = graph.to_homogeneous();
    CHECK(form.graph.shards() == graph.shards());
    CHECK(form.first_row == std::vector<Index>{0, graph.num_nodes()});
    CHECK(form.etypes.size() == graph.num_edges());
    CHECK(&form == &graph.to_homogeneous());
  }
  const WholeGraph bipartite = random_graph("bipartite", 12, 5, 30, 3, false);
  const Graph graph = test::shard(comm, bipartite, test_books(bipartite, comm.size()).back(), {});
  CHECK(graph.node_types() == std::vector<std::string>{"_U", "_V"});
  CHECK(graph.edge_types() == std::vector<EdgeType>{{"_U", "_E", "_V"}});
  CHECK(graph.num_global_nodes("_V") == 5);
  CHECK(graph.num_nodes("_V") == graph.num_dst_nodes());
}

TEST_CASE("what needs one relation refuses a graph with several; relations have the options of the handle") {
  const Communicator comm = Communicator::world();
  const TypedGraph typed = typed_graph();
  Graph graph = shard(comm, typed, typed_books(typed, comm.size()).front());
  const Variable x(Tensor::full({graph.num_nodes("paper"), 2}, 1));
  CHECK(thrown_by_all<InputError>(comm, [&] { (void)graph.update_all(fn::copy_u(x), fn::sum); }) ==
        "a graph of 6 edge types (author:writes:paper, paper:cites:paper, paper:written_by:author, "
        "paper:about:field, field:of:paper, author:knows:author) where one is needed, expected "
        "graph[type]");
  CHECK(thrown<InputError>([&] { (void)graph.in_degrees(); }).starts_with("a graph of 6 edge types"));
  CHECK(thrown<InputError>([&] { (void)graph.edata(); }).starts_with("a graph of 6 edge types"));
  Index nodes = 0, edges = 0;
  for (const auto& [type, size] : typed.nodes) nodes += size;
  for (const auto& [type, whole] : typed.relations) edges += std::ssize(whole.src);
  CHECK(graph.num_global_nodes() == nodes);
  CHECK(graph.num_global_edges() == edges);
  CHECK(comm.all_reduce(graph.num_nodes()) == nodes);
  CHECK(comm.all_reduce(graph.num_edges()) == edges);
  graph.set_options({.mode = HaloMode::one_shot});
  CHECK(graph["cites"].options().mode == HaloMode::one_shot);
  CHECK(graph["cites"].node_types() == std::vector<std::string>{"paper"});
  CHECK(graph["writes"].node_types() == std::vector<std::string>{"author", "paper"});
  CHECK(graph["writes"].edge_types() == std::vector<EdgeType>{{"author", "writes", "paper"}});
}
