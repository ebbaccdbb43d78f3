/// HeteroSource: what sources of graphs with several types have in common.
#pragma once

#include <sar/graph/data/graph_source.hpp>

#include <span>
#include <string>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// A source of any types. With one type of nodes and one of edges, it is a source of a homogeneous graph like
/// any other. With several, num_nodes() and num_edges() count all types together, there are no fields without
/// a type, and reading without one throws InputError.
class HeteroSource : public GraphSource {
 public:
  [[nodiscard]] Index num_nodes() const final;
  [[nodiscard]] Index num_edges() const final;
  [[nodiscard]] const std::vector<DataField>& node_fields() const final;
  [[nodiscard]] const std::vector<DataField>& edge_fields() const final;
  [[nodiscard]] EdgeList read_edges() final;
  [[nodiscard]] DataArray read_node_data(const std::string& field, std::span<const Index> nodes) final;
  [[nodiscard]] DataArray read_edge_data(const std::string& field, std::span<const Index> edges) final;

  [[nodiscard]] SourceTypes types() const final { return types_; }
  [[nodiscard]] EdgeList read_edges_of(std::size_t type) override = 0;
  [[nodiscard]] DataArray read_node_data_of(std::size_t type, const std::string& field,
                                            std::span<const Index> nodes) override = 0;
  [[nodiscard]] DataArray read_edge_data_of(std::size_t type, const std::string& field,
                                            std::span<const Index> edges) override = 0;

 protected:
  using GraphSource::GraphSource;

  /// "paper 2708 nodes (features labels), ...; paper:cites:paper 10556 edges". Local.
  [[nodiscard]] std::string describe_types() const;

  /// Throws InputError, which begins with `place`, for so many nodes of a type without data that the number
  /// cannot be meant: memory for them would be taken. Local.
  void require_plausible_sizes(const std::string& place) const;

  SourceTypes types_;  ///< set by the constructors of derived classes

 private:
  void require_one_type() const;
};

}  // namespace sar
