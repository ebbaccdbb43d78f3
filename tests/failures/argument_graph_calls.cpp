// SPDX-License-Identifier: MIT
#include "failures/argument_calls.hpp"

#include <sar/graph/message/degree_factors.hpp>

namespace sar::test {
namespace {

const Values<HaloMode> mode{"mode", HaloMode::rematerialize, HaloMode::one_shot};
const Values<int> depth{"pipeline_depth", 1, 2};
const Values<bool> in_double{"reproducible", false, true};
const Values<Index> bytes{"max_halo_bytes", 24, 48};
const Values<Index> block{"edge_chunk", 64, 128};
const Values<HaloFormat> format{"halo_format", HaloFormat::exact, HaloFormat::bf16};

GraphOptions options_of(HaloMode by, int deep, bool twice, Index most, Index edges, HaloFormat rows) {
  GraphOptions options;
  options.mode = by;
  options.pipeline_depth = deep;
  options.reproducible = twice;
  options.max_halo_bytes = most;
  options.edge_chunk = edges;
  options.halo_format = rows;
  return options;
}

void add_messages(ArgumentCalls& calls, const Communicator& comm) {
  const std::string manager = "graph/message/graph.hpp Graph";
  add(
      calls, comm, manager + "::update_all",
      [](Scene& s, bool copies, Reduce reduce) {
        (void)s.graph.update_all(copies ? fn::copy_u(s.x) : fn::u_mul_e(s.x, s.e), reduce);
      },
      Values<bool>{"message", true, false}, Values<Reduce>{"reduction", Reduce::sum, Reduce::mean});
  add(
      calls, comm, manager + "::update_all",
      [](Scene& s, bool records) {
        std::optional<Tape> tape;
        if (records) tape.emplace();
        (void)s.graph.update_all(fn::copy_u(s.x), fn::sum);
      },
      Values<bool>{"recording for a backward pass (Tape in scope)", true, false});
  add(
      calls, comm, manager + "::update_all",
      [](Scene& s, Index width, bool wants) {
        const Variable x(scene_values({s.graph.num_src_nodes(), width}, 1), wants);
        (void)s.graph.update_all(fn::copy_u(x), fn::sum);
      },
      Values<Index>{"shape of the source rows", 2, 3},
      Values<bool>{"wish for the gradient of the source rows", true, false});
  add(
      calls, comm, manager + "::start_update_all",
      [](Scene& s, bool adds) {
        (void)s.graph.start_update_all(fn::copy_u(s.x), adds ? Reduce::sum : Reduce::max).finish();
      },
      Values<bool>{"reduction", true, false});
  add(
      calls, comm, manager,
      [](Scene& s, auto... options) {
        const Graph graph(s.comm, s.book, s.book, scene_edges(s.book, s.comm.rank()), true,
                          options_of(options...));
        (void)graph.update_all(fn::copy_u(s.x), fn::sum);
      },
      mode, depth, in_double, bytes, block, format);
  add(
      calls, comm, manager + "::update_all of a function",
      [](Scene& s, Reduce reduce) {
        (void)s.graph.update_all([&](const EdgeBatch& edges) { return edges.src(s.x); }, reduce);
      },
      Values<Reduce>{"reduction", Reduce::sum, Reduce::mean});
  add(
      calls, comm, manager + "::apply_edges of a function",
      [](Scene& s, Index width) {
        const Variable x(scene_values({s.graph.num_src_nodes(), width}, 1));
        (void)s.graph.apply_edges([&](const EdgeBatch& edges) { return edges.src(x); });
      },
      Values<Index>{"shape of the message", 2, 3});
  add(
      calls, comm, manager + "::apply_edges",
      [](Scene& s, bool adds) {
        (void)s.graph.apply_edges(adds ? fn::u_add_v(s.x, s.x) : fn::u_mul_v(s.x, s.x));
      },
      Values<bool>{"message", true, false});
  add(
      calls, comm,
      "graph/message/degree_factors.hpp scaled_sum, graph/message/degree_factors.hpp start_scaled_sum",
      [](Scene& s, bool wants) { (void)scaled_sum(s.graph, s.x, wants ? s.e : s.e.detach(), {}); },
      Values<bool>{"wish for the gradient of the edge rows", true, false});
  add(
      calls, comm, "graph/message/typed_sum.hpp typed_sum, graph/message/typed_sum.hpp start_typed_sum",
      [](Scene& s, Index types, bool weighted) {
        const Variable weight(scene_values({types, scene_width, 2}, 9));
        const EdgeTypes of(std::vector<Index>(static_cast<std::size_t>(s.graph.num_edges()), 1));
        (void)typed_sum(s.graph, s.x, weight, of, weighted ? s.e : Variable());
      },
      Values<Index>{"number of edge types", 2, 3}, Values<bool>{"shape of the edge weights", true, false});
  add(
      calls, comm, "graph/message/typed_sum.hpp typed_attention",
      [](Scene& s, Index types) {
        const Variable query(scene_values({s.graph.num_dst_nodes(), 1, scene_width}, 4));
        const Variable matrices(scene_values({types, 1, scene_width, scene_width}, 8));
        const EdgeTypes of(std::vector<Index>(static_cast<std::size_t>(s.graph.num_edges()), 1));
        const Variable rows = reshape(concat_columns({s.x, s.x}), {s.x.num_rows(), 2, 1, scene_width});
        (void)typed_attention(s.graph, rows, query, matrices, matrices, of);
      },
      Values<Index>{"number of types", 2, 3});
  add(
      calls, comm, "nn/conv/edge_weight_norm.hpp edge_weight_norm",
      [](Scene& s, EdgeNorm norm) { (void)edge_weight_norm(s.graph, s.e, norm); },
      Values<EdgeNorm>{"message", EdgeNorm::right, EdgeNorm::both});
  add(
      calls, comm, "graph/message/attention.hpp edge_softmax",
      [](Scene& s, NormBy by) { (void)edge_softmax(s.graph, s.e, by); },
      Values<NormBy>{"norm_by", NormBy::dst, NormBy::src});
  const auto heads = [](const Variable& x) { return reshape(x, Shape{x.num_rows(), 1, scene_width}); };
  const auto weights = [] { return Variable(scene_values({1, 1, scene_width}, 7), true); };
  const Values<real> slope{"negative slope", real(0.2), real(0.1)};
  const Values<double> dropout{"dropout", 0.5, 0.25};
  const Values<std::uint64_t> seed{"seed of dropout", 0, 1};
  const auto dropping = [](double p, std::uint64_t seed_of) {
    return AttentionOptions{.dropout = p, .dropout_key = {.seed = seed_of}};
  };
  const std::string header = "graph/message/attention.hpp ";
  add(
      calls, comm, header + "gat_attention",
      [=](Scene& s, real by, double p, std::uint64_t of) {
        const Variable dst(scene_values({s.graph.num_dst_nodes(), 1}, 4));
        (void)gat_attention(s.graph, heads(s.x), weights(), dst, by, dropping(p, of));
      },
      slope, dropout, seed);
  add(
      calls, comm, header + "typed_gat_attention",
      [=](Scene& s, real by, Index types) {
        const Variable dst(scene_values({s.graph.num_dst_nodes(), 1}, 4)), type(scene_values({types, 1}, 4));
        const EdgeTypes of(std::vector<Index>(static_cast<std::size_t>(s.graph.num_edges()), 1));
        (void)typed_gat_attention(s.graph, heads(s.x), weights(), dst, type, of, by);
      },
      slope, Values<Index>{"number of types", 2, 3});
  add(
      calls, comm, header + "gatv2_attention",
      [=](Scene& s, real by, double p, std::uint64_t of) {
        (void)gatv2_attention(s.graph, heads(s.x), heads(s.x), weights(), by, dropping(p, of));
      },
      slope, dropout, seed);
  add(
      calls, comm, header + "dot_attention",
      [=](Scene& s, real scale, double p) {
        (void)dot_attention(s.graph, heads(s.x), heads(s.x), heads(s.x), scale, dropping(p, 0));
      },
      Values<real>{"scale", 1, 2}, dropout);
  add(
      calls, comm, header + "cosine_attention",
      [=](Scene& s, double p) {
        (void)cosine_attention(s.graph, s.x, s.x, Variable(Tensor::full({1}, 2)), dropping(p, 0));
      },
      dropout);
}

void add_relations(ArgumentCalls& calls, const Communicator& comm) {
  const EdgeType type{"user", "follows", "user"}, second{"user", "knows", "user"};
  const auto make = [=](const Scene& s, const GraphOptions& options) {
    const EdgeList edges = scene_edges(s.book, s.comm.rank());
    return Graph(s.comm, {{.name = "user", .book = s.book}},
                 {{.type = type, .edges = edges}, {.type = second, .edges = edges}}, options);
  };
  add(
      calls, comm, "graph/message/graph.hpp Graph",
      [=](Scene& s, auto... options) { (void)make(s, options_of(options...)); }, mode, depth, in_double,
      bytes, block, format);
  add(
      calls, comm, "graph/message/graph.hpp Graph::multi_update_all",
      [=](Scene& s, CrossReduce reduce) {
        const std::map<EdgeType, Graph::MessageReduce> messages{{type, {fn::copy_u(s.x), Reduce::sum}},
                                                                {second, {fn::copy_u(s.x), Reduce::sum}}};
        (void)make(s, {}).multi_update_all(messages, reduce);
      },
      Values<CrossReduce>{"cross reduction", CrossReduce::sum, CrossReduce::max});
  add(
      calls, comm, "graph/message/graph.hpp Graph::call of relations",
      [=](Scene& s, std::size_t relations) {
        const auto sum = [](const Graph& graph, const Variable& x) {
          return graph.update_all(fn::copy_u(x), fn::sum);
        };
        std::vector<Graph::RelationCall> all{{type, sum, false}, {second, sum, false}};
        all.resize(relations);
        make(s, {}).call(s.x, all, [](std::size_t, const Variable&) {});
      },
      Values<std::size_t>{"number of relations", 2, 1});
}

void add_host_graphs(ArgumentCalls& calls, const Communicator& comm) {
  const auto make = [](Scene& s, const HostGraphOptions& options) {
    std::vector<std::int64_t> nodes;
    for (Index v = s.book.begin(s.comm.rank()); v < s.book.end(s.comm.rank()); ++v) nodes.push_back(v);
    const EdgeList edges = scene_edges(s.book, s.comm.rank());
    return HostGraph(s.comm, nodes, GlobalEdges{.src = edges.src, .dst = edges.dst}, options);
  };
  add(
      calls, comm, "graph/construct/host_graph.hpp HostGraph",
      [=](Scene& s, bool reverse, auto... options) {
        (void)make(s, {.add_reverse_edges = reverse, .graph = options_of(options...)});
      },
      Values<bool>{"add_reverse_edges", false, true}, mode, depth, in_double, bytes, block, format);
  add(
      calls, comm, "graph/construct/host_graph.hpp HostGraph::to_graph_order",
      [=](Scene& s, Index width, bool both) {
        const HostGraph graph = make(s, {.add_reverse_edges = true});
        const Tensor rows = Tensor::zeros({graph.num_given_edges(), width});
        (void)(both ? graph.to_graph_order(rows, rows) : graph.to_graph_order(rows));
      },
      Values<Index>{"shape of a row", 2, 1}, Values<bool>{"choice of reverse rows", false, true});
  add(
      calls, comm, "graph/construct/host_graph.hpp HostGraph::to_host_order",
      [=](Scene& s, Index width, bool reverse) {
        const HostGraph graph = make(s, {.add_reverse_edges = true});
        (void)graph.to_host_order(Tensor::zeros({graph.num_edges(), width}), reverse);
      },
      Values<Index>{"shape of a row", 2, 1}, Values<bool>{"choice of reverse rows", false, true});
}

}  // namespace

void add_graph_arguments(ArgumentCalls& calls, const Communicator& comm) {
  add_messages(calls, comm);
  add_relations(calls, comm);
  add_host_graphs(calls, comm);
}

}  // namespace sar::test
