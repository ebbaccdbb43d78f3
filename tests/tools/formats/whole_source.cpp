// SPDX-License-Identifier: MIT
#include "whole_source.hpp"

#include <doctest/doctest.h>

#include <zlib.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace sar::test {
namespace {

std::string pack(const std::string& text) {
  z_stream z{};
  if (deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) std::abort();
  std::string packed(deflateBound(&z, text.size()) + 64, ' ');
  z.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<unsigned char*>(packed.data());
  z.avail_out = static_cast<uInt>(packed.size());
  if (deflate(&z, Z_FINISH) != Z_STREAM_END) std::abort();
  packed.resize(z.total_out);
  deflateEnd(&z);
  return packed;
}

std::vector<double> numbers(const DataArray& rows) {
  std::vector<double> values(static_cast<std::size_t>(rows.num_rows * rows.row_size()));
  convert_elements(rows.type, rows.bytes.data(), static_cast<Index>(values.size()), values.data());
  return values;
}

/// Every rank asks for all rows from the last to the first, and one of them again.
template <class Read>
std::vector<double> gather_rows(const Communicator& comm, Index count, const Read& read) {
  std::vector<Index> rows;
  for (Index i = count; i-- > 0;) rows.push_back(i);
  if (count > 0 && comm.rank() % 2 == 1) rows.push_back(count / 2);
  const DataArray got = read(rows);
  REQUIRE(got.num_rows == static_cast<Index>(rows.size()));
  const std::vector<double> values = numbers(got);
  const auto width = static_cast<std::size_t>(got.row_size());
  std::vector<double> whole(static_cast<std::size_t>(count) * width);
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < width; ++j)
      whole[static_cast<std::size_t>(rows[i]) * width + j] = values[i * width + j];
  return whole;
}

}  // namespace

void write_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

std::string gzip(const std::string& text, int members) {
  std::string packed;
  const auto count = static_cast<std::size_t>(members);
  for (std::size_t m = 0; m < count; ++m)
    packed +=
        pack(text.substr(text.size() * m / count, text.size() * (m + 1) / count - text.size() * m / count));
  return packed;
}

WholeSource gather_source(GraphSource& source) {
  const Communicator& comm = source.comm();
  WholeSource whole;
  whole.num_nodes = source.num_nodes();
  const EdgeList edges = source.read_edges(0);
  const auto all = [&](const Array<Index>& column) {
    return comm.all_gather(std::span<const Index>(column));
  };
  const auto src = all(edges.src), dst = all(edges.dst), id = all(edges.id);
  REQUIRE(static_cast<Index>(id.size()) == source.num_edges());
  whole.edges.assign(id.size(), {-1, -1});
  for (std::size_t e = 0; e < id.size(); ++e) {
    REQUIRE(0 <= id[e]);
    REQUIRE(id[e] < source.num_edges());
    auto& edge = whole.edges[id[e]];
    CHECK(edge.first == -1);
    edge = {src[e], dst[e]};
  }
  for (const DataField& field : source.types().node_types[0].unread)
    whole.node_data[field.name] = gather_rows(comm, source.num_nodes(), [&](const std::vector<Index>& rows) {
      return source.read_node_data(0, field.name, rows);
    });
  for (const DataField& field : source.types().edge_types[0].unread)
    whole.edge_data[field.name] = gather_rows(comm, source.num_edges(), [&](const std::vector<Index>& rows) {
      return source.read_edge_data(0, field.name, rows);
    });
  return whole;
}

}  // namespace sar::test
