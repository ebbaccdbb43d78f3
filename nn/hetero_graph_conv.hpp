/// Convolutions on a heterogeneous graph, one for each relation.
#pragma once

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

/// How results that arrive at a node from several relations are combined.
enum class RelationAggregate { sum, mean };

/// As dgl.nn.HeteroGraphConv, with a sharded graph for each relation:
///
///     y_t = sum or mean over the relations r into nodes of type t of conv_r(graph_r, x_source, x_destination)
///
/// Parameters: `mods.<relation>.*`, as they are called in the relation's layer. A relation whose name is its
/// canonical one, "user:follows:user", is written as DGL writes it; files with its own name are read, too:
///
///     mods.('user', 'follows', 'user').*
///
///     HeteroGraphConv conv(RelationAggregate::sum);
///     conv.emplace_back<GraphConv>({"user", "follows", "user"}, 8, 16, gen);
///     conv.emplace_back<SAGEConv>({"item", "bought_by", "user"}, std::pair(5, 8), 16, gen);
///     auto h = conv({{"follows", follows}, {"bought_by", bought_by}}, {{"user", x}, {"item", z}});
///
/// Collective: the layers are called one after the other, in the order in which they were added.
class HeteroGraphConv : public Module {
 public:
  struct Relation {
    std::string source, name, destination;
  };
  using Graphs = std::map<std::string, GraphShardManager>;  ///< by relation
  using Rows = std::map<std::string, Variable>;             ///< by node type

  explicit HeteroGraphConv(RelationAggregate aggregate = RelationAggregate::sum);

  /// Makes the layer of a relation, which is called as conv(graph, {sources, destinations}) or, where it
  /// takes no pair, conv(graph, sources). Throws InputError when the relation has a layer already.
  template <class Conv, class... Args>
  Conv& emplace_back(Relation relation, Args&&... args) {
    auto conv = std::make_shared<Conv>(std::forward<Args>(args)...);
    using Pair = const std::pair<Variable, Variable>&;
    add(std::move(relation), *conv,
        [conv](const GraphShardManager& graph, const Variable& src, const Variable& dst) -> Variable {
          if constexpr (std::is_invocable_v<Conv&, const GraphShardManager&, Pair>)
            return (*conv)(graph, std::pair(src, dst));
          else
            return (*conv)(graph, src);
        });
    return *conv;
  }

  /// feats: rows of every node type, [local nodes, ...]. Relations that have no graph here are left out; the
  /// result holds the node types that the others reach. Throws, the same on every rank, InputError when rows
  /// of a node type are missing, or a graph's relation has no layer.
  [[nodiscard]] Rows operator()(const Graphs& graphs, const Rows& feats) const;

 private:
  using Call = std::function<Variable(const GraphShardManager&, const Variable&, const Variable&)>;
  struct Mods : Module {
    using Module::register_module;
  };
  struct Layer {
    Relation relation;
    Call call;
  };
  void add(Relation relation, Module& conv, Call call);
  void check(const Graphs& graphs, const Rows& feats) const;

  RelationAggregate aggregate_;
  Mods mods_;
  std::vector<Layer> layers_;
};

}  // namespace sar
