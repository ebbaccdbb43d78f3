// SPDX-License-Identifier: MIT

/// Rows with the key of a node each, which go to the nodes of a graph.
///
/// Room tools/formats/tables: Data of nodes in tables with keys, joined with the nodes of an edge list.
#pragma once

#include "formats/file_source.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/core/files/data_array.hpp>
#include <sar/core/memory/memory.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sar::formats {

/// Finds the nodes of rows that are read in blocks, in any order, and sends each row to the owner of its
/// node. Each node has exactly one row. All functions are collective unless marked local, and throw the same
/// InputError on every rank.
class NodeJoin {
 public:
  /// `place` begins messages: the file of the rows.
  NodeJoin(const FileSource& source, std::string place) : source_(source), place_(std::move(place)) {}

  /// Adds rows of this rank with these keys. Row i stands in line lines[i], counted from 1; without lines,
  /// rows are named by their keys alone. Throws for a key that is no node's name.
  void add(std::span<const std::string_view> keys, std::span<const Index> lines);

  /// Called once, after the last row. The nodes are those of the graph, and more if these are numbers, have
  /// no other data, and there are more rows than nodes. Throws for unknown and repeated keys, and for a node
  /// that has no row.
  void finish();

  /// Local. Even slices of the nodes of the graph and the table.
  [[nodiscard]] const PartitionBook& slices() const noexcept { return slices_; }
  /// Local. The node of each row of this rank, in the order in which the rows were added.
  [[nodiscard]] const std::vector<Index>& nodes() const noexcept { return nodes_; }
  /// Sends rows to the slices, which have them in the order of the nodes. `rows` are in the order in which
  /// they were added.
  [[nodiscard]] DataArray to_slices(const DataArray& rows) const;

 private:
  void require_one_row_each();

  const FileSource& source_;
  std::string place_;
  std::vector<Index> nodes_, lines_;  // of my rows; a line is 0 where rows have none
  PartitionBook slices_;
  std::optional<RowRoute> route_;
  Array<Index> arrived_;  // the nodes of the rows that arrive
};

}  // namespace sar::formats
