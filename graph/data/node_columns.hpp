/// From data of any type under DGL's and OGB's names to what NodeData has.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/parallel.hpp>
#include <sar/graph/data/dataset.hpp>
#include <sar/graph/data/node_data.hpp>
#include <sar/graph/io/data_array.hpp>

#include <span>
#include <string>
#include <vector>

namespace sar {

/// The data of this rank's nodes, wherever they lie.
struct NodeColumns {
  std::vector<DataField> fields;
  /// Rows [begin, end) of this rank's nodes. Called the same number of times on every rank, so that it may be
  /// collective.
  FunctionRef<DataArray(const std::string& field, Index begin, Index end)> read;
  FunctionRef<std::string(const std::string& field)> place_of;  ///< begins a message about the field
};

/// Sets features, labels, masks and num_classes of `data` from the columns that to_node_data() names, and
/// normalises the features if asked for. Features pass in blocks of about 16 MiB. Collective. Throws
/// InputError as to_node_data.
void read_node_columns(const Communicator& comm, const NodeColumns& columns, const DatasetOptions& options,
                       NodeData& data);

/// The field of the edge weights; empty: there is none.
std::string weight_field(const std::vector<DataField>& edge_fields);

/// Finite floating-point weights. `ids` names the edges in messages. Local.
Array<real> to_edge_weights(const DataArray& column, std::span<const Index> ids, const std::string& place);

/// As the public one, with another beginning of the message. Collective.
void require_training_labels(const Communicator& comm, const NodeData& data, const std::string& place);

}  // namespace sar
