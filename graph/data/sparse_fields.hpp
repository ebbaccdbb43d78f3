// SPDX-License-Identifier: MIT

/// Which fields of nodes become sparse rows, and their reading without dense rows of all nodes.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/files/sparse_array.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/data/graph_source.hpp>

#include <span>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// Dense rows of a field: those of some nodes of this rank, by their position. Every rank calls it equally
/// often, so that it may be collective.
using ReadRows = FunctionRef<DataArray(std::span<const Index> rows)>;

/// Collective. Returns whether a field with one row for each node becomes sparse (becomes_sparse), by the
/// rows of the nodes that is_sampled() chooses. `ids`: the ids of this rank's nodes, from 0 to num_nodes - 1.
/// The field is not sparse yet.
[[nodiscard]] bool is_sparse_field(const Communicator& comm, SparseFeatures sparse, const DataField& field,
                                   Index num_nodes, std::span<const Index> ids, ReadRows read);

/// Collective. Reads all `count` rows of this rank in chunks of about 16 MiB and compresses each. `place`
/// begins messages. Throws InputError as SparseArray.
[[nodiscard]] SparseArray read_sparse(const Communicator& comm, const DataField& field, Index count,
                                      const std::string& place, ReadRows read);

/// Collective. Marks the unread fields of `graph` that become sparse by the options (DataField::is_sparse).
void choose_sparse_fields(GraphSource& source, const DatasetOptions& options, GraphData& graph);

}}  // namespace sar
