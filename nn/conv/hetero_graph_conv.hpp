// SPDX-License-Identifier: MIT

/// Convolutions on a heterogeneous graph, one layer per relation.
#pragma once

#include <sar/graph/hetero/cross_reduce.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/nn/modules/module.hpp>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The cross reduction of results that several relations compute for a node: sum, mean, max, min or stack.
using RelationAggregate = CrossReduce;

/// Applies one layer per relation and reduces their results per node type, as dgl.nn.HeteroGraphConv:
///
///     y_t = reduce over the relations r into nodes of type t of conv_r(graph_r, x_source, x_destination)
///
/// where reduce is sum, mean, max or min. With stack, the result is [local nodes, relations, ...].
///
/// Parameters: `mods.<relation>.*`, with the parameter names of the relation's layer. A relation with a
/// canonical name, "user:follows:user", is written in DGL's form below; files with either name can be read:
///
///     mods.('user', 'follows', 'user').*
///
/// @code
/// HeteroGraphConv conv(RelationAggregate::sum);
/// conv.emplace_back<GraphConv>({"fluid", "flows", "fluid"}, 8, 16, gen);
/// conv.emplace_back<SAGEConv>({"solid", "heats", "fluid"}, std::pair(5, 8), 16, gen);
/// const Variable f = Tensor::full({hetero.num_nodes("fluid"), 8}, 1);
/// const Variable s = Tensor::full({hetero.num_nodes("solid"), 5}, 1);
/// const auto h = conv(hetero, {{"fluid", f}, {"solid", s}});
/// @endcode
///
/// Layers that read edge weights or edge features, as their third argument, get those that the call has for
/// their relation (DGL's mod_kwargs):
///
///     conv(hetero, {{"fluid", f}, {"solid", s}}, {{"heats", rates}})
///
/// On a Graph, the halo rows of a node type are fetched once for all relations that read them, and
/// their gradients are sent back once. In mode rematerialize, only the inputs are kept for the backward pass:
/// it fetches the rows again and recomputes one relation at a time, so that memory does not grow with the
/// number of relations. The other modes keep the rows and what the layers record. Work that a layer does
/// before its aggregation (a product, dropout) is also done for the halo rows, on every rank that reads them.
///
/// A relation fetches its rows separately, in stages, if it is the only reader of its source node type, if
/// all halo rows need more than max_halo_bytes, or if its layer has several hops or is cached. A layer that
/// takes {sources, destinations} must read its source rows in one hop; a layer type that does not declares
/// `static constexpr bool reads_rows_once = false` and fetches separately.
class HeteroGraphConv : public Module {
 public:
  struct Relation {
    std::string source, name, destination;
  };
  using Graphs = std::map<std::string, Graph>;              ///< keyed by relation; message flow graphs are
                                                            ///< allowed
  using Rows = std::map<std::string, Variable>;             ///< keyed by node type
  /// Weights or features of the edges, [local edges of the relation, ...] in its edge order; keyed by
  /// relation, or by canonical name. MessageFlowGraph::edge_rows() tells which rows of the graph's edges
  /// those of a block are.
  using EdgeArguments = std::map<std::string, Variable>;

  explicit HeteroGraphConv(RelationAggregate aggregate = RelationAggregate::sum);

  /// Creates the layer of a relation. It is called as conv(graph, {sources, destinations}) or, if it takes no
  /// pair, as conv(graph, sources); where there is an edge argument, with that as the last argument. Throws
  /// InputError if the relation already has a layer.
  template <class Conv, class... Args>
  Conv& emplace_back(Relation relation, Args&&... args) {
    using G = const Graph&;
    using Pair = const std::pair<Variable, Variable>&;
    using Edges = const Variable&;
    constexpr bool takes_pair =
        std::is_invocable_v<Conv&, G, Pair> || std::is_invocable_v<Conv&, G, Pair, Edges>;
    using Nodes = std::conditional_t<takes_pair, std::pair<Variable, Variable>, Variable>;
    constexpr bool takes_edges = std::is_invocable_v<Conv&, G, const Nodes&, Edges>;
    constexpr bool needs_edges = !std::is_invocable_v<Conv&, G, const Nodes&>;
    auto conv = std::make_shared<Conv>(std::forward<Args>(args)...);
    const auto call = [conv](const Graph& graph, const Variable& src, const Variable& dst,
                             Edges edges) -> Variable {
      const Nodes nodes = nodes_of<Nodes>(src, dst);
      if constexpr (needs_edges) {
        return (*conv)(graph, nodes, edges);
      } else {
        if constexpr (takes_edges)
          if (edges.defined()) return (*conv)(graph, nodes, edges);
        return (*conv)(graph, nodes);
      }
    };
    add({.relation = std::move(relation),
         .module = conv.get(),
         .call = call,
         .takes_edges = takes_edges,
         .needs_edges = needs_edges,
         .shares_rows = reads_rows_once<Conv>(takes_pair) && !is_cached(*conv)});
    return *conv;
  }

  /// Applies the layers. feats: rows of every node type, [local nodes, ...]; for a block, of its sources.
  /// Returns the rows of every node type that a relation with a layer reaches. Layers of relations that the
  /// graph does not have are skipped. stack orders relations as graph.edge_types(). `edges`: arguments of
  /// some relations. Throws the same exception on every rank: InputError if rows of a node type are missing,
  /// if an edge type has no layer, and for an edge argument that its layer does not take, of an unknown
  /// relation, or missing; ShapeError if it has not a row for each edge, or if results for one node type
  /// differ in shape.
  [[nodiscard]] Rows operator()(const Graph& graph, const Rows& feats, const EdgeArguments& edges = {}) const;
  /// Applies the layers to one graph per relation; each relation fetches its own rows. Layers are called in
  /// the order in which they were added, which is also the order of stack.
  [[nodiscard]] Rows operator()(const Graphs& graphs, const Rows& feats,
                                const EdgeArguments& edges = {}) const;

 private:
  using Call =
      std::function<Variable(const Graph&, const Variable& src, const Variable& dst, const Variable& edges)>;
  struct Mods : Module {
    using Module::register_module;
  };
  struct Layer {
    Relation relation;
    Module* module;
    Call call;
    bool takes_edges, needs_edges;
    bool shares_rows;
  };
  struct Part;

  template <class Nodes>
  static Nodes nodes_of(const Variable& src, const Variable& dst) {
    if constexpr (std::is_same_v<Nodes, Variable>)
      return src;
    else
      return {src, dst};
  }
  template <class Conv>
  static constexpr bool reads_rows_once(bool takes_pair) {
    if constexpr (requires { Conv::reads_rows_once; })
      return Conv::reads_rows_once;
    return takes_pair;
  }
  template <class Conv>
  static bool is_cached(const Conv& conv) {
    if constexpr (requires { conv.is_cached(); })
      return conv.is_cached();
    return false;
  }
  void add(Layer layer);
  [[nodiscard]] std::vector<Part> parts(const Graph& graph, const Rows& feats,
                                        const EdgeArguments& edges) const;
  static void check_edges(const Layer& layer, const std::string& name, const Graph& graph,
                          const Variable& edges);

  RelationAggregate aggregate_;
  Mods mods_;
  std::vector<Layer> layers_;
  std::map<EdgeType, std::size_t> numbers_;  ///< in layers_, by relation
};

}}  // namespace sar
