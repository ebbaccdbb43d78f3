// SPDX-License-Identifier: MIT

/// Fields of nodes and edges on their way from a source to the members of GraphData.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/error.hpp>
#include <sar/core/files/data_array.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/data/graph_source.hpp>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

// A rank's rows of a field, taken in chunks of limited size. For implementation files.

/// Local. Returns the number of rows of a field in about 16 MiB.
inline Index rows_of_chunk(const DataField& field) {
  return std::max<Index>(1, (Index{16} << 20) / std::max<Index>(1, field.row_bytes()));
}

/// Collective. Calls take(begin, end) for ranges of at most `chunk` of this rank's `count` rows. Every rank
/// makes equally many calls, some of them without rows, so that take() may communicate.
template <class Take>
void for_each_range(const Communicator& comm, Index count, Index chunk, const Take& take) {
  const Index chunks = comm.all_reduce((count + chunk - 1) / chunk, ReduceOp::max);
  for (Index i = 0; i < chunks; ++i) {
    const Index begin = std::min(count, i * chunk);
    take(begin, std::min(count, begin + chunk));
  }
}

/// Local. Calls take(rows, first) for the rows first, first + 1, ... of this rank's even share of
/// `num_rows`, in chunks of about 16 MiB of the field. Every rank makes equally many calls, some of them
/// without rows, so that take() may communicate.
template <class Take>
void for_each_chunk(const Communicator& comm, const DataField& field, Index num_rows, const Take& take) {
  const PartitionBook shares = PartitionBook::even(num_rows, comm.size());
  const Index chunk = rows_of_chunk(field);
  const Index chunks = (shares.num_nodes(0) + chunk - 1) / chunk;  // rank 0 has the most
  for (Index i = 0; i < chunks; ++i) {
    const Index first = std::min(shares.begin(comm.rank()) + i * chunk, shares.end(comm.rank()));
    take(consecutive(first, std::min(chunk, shares.end(comm.rank()) - first)), first);
  }
}

// Which fields of nodes become sparse rows, and their reading without dense rows of all nodes.

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

// From fields of the edges, of any type, to the members of EdgeData.

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

// Fields of nodes and edges: read from a source, and, under DGL's and OGB's names, as members of NodeData.

/// The fields of this rank's nodes, from any source.
struct NodeColumns {
  std::vector<DataField> fields;
  /// Reads rows of this rank's nodes, dense rows also of a sparse field. Every rank calls it equally often,
  /// so that it may be collective.
  FunctionRef<DataArray(const std::string& field, std::span<const Index> rows)> read;
  /// Local. Returns a field that is sparse already.
  FunctionRef<const SparseArray&(const std::string& field)> read_sparse;
  FunctionRef<std::string(const std::string& field)> place_of;  ///< the beginning of messages
};

/// NodeColumns::read_sparse of fields none of which is sparse.
inline const SparseArray& no_sparse_column(const std::string& field) {
  throw Error(field + " is not sparse");
}

/// Sets features, labels, masks and num_classes of `data` from the fields that to_node_data() names, and
/// normalizes the features if `options` say so. Features are read in chunks of about 16 MiB. Collective,
/// inside agree(); throws InputError as to_node_data.
void read_node_columns(const Communicator& comm, const NodeColumns& columns, const DatasetOptions& options,
                       NodeData& data);

/// Local. The name of the field of edge weights; empty when there is none, or `options` want none. A field
/// that `options` name as labels, type or split of the edges is none, unless they name it as the weight, too.
/// Throws InputError, beginning with `place`, when `options` name one that does not exist.
std::string weight_field(const std::vector<DataField>& edge_fields, const DatasetOptions& options,
                         const std::string& place);

/// Local. The one number of each row. Throws InputError, beginning with `place`, for rows of other shapes.
template <class T>
Array<T> to_numbers(const DataArray& column, const std::string& place) {
  require<InputError>(column.row_size() == 1, place, ": a row has shape ", shape_to_string(column.row_shape),
                      ", expected one number");
  Array<T> values(column.num_rows);
  convert_elements(column.type, column.bytes.data(), column.num_rows, values.data());
  return values;
}

/// Local. Edge weights, which must be finite numbers, and exact where they are integers. `ids` names the
/// edges in messages.
Array<real> to_edge_weights(const DataArray& column, std::span<const Index> ids, const std::string& place);

// The fields of a graph that has been read from a source.

/// Collective. Reads all fields of this rank's nodes and edges; those that choose_sparse_fields() marked as
/// sparse rows. Reversed edges have the data of the edges that they reverse, and self loops those that
/// PartitionGraphOptions names.
void read_columns(GraphSource& source, const DatasetOptions& options, GraphData& graph);
}}  // namespace sar
