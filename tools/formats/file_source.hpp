// SPDX-License-Identifier: MIT

/// FileSource: the base class of GraphSources that read their edges when they are opened. It serves the edges
/// and the node and edge data to the ranks.
#pragma once

#include "edge_chunks.hpp"
#include "field_data.hpp"
#include "node_keys.hpp"

#include <sar/graph/data/graph_source.hpp>

#include <span>
#include <string>
#include <vector>

namespace sar::formats {

class FileSource : public GraphSource {
 public:
  [[nodiscard]] EdgeList read_edges(std::size_t type) override;
  [[nodiscard]] DataArray read_node_data(std::size_t type, const std::string& field,
                                         std::span<const Index> nodes) override;
  [[nodiscard]] DataArray read_edge_data(std::size_t type, const std::string& field,
                                         std::span<const Index> edges) override;
  [[nodiscard]] std::string place_of(const std::string& field) const override;
  [[nodiscard]] std::vector<std::string> notes() const override { return notes_; }

  /// How the nodes of a graph of one type are named. Node v is first_id + v, or has a word of `keys`, which
  /// has the digits of such a number if names are integers.
  struct NodeNames {
    const NodeKeys* keys = nullptr;
    bool are_integers = true;
    Index first_id = 0;
  };
  [[nodiscard]] virtual NodeNames node_names() const { return {}; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] bool has_node_fields() const { return !nodes_.at(0).fields.empty(); }

  /// Local. Adds data of the nodes of a graph of one type, which are `num_nodes` from now on, and a note.
  /// Throws InputError for a field that is there already.
  void add_node_fields(Index num_nodes, FieldTable fields, const std::string& note);
  /// Collective. Adds a note where hardly any edge of a graph of one type has its reverse. Edges must not
  /// have been read.
  void note_directions();

 protected:
  /// `kind` begins the description: "edge list". The name is the path's last part without extensions. There
  /// are no types yet.
  FileSource(const Communicator& comm, const std::string& kind, const std::string& path);

  /// Local.
  void add_nodes(const std::string& name = default_node_type, Index num_nodes = 0);
  void add_edges(EdgeTypeData type = {});
  /// Local. Data of the nodes of a type in a .npy file, or with a name as train_nodes a list of nodes. If
  /// there may be `more` nodes than are known, they are as many as the first file has rows. `hint` ends the
  /// message about a wrong number of rows.
  void add_node_file(std::size_t type, const std::string& field, const std::string& path, bool more = false,
                     const std::string& hint = "");
  /// Local. The mask of a list of nodes. Throws InputError if there is this mask already, and as mask_of().
  void add_node_list(std::size_t type, const std::string& mask, Array<std::int64_t> nodes,
                     const std::string& place);
  /// Collective. Throws InputError, beginning with `place`, for an edge of a homogeneous graph with an end
  /// that is no node.
  void require_ends(const std::string& place);
  /// Local. Throws InputError, beginning with `place`, if a homogeneous graph has no nodes, or implausibly
  /// many for its edges.
  void require_plausible_size(const std::string& place) const;
  /// Local. Lists the fields in types(): the end of each constructor.
  void list_fields();

  std::string path_;
  std::vector<EdgeChunks> chunks_;         // by type
  std::vector<FieldTable> nodes_, edges_;  // by type
  std::vector<std::string> notes_;
};

}  // namespace sar::formats
