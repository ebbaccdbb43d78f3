// SPDX-License-Identifier: MIT

/// From fields of the edges, of any type, to the members of EdgeData.
#pragma once

#include <sar/core/files/data_array.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/data/edge_data.hpp>
#include <sar/graph/data/node_data.hpp>

#include <span>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The fields of the edges, from any source.
struct EdgeColumns {
  std::vector<DataField> fields;
  /// Reads the rows of the edges of these ids. Every rank calls it equally often: it may be collective.
  FunctionRef<DataArray(const std::string& field, std::span<const Index> ids)> read;
};

/// EdgeData without lists, from data.edges, of which those with ids below `end_id` are the dataset's, and
/// from the fields that EdgeData names. Collective, inside agree(); throws InputError for other values.
EdgeData read_edge_columns(const EdgeColumns& columns, const DatasetOptions& options, const NodeData& data,
                           Index end_id);

}}  // namespace sar
