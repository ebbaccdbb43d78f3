/// For the tests of datasets: directories that go away, a small dataset to write into them, and a whole graph
/// in original ids, put together from the parts of all ranks.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/node_data.hpp>

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace sar::test {

/// A new directory, made by rank 0 and removed by it at the end. Both ends are collective.
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

/// All of a graph, nodes by original id, edges sorted; the weight of an unweighted edge is 0.
struct WholeGraph {
  std::vector<Edge> edges;
  Index width = 0;
  std::vector<double> features;
  std::vector<std::int64_t> labels;
  std::vector<std::uint8_t> train_mask, val_mask, test_mask;
  bool operator==(const WholeGraph&) const = default;
};

/// Checks on the way that every part is consistent: edges with their owners, lengths, counts. Collective.
WholeGraph gather_graph(const Communicator& comm, const NodeData& data);

/// 37 nodes, 210 edges with repetitions and loops, 5 features (row 11 is zero), 4 classes and unlabelled
/// nodes.
WholeGraph small_graph(bool weighted);

/// Says in the header of a file that its elements lie in Fortran order. Local.
void mark_as_fortran_order(const std::string& path);

/// Writes the files of a dataset into an existing directory; features as float32. Local.
void write_dataset(const std::string& directory, const WholeGraph& graph, bool weighted);

}  // namespace sar::test
