// SPDX-License-Identifier: MIT

/// One edge list with its edges, their data, and the names of its nodes.
#pragma once

#include "edge_chunks.hpp"
#include "edge_list_format.hpp"
#include "field_data.hpp"
#include "node_keys.hpp"
#include "source_options.hpp"

#include <sar/comm/communicator.hpp>

#include <memory>
#include <string>
#include <vector>

namespace sar::formats {

/// Nodes are integers, or handles of NodeKeys that have become numbers.
class EdgeListFile {
 public:
  /// Reads everything. Collective; throws InputError, the same on every rank.
  EdgeListFile(const Communicator& comm, const std::string& path, const SourceOptions& options);

  /// Local. What was understood and what may be meant in another way, a line each, for people.
  [[nodiscard]] std::vector<std::string> notes() const { return notes_; }
  /// The smallest node; -1: there is none, or nodes are names.
  [[nodiscard]] Index smallest() const noexcept { return keys == nullptr ? smallest_ : -1; }

  /// Whether the names of the nodes are integers, also where `keys` number them.
  [[nodiscard]] bool names_are_integers() const noexcept { return largest_ >= 0; }

  Index num_edges = 0;
  EdgeChunks chunks;
  FieldTable fields;               ///< of the edges
  std::unique_ptr<NodeKeys> keys;  ///< null: nodes are integers

 private:
  void read_integers();
  void read_names();
  void name_integers();
  /// The file whose ids come first: SourceOptions::node_keys, or the table of the nodes; empty: none.
  [[nodiscard]] const std::string& key_file() const {
    return options_.node_keys.empty() ? options_.node_table : options_.node_keys;
  }
  /// The numbers of the words that have been seen; the words of key_file() come first.
  void begin_names();
  void replace_handles();
  void require_edge_in_first_line();
  void add_edge_data();
  void add_column_data(const std::string& name, const std::vector<Index>& slots, const DataArray& all);
  void add_notes();

  const Communicator& comm_;
  const std::string& path_;
  const SourceOptions& options_;
  EdgeListFormat format_;
  Index smallest_ = -1, largest_ = -1;  // node, when they are integers
  Index num_given_keys_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace sar::formats
