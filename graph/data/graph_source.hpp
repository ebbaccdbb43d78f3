/// GraphSource: the interface to a graph that is not partitioned yet: files of some format, a generator, a
/// program's own arrays. All ranks read it together, each its share; no rank holds the whole graph.
///
/// All functions are collective unless marked local, and throw the same InputError on every rank. Ids are
/// original ids: nodes 0 .. num_nodes - 1, edges 0 .. num_edges - 1, within their types where there are
/// several.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/data/edge_data.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/data/node_data.hpp>
#include <sar/graph/io/data_array.hpp>

#include <span>
#include <string>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// What a source says of one type of nodes and of one type of edges, before their data are read.
struct SourceNodes {
  std::string name = default_node_type;
  Index num_nodes = 0;
  std::vector<DataField> fields;
};
struct SourceEdges {
  std::string src_type = default_node_type;
  std::string name = default_edge_type;
  std::string dst_type = default_node_type;
  Index num_edges = 0;
  std::vector<DataField> fields;

  [[nodiscard]] std::string canonical_name() const { return src_type + ":" + name + ":" + dst_type; }
};
struct SourceTypes {
  std::vector<SourceNodes> nodes;
  std::vector<SourceEdges> edges;

  /// The place of a type of nodes. Throws InputError naming what there is instead.
  [[nodiscard]] std::size_t node_type(const std::string& name) const;
};

/// The functions without a type are those of a homogeneous graph; a program's own source of one needs no
/// others. A HeteroSource (hetero_source.hpp) has several types.
class GraphSource {
 public:
  virtual ~GraphSource() = default;
  GraphSource(const GraphSource&) = delete;
  GraphSource& operator=(const GraphSource&) = delete;

  /// The name for messages and for a partition: "cora". Local.
  [[nodiscard]] virtual std::string name() const = 0;
  /// What was found, in a few words: "OGB folder ogbn-arxiv, 169343 nodes, ...". Local.
  [[nodiscard]] virtual std::string description() const = 0;
  /// The numbers of the whole graph, known once the source is open. (A source may have to read its edges
  /// for that, and may keep them.) Local.
  [[nodiscard]] virtual Index num_nodes() const = 0;
  [[nodiscard]] virtual Index num_edges() const = 0;
  /// Local.
  [[nodiscard]] virtual const std::vector<DataField>& node_fields() const = 0;
  [[nodiscard]] virtual const std::vector<DataField>& edge_fields() const = 0;

  /// This rank's share of the edges, about num_edges / ranks of them. Each edge is on exactly one rank, and
  /// its ends are checked to be nodes. Weights are left out: they are a field. Called once.
  [[nodiscard]] virtual EdgeList read_edges() = 0;
  /// The rows of the given nodes (edges), in that order, in the type of the field. Each rank asks for any
  /// rows. It needs memory for about these rows and 1 / ranks of the field.
  [[nodiscard]] virtual DataArray read_node_data(const std::string& field, std::span<const Index> nodes) = 0;
  [[nodiscard]] virtual DataArray read_edge_data(const std::string& field, std::span<const Index> edges) = 0;

  /// All types: one of each, as the functions above say, where the source is none of several. Local.
  [[nodiscard]] virtual SourceTypes types() const;
  /// The same as above, of the type at this place in types().
  [[nodiscard]] virtual EdgeList read_edges_of(std::size_t type);
  [[nodiscard]] virtual DataArray read_node_data_of(std::size_t type, const std::string& field,
                                                    std::span<const Index> nodes);
  [[nodiscard]] virtual DataArray read_edge_data_of(std::size_t type, const std::string& field,
                                                    std::span<const Index> edges);

  /// The lists of pairs of a split for link prediction: of training, validation and test, in original ids; or
  /// none. Called once.
  [[nodiscard]] virtual std::vector<ListedPairs> read_listed_pairs() { return {}; }
  /// Whether there are some. Local.
  [[nodiscard]] virtual bool has_listed_pairs() const { return false; }

  /// When nodes have names: writes them to directory/node_keys.txt, the name of node v in line v, counted
  /// from 0. The directory exists.
  virtual void write_node_keys(const std::string& /*directory*/) const {}

  /// The beginning of a message about a field: its file, if it has one of its own. Local.
  [[nodiscard]] virtual std::string place_of(const std::string& field) const { return name() + ": " + field; }

  [[nodiscard]] const Communicator& comm() const noexcept { return comm_; }

 protected:
  explicit GraphSource(Communicator comm) : comm_(std::move(comm)) {}

 private:
  Communicator comm_;
};

/// The source's homogeneous graph, partitioned over the ranks of its communicator. Fields as in to_node_data;
/// where `edges` is given, it gets what the source says of the edges. Collective.
NodeData load_graph(GraphSource& source, const DatasetOptions& options = {}, EdgeData* edges = nullptr);

}  // namespace sar
