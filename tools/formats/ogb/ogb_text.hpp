// SPDX-License-Identifier: MIT

/// The files of OGB's folders: tables with one row for each node or edge, packed or not, and lists of pairs.
#pragma once

#include "formats/edge_chunks.hpp"
#include "formats/field_data.hpp"
#include "formats/shared_texts.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/files/data_array.hpp>
#include <sar/graph/data/graph_data.hpp>

#include <optional>
#include <string>
#include <vector>

namespace sar::formats {

/// Local. The path, if there is such a file or folder, also in an archive; else empty.
std::string if_there(const std::string& path);
/// Local. The file path.csv.gz or path.csv, also in an archive; empty: there is none.
std::string csv_file(const std::string& path);

/// edge-feat.csv.gz and edge_reltype.csv.gz -> edge-feat, edge_reltype
std::string without_extension(const std::string& path);

/// Collective. The split that is meant: split/<scheme>, or the only one; empty when there is none and none
/// is asked for.
std::string find_split(const Communicator& comm, const std::string& directory, const std::string& scheme);

/// What the numbers of a table are.
enum class TableNumbers : char {
  features,  ///< `real`
  exact,     ///< int64 if all are integers, otherwise float64
  labels     ///< the same, and a field may be missing: -1, or NaN
};

/// The files of one folder, such as raw/. All functions are collective; they throw InputError, the same on
/// every rank.
class TableFolder {
 public:
  /// The paths of the files have this beginning and one of the endings; `expected` ends the message about a
  /// file that is missing.
  TableFolder(Communicator comm, std::string beginning, Index block_bytes,
              std::vector<std::string> endings = {".csv.gz", ".csv"}, std::string expected = "an OGB folder")
      : comm_(std::move(comm)),
        beginning_(std::move(beginning)),
        block_bytes_(block_bytes),
        endings_(std::move(endings)),
        expected_(std::move(expected)) {}

  /// The path of a file; empty when there is none and it is not required.
  [[nodiscard]] std::string find_file(const std::string& name, bool required) const;
  /// The files <beginning>*.csv.gz by name.
  [[nodiscard]] std::vector<std::string> other_files(const std::string& beginning) const;
  /// The lines of a short file.
  [[nodiscard]] std::vector<std::string> read_text(const std::string& path) const;
  /// The only line of a file: of one graph.
  [[nodiscard]] Index read_count(const std::string& name) const;
  /// The edges of a file, of which there are `num_edges` by the file num-edge-list.
  void read_edges(const std::string& path, Index num_edges, Index num_sources, Index num_destinations,
                  EdgeChunks& chunks) const;
  /// A table with a row for each of the slices, of which a rank gets its own. `of`: what a row is of, for
  /// messages.
  [[nodiscard]] DataArray read_rows(const std::string& path, const PartitionBook& slices,
                                    TableNumbers numbers, const char* of = "node or edge") const;
  /// Numbers of nodes in train.csv.gz, valid.csv.gz and test.csv.gz as masks.
  void read_masks(FieldTable& to, const PartitionBook& slices) const;

 protected:
  Communicator comm_;
  std::string beginning_;
  Index block_bytes_;

 private:
  std::vector<std::string> endings_;
  std::string expected_;
};

// The splits of folders of link prediction: lists of pairs of nodes, and of knowledge graphs: lists of (head,
// relation, tail) of several edge types.

/// Collective. Whether the folder of a split has lists of pairs.
bool has_pair_lists(const Communicator& comm, const std::string& split);

/// A relation of a knowledge graph: its number in the lists, and the types of its heads and tails.
struct ListedRelation {
  Index number;
  const NodeTypeData &heads, &tails;
};

/// Collective. The lists of training, validation and test: of pairs, or of the triples of one relation. There
/// are `num_nodes` nodes of all types. Throws InputError, the same on every rank.
std::vector<ListedPairs> read_pair_lists(const Communicator& comm, const std::string& split, Index num_nodes,
                                         const std::optional<ListedRelation>& relation, Index block_bytes);

}  // namespace sar::formats
