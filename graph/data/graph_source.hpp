// SPDX-License-Identifier: MIT

/// GraphSource: the interface to a graph that is not partitioned yet: files of some format, a generator, a
/// program's own arrays. All ranks read it together, each its share; no rank holds the whole graph.
///
/// All functions are collective unless marked local, and throw the same InputError on every rank. Ids are
/// original ids within their types: nodes 0 .. num_nodes - 1, edges 0 .. num_edges - 1.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/files/data_array.hpp>
#include <sar/graph/data/graph_data.hpp>

#include <span>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// A graph of one type of nodes and one of edges mostly; they have the place 0 in types().
class GraphSource : NonCopyable {
 public:
  virtual ~GraphSource() = default;

  /// Local. The name for messages and for a partition: "cora".
  [[nodiscard]] const std::string& name() const noexcept { return types_.name; }
  /// Local. What was found, in a few words: "OGB folder ogbn-arxiv: 169343 nodes, ...".
  [[nodiscard]] virtual std::string description() const { return kind_ + name() + ": " + types_.describe(); }
  /// Local. What was understood of a file that does not say it itself, such as the meaning of its columns:
  /// a line each, for people. Doubts begin with "WARNING: ".
  [[nodiscard]] virtual std::vector<std::string> notes() const { return {}; }
  /// Local. The types of the whole graph, with their sizes and fields, known once the source is open. Books
  /// are even slices of the nodes. (A source may have to read its edges for that, and may keep them.)
  [[nodiscard]] const GraphData& types() const noexcept { return types_; }
  [[nodiscard]] Index num_nodes() const { return types_.num_nodes(); }
  [[nodiscard]] Index num_edges() const { return types_.num_edges(); }

  /// This rank's share of the edges of a type, about num_edges / ranks of them. Each edge is on exactly one
  /// rank, and its ends are checked to be nodes. Weights are left out: they are a field. Called once.
  [[nodiscard]] virtual EdgeList read_edges(std::size_t type) = 0;
  /// The rows of the given nodes (edges) of a type, in that order, in the type of the field. Each rank asks
  /// for any rows. It needs memory for about these rows and 1 / ranks of the field.
  [[nodiscard]] virtual DataArray read_node_data(std::size_t type, const std::string& field,
                                                 std::span<const Index> nodes) = 0;
  [[nodiscard]] virtual DataArray read_edge_data(std::size_t type, const std::string& field,
                                                 std::span<const Index> edges) = 0;

  /// The lists of pairs of a split for link prediction, of edges of this type: of training, validation and
  /// test, in original ids; or none.
  [[nodiscard]] virtual std::vector<ListedPairs> read_listed_pairs(std::size_t /*type*/) { return {}; }
  /// Local. Whether there are some.
  [[nodiscard]] virtual bool has_listed_pairs() const { return false; }

  /// When nodes have names: writes them to directory/node_keys.txt, the name of node v in line v, counted
  /// from 0. The directory exists.
  virtual void write_node_keys(const std::string& /*directory*/) const {}
  /// Local. Whether nodes have names.
  [[nodiscard]] virtual bool has_node_keys() const { return false; }

  /// Local. The beginning of a message about a field: its file, if it has one of its own.
  [[nodiscard]] virtual std::string place_of(const std::string& field) const { return name() + ": " + field; }

  [[nodiscard]] const Communicator& comm() const noexcept { return comm_; }

 protected:
  /// The description is "KIND NAME: ...".
  GraphSource(Communicator comm, const std::string& kind, std::string name)
      : comm_(std::move(comm)), kind_(kind.empty() ? "" : kind + " ") {
    types_.name = std::move(name);
  }
  /// Local. The book of a type of so many nodes.
  [[nodiscard]] PartitionBook slices_of(Index num_nodes) const {
    return PartitionBook::even(num_nodes, comm_.size());
  }

  /// Local. Throws InputError, beginning with `place`, if a type without data has implausibly many nodes,
  /// before memory is allocated for them.
  void require_plausible_sizes(const std::string& place) const;

  GraphData types_;  ///< the types are set by the constructors of derived classes

 private:
  Communicator comm_;
  std::string kind_;
};

/// Local. The name of a graph in a directory or file: the last part of its path.
std::string last_part_of(const std::string& path);

}}  // namespace sar
