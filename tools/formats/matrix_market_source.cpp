// SPDX-License-Identifier: MIT
#include "matrix_market_source.hpp"

#include "matrix_market.hpp"
#include "node_lists.hpp"
#include "text.hpp"

#include <sar/core/error.hpp>

#include <memory>
#include <utility>

namespace sar::formats {
namespace {

MatrixMarketHeader read_header(const std::string& path) {
  constexpr Index most = Index{1} << 26;
  for (Index bytes = Index{1} << 16;; bytes *= 4) {
    const std::string text = read_beginning(path, bytes);
    try {
      if (const auto header = parse_matrix_market_header(text, static_cast<Index>(text.size()) < bytes))
        return *header;
    } catch (const LineError& error) {
      throw InputError(concat(path, ": line ", error.line() + 1, ": ", error.what()));
    }
    require<InputError>(bytes < most, path, ": the first ", bytes,
                        " bytes are comments, expected the sizes of a matrix");
  }
}

}  // namespace

MatrixMarketSource::MatrixMarketSource(const Communicator& comm_of_source, const std::string& path,
                                       const SourceOptions& options)
    : FileSource(comm_of_source, "Matrix Market file", path) {
  MatrixMarketHeader header;
  comm().agree([&] {
    if (comm().rank() == 0) header = read_header(path_);
  });
  comm().broadcast(std::span<MatrixMarketHeader>(&header, 1), 0);
  MatrixEdges edges;
  const auto require_entries = [&](bool condition, Index found, const char* at_least) {
    require<InputError>(condition, path_, ": there are ", at_least, found, " entries, expected ",
                        header.entries, " by the line of sizes");
  };
  add_nodes(default_node_type, header.size);
  add_edges();
  types_.edge_types[0].num_edges =
      read_lines(
          comm(), path_, header.begin, options.block_bytes,
          [&](std::string_view text) { return parse_matrix_entries(text, header, edges); },
          [&](const BlockPlace& at) {
            const Index found = comm().all_reduce(edges.entries);
            require_entries(found <= header.entries, found, "at least ");
            comm().agree([&] { chunks_[0].add(at.first_row, edges.src, edges.dst, edges.weight); });
          })
          .rows;
  const Index entries = comm().all_reduce(edges.entries);
  comm().agree([&] {
    require_entries(entries == header.entries, entries, "");
    require_plausible_size(path_);
    for (const auto& [field, file] : lists_last(options.node_data)) add_node_file(0, field, file);
  });
  if (header.has_values) {
    const PartitionBook slices = slices_of(num_edges());
    edges_[0].add({"weight", NpyType::float64, {}},
                  std::make_unique<SlicedFieldData>(slices, chunks_[0].take_data(comm(), slices, 1)), path_);
  }
  list_fields();
}

}  // namespace sar::formats
