// SPDX-License-Identifier: MIT
#include "describe_source.hpp"

#include "edge_counts.hpp"
#include "text.hpp"

#include <sar/core/error.hpp>
#include <sar/core/text.hpp>
#include <sar/graph/data/columns.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>

namespace sar::formats {
namespace {

using FieldNames = std::map<std::string, std::string>;

/// The shortest text that is exact in the type of the file.
std::string text_of(double value, NpyType type) {
  const bool is_exact = !is_floating_point(type) || type == NpyType::float64;
  return is_exact ? exact_text(value) : exact_text(static_cast<float>(value));
}

/// The elements of a field, of all ranks.
struct ValueCounts {
  double least = std::numeric_limits<double>::infinity(), most = -least;  ///< of the finite ones
  Index nan = 0, infinite = 0;
  Index rows_of_nan = 0, first_row_of_nan = std::numeric_limits<Index>::max();

  void add(double value) {
    if (std::isnan(value)) {
      ++nan;
    } else if (std::isinf(value)) {
      ++infinite;
    } else {
      least = std::min(least, value);
      most = std::max(most, value);
    }
  }
  void add_row(std::span<const double> row, Index number) {
    const Index before = nan;
    for (const double value : row) add(value);
    if (nan == before) return;
    ++rows_of_nan;
    first_row_of_nan = std::min(first_row_of_nan, number);
  }
  /// Collective.
  void add_ranks(const Communicator& comm) {
    least = comm.all_reduce(least, ReduceOp::min);
    most = comm.all_reduce(most, ReduceOp::max);
    first_row_of_nan = comm.all_reduce(first_row_of_nan, ReduceOp::min);
    for (Index* count : {&nan, &infinite, &rows_of_nan}) *count = comm.all_reduce(*count, ReduceOp::sum);
  }
  [[nodiscard]] std::string describe(NpyType type) const {
    std::string text = least <= most ? concat("from ", text_of(least, type), " to ", text_of(most, type))
                                     : "no finite values";
    if (nan > 0)
      text += concat(", ", nan, " NaN in ", rows_of_nan, " rows, the first in row ", first_row_of_nan);
    if (infinite > 0) text += concat(", ", infinite, " infinite");
    return text;
  }
};

/// Calls take(values of the row, row) for this rank's even share of the rows. `read(rows)` is collective.
template <class Read, class Take>
void for_each_field_row(const Communicator& comm, const DataField& field, Index num_rows, const Read& read,
                        const Take& take) {
  std::vector<double> values;
  for_each_chunk(comm, field, num_rows, [&](const Array<Index>& rows, Index first) {
    const DataArray array = read(rows);
    comm.agree([&] {
      const Index width = array.row_size();
      values.resize(static_cast<std::size_t>(array.num_rows * width));
      convert_elements(array.type, array.bytes.data(), std::ssize(values), values.data());
      for (Index row = 0; row < array.num_rows; ++row)
        take(std::span<const double>(values).subspan(row * width, width), first + row);
    });
  });
}

/// "nodes: features (128,): from 0 to 1"
template <class Read>
std::string describe_values(const Communicator& comm, const std::string& of, const DataField& field,
                            Index num_rows, const Read& read) {
  ValueCounts counts;
  for_each_field_row(comm, field, num_rows, read,
                     [&](std::span<const double> row, Index number) { counts.add_row(row, number); });
  counts.add_ranks(comm);
  return concat(of, ": ", field.name,
                field.row_shape.empty() ? "" : concat(" ", shape_to_string(field.row_shape)), ": ",
                counts.describe(field.type));
}

/// The fields of a type of nodes, labels first. Collective.
void describe_nodes(GraphSource& source, std::size_t type, const FieldNames& names,
                    std::vector<std::string>& lines) {
  const Communicator& comm = source.comm();
  const NodeTypeData& nodes = source.types().node_types[type];
  const bool one_type = source.types().is_homogeneous();
  const std::string of = one_type ? "nodes" : nodes.name;
  const Index begin = nodes.book.begin(comm.rank());
  const auto find = [&](const std::string& key, std::initializer_list<const char*> usual) {
    return find_field(nodes.unread, one_type ? names : FieldNames{}, key, usual, source.name());
  };
  const auto read = [&](const DataField& field) {
    return [&](const Array<Index>& rows) { return source.read_node_data(type, field.name, rows); };
  };
  const auto is_mask = [&](const DataField& field) {
    return field.row_size() == 1 &&
           std::ranges::any_of(std::array{"train_mask", "val_mask", "test_mask"},
                               [&](const char* mask) { return find(mask, {mask}) == &field; });
  };
  const DataField* labels = comm.agree([&] { return find("labels", {"labels", "label"}); });
  if (labels != nullptr && labels->row_size() != 1) labels = nullptr;
  std::vector<std::uint8_t> unlabelled;  // of my share
  if (labels != nullptr) {
    ValueCounts counts;
    for_each_field_row(comm, *labels, nodes.num_nodes(), read(*labels),
                       [&](std::span<const double> row, Index number) {
                         unlabelled.resize(static_cast<std::size_t>(number - begin) + 1);
                         unlabelled.back() = std::isnan(row[0]) || row[0] == -1 ? 1 : 0;
                         if (unlabelled.back() == 0) counts.add(row[0]);
                       });
    counts.add_ranks(comm);
    lines.push_back(concat(of, ": ", labels->name, ": ", counts.describe(labels->type), ", ",
                           comm.all_reduce(Index{std::ranges::count(unlabelled, 1)}, ReduceOp::sum),
                           " nodes without a label"));
  }
  for (const DataField& field : nodes.unread) {
    if (&field == labels) continue;
    if (!is_mask(field)) {
      lines.push_back(describe_values(comm, of, field, nodes.num_nodes(), read(field)));
      continue;
    }
    Index set = 0, without_label = 0;
    for_each_field_row(comm, field, nodes.num_nodes(), read(field),
                       [&](std::span<const double> row, Index number) {
                         if (row[0] == 0) return;
                         ++set;
                         if (!unlabelled.empty()) without_label += unlabelled[number - begin];
                       });
    set = comm.all_reduce(set, ReduceOp::sum);
    without_label = comm.all_reduce(without_label, ReduceOp::sum);
    lines.push_back(concat(of, ": ", field.name, ": ", set, " nodes",
                           labels == nullptr ? "" : concat(", ", without_label, " of them without a label")));
  }
}

/// Reads the edges of a type and notes their ends. Collective.
std::string describe_edges(GraphSource& source, std::size_t k, NodesWithEdges& sources,
                           NodesWithEdges& destinations) {
  const EdgeTypeData& type = source.types().edge_types[k];
  const EdgeList edges = source.read_edges(k);
  sources.add(edges.src, NodesWithEdges::has_out_edge);
  destinations.add(edges.dst, NodesWithEdges::has_in_edge);
  const bool one_type = type.src_type == type.dst_type;
  const EdgeCounts counts = count_edges(source.comm(), edges, one_type);
  const bool named = !source.types().is_homogeneous();
  std::string text = concat(named ? type.canonical_name() + ": " : "", type.num_edges, " edges, ",
                            counts.duplicates, " duplicates");
  if (one_type)
    text += concat(", ", counts.self_loops, " self loops, ", counts.opposites, " have an opposite edge");
  return text;
}

}  // namespace

std::vector<std::string> describe_source(GraphSource& source, const FieldNames& names) {
  const Communicator& comm = source.comm();
  const GraphData& types = source.types();
  std::vector<NodesWithEdges> with_edges;
  for (const NodeTypeData& type : types.node_types) with_edges.emplace_back(comm, type.num_nodes());
  std::vector<std::string> of_edges;
  for (std::size_t k = 0; k < types.edge_types.size(); ++k) {
    const EdgeTypeData& type = types.edge_types[k];
    of_edges.push_back(describe_edges(source, k, with_edges[types.place_of(type.src_type)],
                                      with_edges[types.place_of(type.dst_type)]));
    const std::string of = types.is_homogeneous() ? "edges" : type.canonical_name();
    for (const DataField& field : type.unread)
      of_edges.push_back(describe_values(comm, of, field, type.num_edges, [&](const Array<Index>& rows) {
        return source.read_edge_data(k, field.name, rows);
      }));
  }
  constexpr int out = NodesWithEdges::has_out_edge, in = NodesWithEdges::has_in_edge;
  std::vector<std::string> lines;
  for (std::size_t t = 0; t < types.node_types.size(); ++t) {
    const std::string of = types.is_homogeneous() ? "" : types.node_types[t].name + ": ";
    lines.push_back(concat(of, types.node_types[t].num_nodes(), " nodes, ",
                           with_edges[t].count_without(out | in), " without edges, ",
                           with_edges[t].count_without(in), " without in-edges"));
    describe_nodes(source, t, names, lines);
  }
  lines.insert(lines.end(), of_edges.begin(), of_edges.end());
  return lines;
}

}  // namespace sar::formats
