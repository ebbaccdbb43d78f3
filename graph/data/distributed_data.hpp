// SPDX-License-Identifier: MIT

/// Fields of the nodes and edges that each rank has loaded, as rows that all ranks can read. Nothing is
/// copied: the data live as long as the tensors, and as DistributedTensor::borrow says.
#pragma once

#include <sar/comm/rows/distributed_tensor.hpp>
#include <sar/graph/data/graph_data.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. Row i are the features of the node with the global id i. Throws InputError, the same on
/// every rank, for sparse features, and as DistributedTensor.
DistributedTensor<> distributed_features(const Communicator& comm, const NodeData& data);
/// Collective. The same of the labels, [N]; -1: unlabelled. For reading.
DistributedTensor<std::int64_t> distributed_labels(const Communicator& comm, const NodeData& data);

/// Local. Whether rows of a file's type are rows of T: masks are uint8.
template <RowNumber T>
constexpr bool is_type_of(NpyType type) {
  if constexpr (std::is_floating_point_v<T>) {
    return type == (sizeof(T) == 8 ? NpyType::float64 : NpyType::float32);
  } else {
    if (std::is_same_v<T, std::uint8_t>) return type == NpyType::boolean || type == NpyType::uint8;
    return (std::is_same_v<T, std::int8_t> && type == NpyType::int8) ||
           (std::is_same_v<T, std::int16_t> && type == NpyType::int16) ||
           (std::is_same_v<T, std::int32_t> && type == NpyType::int32) ||
           (std::is_same_v<T, std::int64_t> && type == NpyType::int64);
  }
}

/// Local. The field `name`. Throws InputError when there is none.
const DataArray& require_field(const DataColumns& columns, const std::string& name);

/// Collective. A field with rows for what `book` says, for reading. Throws InputError, the same on every
/// rank, where the field has another type of numbers than T, and as DistributedTensor.
template <RowNumber T>
DistributedTensor<T> distributed_field(const Communicator& comm, const PartitionBook& book,
                                       const std::string& name, const DataArray& field) {
  return comm.agree([&] {
    require<InputError>(is_type_of<T>(field.type), "the field '", name, "' has numbers of type ",
                        to_string(field.type), ", expected ",
                        std::is_floating_point_v<T> ? "floating-point numbers of " : "integers of ",
                        sizeof(T), " bytes, as those of the tensor");
    const std::span<const T> rows(reinterpret_cast<const T*>(field.bytes.data()),
                                  static_cast<std::size_t>(field.num_rows * field.row_size()));
    return DistributedTensor<T>::borrow(comm, book, rows,
                                        Shape(shape_of_rows(field.num_rows, field.row_shape)));
  });
}
/// Collective. The field `name` of the nodes of a type. Throws InputError, too, when there is none.
template <RowNumber T>
DistributedTensor<T> distributed_field(const Communicator& comm, const NodeTypeData& nodes,
                                       const std::string& name) {
  return comm.agree(
      [&] { return distributed_field<T>(comm, nodes.book, name, require_field(nodes.data, name)); });
}
/// Collective. The field `name` of the edges of a type: row edge_book(comm, edges of this rank).begin(rank)
/// + i is that of edge i of this rank. Throws InputError, too, when there is none.
template <RowNumber T>
DistributedTensor<T> distributed_field(const Communicator& comm, const EdgeTypeData& edges,
                                       const std::string& name) {
  return comm.agree([&] {
    const PartitionBook book = gather_book(comm, std::ssize(edges.edges.dst));
    return distributed_field<T>(comm, book, name, require_field(edges.data, name));
  });
}

}}  // namespace sar
