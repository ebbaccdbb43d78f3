// SPDX-License-Identifier: MIT

// Each rank reads its share of a stored array; rank 0 unpacks a deflated one and sends the others theirs.
// O(elements / P) memory on a rank, and blocks of 4 MiB on rank 0.

#include "npz_arrays.hpp"

#include <sar/core/error.hpp>
#include <sar/graph/data/dataset_source.hpp>

#include <limits>
#include <memory>
#include <utility>

namespace sar::formats {
namespace {

/// Converts column `end` of rows of two elements.
Array<Index> to_nodes(const DataArray& pairs, Index end, Index first, bool by_edge,
                      const std::string& place) {
  Array<Index> nodes(static_cast<std::size_t>(pairs.num_rows));
  for (Index e = 0; e < pairs.num_rows; ++e) {
    const std::byte* element = pairs.row(e) + end * element_bytes(pairs.type);
    const auto [row, column] = by_edge ? std::pair{first + e, end} : std::pair{end, first + e};
    if (convert_elements(pairs.type, element, 1, &nodes[e]) == 0)
      throw_not_held<Index>(place, concat("element (", row, ", ", column, ")"), pairs.type, element);
    require<InputError>(nodes[e] >= 0, place, ": element (", row, ", ", column, ") is ", nodes[e],
                        ", expected the number of a node, from 0 on");
  }
  return nodes;
}

}  // namespace

std::vector<Index> shape_of(const Communicator& comm, const NpzMember& member) {
  return NpzArray(comm, member).shape();
}

std::vector<Index> read_integers(const Communicator& comm, const NpzMember& member, Index most) {
  NpzArray array(comm, member);
  const std::vector<Index>& shape = array.shape();
  const std::string place = member.place();
  require<InputError>(shape.size() <= 1 && (shape.empty() || shape[0] <= most), place, ": shape is ",
                      shape_to_string(shape), ", expected (1,)");
  const Index count = shape.empty() ? 1 : shape[0];
  std::vector<Index> offsets(static_cast<std::size_t>(comm.size()) + 1, count);  // all of it to rank 0
  offsets[0] = 0;
  const DataArray mine = array.read_rows(PartitionBook(offsets));
  std::vector<Index> values(static_cast<std::size_t>(count));
  comm.agree([&] {
    if (comm.rank() != 0) return;
    const Array<std::int64_t> integers = mine.to_integers(place);
    values.assign(integers.begin(), integers.end());
  });
  comm.broadcast(std::span(values), 0);
  return values;
}

void read_edge_array(const Communicator& comm, const NpzMember& member, bool by_edge, EdgeChunks& chunks) {
  const std::string place = member.place();
  if (!by_edge && !member.packed) {  // each rank reads two ranges
    NpzArray array(comm, member);
    comm.agree([&] {
      const PartitionBook slices = PartitionBook::even(array.shape().at(1), comm.size());
      const Index begin = slices.begin(comm.rank()), any = std::numeric_limits<Index>::max();
      const EdgeList edges = read_edge_range(*array.stored(), any, any, begin, slices.end(comm.rank()));
      chunks.add(begin, edges.src, edges.dst);
    });
    return;
  }
  NpzArray array(comm, member, /*transposed=*/!by_edge);
  const PartitionBook slices = PartitionBook::even(array.shape().at(0), comm.size());
  const DataArray pairs = array.read_rows(slices);
  comm.agree([&] {
    const Index begin = slices.begin(comm.rank());
    const Array<Index> src = to_nodes(pairs, 0, begin, by_edge, place),
                       dst = to_nodes(pairs, 1, begin, by_edge, place);
    chunks.add(begin, src, dst);
  });
}

std::vector<Index> add_array_field(const Communicator& comm, FieldTable& to, const std::string& field,
                                   const NpzMember& member, Index rows, const std::string& of,
                                   bool transposed) {
  const std::string place = member.place();
  NpzArray array(comm, member, transposed);
  const std::vector<Index> shape = array.shape();
  require<InputError>(!shape.empty() && shape[0] == rows, place, ": shape is ", shape_to_string(shape),
                      ", expected ", rows, " rows, one for each ", of);
  require<InputError>(!to.contains(field), place, ": data ", field, " are there twice, expected once");
  const PartitionBook slices = PartitionBook::even(rows, comm.size());
  if (array.stored())
    to.add({field, array.header().type, {shape.begin() + 1, shape.end()}},
           std::shared_ptr<const NpyFile>(std::move(array.stored())), place);
  else
    to.add(field, slices, array.read_rows(slices), place);
  return shape;
}

}  // namespace sar::formats
