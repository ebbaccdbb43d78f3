// SPDX-License-Identifier: MIT

// For each node type, the ranks exchange the halo of all relations from this type once (4 bytes per halo
// row). Each relation then builds its topology on it and tells the owners how often it uses their rows (8
// bytes per halo row).
#include <sar/core/memory/index_arrays.hpp>
#include <sar/core/trace/trace.hpp>
#include <sar/graph/hetero/graph_types.hpp>
#include <sar/graph/message/agreement.hpp>

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

void check_node_types(const Communicator& comm, const std::vector<NodeTypeSpec>& nodes) {
  require<InputError>(!nodes.empty(), "Graph: there are no node types");
  for (const NodeTypeSpec& type : nodes) {
    require<InputError>(!type.name.empty(), "Graph: a node type has no name");
    require<InputError>(std::ranges::count(nodes, type.name, &NodeTypeSpec::name) == 1,
                        "Graph: the node type '", type.name, "' is given twice");
    require<InputError>(type.book.num_parts() == comm.size(), "Graph: the book of the node type '", type.name,
                        "' has ", type.book.num_parts(), " parts, there are ", comm.size(), " ranks");
    const Index mine = type.book.num_nodes(comm.rank());
    require<InputError>(type.ids.empty() || std::ssize(type.ids) == mine, "Graph: rank ", comm.rank(),
                        " gives ", type.ids.size(), " original ids for ", mine, " nodes of type '", type.name,
                        "'");
  }
}

void check_edge_types(const std::vector<NodeTypeSpec>& nodes, const std::vector<EdgeTypeSpec>& edges) {
  std::vector<std::string> names;
  for (const NodeTypeSpec& type : nodes) names.push_back(type.name);
  std::set<std::string> known;
  for (const EdgeTypeSpec& each : edges) {
    const EdgeType& type = each.type;
    require<InputError>(!type.relation.empty(), "Graph: the relation of the edge type from '", type.source,
                        "' to '", type.destination, "' has no name");
    for (const std::string& end : {type.source, type.destination})
      if (std::find(names.begin(), names.end(), end) == names.end())
        throw InputError(concat("Graph: the edge type '", type, "' has the end '", end,
                                "', which is no node type; the node types are ", quoted_list(names)));
    require<InputError>(known.insert(type.canonical_name()).second,  // they can clash if names contain colons
                        "Graph: the edge type '", type, "' is given twice");
  }
}

/// Checks that source types exist before relations share a halo. Everything else is checked per relation.
void check_sources(const std::vector<NodeTypeSpec>& nodes, const std::vector<EdgeTypeSpec>& edges) {
  for (const EdgeTypeSpec& spec : edges) {
    const Index size = std::ranges::find(nodes, spec.type.source, &NodeTypeSpec::name)->book.num_nodes();
    for (std::size_t k = 0; k < spec.edges.src.size(); ++k)
      require<InputError>(0 <= spec.edges.src[k] && spec.edges.src[k] < size, "edge type '", spec.type,
                          "': edge ", k, " of the rank comes from node ", spec.edges.src[k],
                          ", but there are ", size, " nodes of type '", spec.type.source, "'");
  }
}

/// Describes the construction for the call digest: types must be the same on every rank.
CollectiveCall construction(const std::vector<NodeTypeSpec>& nodes, const std::vector<EdgeTypeSpec>& edges,
                            const GraphOptions& options) {
  std::string node_names, edge_names;
  for (const NodeTypeSpec& type : nodes) node_names += type.name + " ";
  for (const EdgeTypeSpec& type : edges) edge_names += type.type.canonical_name() + " ";
  return CollectiveCall("Graph")
      .equal(options)
      .equal("number of node types", nodes.size())
      .equal("number of edge types", edges.size())
      .equal("list of node types", node_names)
      .equal("list of edge types", edge_names);
}

}  // namespace

void GraphTypes::take_nodes(std::vector<NodeTypeSpec> specs) {
  for (NodeTypeSpec& spec : specs) {
    if (spec.ids.empty())
      spec.ids = consecutive(spec.book.begin(comm.rank()), spec.book.num_nodes(comm.rank()));
    const auto frame = std::make_shared<Frame>("ndata of '" + spec.name + "'");
    nodes.push_back({.book = spec.book,
                     .dst_book = std::move(spec.book),
                     .ids = std::make_shared<const Array<Index>>(std::move(spec.ids)),
                     .src_frame = frame,
                     .dst_frame = frame});
    node_names.push_back(std::move(spec.name));
  }
}

std::vector<std::shared_ptr<const ShardedGraph>> GraphTypes::make_shards(
    std::vector<EdgeTypeSpec> specs) const {
  std::vector<std::shared_ptr<const ShardedGraph>> shards(specs.size());
  for (std::size_t t = 0; t < nodes.size(); ++t) {
    std::vector<std::size_t> from_here;
    std::vector<const EdgeList*> lists;
    for (std::size_t k = 0; k < specs.size(); ++k) {
      if (specs[k].type.source != node_names[t]) continue;
      from_here.push_back(k);
      lists.push_back(&specs[k].edges);
    }
    if (from_here.empty()) continue;
    const SharedHalo halo = share_halo(comm, nodes[t].book, lists);
    for (const std::size_t k : from_here) {
      const EdgeType& type = specs[k].type;
      const NodeType& dst = node_type(type.destination);
      shards[k] = naming(type, [&] {
        return std::make_shared<const ShardedGraph>(
            make_topology(comm, nodes[t].book, dst.book, std::move(specs[k].edges),
                          type.source == type.destination, nodes[t].ids, dst.ids, &halo));
      });
    }
  }
  return shards;
}

Graph::Graph(const Communicator& comm, std::vector<NodeTypeSpec> nodes, std::vector<EdgeTypeSpec> edges,
             const GraphOptions& options)
    : Graph(collective(
          comm,
          [&] {
            check_node_types(comm, nodes);
            check_edge_types(nodes, edges);
            check_sources(nodes, edges);
            return construction(nodes, edges, options);
          },
          [&] {
            const TraceScope scope("construct typed graph", TraceKind::compute);
            auto made = std::make_shared<GraphTypes>(comm, options);
            made->take_nodes(std::move(nodes));
            std::vector<EdgeType> types;
            for (const EdgeTypeSpec& spec : edges) types.push_back(spec.type);
            const auto shards = made->make_shards(std::move(edges));
            made->take_relations(std::move(types), shards);
            return made;
          })) {}

Graph::Graph(std::shared_ptr<GraphTypes> types) : options_(types->options), types_(std::move(types)) {
  if (types_->relations.size() != 1) return;
  relation_ = types_->relations.front().relation_;
  frames_ = types_->relations.front().frames_;
}

Graph::Graph(const Communicator& comm, std::vector<BlockNodes> nodes, std::vector<EdgeType> edge_types,
             const std::vector<std::shared_ptr<const ShardedGraph>>& relations, const GraphOptions& options)
    : Graph(comm.agree([&] {
        auto made = std::make_shared<GraphTypes>(comm, options);
        made->is_block = true;
        for (BlockNodes& type : nodes) {
          made->nodes.push_back({.book = std::move(type.src_book),
                                 .dst_book = std::move(type.dst_book),
                                 .ids = std::move(type.ids),
                                 .src_frame = std::make_shared<Frame>("srcdata of '" + type.name + "'"),
                                 .dst_frame = std::make_shared<Frame>("dstdata of '" + type.name + "'")});
          made->node_names.push_back(std::move(type.name));
        }
        made->take_relations(std::move(edge_types), relations);
        return made;
      })) {}

std::shared_ptr<GraphTypes> GraphTypes::of_relation(const GraphTopology& topology, const Frames& frames) {
  auto made = std::make_shared<GraphTypes>(topology.comm, GraphOptions());
  const bool one_type = topology.is_block;
  made->is_block = one_type && !topology.is_homogeneous();
  EdgeType type = frames.type;
  if (!one_type && type == EdgeType{"_N", "_E", "_N"}) type = {"_U", "_E", "_V"};
  made->node_names.push_back(type.source);
  made->nodes.push_back({.book = topology.src_book,
                         .dst_book = one_type ? topology.dst_book : topology.src_book,
                         .ids = topology.shared_src_ids,
                         .src_frame = frames.src,
                         .dst_frame = one_type ? frames.dst : frames.src});
  if (!one_type) {
    made->node_names.push_back(type.destination);
    made->nodes.push_back({.book = topology.dst_book,
                           .dst_book = topology.dst_book,
                           .ids = topology.shared_dst_ids,
                           .src_frame = frames.dst,
                           .dst_frame = frames.dst});
  }
  made->numbers.emplace(type, 0);
  made->edge_types.push_back(std::move(type));
  return made;
}

GraphTypes& Graph::types() const {
  if (types_ != nullptr) return *types_;
  static std::mutex mutex;  // several threads may ask for the types of the same graph
  const std::scoped_lock lock(mutex);
  std::shared_ptr<GraphTypes>& known = frames_->types;
  if (known == nullptr) known = GraphTypes::of_relation(topology(), *frames_);
  return *known;
}

void GraphTypes::take_relations(std::vector<EdgeType> types,
                                const std::vector<std::shared_ptr<const ShardedGraph>>& shards) {
  edge_types = std::move(types);
  for (std::size_t k = 0; k < shards.size(); ++k) {
    numbers.emplace(edge_types[k], k);
    relations.push_back(Graph(shards[k], options, frames_of(edge_types[k])));
    most_halo_rows.push_back(shards[k]->topology->remote.num_src_rows);
  }
  if (!shards.empty()) comm.all_reduce(std::span<Index>(most_halo_rows), ReduceOp::max);
  holding_halo.resize(shards.size());
}

const Communicator& Graph::comm() const noexcept {
  return relation_ != nullptr ? relation_->topology->comm : types_->comm;
}
bool Graph::is_block() const {
  return relation_ != nullptr ? topology().is_block : types_->is_block;
}
const std::vector<std::string>& Graph::node_types() const {
  return types().node_names;
}
const std::vector<EdgeType>& Graph::edge_types() const {
  return types().edge_types;
}
bool Graph::is_homogeneous() const {
  return node_types().size() == 1 && edge_types().size() == 1;
}

Graph Graph::relation_number(std::size_t k) const {
  if (types().relations.empty()) return *this;  // types of a relation by itself
  Graph relation = types().relations[k];
  relation.options_ = options_;
  return relation;
}
Graph Graph::operator[](const EdgeType& type) const {
  return relation_number(types().edge_type_number(type));
}
Graph Graph::operator[](const std::string& type) const {
  return relation_number(find_edge_type(edge_types(), type));
}

bool Graph::fetches_together(const Variable& x, std::span<const RelationCall> calls) const {
  if (comm().size() == 1 || calls.size() == 1 || options().reproducible) return false;
  if (types().relations.empty()) return false;  // several calls of a relation by itself
  const auto relation = types().edge_type_number(calls.front().type);
  const Index bytes =
      types().most_halo_rows[relation] * x.shape().row_size() * static_cast<Index>(sizeof(real));
  return options().max_halo_bytes == 0 || bytes <= options().max_halo_bytes;
}

Graph Graph::holding_halo(const EdgeType& type) const {
  const std::size_t k = types().edge_type_number(type);
  std::optional<Graph>& held = types().holding_halo[k];
  if (!held) {
    SharedIds& kept_ids = types().nodes[find_node_type(node_types(), type.source)].ids_with_halo;
    SharedIds ids = kept_ids;
    held = comm().agree([&] {
      const Graph& relation = types().relations[k];
      if (ids == nullptr)
        ids = std::make_shared<const Array<Index>>(relation.topology().with_halo(relation.src_ids()));
      Frames frames(std::make_shared<Frame>("rows of '" + type.source + "' with their halo"),
                    relation.frames_->dst, type);
      frames.edge = relation.frames_->edge;
      return Graph(ShardedGraph::holding_halo(relation.shards(), ids), options(), std::move(frames));
    });
    kept_ids = std::move(ids);  // all ranks cache both, or none does
  }
  Graph graph = *held;
  graph.options_ = options_;
  return graph;
}

const PartitionBook& Graph::book(const std::string& type) const {
  return types().node_type(type).book;
}
Index Graph::num_nodes(const std::string& type) const {
  return book(type).num_nodes(comm().rank());
}
Index Graph::num_dst_nodes(const std::string& type) const {
  return types().node_type(type).dst_book.num_nodes(comm().rank());
}
Index Graph::num_global_nodes(const std::string& type) const {
  return book(type).num_nodes();
}

namespace {
/// The sum of count(name of a type).
template <class Types, class Count>
Index of_all(const Types& types, const Count& count) {
  Index sum = 0;
  for (const auto& type : types) sum += count(type);
  return sum;
}
}  // namespace

Index Graph::num_nodes() const {
  if (relation_ != nullptr && types_ == nullptr) return num_src_nodes();
  return of_all(node_types(), [&](const std::string& type) { return num_nodes(type); });
}
Index Graph::num_global_nodes() const {
  if (relation_ != nullptr && types_ == nullptr) return num_global_src_nodes();
  return of_all(node_types(), [&](const std::string& type) { return num_global_nodes(type); });
}
Index Graph::num_edges() const {
  if (relation_ != nullptr) return topology().num_edges();
  return of_all(types_->relations, [&](const Graph& relation) { return relation.num_edges(); });
}
Index Graph::num_global_edges() const {
  if (relation_ != nullptr) return topology().num_global_edges;
  return of_all(types_->relations, [&](const Graph& relation) { return relation.num_global_edges(); });
}
const Array<Index>& Graph::node_ids(const std::string& type) const {
  return *types().node_type(type).ids;
}
Frame& Graph::ndata(const std::string& type) const {
  require<InputError>(!types().is_block, "a block has no ndata of '", type, "', only srcdata and dstdata");
  return srcdata(type);
}
Frame& Graph::srcdata(const std::string& type) const {
  return *types().node_type(type).src_frame;
}
Frame& Graph::dstdata(const std::string& type) const {
  return *types().node_type(type).dst_frame;
}

}}  // namespace sar
