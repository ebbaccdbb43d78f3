// SPDX-License-Identifier: MIT
#include "matrix_market.hpp"

#include "field_data.hpp"
#include "first_lines.hpp"
#include "text.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace sar::formats {
namespace {

using Symmetry = MatrixMarketHeader::Symmetry;

[[noreturn]] void refuse(const Lines& lines, const char* what, const std::string& expected) {
  throw LineError(lines.number(), what, in_quotes(lines.line()), ", expected ", expected);
}

void parse_banner(const Lines& lines, MatrixMarketHeader& header) {
  const std::string line = lower_case(lines.line());
  std::array<std::string, 5> words;
  Fields fields(line, blanks);
  for (std::string& word : words)
    if (fields.next()) word = fields.field();
  const std::string &values = words[3], &symmetry = words[4];
  header.has_values = values != "pattern";
  header.symmetry = symmetry == "symmetric"        ? Symmetry::symmetric
                    : symmetry == "skew-symmetric" ? Symmetry::skew
                                                   : Symmetry::general;
  const bool known_values =
      values == "pattern" || values == "real" || values == "integer" || values == "unsigned-integer";
  if (words[0] != "%%matrixmarket" || words[1] != "matrix" || words[2] != "coordinate" || !known_values ||
      (symmetry != "general" && header.symmetry == Symmetry::general))
    refuse(lines, "the first line is ",
           "%%MatrixMarket matrix coordinate, then real, integer or pattern, then general, symmetric or "
           "skew-symmetric");
}

void parse_sizes(const Lines& lines, MatrixMarketHeader& header) {
  std::array<Index, 3> sizes{-1, -1, -1};
  Fields fields(lines.line(), blanks);
  for (Index& size : sizes)
    if (fields.next()) size = to_integer(fields.field()).value_or(-1);
  if (fields.next() || sizes[0] < 0 || sizes[1] != sizes[0] || sizes[2] < 0)
    refuse(lines, "the sizes are ", "rows, as many columns, and the number of entries");
  header.size = sizes[0];
  header.entries = sizes[2];
}

/// A row or column, counted from 0.
Index parse_place(Fields& fields, const Lines& lines, Index size) {
  const auto place = fields.next() ? to_whole_number(fields.field()) : std::nullopt;
  if (!place || *place < 1 || *place > size)
    refuse(lines, "an entry is ",
           size > 0 ? concat("row and column from 1 to ", size) : "none in a matrix without rows");
  return *place - 1;
}

double parse_value(Fields& fields, const Lines& lines) {
  const auto value = fields.next() ? to_number(fields.field()) : std::nullopt;
  if (!value || !std::isfinite(*value)) refuse(lines, "an entry is ", "row, column and a finite number");
  return *value;
}

class MatrixMarketSource final : public FileSource {
 public:
  MatrixMarketSource(const Communicator& comm_of_source, const std::string& path,
                     const SourceOptions& options)
      : FileSource(comm_of_source, "Matrix Market file", path) {
    const MatrixMarketHeader header = guess_from_first_lines(
        comm(), path_, "the sizes of a matrix",
        [](const FirstLines& first) { return parse_matrix_market_header(first.text); });
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
              comm().agree([&] { chunks_[0].add(at.first_row, edges.src, edges.dst, edges.data); });
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
      edges_[0].add("weight", slices, chunks_[0].take_data(comm(), slices, 1), path_);
    }
    list_fields();
  }
};

}  // namespace

MatrixMarketHeader parse_matrix_market_header(std::string_view beginning) {
  MatrixMarketHeader header;
  Lines lines(beginning);
  while (lines.next()) {
    if (lines.number() == 0) parse_banner(lines, header);
    if (is_comment(lines.line())) continue;
    parse_sizes(lines, header);
    header.begin = {static_cast<Index>(beginning.size() - lines.rest().size()), lines.count()};
    return header;
  }
  throw LineError(std::max<Index>(0, lines.number()),
                  "the file ends here, expected rows, columns and the number of entries");
}

TextCounts parse_matrix_entries(std::string_view text, const MatrixMarketHeader& header, MatrixEdges& edges) {
  edges.clear();
  Lines lines(text);
  const auto add = [&](Index row, Index column, double value) {
    edges.src.push_back(row);
    edges.dst.push_back(column);
    if (header.has_values) edges.data.push_back(value);
  };
  while (lines.next()) {
    if (is_comment(lines.line())) continue;
    Fields fields(lines.line(), blanks);
    const Index row = parse_place(fields, lines, header.size);
    const Index column = parse_place(fields, lines, header.size);
    const double value = header.has_values ? parse_value(fields, lines) : 0;
    if (fields.next())
      refuse(lines, "an entry is ", header.has_values ? "row, column and a number" : "row and column");
    if (row == column && header.symmetry == Symmetry::skew)
      refuse(lines, "an entry is ", "none on the diagonal of a skew-symmetric matrix");
    add(row, column, value);
    if (row != column && header.symmetry != Symmetry::general)
      add(column, row, header.symmetry == Symmetry::skew ? -value : value);
    ++edges.entries;
  }
  return {lines.count(), static_cast<Index>(edges.src.size())};
}

std::unique_ptr<GraphSource> open_matrix_market(const Communicator& comm, const std::string& path,
                                                const SourceOptions& options) {
  return std::make_unique<MatrixMarketSource>(comm, path, options);
}

}  // namespace sar::formats
