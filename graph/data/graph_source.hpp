/// GraphSource: where a graph that is not partitioned yet comes from: files of some format, a generator, a
/// program's own arrays. Its edges and data are read in pieces by all workers together; no worker ever holds
/// the whole.
///
/// All functions are collective unless marked local, and throw the same InputError on every rank. Ids are
/// original ids: nodes 0 .. num_nodes - 1, edges 0 .. num_edges - 1.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/dataset.hpp>
#include <sar/graph/data/node_data.hpp>
#include <sar/graph/io/data_array.hpp>

#include <span>
#include <string>
#include <vector>

namespace sar {

class GraphSource {
 public:
  virtual ~GraphSource() = default;
  GraphSource(const GraphSource&) = delete;
  GraphSource& operator=(const GraphSource&) = delete;

  /// For messages and the partition's name: "cora". Local.
  [[nodiscard]] virtual std::string name() const = 0;
  /// What was found, in a few words: "OGB folder ogbn-arxiv, 169343 nodes, ...". Local.
  [[nodiscard]] virtual std::string description() const = 0;
  /// Of the whole graph. Local: known when the source has been opened (which may mean that the edges have
  /// been read once, or are kept).
  [[nodiscard]] virtual Index num_nodes() const = 0;
  [[nodiscard]] virtual Index num_edges() const = 0;
  /// Local.
  [[nodiscard]] virtual const std::vector<DataField>& node_fields() const = 0;
  [[nodiscard]] virtual const std::vector<DataField>& edge_fields() const = 0;

  /// This rank's share of the edges, about num_edges / ranks of them, each edge on exactly one rank; ends
  /// checked to be nodes. Without weights: these are data. Called once.
  [[nodiscard]] virtual EdgeList read_edges() = 0;
  /// The rows of the given nodes (edges), in that order, in the type of the field. Each rank asks for its
  /// own, any number of them. Memory: about what is asked for plus 1 / ranks of the field.
  [[nodiscard]] virtual DataArray read_node_data(const std::string& field, std::span<const Index> nodes) = 0;
  [[nodiscard]] virtual DataArray read_edge_data(const std::string& field, std::span<const Index> edges) = 0;

  /// Nodes that have names and not only numbers: writes them to directory/node_keys.txt, line v (from 0) the
  /// name of node v. The directory exists. Collective.
  virtual void write_node_keys(const std::string& /*directory*/) const {}

  /// What a message about a field begins with: its file, if it has one of its own. Local.
  [[nodiscard]] virtual std::string place_of(const std::string& field) const { return name() + ": " + field; }

  [[nodiscard]] const Communicator& comm() const noexcept { return comm_; }

 protected:
  explicit GraphSource(Communicator comm) : comm_(std::move(comm)) {}

 private:
  Communicator comm_;
};

/// The source's graph, partitioned over the ranks of its communicator. Fields as in to_node_data. Collective.
NodeData load_graph(GraphSource& source, const DatasetOptions& options = {});

}  // namespace sar
