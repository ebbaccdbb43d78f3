// SPDX-License-Identifier: MIT
#include "failures/scene.hpp"

#include <sar/comm/rows/distributed_rows.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/graph/message/degree_factors.hpp>
#include <sar/graph/partition/partition.hpp>

#include <array>
#include <numeric>
#include <stdexcept>

namespace sar::test {
namespace {

void add_messages(std::vector<Call>& calls, const Communicator& comm) {
  const std::string update_all = "graph/message/graph.hpp Graph::update_all";
  const std::string apply_edges = "graph/message/graph.hpp Graph::apply_edges";
  for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::sequential, HaloMode::one_shot}) {
    const GraphOptions options{.mode = mode, .max_halo_bytes = 24};
    add_operation(
        calls, comm, update_all,
        [](Scene& s) { return [&s] { return s.graph.update_all(fn::u_mul_e(s.x, s.e), fn::sum); }; },
        options);
  }
  const HaloFormat rounded = sizeof(real) == sizeof(float) ? HaloFormat::int8 : HaloFormat::bf16;
  add_operation(
      calls, comm, update_all,
      [](Scene& s) {
        return [&s] {
          const HaloStep step(1, 1);
          return s.graph.update_all(fn::u_mul_e(s.x, s.e), fn::sum);
        };
      },
      GraphOptions{.max_halo_bytes = 24, .halo_format = rounded});
  add_operation(calls, comm, update_all,
                [](Scene& s) { return [&s] { return s.graph.update_all(fn::copy_u(s.x), fn::max); }; });
  for (const Reduce reduce : {Reduce::sum, Reduce::mean, Reduce::max})
    add_operation(calls, comm, "graph/message/started_sum.hpp StartedSum::finish", [reduce](Scene& s) {
      return [&s, reduce] {
        return s.comm.agree([&] {
          StartedSum sum = s.graph.start_update_all(fn::copy_u(s.x), reduce);
          if (s.wrong) throw std::runtime_error("a base that cannot be computed");
          return sum.finish(s.x * real{2});
        });
      };
    });
  add_operation(calls, comm, "graph/message/graph.hpp Graph::start_update_all", [](Scene& s) {
    const Variable x = s.wrong ? Variable(Tensor(Shape{s.graph.num_src_nodes() + 1, 1})) : s.x;
    return [&s, x] { return s.graph.start_update_all(fn::copy_u(x), fn::sum).finish(); };
  });
  add_operation(calls, comm, update_all, [](Scene& s) {
    const MessageFunction function = [&s](const EdgeBatch& edges) {
      if (s.wrong && edges.num_edges() > 0) throw std::runtime_error("a message that cannot be computed");
      return edges.src(s.x) * edges.edata(s.e);
    };
    return [&s, function] { return s.graph.update_all(function, fn::sum); };
  });
  add_operation(calls, comm, apply_edges,
                [](Scene& s) { return [&s] { return s.graph.apply_edges(fn::u_add_v(s.x, s.x)); }; });
  add_operation(calls, comm, apply_edges, [](Scene& s) {
    const MessageFunction function = [&s](const EdgeBatch& edges) { return edges.src(s.x) - edges.dst(s.x); };
    return [&s, function] { return s.graph.apply_edges(function); };
  });
  add_operation(calls, comm, update_all, [](Scene& s) {  // on frames
    s.graph.srcdata()["x"] = s.x;
    s.graph.edata()["e"] = s.e;
    const NamedMessage message = fn::u_mul_e(s.wrong ? "y" : "x", "e", "m");
    return [&s, message, reduce = fn::sum("m", "out")] {
      s.graph.update_all(message, reduce);
      return s.graph.dstdata().at("out");
    };
  });
  add_operation(calls, comm, apply_edges, [](Scene& s) {
    s.graph.srcdata()["x"] = s.x;
    const NamedMessage message = fn::copy_u(s.wrong ? "y" : "x", "m");
    return [&s, message] {
      s.graph.apply_edges(message);
      return s.graph.edata().at("m");
    };
  });
  for (const char* name :
       {"graph/message/degree_factors.hpp scaled_sum", "graph/message/degree_factors.hpp start_scaled_sum"})
    add_operation(calls, comm, name, [name](Scene& s) {  // fetches factors
      const Variable weight = s.wrong ? Variable(Tensor(Shape{s.graph.num_edges() + 1})) : s.e.detach();
      const SumFactors factors{.src = DegreeFactor::inverse_root, .dst = DegreeFactor::inverse_root};
      return [&s, weight, factors, starts = std::string_view(name).find("start") != std::string_view::npos] {
        return s.comm.agree([&] {
          if (!starts) return scaled_sum(s.graph, s.x, weight, factors, s.x * real{2});
          StartedSum sum = start_scaled_sum(s.graph, s.x, weight, factors);
          return sum.finish(s.x * real{2});
        });
      };
    });
  for (const char* name :
       {"graph/message/typed_sum.hpp typed_sum", "graph/message/typed_sum.hpp start_typed_sum"})
    add_operation(calls, comm, name, [](Scene& s) {
      const Variable weight(scene_values({2, scene_width, 2}, 9), true);
      const EdgeTypes types(std::vector<Index>(static_cast<std::size_t>(s.graph.num_edges()), 1));
      return [&s, weight, types] { return typed_sum(s.graph, s.x, weight, types, s.e); };
    });
  for (const NormBy by : {NormBy::dst, NormBy::src})
    add_operation(calls, comm, "graph/message/attention.hpp edge_softmax", [by](Scene& s) {
      const Variable scores = s.wrong ? Variable(Tensor(Shape{s.graph.num_edges() + 1, 1})) : s.e;
      return [&s, scores, by] { return edge_softmax(s.graph, scores, by); };
    });
}

void add_attention(std::vector<Call>& calls, const Communicator& comm) {
  const auto heads = [](const Variable& x) { return reshape(x, Shape{x.num_rows(), 1, scene_width}); };
  const auto weights = [] { return Variable(scene_values({1, 1, scene_width}, 7), true); };
  add_operation(calls, comm, "graph/message/attention.hpp gat_attention", [=](Scene& s) {
    const Variable dst(scene_values({s.graph.num_dst_nodes(), 1}, 4), true);
    return [&s, dst, attn = weights(), heads] {
      return s.comm.agree([&] { return gat_attention(s.graph, heads(s.x), attn, dst); });
    };
  });
  const auto types_of_edges = [](const Scene& s) {
    return EdgeTypes(std::vector<Index>(static_cast<std::size_t>(s.graph.num_edges()), 1));
  };
  add_operation(calls, comm, "graph/message/attention.hpp typed_gat_attention", [=](Scene& s) {
    const Variable dst(scene_values({s.graph.num_dst_nodes(), 1}, 4), true);
    const Variable of_types(scene_values({2, 1}, 8), true);
    return [&s, dst, of_types, types = types_of_edges(s), attn = weights(), heads] {
      return s.comm.agree(
          [&] { return typed_gat_attention(s.graph, heads(s.x), attn, dst, of_types, types); });
    };
  });
  add_operation(calls, comm, "graph/message/typed_sum.hpp typed_attention", [=](Scene& s) {
    const Variable query(scene_values({s.graph.num_dst_nodes(), 1, scene_width}, 4), true);
    const Variable matrices(scene_values({2, 1, scene_width, scene_width}, 8), true);
    return [&s, query, matrices, types = types_of_edges(s)] {
      return s.comm.agree([&] {
        const Variable rows = reshape(concat_columns({s.x, s.x}), {s.x.num_rows(), 2, 1, scene_width});
        return typed_attention(s.graph, rows, query, matrices, matrices, types);
      });
    };
  });
  add_operation(calls, comm, "graph/message/attention.hpp gatv2_attention", [=](Scene& s) {
    return [&s, attn = weights(), heads] {
      return s.comm.agree([&] { return gatv2_attention(s.graph, heads(s.x), heads(s.x), attn); });
    };
  });
  add_operation(calls, comm, "graph/message/attention.hpp dot_attention", [=](Scene& s) {
    return [&s, heads] {
      return s.comm.agree([&] { return dot_attention(s.graph, heads(s.x), heads(s.x), heads(s.x), 1); });
    };
  });
  add_operation(calls, comm, "graph/message/attention.hpp cosine_attention", [](Scene& s) {
    const Variable beta(Tensor::full({1}, 2), true);
    return [&s, beta] { return cosine_attention(s.graph, s.x, s.x, beta); };
  });
}

/// Calls that make a graph.
void add_graphs(std::vector<Call>& calls, const Communicator& comm) {
  const PartitionBook book = PartitionBook::even(scene_nodes, comm.size());
  const auto degrees = [](const Graph& graph) {
    std::vector<double> result(graph.in_degrees().begin(), graph.in_degrees().end());
    result.insert(result.end(), graph.out_degrees().begin(), graph.out_degrees().end());
    return result;
  };
  const auto edges = [=](bool wrong) {
    EdgeList list = scene_edges(book, comm.rank(), true);
    if (wrong) list.dst.back() = scene_nodes;
    return std::make_shared<EdgeList>(std::move(list));
  };
  add_maker<Graph>(
      calls, "graph/message/graph.hpp Graph", true,
      [=](bool wrong) {
        return [=, list = edges(wrong)] { return Graph(comm, book, book, std::move(*list), true); };
      },
      degrees);
  add_maker<Graph>(
      calls, "graph/data/graph_data.hpp construct_full_graph", true,
      [=](bool wrong) {
        auto data = std::make_shared<NodeData>();
        data->book = book;
        data->edges = std::move(*edges(wrong));
        return [=] { return construct_full_graph(comm, *data); };
      },
      degrees);
  add_maker<Tensor>(
      calls, "graph/message/graph.hpp Graph::local_edge_rows", true,
      [=](bool wrong) {
        auto s = std::make_shared<Scene>(comm, GraphOptions{}, false);
        const Tensor by_id = scene_values({3 * scene_nodes - (wrong ? 3 * scene_nodes - 1 : 0), 2}, 0);
        return [=] { return s->graph.local_edge_rows(by_id); };
      },
      numbers);
  add_maker<Tensor>(
      calls, "graph/message/graph.hpp fetch_edge_rows", true,
      [=](bool wrong) {
        auto s = std::make_shared<Scene>(comm, GraphOptions{}, false);
        const PartitionBook ids = PartitionBook::even(3 * scene_nodes, comm.size());
        const Tensor mine = scene_values({ids.num_nodes(comm.rank()) - (wrong ? 1 : 0), 2}, 0);
        return [=] { return fetch_edge_rows(s->graph, ids, mine); };
      },
      numbers);
  add_maker<std::vector<MessageFlowGraph>>(
      calls, "graph/construct/message_flow_graph.hpp construct_mfgs", true,
      [=](bool wrong) {
        auto s = std::make_shared<Scene>(comm, GraphOptions{}, false);
        const std::vector<Index> seeds{wrong ? scene_nodes : book.begin(comm.rank())};
        return [=] { return construct_mfgs(s->graph, seeds, 2); };
      },
      [=](const std::vector<MessageFlowGraph>& mfgs) { return degrees(mfgs.front()); });

  struct TypedArrays {
    std::vector<NodeTypeSpec> nodes;
    std::vector<EdgeTypeSpec> edges;
  };
  const auto typed = [=](bool wrong) {
    EdgeList list = *edges(wrong);
    list.weight.clear();
    auto arrays = std::make_shared<TypedArrays>();
    arrays->nodes = {{.name = "v", .book = book}, {.name = "w", .book = book}};
    arrays->edges = {{.type = {"v", "follows", "v"}, .edges = *edges(false)},
                     {.type = {"v", "knows", "w"}, .edges = std::move(list)}};
    return arrays;
  };
  add_maker<Graph>(
      calls, "graph/message/graph.hpp Graph", true,
      [=](bool wrong) {
        return [=, arrays = typed(wrong)] {
          return Graph(comm, std::move(arrays->nodes), std::move(arrays->edges));
        };
      },
      [=](const Graph& graph) { return degrees(graph["knows"]); });
  add_maker<Graph>(
      calls, "graph/message/graph.hpp Graph::to_homogeneous", false,
      [=](bool) {
        const auto arrays = typed(false);
        const Graph graph(comm, std::move(arrays->nodes), std::move(arrays->edges));
        return [graph] { return graph.to_homogeneous().graph; };
      },
      degrees);
  add_maker<RelationEdges>(
      calls, "nn/models/ranking.hpp relation_edges", false,
      [=](bool) {
        const auto arrays = typed(false);
        const Graph graph(comm, std::move(arrays->nodes), std::move(arrays->edges));
        (void)graph.to_homogeneous();
        return [graph] { return relation_edges(graph.to_homogeneous()); };
      },
      [](const RelationEdges& of) { return std::vector<double>(of.src.begin(), of.src.end()); });
  add_maker<std::vector<MessageFlowGraph>>(
      calls, "graph/construct/message_flow_graph.hpp construct_mfgs", true,
      [=](bool wrong) {
        const auto arrays = typed(false);
        const Graph graph(comm, std::move(arrays->nodes), std::move(arrays->edges));
        const NodesByType seeds{{"v", {wrong ? scene_nodes : book.begin(comm.rank())}}};
        (void)graph.to_homogeneous();
        return [=] { return construct_mfgs(graph, seeds, 1); };
      },
      [=](const std::vector<MessageFlowGraph>& mfgs) { return degrees(mfgs.front()["knows"]); });
  add_maker<MessageFlowGraph>(
      calls,
      "graph/construct/message_flow_graph.hpp MessageFlowGraph, graph/construct/message_flow_graph.hpp "
      "with_types",
      false,
      [=](bool) {
        const auto arrays = typed(false);
        const Graph graph(comm, std::move(arrays->nodes), std::move(arrays->edges));
        const std::vector<Index> seeds{2 * book.begin(comm.rank())};
        const auto mfgs = construct_mfgs(graph.to_homogeneous().graph, seeds, 1);
        return [=] { return with_types(graph, mfgs).front(); };
      },
      [=](const MessageFlowGraph& block) { return degrees(block["knows"]); });

  const auto host_nodes = [=] {
    std::vector<std::int64_t> ids;
    for (Index v = book.begin(comm.rank()); v < book.end(comm.rank()); ++v) ids.push_back(1000 - 7 * v);
    return ids;
  };
  struct HostArrays {
    std::vector<std::int64_t> nodes, src, dst;
    [[nodiscard]] HostGraph graph(const Communicator& on) const {
      return {on, nodes, GlobalEdges{.src = src, .dst = dst}, {.add_reverse_edges = true}};
    }
  };
  const auto host_arrays = [=](bool wrong) {
    const EdgeList list = scene_edges(book, (comm.rank() + 1) % comm.size());
    auto arrays = std::make_shared<HostArrays>();
    arrays->nodes = host_nodes();
    for (const Index v : list.src) arrays->src.push_back(1000 - 7 * v);
    for (const Index v : list.dst) arrays->dst.push_back(1000 - 7 * v);
    if (wrong) arrays->src.front() = -5;
    return arrays;
  };
  add_maker<HostGraph>(
      calls, "graph/construct/host_graph.hpp HostGraph", true,
      [=](bool wrong) { return [=, arrays = host_arrays(wrong)] { return arrays->graph(comm); }; }, degrees);
  add_maker<HostGraph>(
      calls, "graph/construct/host_graph.hpp HostGraph of two sets", true,
      [=](bool wrong) {
        return [=, arrays = host_arrays(wrong)] {
          return HostGraph(comm, GlobalEnds{arrays->nodes, arrays->nodes},
                           GlobalEdges{.src = arrays->src, .dst = arrays->dst});
        };
      },
      degrees);
  add_maker<Tensor>(
      calls, "graph/construct/host_graph.hpp HostGraph::to_graph_order", true,
      [=](bool wrong) {
        auto graph = std::make_shared<HostGraph>(host_arrays(false)->graph(comm));
        const Tensor rows = scene_values({graph->num_given_edges() + (wrong ? 1 : 0), 2}, 1);
        return [=] { return graph->to_graph_order(rows); };
      },
      numbers);
  add_maker<Tensor>(
      calls, "graph/construct/host_graph.hpp HostGraph::to_host_order", true,
      [=](bool wrong) {
        auto graph = std::make_shared<HostGraph>(host_arrays(false)->graph(comm));
        const Tensor rows = scene_values({graph->num_edges() + (wrong ? 1 : 0), 2}, 1);
        return [=] { return graph->to_host_order(rows); };
      },
      numbers);

  struct TypedHost {
    std::shared_ptr<HostArrays> arrays;
    std::vector<GlobalNodeType> nodes;
    std::vector<GlobalEdgeType> edges;
    EdgeType type{"cell", "next", "cell"};
  };
  const auto typed_host = [=](bool wrong) {
    auto host = std::make_shared<TypedHost>();
    host->arrays = host_arrays(wrong);
    host->nodes = {{"cell", host->arrays->nodes}};
    host->edges = {{host->type, {.src = host->arrays->src, .dst = host->arrays->dst}, true}};
    return host;
  };
  const auto typed_host_graph = [=] {
    const auto host = typed_host(false);
    return HostGraph(comm, host->nodes, host->edges);
  };
  add_maker<HostGraph>(
      calls, "graph/construct/host_graph.hpp HostGraph", true,
      [=](bool wrong) {
        return [=, host = typed_host(wrong)] { return HostGraph(comm, host->nodes, host->edges); };
      },
      [=](const HostGraph& graph) { return degrees(graph["next"]); });
  add_maker<Tensor>(
      calls, "graph/construct/host_graph.hpp HostGraph::to_graph_order", true,
      [=](bool wrong) {
        const auto host = typed_host(false);
        const Tensor rows = scene_values({std::ssize(host->arrays->src) + (wrong ? 1 : 0), 2}, 1);
        return [=, graph = typed_host_graph()] { return graph.to_graph_order(host->type, rows); };
      },
      numbers);
  add_maker<Tensor>(
      calls, "graph/construct/host_graph.hpp HostGraph::to_host_order", true,
      [=](bool wrong) {
        const auto host = typed_host(false);
        const HostGraph graph = typed_host_graph();
        const Tensor rows = scene_values({graph[host->type].num_edges() + (wrong ? 1 : 0), 2}, 1);
        return [=] { return graph.to_host_order(host->type, rows); };
      },
      numbers);

  const auto data_numbers = [](const NodeData& data) {
    std::vector<double> result = numbers(data.features);
    result.push_back(static_cast<double>(data.num_edges));
    return result;
  };
  add_maker<NodeData>(
      calls, "graph/data/generators.hpp make_karate", false,
      [=](bool) { return [=] { return make_karate(comm, {.add_self_loops = true}); }; }, data_numbers);
  add_maker<NodeData>(
      calls, "graph/data/generators.hpp make_sbm", true,
      [=](bool wrong) {
        const SbmOptions sbm{.nodes = wrong ? 1 : 24, .degree = 3, .classes = 2, .features = 3};
        return [=] { return make_sbm(comm, sbm, {.partition = PartitionMethod::ldg}); };
      },
      data_numbers);
  add_maker<NodePartition>(
      calls, "graph/partition/partition.hpp partition_nodes", true,
      [=](bool wrong) {
        return [=, list = edges(wrong)] {
          return partition_nodes(comm, scene_nodes, *list, PartitionMethod::ldg, 0);
        };
      },
      [](const NodePartition& partition) {
        return std::vector<double>{static_cast<double>(partition.book().num_nodes(0))};
      });
  add_maker<Array<Index>>(
      calls,
      "graph/partition/node_partition.hpp NodePartition::from_assignment, "
      "graph/partition/node_partition.hpp NodePartition::to_partitioned",
      true,
      [=](bool wrong) {
        const PartitionBook slices = PartitionBook::even(scene_nodes, comm.size());
        auto part_of = std::make_shared<std::vector<std::int32_t>>(
            static_cast<std::size_t>(slices.num_nodes(comm.rank())), wrong ? 3 : 1);
        return [=] {
          return comm.agree([&] {
            Array<Index> ids{3, 0, scene_nodes - 1};
            NodePartition::from_assignment(comm, *part_of, 3).to_partitioned(ids);
            return ids;
          });
        };
      },
      [](const Array<Index>& ids) { return std::vector<double>(ids.begin(), ids.end()); });
  add_maker<Array<std::int32_t>>(
      calls, "graph/partition/partition.hpp assign_nodes", true,
      [=](bool wrong) {
        return [=, list = edges(wrong)] {
          return assign_nodes(comm, scene_nodes, *list, PartitionMethod::ldg, {.parts = 3});
        };
      },
      [](const Array<std::int32_t>& parts) { return std::vector<double>(parts.begin(), parts.end()); });
  add_maker<Array<std::int32_t>>(
      calls, "graph/partition/clusters.hpp cluster_nodes", true,
      [=](bool wrong) {
        Array<Index> ids(static_cast<std::size_t>(book.num_nodes(comm.rank())));
        std::iota(ids.begin(), ids.end(), book.begin(comm.rank()));
        return [=, list = edges(wrong)] {
          return cluster_nodes(comm, book, ids, *list, {.clusters = 3, .method = PartitionMethod::ldg});
        };
      },
      [](const Array<std::int32_t>& clusters) {
        return std::vector<double>(clusters.begin(), clusters.end());
      });
  add_maker<DataArray>(
      calls, "comm/rows/distributed_rows.hpp fetch_row_bytes, comm/rows/distributed_rows.hpp fetch_rows",
      true,
      [=](bool wrong) {
        auto mine =
            std::make_shared<DataArray>(NpyType::int64, std::vector<Index>{}, book.num_nodes(comm.rank()));
        const std::array<Index, 2> rows{scene_nodes - 1, wrong ? scene_nodes : 0};
        return [=] { return fetch_rows(comm, book, *mine, rows); };
      },
      [](const DataArray& rows) { return std::vector<double>{static_cast<double>(rows.num_rows)}; });
  add_maker<Array<Index>>(
      calls,
      "comm/rows/row_route.hpp RowRoute, comm/rows/row_route.hpp RowRoute::forward, comm/rows/row_route.hpp "
      "RowRoute::back",
      false,
      [=](bool) {
        std::vector<std::int32_t> targets;
        std::vector<Index> rows;
        for (int i = 0; i < 10; ++i) {
          targets.push_back((comm.rank() + 2 * i) % comm.size());
          rows.push_back(100 * comm.rank() + i);
        }
        return [=] {
          const RowRoute route(comm, targets);
          const Array<Index> arrived = route.forward(std::span<const Index>(rows));
          return route.back(std::span<const Index>(arrived));
        };
      },
      [](const Array<Index>& rows) { return std::vector<double>(rows.begin(), rows.end()); });
}

void add_pairs(std::vector<Call>& calls, const Communicator& comm) {
  using Ids = std::vector<Index>;
  const PartitionBook book = PartitionBook::even(scene_nodes, comm.size());
  const Ids src{3, 17, 0, 3}, dst{1, 2, 9, 1};
  add_maker<NodePairs>(
      calls, "graph/sampling/node_pairs.hpp NodePairs", true,
      [=](bool wrong) {
        const Ids ends = wrong ? Ids{3, 17, 0, scene_nodes} : src;
        return [=] { return NodePairs(comm, book, ends, dst); };
      },
      [](const NodePairs& pairs) { return std::vector<double>{static_cast<double>(pairs.num_pairs())}; });
  add_operation(calls, comm, "graph/sampling/node_pairs.hpp NodePairs::src", [=](Scene& s) {
    auto pairs = std::make_shared<NodePairs>(comm, book, src, dst);
    return [&s, pairs] { return pairs->src(s.x); };
  });
  add_operation(calls, comm, "graph/sampling/node_pairs.hpp NodePairs::dst", [=](Scene& s) {
    auto pairs = std::make_shared<NodePairs>(comm, book, src, dst);
    return [&s, pairs] { return pairs->dst(s.x); };
  });
}

std::vector<double> ends(const NodePairList& pairs) {
  std::vector<double> all(pairs.src.begin(), pairs.src.end());
  all.insert(all.end(), pairs.dst.begin(), pairs.dst.end());
  return all;
}

void add_negatives(std::vector<Call>& calls, const Communicator& comm) {
  using Ids = std::vector<Index>;
  const PartitionBook book = PartitionBook::even(scene_nodes, comm.size());
  add_maker<EdgeSet>(
      calls, "graph/sampling/negative_sampler.hpp EdgeSet", true,
      [=](bool wrong) {
        auto edges = std::make_shared<EdgeList>(scene_edges(book, comm.rank()));
        if (wrong) edges->dst[0] = -1;
        return [=] { return EdgeSet(comm, book, *edges); };
      },
      [](const EdgeSet&) { return std::vector<double>{}; });
  const auto edge_set = [=] { return std::make_shared<EdgeSet>(comm, book, scene_edges(book, comm.rank())); };
  add_maker<Array<std::uint8_t>>(
      calls, "graph/sampling/negative_sampler.hpp EdgeSet::contains", true,
      [=](bool wrong) {
        return [edges = edge_set(), src = Ids{1, 2, 6}, dst = Ids{0, 0, wrong ? scene_nodes : 0}] {
          return edges->contains(src, dst);
        };
      },
      [](const Array<std::uint8_t>& found) { return std::vector<double>(found.begin(), found.end()); });
  add_maker<NegativeSampler>(
      calls, "graph/sampling/negative_sampler.hpp NegativeSampler", true,
      [=](bool wrong) {
        auto s = std::make_shared<Scene>(comm, GraphOptions{}, false);
        return [=] { return NegativeSampler(s->graph, {.k = wrong ? 0 : 2}); };
      },
      [](const NegativeSampler&) { return std::vector<double>{}; });
  const auto sampler = [=] {  // with a table, because the original ids are others
    Array<Index> ids;
    for (Index v = book.begin(comm.rank()); v < book.end(comm.rank()); ++v)
      ids.push_back(scene_nodes - 1 - v);
    const Graph graph(comm, book, book, scene_edges(book, comm.rank()), true, {}, ids, ids);
    return std::make_shared<NegativeSampler>(
        graph, NegativeOptions{.k = 2, .exclude_self_loops = true, .exclude_edges = edge_set()});
  };
  add_maker<NodePairList>(
      calls, "graph/sampling/negative_sampler.hpp NegativeSampler::per_source", true,
      [=](bool wrong) {
        return [=, negatives = sampler(), ids = Ids{4, 5}, src = wrong ? Ids{1} : Ids{1, 2}] {
          return negatives->per_source(src, ids, 3);
        };
      },
      ends);
  add_maker<NodePairList>(
      calls, "graph/sampling/negative_sampler.hpp NegativeSampler::global_uniform", false,
      [=](bool) {
        return [=, negatives = sampler(), ids = Ids{4, 5}] { return negatives->global_uniform(ids, 3); };
      },
      ends);
  add_maker<NodePairList>(
      calls, "graph/sampling/negative_sampler.hpp NegativeSampler::replaced_end", true,
      [=](bool wrong) {
        return [=, negatives = sampler(), ids = Ids{4, 5}, src = Ids{1, 2}, dst = Ids{2, 1},
                rels = wrong ? Ids{1, 0} : Ids{0, 0},
                may_be = std::vector<RelationEnds>{{0, scene_nodes, 0, scene_nodes}}] {
          return negatives->replaced_end(src, dst, rels, ids, may_be, 3);
        };
      },
      ends);
  add_maker<PairCandidates>(
      calls, "graph/sampling/negative_sampler.hpp candidates_of_edges", true,
      [=](bool wrong) {
        Array<Index> ids(static_cast<std::size_t>(book.num_nodes(comm.rank())));
        std::iota(ids.begin(), ids.end(), book.begin(comm.rank()));
        return [=, src = Ids{1, 2}, dst = Ids{wrong ? scene_nodes : 3, 1}] {
          return candidates_of_edges(comm, book, ids, src, dst);
        };
      },
      [](const PairCandidates& found) {
        return std::vector<double>(found.ways[0].src.begin(), found.ways[0].src.end());
      });
  add_maker<MaskCounts>(
      calls, "graph/data/splits.hpp count_mask", true,
      [=](bool wrong) {
        const auto nodes = static_cast<std::size_t>(book.num_nodes(comm.rank()));
        auto data = std::make_shared<NodeData>();
        data->labels.resize(nodes, -1);
        data->original_ids.resize(nodes, 5);
        return [=, mask = Array<std::uint8_t>(nodes + (wrong ? 1 : 0), 1)] {
          return count_mask(*data, comm, mask);
        };
      },
      [](const MaskCounts& counts) { return std::vector<double>{static_cast<double>(counts.unlabelled)}; });
  add_maker<EdgeSplit>(
      calls, "graph/data/splits.hpp split_edges", true,
      [=](bool wrong) {
        auto data = std::make_shared<NodeData>();
        data->book = book;
        data->edges = scene_edges(book, comm.rank());
        for (Index v = book.begin(comm.rank()); v < book.end(comm.rank()); ++v)
          data->original_ids.push_back(v);
        return [=] { return split_edges(comm, *data, {.test = wrong ? 2 : 0.5}); };
      },
      [](const EdgeSplit& split) { return std::vector<double>(split.test.id.begin(), split.test.id.end()); });
  add_maker<Array<std::uint8_t>>(
      calls, "graph/data/splits.hpp draw_split", true,
      [=](bool wrong) {
        auto data = std::make_shared<NodeData>();
        data->book = book;
        data->num_classes = 2;
        for (Index v = book.begin(comm.rank()); v < book.end(comm.rank()); ++v) {
          data->original_ids.push_back(v);
          data->labels.push_back(v % 2);
        }
        return [=] {
          draw_split(comm, *data,
                     {.train = {.share = wrong ? 2 : 0.5, .per_class = true},
                      .valid = {.count = 0},
                      .test = {.count = SplitPart::rest}});
          return std::move(data->train_mask);
        };
      },
      [](const Array<std::uint8_t>& mask) { return std::vector<double>(mask.begin(), mask.end()); });
}

/// Mini-batches.
void add_samples(std::vector<Call>& calls, const Communicator& comm) {
  const auto scene = [=] { return std::make_shared<Scene>(comm, GraphOptions{}, false); };
  const auto edges_of = [](const std::vector<MessageFlowGraph>& blocks) {
    std::vector<double> ids;
    for (const MessageFlowGraph& block : blocks)
      ids.insert(ids.end(), block.edge_ids().begin(), block.edge_ids().end());
    return ids;
  };
  const auto seeds_of = [](const Scene& s, bool wrong) {
    return std::vector<Index>{wrong ? scene_nodes : s.book.begin(s.comm.rank())};
  };
  add_maker<NeighborSampler>(
      calls, "graph/sampling/neighbor_sampler.hpp NeighborSampler", true,
      [=](bool wrong) {
        auto fan_outs = std::make_shared<std::vector<Index>>(std::vector<Index>{1, wrong ? -2 : 2});
        return [=, s = scene()] { return NeighborSampler(s->graph, std::move(*fan_outs)); };
      },
      [](const NeighborSampler& sampler) {
        return std::vector<double>(sampler.fan_outs().begin(), sampler.fan_outs().end());
      });
  add_maker<std::vector<Index>>(
      calls, "graph/sampling/neighbor_sampler.hpp NeighborSampler::nodes_of", true,
      [=](bool wrong) {
        auto s = scene();
        const NeighborSampler sampler(s->graph, {1, 2});
        const NodesByType nodes{{"_N", seeds_of(*s, wrong)}};
        (void)s->graph.to_homogeneous();
        return [=] { return sampler.nodes_of(nodes); };
      },
      [](const std::vector<Index>& nodes) { return std::vector<double>(nodes.begin(), nodes.end()); });
  add_maker<std::vector<MessageFlowGraph>>(
      calls, "graph/sampling/neighbor_sampler.hpp NeighborSampler::sample_blocks", true,
      [=](bool wrong) {
        auto s = scene();
        const NeighborSampler sampler(s->graph, {1, 2});
        return [=, seeds = seeds_of(*s, wrong)] { return sampler.sample_blocks(seeds, 3); };
      },
      edges_of);
  add_maker<std::vector<MessageFlowGraph>>(
      calls,
      "graph/sampling/neighbor_sampler.hpp NeighborSampler, graph/sampling/neighbor_sampler.hpp "
      "NeighborSampler::sample_blocks",
      true,
      [=](bool wrong) {
        auto s = scene();
        auto fan_outs = std::make_shared<std::vector<Index>>(std::vector<Index>{1, 2});
        return [=, seeds = seeds_of(*s, wrong)] {
          return NeighborSampler(s->graph, std::move(*fan_outs), {.method = NeighborMethod::labor})
              .sample_blocks(seeds, 3);
        };
      },
      edges_of);
  const auto clusters_of = [](const Scene& s, bool wrong) {
    Array<std::int32_t> clusters;
    for (const Index id : s.graph.dst_ids()) clusters.push_back(static_cast<std::int32_t>(id % 4));
    if (wrong) clusters.push_back(0);
    return clusters;
  };
  add_maker<ClusterLoader>(
      calls, "graph/sampling/cluster_loader.hpp ClusterLoader", true,
      [=](bool wrong) {
        auto s = scene();
        return [=, clusters = clusters_of(*s, wrong)] {
          return ClusterLoader(s->graph, clusters, {.clusters_per_batch = 2});
        };
      },
      [](const ClusterLoader& loader) {
        return std::vector<double>{static_cast<double>(loader.num_batches())};
      });
  add_maker<std::optional<ClusterBatch>>(
      calls, "graph/sampling/cluster_loader.hpp ClusterLoader::next", false,
      [=](bool) {
        auto s = scene();
        auto loader = std::make_shared<ClusterLoader>(s->graph, clusters_of(*s, false),
                                                      ClusterLoaderOptions{.clusters_per_batch = 2});
        return [=] { return loader->next(); };
      },
      [](const std::optional<ClusterBatch>& batch) {
        const Array<Index>& ids = batch->graph.edge_ids();
        return std::vector<double>(ids.begin(), ids.end());
      });
  add_maker<SaintLoader>(
      calls, "graph/sampling/saint_loader.hpp SaintLoader", true,
      [=](bool wrong) {
        auto s = scene();
        return [=] {
          return SaintLoader(s->graph, {.method = SaintMethod::walk, .draws = wrong ? 0 : 4, .coverage = 1});
        };
      },
      [](const SaintLoader& loader) {
        return std::vector<double>{static_cast<double>(loader.num_counted())};
      });
  for (const SaintMethod method : {SaintMethod::node, SaintMethod::edge, SaintMethod::walk})
    add_maker<std::optional<SaintBatch>>(
        calls, "graph/sampling/saint_loader.hpp SaintLoader::next", false,
        [=](bool) {
          auto s = scene();
          auto loader = std::make_shared<SaintLoader>(
              s->graph, SaintOptions{.method = method, .draws = 4, .coverage = 1});
          return [=] { return loader->next(); };
        },
        [](const std::optional<SaintBatch>& batch) {
          const Array<Index>& ids = batch->graph.edge_ids();
          std::vector<double> values(ids.begin(), ids.end());
          for (const real weight : batch->loss_weights.values())
            values.push_back(static_cast<double>(weight));
          return values;
        });
  struct Cached {
    explicit Cached(std::shared_ptr<Scene> of)
        : scene(std::move(of)),
          x(Tensor::full({scene->graph.num_nodes(), 2}, 1)),
          cache(scene->graph, x, 16),
          blocks(NeighborSampler(scene->graph, {2})
                     .sample_blocks(std::vector<Index>{scene->book.begin(scene->comm.rank())})) {
      cache.count(blocks.front());
    }
    std::shared_ptr<Scene> scene;
    Tensor x;
    HaloRowCache cache;
    std::vector<MessageFlowGraph> blocks;
  };
  add_maker<HaloRowCache>(
      calls, "graph/sampling/halo_row_cache.hpp HaloRowCache", true,
      [=](bool wrong) {
        auto s = scene();
        const Tensor x = Tensor::full({s->graph.num_nodes() + (wrong ? 1 : 0), 2}, 1);
        return [=] { return HaloRowCache(s->graph, x, 16); };
      },
      [](const HaloRowCache& cache) { return std::vector<double>{static_cast<double>(cache.rows_kept())}; });
  add_maker<Index>(
      calls, "graph/sampling/halo_row_cache.hpp HaloRowCache::keep_hottest", false,
      [=](bool) {
        auto cached = std::make_shared<Cached>(scene());
        return [=] {
          cached->cache.keep_hottest();
          return cached->cache.rows_kept();
        };
      },
      [](Index kept) { return std::vector<double>{static_cast<double>(kept)}; });
  add_maker<HaloRowCache::Pending>(
      calls, "graph/sampling/halo_row_cache.hpp HaloRowCache::start", false,
      [=](bool) {
        auto cached = std::make_shared<Cached>(scene());
        return [=] { return cached->cache.start(cached->blocks.front()); };
      },
      [](HaloRowCache::Pending& pending) {
        const CachedInput input = pending.finish();
        return std::vector<double>(input.rows.values().begin(), input.rows.values().end());
      });
  add_maker<SeedBatches>(
      calls, "graph/sampling/data_loader.hpp SeedBatches", true,
      [=](bool wrong) {
        const std::vector<Index> keys{wrong ? Index{-1} : Index{comm.rank()}};
        return [=] { return SeedBatches(comm, keys, {.batch_size = 1}); };
      },
      [](const SeedBatches& batches) {
        return std::vector<double>{static_cast<double>(batches.num_batches())};
      });
  add_maker<DataLoader>(
      calls, "graph/sampling/data_loader.hpp DataLoader", true,
      [=](bool wrong) {
        auto s = scene();
        auto sampler = std::make_shared<NeighborSampler>(s->graph, std::vector<Index>{2});
        return [=, seeds = seeds_of(*s, wrong)] {
          return DataLoader(std::move(*sampler), seeds, {.batch_size = 1});
        };
      },
      [](const DataLoader& loader) {
        return std::vector<double>{static_cast<double>(loader.num_batches())};
      });
  add_maker<std::optional<MiniBatch>>(
      calls, "graph/sampling/data_loader.hpp DataLoader::next", false,
      [=](bool) {
        auto s = scene();
        auto loader = std::make_shared<DataLoader>(NeighborSampler(s->graph, {2}), seeds_of(*s, false));
        return [=] { return loader->next(); };
      },
      [=](const std::optional<MiniBatch>& batch) { return edges_of(batch->blocks); });
  const auto graphs_of = [=](bool wrong) {  // the id of the graph of each rank
    GraphSamples samples;
    samples.add(comm.rank(), 3, std::vector<Index>{0, 1}, std::vector<Index>{1, 2});
    samples.nodes.tensors["x"] = scene_values({wrong ? 2 : 3, scene_width}, comm.rank());
    return samples;
  };
  const auto ids_of = [](const SampleBatch& batch) {
    const Array<Index>& ids = batch.graph().edge_ids();
    return std::vector<double>(ids.begin(), ids.end());
  };
  add_maker<SampleBatch>(
      calls, "graph/sampling/graph_samples.hpp SampleBatch", true,
      [=](bool wrong) {
        auto samples = std::make_shared<GraphSamples>(graphs_of(wrong));
        return [=] { return SampleBatch(comm, std::move(*samples)); };
      },
      ids_of);
  add_maker<SpreadBatch>(
      calls, "graph/sampling/graph_samples.hpp SpreadBatch", true,
      [=](bool wrong) {
        auto samples = std::make_shared<GraphSamples>(graphs_of(wrong));
        return [=] { return SpreadBatch(comm, *samples); };
      },
      [](const SpreadBatch& batch) { return numbers(batch.nodes().tensors.at("x")); });
  add_maker<Tensor>(
      calls, "graph/sampling/graph_samples.hpp SpreadBatch::to_samples", true,
      [=](bool wrong) {
        auto batch = std::make_shared<SpreadBatch>(comm, graphs_of(false));
        const Tensor rows = scene_values({wrong ? 2 : batch->graph().num_nodes(), scene_width}, comm.rank());
        return [=] { return batch->to_samples(rows); };
      },
      [](const Tensor& rows) { return numbers(rows); });
  const auto edge_vectors_of = [](const NeighborList& list) { return numbers(list.vectors()); };
  const auto chain = [=](double first, bool wrong) {  // two atoms of each rank
    const double at = first + comm.rank();
    return std::vector<double>{0, 0, at, wrong ? std::nan("") : 0, 0, at + 0.5};
  };
  const Cell cell{.vectors = {{{3, 0, 0}, {0, 3, 0}, {0, 0, 1. * comm.size()}}},
                  .periodic = {false, true, true}};
  add_maker<NeighborList>(
      calls, "nn/atoms/neighbor_list.hpp NeighborList", true,
      [=](bool wrong) { return [=, x = chain(0, wrong)] { return NeighborList(comm, x, cell, 1.2); }; },
      edge_vectors_of);
  for (const bool far : {false, true})
    calls.push_back({"nn/atoms/neighbor_list.hpp NeighborList::update", true, [=](bool wrong) -> Attempt {
                       auto list = std::make_shared<NeighborList>(comm, chain(0, false), cell, 1.2, 0.2);
                       const auto to = [=, z = far ? 0.3 : 0.05](bool bad) {
                         return [=, x = chain(z, bad)] { (void)list->update(x, cell); };
                       };
                       const auto state = [=] {
                         std::vector<double> all = numbers(list->displacements());
                         for (const double d : edge_vectors_of(*list)) all.push_back(d);
                         return all;
                       };
                       return {.call = to(wrong), .result = state, .again = to(false), .state = state};
                     }});
  add_maker<std::vector<double>>(
      calls, "nn/atoms/energy_shifts.hpp fit_energy_shifts", true,
      [=](bool wrong) {
        const std::vector<double> counts{1, 2, wrong ? -1. : 3., 1}, energies{4, 5};
        return [=] { return fit_energy_shifts(comm, counts, energies, 2).energies; };
      },
      [](const std::vector<double>& shifts) { return shifts; });
  add_maker<PotentialFit>(
      calls, "nn/atoms/potentials/potential_labels.hpp fit_potential", true,
      [=](bool wrong) {
        auto atoms = std::make_shared<GraphSamples>();
        atoms->add(comm.rank(), 2, {}, {});
        atoms->nodes.integers["species"].values = {0, wrong ? 3 : 1};
        return [=, forces = Tensor::full({2, 3}, 1), labels = std::vector<StructureLabels>{{.energy = 4}},
                trained = std::vector<std::uint8_t>{1}] {
          return fit_potential(comm, *atoms, labels, forces, trained, 2);
        };
      },
      [](const PotentialFit& fit) {
        return std::vector<double>{fit.shifts.energies[0], fit.energy_scale};
      });
  add_maker<SampleLoader>(
      calls, "graph/sampling/graph_samples.hpp SampleLoader", true,
      [=](bool wrong) {
        auto samples = std::make_shared<const GraphSamples>(graphs_of(wrong));
        return [=, first = std::make_shared<std::vector<Index>>(1, 0)] {
          return SampleLoader(comm, samples, *first, {.batch_size = 1});
        };
      },
      [](const SampleLoader& loader) {
        return std::vector<double>{static_cast<double>(loader.num_batches())};
      });
  add_maker<std::optional<SampleMiniBatch>>(
      calls, "graph/sampling/graph_samples.hpp SampleLoader::next", false,
      [=](bool) {
        auto samples = std::make_shared<const GraphSamples>(graphs_of(false));
        auto loader = std::make_shared<SampleLoader>(comm, samples, std::vector<Index>{0});
        return [=] { return loader->next(); };
      },
      [=](const std::optional<SampleMiniBatch>& next) { return ids_of(next->batch); });
  add_maker<std::optional<Array<Index>>>(
      calls, "graph/sampling/graph_samples.hpp SampleLoader::next_positions", false,
      [=](bool) {
        auto samples = std::make_shared<const GraphSamples>(graphs_of(false));
        auto loader = std::make_shared<SampleLoader>(comm, samples, std::vector<Index>{0});
        return [=] { return loader->next_positions(); };
      },
      [](const std::optional<Array<Index>>& next) {
        return std::vector<double>(next->begin(), next->end());
      });
  const EdgeDataLoaderOptions options{.exclude = ExcludeEdges::reverse, .negatives = Negatives::per_source};
  const auto seed_edges = [](bool wrong) {
    return SeedEdges{.src = {0}, .dst = {wrong ? scene_nodes : Index{1}}, .id = {2}};
  };
  add_maker<EdgeDataLoader>(
      calls, "graph/sampling/data_loader.hpp EdgeDataLoader", true,
      [=](bool wrong) {
        auto sampler = std::make_shared<NeighborSampler>(scene()->graph, std::vector<Index>{2});
        auto edges = std::make_shared<SeedEdges>(seed_edges(wrong));
        return [=] { return EdgeDataLoader(std::move(*sampler), std::move(*edges), options); };
      },
      [](const EdgeDataLoader& loader) {
        return std::vector<double>{static_cast<double>(loader.num_batches())};
      });
  add_maker<std::optional<EdgeMiniBatch>>(
      calls, "graph/sampling/data_loader.hpp EdgeDataLoader::next", false,
      [=](bool) {
        auto loader = std::make_shared<EdgeDataLoader>(NeighborSampler(scene()->graph, {2}),
                                                       seed_edges(false), options);
        return [=] { return loader->next(); };
      },
      [=](const std::optional<EdgeMiniBatch>& batch) { return edges_of(batch->blocks); });
}

}  // namespace

std::vector<Call> graph_calls(const Communicator& comm) {
  std::vector<Call> calls;
  add_messages(calls, comm);
  add_attention(calls, comm);
  add_graphs(calls, comm);
  add_pairs(calls, comm);
  add_negatives(calls, comm);
  add_samples(calls, comm);
  return calls;
}

}  // namespace sar::test
