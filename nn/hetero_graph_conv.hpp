/// Convolutions on a heterogeneous graph, one for each relation.
#pragma once

#include <sar/graph/hetero/cross_reduce.hpp>
#include <sar/graph/hetero/hetero_graph.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/module.hpp>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// How results that arrive at a node from several relations are combined: sum, mean, max, min or stack.
using RelationAggregate = CrossReduce;

/// As dgl.nn.HeteroGraphConv:
///
///     y_t = sum, mean, max or min over the relations r into nodes of type t of conv_r(graph_r, x_source, x_destination)
///
/// or, with stack, all of them, [local nodes, relations, ...].
///
/// Parameters: `mods.<relation>.*`, as they are called in the relation's layer. A relation whose name is its
/// canonical one, "user:follows:user", is written as DGL writes it; files with its own name are read, too:
///
///     mods.('user', 'follows', 'user').*
///
///     HeteroGraphConv conv(RelationAggregate::sum);
///     conv.emplace_back<GraphConv>({"user", "follows", "user"}, 8, 16, gen);
///     conv.emplace_back<SAGEConv>({"item", "bought_by", "user"}, std::pair(5, 8), 16, gen);
///     auto h = conv(graph, {{"user", x}, {"item", z}});
///
/// On a HeteroGraph, rows of a node type travel once for all relations that read them, and their gradients
/// once back. In mode rematerialize, nothing is kept for the backward pass but the inputs: it fetches the
/// rows again and computes relation by relation again, so that memory does not grow with the number of
/// relations; in the other modes, the rows and what the layers keep stay. Each rank computes what its layers
/// do before they aggregate (a product, a dropout) for the halo rows, too. A relation fetches by itself, in
/// stages, where it is the only one that reads a node type, where all halo rows take more than
/// max_halo_bytes, and where its layer has several hops or is cached. A layer that takes {sources,
/// destinations} must read source rows in one hop; one of which `static constexpr bool reads_rows_once =
/// false` says otherwise fetches by itself, too.
class HeteroGraphConv : public Module {
 public:
  struct Relation {
    std::string source, name, destination;
  };
  using Graphs = std::map<std::string, GraphShardManager>;  ///< by relation, also of message flow graphs
  using Rows = std::map<std::string, Variable>;             ///< by node type

  explicit HeteroGraphConv(RelationAggregate aggregate = RelationAggregate::sum);

  /// Makes the layer of a relation, which is called as conv(graph, {sources, destinations}) or, where it
  /// takes no pair, conv(graph, sources). Throws InputError when the relation has a layer already.
  template <class Conv, class... Args>
  Conv& emplace_back(Relation relation, Args&&... args) {
    auto conv = std::make_shared<Conv>(std::forward<Args>(args)...);
    using Pair = const std::pair<Variable, Variable>&;
    constexpr bool takes_pair = std::is_invocable_v<Conv&, const GraphShardManager&, Pair>;
    add({.relation = std::move(relation),
         .module = conv.get(),
         .call = [conv](const GraphShardManager& graph, const Variable& src,
                        const Variable& dst) -> Variable {
           if constexpr (takes_pair)
             return (*conv)(graph, std::pair(src, dst));
           else
             return (*conv)(graph, src);
         },
         .shares_rows = reads_rows_once<Conv>(takes_pair) && !is_cached(*conv)});
    return *conv;
  }

  /// feats: rows of every node type, [local nodes, ...]; of a block, its sources. Relations without a layer are an error; those of
  /// layers that the graph does not have are left out; the result holds the node types that the others reach.
  /// stack: in the order of graph.edge_types(). Throws, the same on every rank, InputError when rows of a
  /// node type are missing, or an edge type has no layer, ShapeError when results for a node type have
  /// different shapes.
  [[nodiscard]] Rows operator()(const HeteroGraph& graph, const Rows& feats) const;
  /// The same with a graph for each relation, which each fetches for itself. Layers are called one after the
  /// other, in the order in which they were added, which is also that of stack.
  [[nodiscard]] Rows operator()(const Graphs& graphs, const Rows& feats) const;

 private:
  using Call = std::function<Variable(const GraphShardManager&, const Variable&, const Variable&)>;
  struct Mods : Module {
    using Module::register_module;
  };
  struct Layer {
    Relation relation;
    Module* module;
    Call call;
    bool shares_rows;
  };
  struct Part;

  template <class Conv>
  static constexpr bool reads_rows_once(bool takes_pair) {
    if constexpr (requires { Conv::reads_rows_once; })
      return Conv::reads_rows_once;
    else
      return takes_pair;
  }
  template <class Conv>
  static bool is_cached(const Conv& conv) {
    if constexpr (requires { conv.is_cached(); })
      return conv.is_cached();
    else
      return false;
  }
  void add(Layer layer);
  void check(const Graphs& graphs, const Rows& feats) const;
  [[nodiscard]] std::vector<Part> parts(const HeteroGraph& graph, const Rows& feats) const;

  RelationAggregate aggregate_;
  Mods mods_;
  std::vector<Layer> layers_;
};

}  // namespace sar
