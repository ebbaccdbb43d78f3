// SPDX-License-Identifier: MIT

// BlockTypes passes over the sources, halo rows and edges of the block once, O(rows log types + edges),
// and gives each row a number within its type. Readers learn the types of their halo rows from the owners
// (8 bytes per halo row). Then the ranks exchange P numbers for each node type and one all_reduce of all
// sizes. Relations with the same source type share rounds, ids and rows.
#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/construct/message_flow_graph.hpp>
#include <sar/graph/hetero/homogeneous_form.hpp>
#include <sar/graph/topology/sharded_graph.hpp>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

/// Maps the rows of the types to rows of the block without types.
struct MessageFlowGraph::Places {
  std::vector<Array<Index>> sources;                      ///< per type
  std::vector<std::shared_ptr<const Array<Index>>> rows;  ///< per type: the sources in the whole graph
  std::vector<std::size_t> num_destinations;
  Array<Index> destinations;  ///< for each destination of the block, its position when types are concatenated
  Graph whole;                ///< that the block is of
};

struct MessageFlowGraph::Made {
  Communicator comm;
  GraphOptions options;
  std::vector<BlockNodes> nodes;
  std::vector<EdgeType> edge_types;
  std::vector<std::shared_ptr<const ShardedGraph>> relations;
  std::shared_ptr<Places> places;
};

namespace {

/// An edge of a relation between rows of its node types.
struct TypedEdge {
  local_index dst, src;
  local_index edge;  ///< edge of the message flow graph
};

/// The edges of a relation in their order: local ones, then remote ones.
struct TypedEdges {
  Array<TypedEdge> local, remote;
};

GraphShard make_shard(const Array<TypedEdge>& edges, Index first_edge, Index num_dst, Index num_src_rows,
                      bool every_row) {
  GraphShard shard;
  shard.num_dst = num_dst;
  shard.num_src_rows = num_src_rows;
  shard.first_edge = first_edge;
  list_rows(
      shard, std::ssize(edges), [&](Index k) { return edges[k].dst; }, every_row);
  shard.src.resize(edges.size());
  std::ranges::transform(edges, shard.src.begin(), &TypedEdge::src);
  return shard;
}

/// Splits a message flow graph by types.
class BlockTypes {
 public:
  BlockTypes(const Graph& graph, const MessageFlowGraph& block)
      : graph_(graph),
        form_(graph.to_homogeneous()),
        block_(block),
        shards_(block.topology()),
        comm_(block.comm()),
        num_types_(graph.node_types().size()) {
    check();
    number_rows();
    share_rows();
    divide_edges();
    share_sizes();
  }

  [[nodiscard]] const std::vector<Array<Index>>& sources() const { return sources_; }
  [[nodiscard]] std::vector<std::shared_ptr<const Array<Index>>> rows() const {
    std::vector<std::shared_ptr<const Array<Index>>> of_types;
    for (const NodeRows& type : types_) of_types.push_back(type.rows);
    return of_types;
  }
  [[nodiscard]] std::vector<std::size_t> num_destinations() const {
    return {num_destinations_.begin(), num_destinations_.end()};
  }
  [[nodiscard]] const PartitionBook& src_book(std::size_t type) const { return src_books_[type]; }
  [[nodiscard]] const PartitionBook& dst_book(std::size_t type) const { return dst_books_[type]; }

  /// Returns the original ids within the type of this rank's sources.
  [[nodiscard]] const SharedIds& src_ids(std::size_t type) const { return types_[type].src_ids; }
  [[nodiscard]] std::size_t node_type(const std::string& name) const {
    return find_node_type(graph_.node_types(), name);
  }
  /// Returns, for each destination of the message flow graph, its position when types are concatenated.
  [[nodiscard]] Array<Index> destinations_in_order() const {
    const std::vector<Index> begin = offsets_of_sizes(num_destinations_);
    Array<Index> places;
    for (Index i = 0; i < block_.num_dst_nodes(); ++i)
      places.push_back(begin[static_cast<std::size_t>(type_[i])] + number_[i]);
    return places;
  }

  /// Returns the rounds of the block restricted to the rows of one type. Collective.
  [[nodiscard]] HaloRounds rounds(std::size_t type) const {
    const auto is_type = [&](Index row) { return type_[row] == static_cast<Index>(type); };
    const Index first_halo = shards_.local.num_src_rows;
    std::vector<HaloRound> of_type;
    for (const HaloRound& round : shards_.rounds()) {
      HaloRound& made = of_type.emplace_back();
      made.reader = round.reader;
      made.owner = round.owner;
      for (Index i = 0; i < round.recv_rows; ++i)
        made.recv_rows += is_type(first_halo + round.first + i) ? 1 : 0;
      for (const local_index row : round.send_rows)
        if (is_type(row)) made.send_rows.push_back(static_cast<local_index>(number_[row]));
    }
    number_halo_rows(comm_, of_type);
    return std::make_shared<const std::vector<HaloRound>>(std::move(of_type));
  }

  [[nodiscard]] std::shared_ptr<const ShardedGraph> relation(std::size_t k, HaloRounds rounds) const {
    const EdgeType& type = form_.edge_types[k];
    const ShardedGraph& whole = *graph_[type].shards();
    const std::size_t source = node_type(type.source), destination = node_type(type.destination);
    const Index num_dst = num_destinations_[destination];
    const auto& [local, remote] = edges_[k];
    auto made = std::make_shared<const GraphTopology>(GraphTopology{
        .comm = comm_,
        .src_book = src_books_[source],
        .dst_book = dst_books_[destination],
        .is_block = source == destination,
        .is_layer = true,
        .shared_src_ids = types_[source].src_ids,
        .shared_dst_ids = types_[destination].dst_ids,
        .shared_edge_ids = edge_ids(k),
        .edge_weight = whole.topology->edge_weight.defined() ? edge_weights(k) : Tensor(),
        .num_global_edges = num_edges_[k],
        .local = make_shard(local, 0, num_dst, std::ssize(sources_[source]), /*every_row=*/true),
        .remote = make_shard(remote, std::ssize(local), num_dst, halo_sizes_[source], /*every_row=*/false),
        .shared_rounds = std::move(rounds)});
    // selected on demand from the relation's degrees, which are counted once for all blocks
    const auto in_graph = [rows = types_[source].rows](const auto& degrees) {
      return std::make_shared<LazyArray>([rows, degrees] { return degrees->select(*rows); });
    };
    KnownDegrees known{.out = in_graph(whole.degrees.out)};
    if (made->is_block) known.src_in = in_graph(whole.degrees.in);
    return std::make_shared<const ShardedGraph>(std::move(made), std::move(known));
  }

 private:
  struct NodeRows {
    std::shared_ptr<const Array<Index>> rows;  ///< local rows in the whole graph of the sources
    SharedIds src_ids, dst_ids;
  };
  void check() const {
    const GraphTopology& whole = form_.graph.topology();
    require<InputError>(comm_.size() == whole.comm.size(), "the block is of ", comm_.size(),
                        " ranks, the graph of ", whole.comm.size());
    const auto check_rows = [](const Array<Index>& rows, Index size, const char* what) {
      for (const Index row : rows)
        require<InputError>(0 <= row && row < size, "the block has ", what, " ", row,
                            " of the rank, expected ", index_range(size),
                            " as in the homogeneous form of the graph");
    };
    check_rows(block_.src_rows(), whole.local.num_src_rows, "node");
    check_rows(block_.edge_rows(), whole.num_edges(), "edge");
  }

  /// Computes type_, number_, sources_, num_destinations_ and halo_sizes_. Collective.
  void number_rows() {
    const Array<Index>& rows = block_.src_rows();
    const std::vector<Index>& first = form_.first_row;
    sources_.resize(num_types_);
    num_destinations_.resize(num_types_);
    halo_sizes_.resize(num_types_);
    for (Index i = 0; i < std::ssize(rows); ++i) {
      const auto type =
          static_cast<std::size_t>(std::upper_bound(first.begin(), first.end(), rows[i]) - first.begin() - 1);
      type_.push_back(static_cast<Index>(type));
      number_.push_back(std::ssize(sources_[type]));
      sources_[type].push_back(i);
      if (i < block_.num_dst_nodes()) ++num_destinations_[type];
    }
    type_ = shards_.with_halo(type_);
    for (Index i = std::ssize(rows); i < std::ssize(type_); ++i)
      number_.push_back(halo_sizes_[static_cast<std::size_t>(type_[i])]++);
  }

  /// Computes types_, which the relations of a node type share.
  void share_rows() {
    for (std::size_t t = 0; t < num_types_; ++t) {
      Array<Index> rows, ids;
      for (const Index source : sources_[t]) {
        rows.push_back(block_.src_rows()[source] - form_.first_row[t]);
        ids.push_back(graph_.node_ids(graph_.node_types()[t])[rows.back()]);
      }
      Array<Index> of_destinations(ids.begin(), ids.begin() + num_destinations_[t]);
      types_.push_back({.rows = std::make_shared<const Array<Index>>(std::move(rows)),
                        .src_ids = std::make_shared<const Array<Index>>(std::move(ids)),
                        .dst_ids = std::make_shared<const Array<Index>>(std::move(of_destinations))});
    }
  }

  /// Computes edges_. Each relation keeps the order of the block.
  void divide_edges() {
    edges_.resize(form_.edge_types.size());
    const Array<std::uint16_t>& etypes = form_.etypes.numbers();
    shards_.for_each_edge([&](Index u, Index v, Index edge) {
      TypedEdges& edges = edges_[etypes[block_.edge_rows()[edge]]];
      (u < shards_.local.num_src_rows ? edges.local : edges.remote)
          .push_back({.dst = static_cast<local_index>(number_[v]),
                      .src = static_cast<local_index>(number_[u]),
                      .edge = static_cast<local_index>(edge)});
    });
  }

  /// Computes src_books_, dst_books_ and num_edges_. Collective.
  void share_sizes() {
    const auto ranks = static_cast<std::size_t>(comm_.size()), rank = static_cast<std::size_t>(comm_.rank());
    std::vector<Index> sizes(2 * num_types_ * ranks + edges_.size(), 0);
    const auto place = [&](std::size_t q, std::size_t type) { return 2 * (q * num_types_ + type); };
    for (std::size_t t = 0; t < num_types_; ++t) {
      sizes[place(rank, t)] = std::ssize(sources_[t]);
      sizes[place(rank, t) + 1] = num_destinations_[t];
    }
    const std::size_t first_edges = 2 * num_types_ * ranks;
    for (std::size_t k = 0; k < edges_.size(); ++k)
      sizes[first_edges + k] = std::ssize(edges_[k].local) + std::ssize(edges_[k].remote);
    comm_.all_reduce(std::span<Index>(sizes), ReduceOp::sum);
    for (std::size_t t = 0; t < num_types_; ++t)
      for (std::size_t end = 0; end < 2; ++end) {
        std::vector<Index> offsets{0};
        for (std::size_t q = 0; q < ranks; ++q) offsets.push_back(offsets.back() + sizes[place(q, t) + end]);
        (end == 0 ? src_books_ : dst_books_).emplace_back(std::move(offsets));
      }
    num_edges_.assign(sizes.begin() + static_cast<std::ptrdiff_t>(first_edges), sizes.end());
  }

  /// Calls visit(edge of the message flow graph) for the edges of a relation.
  template <class Visit>
  void for_edges(std::size_t k, const Visit& visit) const {
    for (const Array<TypedEdge>* edges : {&edges_[k].local, &edges_[k].remote})
      for (const TypedEdge& each : *edges) visit(each.edge);
  }
  [[nodiscard]] SharedEdgeIds edge_ids(std::size_t k) const {
    auto ids = std::make_shared<std::optional<Array<Index>>>();
    if (!shards_.has_edge_ids()) return ids;
    const Array<Index>& of_block = shards_.edge_ids();
    ids->emplace();
    for_edges(k, [&](Index edge) { (*ids)->push_back(of_block[edge] - form_.first_edge_id[k]); });
    return ids;
  }
  [[nodiscard]] Tensor edge_weights(std::size_t k) const {
    Tensor weight({std::ssize(edges_[k].local) + std::ssize(edges_[k].remote)});
    real* next = weight.data();
    for_edges(k, [&](Index edge) { *next++ = shards_.edge_weight.data()[edge]; });
    return weight;
  }

  const Graph& graph_;
  const HomogeneousForm& form_;
  const MessageFlowGraph& block_;
  const GraphTopology& shards_;
  const Communicator& comm_;
  std::size_t num_types_;
  Array<Index> type_;    // type of each source row, then of each halo row
  Array<Index> number_;  // index of each of these rows among the rows of its type
  std::vector<Array<Index>> sources_;
  std::vector<Index> num_destinations_, halo_sizes_;
  std::vector<NodeRows> types_;
  std::vector<TypedEdges> edges_;
  std::vector<PartitionBook> src_books_, dst_books_;
  std::vector<Index> num_edges_;
};

}  // namespace

MessageFlowGraph::Made MessageFlowGraph::make(const Graph& graph, const MessageFlowGraph& block) {
  return graph.comm().agree([&] {
    const BlockTypes types(graph, block);
    Made made{block.comm(), block.options(), {}, graph.edge_types(), {}, nullptr};
    std::vector<HaloRounds> rounds;
    for (std::size_t t = 0; t < graph.node_types().size(); ++t) {
      const std::string& name = graph.node_types()[t];
      made.nodes.push_back({name, types.src_book(t), types.dst_book(t), types.src_ids(t)});
      rounds.push_back(types.rounds(t));
    }
    for (std::size_t k = 0; k < made.edge_types.size(); ++k)
      made.relations.push_back(types.relation(k, rounds[types.node_type(made.edge_types[k].source)]));
    made.places = std::make_shared<Places>(Places{.sources = types.sources(),
                                                  .rows = types.rows(),
                                                  .num_destinations = types.num_destinations(),
                                                  .destinations = types.destinations_in_order(),
                                                  .whole = graph});
    return made;
  });
}

MessageFlowGraph::MessageFlowGraph(const MessageFlowGraph& block, Made made)
    : Graph(made.comm, std::move(made.nodes), std::move(made.edge_types), made.relations, made.options),
      rows_(block.rows_),
      num_halo_rows_(block.num_halo_rows_),
      places_(std::move(made.places)) {}

MessageFlowGraph::MessageFlowGraph(const Graph& graph, const MessageFlowGraph& block)
    : MessageFlowGraph(block, make(graph, block)) {}

const Array<Index>& MessageFlowGraph::src_rows(const std::string& type) const {
  const std::size_t t = find_node_type(node_types(), type);
  return places_ == nullptr ? src_rows() : *places_->rows[t];
}

std::span<const Index> MessageFlowGraph::dst_rows(const std::string& type) const {
  const std::size_t t = find_node_type(node_types(), type);
  if (places_ == nullptr) return dst_rows();
  return std::span<const Index>(*places_->rows[t]).first(places_->num_destinations[t]);
}

Array<Index> MessageFlowGraph::edge_rows(const EdgeType& type) const {
  return edge_rows(type.canonical_name());
}
Array<Index> MessageFlowGraph::edge_rows(const std::string& type) const {
  const std::size_t k = find_edge_type(edge_types(), type);
  if (places_ == nullptr) return edge_rows();
  return places_->whole.to_homogeneous().edge_rows(k, (*this)[edge_types()[k]].edge_ids());
}

Graph::Rows MessageFlowGraph::split(const Variable& sources) const {
  require<ShapeError>(sources.defined() && sources.num_rows() == std::ssize(src_rows()), "rows of shape ",
                      sources.shape(), ", rank ", comm().rank(), " has ", src_rows().size(),
                      " sources in the block");
  if (places_ == nullptr) return {{node_types().front(), sources}};
  Rows rows;
  for (std::size_t t = 0; t < node_types().size(); ++t)
    rows.emplace(node_types()[t], gather_rows(sources, RowIds(places_->sources[t], places_)));
  return rows;
}

Variable MessageFlowGraph::join(const Rows& destinations) const {
  require<InputError>(!destinations.empty(), "there are no rows to join");
  for (const auto& of_type : destinations) (void)num_nodes(of_type.first);  // throws for an unknown type
  const Shape shape = destinations.begin()->second.shape();
  std::vector<Variable> parts;
  for (const std::string& type : node_types()) {
    const auto found = destinations.find(type);
    const Index expected = std::ssize(dst_rows(type));
    if (found == destinations.end()) {
      parts.emplace_back(Tensor::zeros(shape.with_rows(expected)));
      continue;
    }
    require<ShapeError>(found->second.num_rows() == expected, "rows of '", type, "' have shape ",
                        found->second.shape(), ", rank ", comm().rank(), " computes ", expected,
                        " nodes of this type");
    parts.push_back(found->second);
  }
  if (places_ == nullptr) return parts.front();
  return gather_rows(concat_rows(parts), RowIds(places_->destinations, places_));
}

}}  // namespace sar
