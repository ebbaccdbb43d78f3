// SPDX-License-Identifier: MIT

/// OGB's datasets of node property and link prediction as sources of graphs.
///
/// Room tools/formats/ogb: The files of OGB's datasets.
#pragma once

#include "formats/file_source.hpp"
#include "formats/packed/npz.hpp"
#include "formats/source_options.hpp"
#include "ogb_text.hpp"

#include <optional>
#include <string>
#include <vector>

namespace sar::formats {

/// A folder of one homogeneous graph as the ogb package downloads it: raw/*.csv.gz, or raw/data.npz with
/// raw/node-label.npz, and split/<scheme>/{train,valid,test}.csv.gz. Node data are "features" of `real`,
/// "labels" ([N], or [N, tasks]; missing: -1 or NaN), "train_mask", "val_mask", "test_mask", and what
/// other files there are under their own names, such as "node_year"; edge data are "features" and others.
/// For link prediction a split has pairs of nodes in the place of nodes: in split/<scheme>/train.npz the
/// arrays "edge" [n, 2], or "source_node" and "target_node" [n]; perhaps "edge_neg" [m, 2], or
/// "target_node_neg" [n, k], the k other destinations against which a pair stands; or the same in files
/// split/<scheme>/train/edge.csv.gz and so on. Undirected datasets list each edge once, here, too.
///
/// A folder of one graph with several types (ogbn-mag) has raw/num-node-dict.csv.gz,
/// raw/triplet-type-list.csv.gz, raw/relations/<src>___<name>___<dst>/edge.csv.gz and num-edge-list.csv.gz,
/// raw/node-feat/<type>/node-feat.csv.gz, raw/node-label/<type>/node-label.csv.gz,
/// raw/node_X/<type>/node_X.csv.gz, and split/<scheme>/<type>/{train,valid,test}.csv.gz. Data have the same
/// names. Types are in the order of their names, as in the ogb package. A split of links (ogbl-biokg) has
/// the arrays "head", "relation" and "tail" [n] in the place of pairs, and perhaps "head_neg" and "tail_neg"
/// [n, k], the k other heads and tails of each; the field "edge_reltype" of the edges of a type is its number
/// in "relation".
class OgbSource : public FileSource {
 public:
  /// Reads everything, except for arrays that are stored in .npz files: their rows are read when they are
  /// asked for. Collective; throws InputError, the same on every rank.
  OgbSource(const Communicator& comm, const std::string& path, const SourceOptions& options);

  [[nodiscard]] std::vector<ListedPairs> read_listed_pairs(std::size_t type) override;
  [[nodiscard]] bool has_listed_pairs() const override { return !pair_lists_.empty(); }

 private:
  void read_text_graph();
  bool read_node_field(std::size_t type, const std::string& field, const OgbText& files,
                       const std::string& file, TableNumbers numbers);
  void read_text_edges(std::size_t type, const OgbText& files);

  void read_binary_graph();
  void read_binary_edges(const NpzFile& archive);
  void add_binary_field(FieldTable& to, const std::string& field, const NpzFile& archive,
                        const NpzMember& member);

  void read_types(const std::string& split);
  void read_node_types();
  void read_edge_types();
  void require_flag(const std::string& file, const std::string& type, bool there,
                    const std::string& what) const;
  void read_nodes_of(std::size_t type, const std::vector<std::string>& folders, const std::string& split);

  /// Collective. The files of the lists of pairs, as far as they are there.
  [[nodiscard]] std::vector<std::string> find_pair_lists() const;
  ListedPairs read_pairs(const std::string& list);
  /// The number of an edge type in the lists of several types. Collective.
  [[nodiscard]] Index relation_number(std::size_t type);
  ListedPairs read_triples(const std::string& list, std::size_t type, Index relation);
  /// A rank's rows of an array of whole numbers.
  struct PairArray {
    Index rows = 0, columns = 1;
    Array<Index> values;
    [[nodiscard]] Array<Index> column(Index c) const;
  };
  /// An array of the nodes of pairs or triples, with so many columns, 0: any; nothing: there is none of the
  /// name. Numbers are from 0 to end - 1, of which a message says `what` they are.
  std::optional<PairArray> read_pair_array(const std::string& list, const std::string& name, Index columns,
                                           Index end, const char* what);
  std::optional<PairArray> read_pair_array(const std::string& list, const std::string& name, Index columns) {
    return read_pair_array(list, name, columns, num_nodes(), "node");
  }
  /// Throws InputError if the arrays do not have as many rows on all ranks together.
  void require_rows(const std::string& list, const char* name, const std::optional<PairArray>& array,
                    const char* other_name, const PairArray& other) const;

  Index block_bytes_;
  bool has_types_ = false;  // of nodes and edges
  OgbText raw_;             // the files of raw/
  std::string pair_lists_;  // the folder of the split; empty: it is one of nodes, or none
};

/// Local. Whether a folder is one of several types.
bool is_ogb_hetero(const std::string& path);

}  // namespace sar::formats
