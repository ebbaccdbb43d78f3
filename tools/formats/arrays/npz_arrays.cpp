// SPDX-License-Identifier: MIT

// Each rank reads its share of a stored array; rank 0 unpacks a deflated one and sends the others theirs.
// O(elements / P) memory on a rank, and blocks of 4 MiB on rank 0.

#include "npz_arrays.hpp"

#include "formats/packed/npz.hpp"

#include <sar/core/error.hpp>
#include <sar/graph/data/dataset_source.hpp>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

namespace sar::formats {
namespace {

/// The header of an array as it stands in the file, and the first bytes of its elements.
struct ArrayBeginning {
  std::string header, elements;
};

ArrayBeginning read_array_beginning(const NpzFile& archive, const NpzMember& member) {
  constexpr Index most = Index{1} << 16;
  const std::string place = archive.place_of(member);
  const std::string bytes = beginning_of(archive.zip(), member, place, most);
  const NpyPreamble preamble =
      parse_npy_preamble(reinterpret_cast<const unsigned char*>(bytes.data()),
                         std::ssize(bytes) < most ? std::ssize(bytes) : member.bytes, place);
  require<InputError>(preamble.data_begin <= std::ssize(bytes), place, ": the .npy header has ",
                      preamble.data_begin, " bytes, expected at most ", most);
  const auto begin = static_cast<std::size_t>(preamble.text_begin),
             end = static_cast<std::size_t>(preamble.data_begin);
  return {bytes.substr(begin, end - begin), bytes.substr(end)};
}

std::string dtype_in(const std::string& header) {
  const std::size_t key = header.find("descr");
  const std::size_t begin = key == std::string::npos ? key : header.find_first_not_of("'\": ", key + 5);
  if (begin == std::string::npos || header[begin] == '[') return "structured";
  return header.substr(begin, header.find_first_of("'\"", begin) - begin);
}

bool is_text_type(const std::string& dtype) {
  return dtype.size() > 1 && (dtype[1] == 'U' || dtype[1] == 'S' || dtype[1] == 'a');
}

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

std::string dtype_of(const NpzFile& archive, const NpzMember& member) {
  return dtype_in(read_array_beginning(archive, member).header);
}

std::string text_of(const NpzFile& archive, const NpzMember& member) {
  const auto [header, elements] = read_array_beginning(archive, member);
  const std::string dtype = dtype_in(header);
  require<InputError>(is_text_type(dtype) && elements.size() <= 64, archive.place_of(member), ": dtype is '",
                      dtype, "', expected a short text");
  std::string text;
  for (const char c : elements)
    if (c != '\0') text += c;  // also between the letters of a text of 32 bits
  return text;
}

void require_numbers(const NpzFile& archive, const NpzMember& member) {
  const std::string dtype = dtype_of(archive, member), place = archive.place_of(member);
  const std::string python =
      concat("in Python: arrays = dict(numpy.load('", archive.path(), "', allow_pickle=True)); x = arrays['",
             member.name, "']; arrays['", member.name, "'] = ");
  const char* const end = "; numpy.savez('numbers.npz', **arrays)";
  require<InputError>(
      !is_text_type(dtype), place, ": the array has texts (dtype '", dtype, "'), expected numbers; ", python,
      "x.astype(float), or for names of classes numpy.unique(x, return_inverse=True)[1]", end);
  require<InputError>(!dtype.ends_with('O'), place,
                      ": the array has pickled Python objects, which are not read; ", python,
                      "numpy.array(x.tolist(), float)", end);
}

NpyHeader header_of(const Communicator& comm, const NpzFile& archive, const NpzMember& member) {
  comm.agree([&] { require_numbers(archive, member); });
  return NpzArray(comm, archive, member).header();
}

std::vector<Index> read_integers(const Communicator& comm, const NpzFile& archive, const NpzMember& member,
                                 Index most) {
  NpzArray array(comm, archive, member);
  const std::vector<Index>& shape = array.header().shape;
  const std::string place = archive.place_of(member);
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

void read_edge_array(const Communicator& comm, const NpzFile& archive, const NpzMember& member, bool by_edge,
                     EdgeChunks& chunks) {
  const std::string place = archive.place_of(member);
  if (!by_edge && !member.packed) {  // each rank reads two ranges
    NpzArray array(comm, archive, member);
    comm.agree([&] {
      const PartitionBook slices = PartitionBook::even(array.header().shape.at(1), comm.size());
      const Index begin = slices.begin(comm.rank()), any = std::numeric_limits<Index>::max();
      const EdgeList edges = read_edge_range(*array.stored(), any, any, begin, slices.end(comm.rank()));
      chunks.add(begin, edges.src, edges.dst);
    });
    return;
  }
  NpzArray array(comm, archive, member, /*transposed=*/!by_edge);
  const PartitionBook slices = PartitionBook::even(array.header().shape.at(0), comm.size());
  const DataArray pairs = array.read_rows(slices);
  comm.agree([&] {
    const Index begin = slices.begin(comm.rank());
    const Array<Index> src = to_nodes(pairs, 0, begin, by_edge, place),
                       dst = to_nodes(pairs, 1, begin, by_edge, place);
    chunks.add(begin, src, dst);
  });
}

void add_array_field(const Communicator& comm, FieldTable& to, const std::string& field,
                     const NpzFile& archive, const NpzMember& member, Index rows, const std::string& of,
                     bool transposed) {
  const std::string place = archive.place_of(member);
  comm.agree([&] { require_numbers(archive, member); });
  NpzArray array(comm, archive, member, transposed);
  const NpyHeader& header = array.header();
  require<InputError>(!header.shape.empty() && header.shape[0] == rows, place, ": shape is ",
                      shape_to_string(header.shape), ", expected ", rows, " rows, one for each ", of);
  require<InputError>(!to.contains(field), place, ": data ", field, " are there twice, expected once");
  if (array.stored())
    return to.add({field, header.type, {header.shape.begin() + 1, header.shape.end()}},
                  std::shared_ptr<const NpyFile>(std::move(array.stored())), place);
  const PartitionBook slices = PartitionBook::even(rows, comm.size());
  to.add(field, slices, array.read_rows(slices), place);
}

}  // namespace sar::formats
