// SPDX-License-Identifier: MIT

/// For the tests of datasets: temporary directories, a small dataset to write into them, the whole of a
/// distributed graph in original ids, and its data as columns.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/graph_data.hpp>

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace sar::test {

/// A new directory, which rank 0 makes and removes. Constructor and destructor are collective.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(const Communicator& comm);
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  Communicator comm_;
  std::string path_;
};

struct Edge {
  Index src, dst, id;
  double weight;
  auto operator<=>(const Edge&) const = default;
};

/// A whole graph, its nodes by original id, its edges sorted. Edges without weights have weight 0.
struct WholeDataset {
  std::vector<Edge> edges;
  Index width = 0;
  std::vector<double> features;
  std::vector<std::int64_t> labels;
  std::vector<std::uint8_t> train_mask, val_mask, test_mask;
  bool operator==(const WholeDataset&) const = default;
};

/// Also checks that every rank's part is consistent: its edges, lengths and counts. Collective.
WholeDataset gather_graph(const Communicator& comm, const NodeData& data);

/// 37 nodes, 210 edges with repetitions and loops, 5 features (row 11 is zero), 4 classes and unlabelled
/// nodes.
WholeDataset small_graph(bool weighted);

/// Changes the header of a file so that it says Fortran order. Local.
void mark_as_fortran_order(const std::string& path);

/// Writes the files of a dataset into an existing directory; features as float32. Local.
void write_dataset(const std::string& directory, const WholeDataset& graph, bool weighted);

/// The reverse of to_node_data(): the fields "features", "labels", the three masks, and "weight" of the edges
/// if there are weights. Local.
GraphData to_graph_data(NodeData data);

}  // namespace sar::test
