/// A directory of NumPy files as a source of a graph.
#pragma once

#include <sar/graph/data/graph_source.hpp>

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// The files that load_dataset() names, of which edge_index.npy and features.npy must be there, and more:
///     X.npy        with one row for each node: the node field "X"
///     edge_X.npy   with one row for each edge: the edge field "X"; edge_weight.npy must have one, and so
///                    must edge_labels, edge_type, edge_split, edge_train_mask, edge_val_mask, edge_test_mask
/// Other files are left alone. Each rank reads the files on demand, without communication.
class DatasetSource : public GraphSource {
 public:
  /// With `for_training`, labels and masks must be there, in the types of load_dataset(). Collective. Throws
  /// InputError, the same on every rank, for files that are missing or damaged, and when ranks see different
  /// files.
  DatasetSource(const Communicator& comm, const std::string& directory, bool for_training = false);
  ~DatasetSource() override;

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] Index num_nodes() const override;
  [[nodiscard]] Index num_edges() const override;
  [[nodiscard]] const std::vector<DataField>& node_fields() const override { return node_fields_; }
  [[nodiscard]] const std::vector<DataField>& edge_fields() const override { return edge_fields_; }
  [[nodiscard]] EdgeList read_edges() override;
  [[nodiscard]] DataArray read_node_data(const std::string& field, std::span<const Index> nodes) override;
  [[nodiscard]] DataArray read_edge_data(const std::string& field, std::span<const Index> edges) override;
  [[nodiscard]] std::string place_of(const std::string& field) const override;

 private:
  void open_files(bool for_training);
  void open_labels_and_masks(bool required);
  void open_others();
  void require_same_files() const;

  std::string directory_;
  std::string name_;
  std::optional<NpyFile> edge_index_;
  std::map<std::string, NpyFile> nodes_;  ///< by field
  std::map<std::string, NpyFile> edges_;
  std::vector<DataField> node_fields_;
  std::vector<DataField> edge_fields_;
};

}  // namespace sar
