// SPDX-License-Identifier: MIT

// To make it: for each source type, readers fetch the global ids of the halo (8 bytes per row). The edges of
// all relations become one list with types in their ids, from which a graph is built as from any list:
// O(E log E). The type of an edge is found again by its id, O(log types).
#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/hetero/graph_types.hpp>
#include <sar/graph/hetero/homogeneous_form.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

Variable HomogeneousForm::concat(const std::map<std::string, Variable>& rows) const {
  for (const auto& of_type : rows) (void)find_node_type(node_types, of_type.first);
  std::vector<Variable> parts;
  for (std::size_t t = 0; t < node_types.size(); ++t) {
    const auto found = rows.find(node_types[t]);
    require<InputError>(found != rows.end() && found->second.defined(),
                        "there are no rows of the node type '", node_types[t], "'");
    const Index expected = first_row[t + 1] - first_row[t];
    require<ShapeError>(found->second.num_rows() == expected, "rows of '", node_types[t], "' have shape ",
                        found->second.shape(), ", rank ", graph.comm().rank(), " has ", expected,
                        " nodes of this type");
    parts.push_back(found->second);
  }
  return parts.size() == 1 ? parts.front() : concat_rows(parts);
}

Variable HomogeneousForm::rows_of(const Variable& rows, const std::string& node_type) const {
  const std::size_t t = find_node_type(node_types, node_type);
  require<ShapeError>(rows.defined() && rows.num_rows() == first_row.back(), "rows of shape ", rows.shape(),
                      ", rank ", graph.comm().rank(), " has ", first_row.back(), " nodes of all types");
  return node_types.size() == 1 ? rows : slice_rows(rows, first_row[t], first_row[t + 1]);
}

std::vector<Index> HomogeneousForm::nodes_of(const std::map<std::string, std::vector<Index>>& nodes) const {
  const int rank = graph.comm().rank();
  const Index first = graph.topology().dst_book.begin(rank);
  std::vector<Index> ids;
  for (const auto& of_type : nodes) (void)find_node_type(node_types, of_type.first);
  for (std::size_t t = 0; t < node_types.size(); ++t) {
    const auto found = nodes.find(node_types[t]);
    if (found == nodes.end()) continue;
    for (const Index node : found->second) {
      require<InputError>(0 <= node && node < books[t].num_nodes(), "there is no node ", node,
                          " of the type '", node_types[t], "', expected ", index_range(books[t].num_nodes()));
      require<InputError>(books[t].owner(node) == rank, "node ", node, " of the type '", node_types[t],
                          "' belongs to rank ", books[t].owner(node), ", it was given on rank ", rank);
      ids.push_back(first + first_row[t] + node - books[t].begin(rank));
    }
  }
  return ids;
}

Array<Index> HomogeneousForm::edge_rows(std::size_t edge_type, std::span<const Index> ids) const {
  const Array<Index>& known = relations[edge_type]->topology->edge_ids();
  const Array<Index>& order = edges_by_id[edge_type]->get();
  Array<Index> rows;
  rows.reserve(ids.size());
  for (const Index id : ids) {
    const auto row = std::ranges::lower_bound(order, id, {}, [&](Index edge) { return known[edge]; });
    require<InputError>(row != order.end() && known[*row] == id, "the edge type '", edge_types[edge_type],
                        "' has no edge ", id, " on rank ", graph.comm().rank());
    rows.push_back(*row);
  }
  return rows;
}

std::shared_ptr<const LazyArray> edges_in_order_of_ids(std::shared_ptr<const ShardedGraph> relation) {
  return std::make_shared<const LazyArray>([relation = std::move(relation)] {
    const Array<Index>& ids = relation->topology->edge_ids();
    Array<Index> order = consecutive(0, std::ssize(ids));
    std::ranges::sort(order, {}, [&](Index edge) { return ids[edge]; });
    return order;
  });
}

Array<Index> HomogeneousForm::ntypes() const {
  Array<Index> types(static_cast<std::size_t>(first_row.back()));
  for (std::size_t t = 0; t < node_types.size(); ++t)
    std::fill(types.begin() + first_row[t], types.begin() + first_row[t + 1], static_cast<Index>(t));
  return types;
}

namespace {

/// Returns the offsets of each type's ids when the ids of all types are concatenated: [types + 1]. `sizes`:
/// sizes of the types; `ids`: ids of this rank. Throws InputError for a negative id, and if the concatenated
/// ids exceed 2^63. Collective.
std::vector<Index> begin_of_ids(const Communicator& comm, const std::vector<Index>& sizes,
                                const std::vector<const Array<Index>*>& ids) {
  std::vector<Index> ends(sizes);
  for (std::size_t t = 0; t < ids.size(); ++t)
    for (const Index id : *ids[t]) {
      require<InputError>(0 <= id && id < std::numeric_limits<Index>::max(), "there is an original id ", id,
                          ", expected ids from 0 on");
      ends[t] = std::max(ends[t], id + 1);
    }
  if (!ends.empty()) comm.all_reduce(std::span<Index>(ends), ReduceOp::max);
  std::vector<Index> begin{0};
  for (const Index end : ends) {
    require<InputError>(end <= std::numeric_limits<Index>::max() - begin.back(),
                        "the original ids of all types together go beyond 2^63: ", begin.back(), " and ",
                        end);
    begin.push_back(begin.back() + end);
  }
  return begin;
}

/// Appends the edges of a relation. `src` are the global ids of its source rows followed by its halo rows.
void add_edges(const GraphTopology& relation, const Array<Index>& src, Index first_dst, Index first_id,
               bool weighted, EdgeList& list) {
  const Array<Index>& ids = relation.edge_ids();
  relation.for_each_edge([&](Index u, Index v, Index edge) {
    list.src.push_back(src[u]);
    list.dst.push_back(first_dst + v);
    list.id.push_back(first_id + ids[edge]);
    if (weighted)
      list.weight.push_back(relation.edge_weight.defined() ? relation.edge_weight.data()[edge] : real{1});
  });
}

/// Builds the homogeneous form of a heterogeneous graph.
class HomogeneousMaker {
 public:
  HomogeneousMaker(const Graph& graph) : graph_(graph), comm_(graph.comm()) {}

  /// Collective. `same`: the graph itself if it has one type, whose edges are not copied.
  HomogeneousForm make(const std::optional<Graph>& same) {
    const auto& types = graph_.edge_types();
    require<InputError>(types.size() <= std::numeric_limits<std::uint16_t>::max(), "a graph of ",
                        types.size(), " edge types has no homogeneous form, at most 65535 are possible");
    make_books();
    const std::vector<Index> first_edge_id = begin_of_edge_ids();
    Graph homogeneous = same ? *same
                             : Graph(comm_, book_, book_, edges(first_edge_id), /*is_block=*/true,
                                     graph_.options(), ids_, ids_);
    Array<std::uint16_t> etypes(static_cast<std::size_t>(homogeneous.num_edges()));
    const Array<Index>& ids = homogeneous.edge_ids();
    for (std::size_t e = 0; e < etypes.size(); ++e)
      etypes[e] = static_cast<std::uint16_t>(
          std::upper_bound(first_edge_id.begin(), first_edge_id.end(), ids[e]) - first_edge_id.begin() - 1);
    HomogeneousForm form{.graph = std::move(homogeneous),
                         .node_types = graph_.node_types(),
                         .edge_types = types,
                         .first_row = std::move(first_row_),
                         .etypes = EdgeTypes(std::move(etypes)),
                         .first_edge_id = first_edge_id};
    for (const std::string& type : form.node_types) form.books.push_back(graph_.book(type));
    for (const EdgeType& type : types) {
      form.relations.push_back(graph_[type].shards());
      form.edges_by_id.push_back(edges_in_order_of_ids(form.relations.back()));
    }
    return form;
  }

 private:
  /// Computes the owners of the nodes and the original ids of this rank's nodes. Collective.
  void make_books() {
    const auto& types = graph_.node_types();
    first_row_ = offsets_of_sizes(types, [&](const std::string& type) { return graph_.num_nodes(type); });
    book_ = gather_book(comm_, first_row_.back());
    std::vector<Index> sizes;
    std::vector<const Array<Index>*> ids;
    for (const std::string& type : types) {
      sizes.push_back(graph_.num_global_nodes(type));
      ids.push_back(&graph_.node_ids(type));
    }
    const std::vector<Index> begin = begin_of_ids(comm_, sizes, ids);
    for (std::size_t t = 0; t < types.size(); ++t)
      for (const Index id : *ids[t]) ids_.push_back(begin[t] + id);
  }

  [[nodiscard]] std::vector<Index> begin_of_edge_ids() const {
    std::vector<Index> sizes;
    std::vector<const Array<Index>*> ids;
    for (const EdgeType& type : graph_.edge_types()) {
      sizes.push_back(graph_[type].num_global_edges());
      ids.push_back(&graph_[type].edge_ids());
    }
    return begin_of_ids(comm_, sizes, ids);
  }

  [[nodiscard]] Index first_row_of(const std::string& type) const {
    return first_row_[find_node_type(graph_.node_types(), type)];
  }

  /// Returns all edges of this rank in global ids of the homogeneous graph. Collective.
  [[nodiscard]] EdgeList edges(const std::vector<Index>& first_edge_id) const {
    const auto& types = graph_.edge_types();
    const bool weighted = std::any_of(types.begin(), types.end(), [&](const EdgeType& type) {
      return graph_[type].edge_weight().defined();
    });
    const Index first = book_.begin(comm_.rank());
    EdgeList list;
    for (const std::string& source : graph_.node_types()) {
      Array<Index> src;  // ids of the nodes and of the shared halo
      bool known = false;
      for (std::size_t k = 0; k < types.size(); ++k) {
        if (types[k].source != source) continue;
        const GraphTopology& relation = graph_[types[k]].topology();
        if (!std::exchange(known, true))
          src = relation.with_halo(consecutive(first + first_row_of(source), relation.local.num_src_rows));
        add_edges(relation, src, first + first_row_of(types[k].destination), first_edge_id[k], weighted,
                  list);
      }
    }
    return list;
  }

  const Graph& graph_;
  const Communicator& comm_;
  PartitionBook book_;
  Array<Index> ids_;
  std::vector<Index> first_row_;
};

}  // namespace

const HomogeneousForm& Graph::to_homogeneous() const {
  GraphTypes& its = types();
  require<InputError>(
      !its.is_block, "a block has no homogeneous form, expected the graph that its message flow graph is of");
  if (its.form == nullptr)
    its.form = comm().agree([&] {
      std::optional<Graph> same;
      if (its.nodes.size() == 1 && its.edge_types.size() == 1) same = Graph(shards(), options());
      return std::make_shared<const HomogeneousForm>(HomogeneousMaker(*this).make(same));
    });
  return *its.form;
}

}}  // namespace sar
