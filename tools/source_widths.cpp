// SPDX-License-Identifier: MIT
#include "source_widths.hpp"

#include <sar/core/memory/index_arrays.hpp>
#include <sar/data.hpp>
#include <sar/models.hpp>

#include <cmath>
#include <limits>
#include <vector>

namespace sar::tools {
namespace {

/// The largest label + 1. Collective.
Index count_classes(GraphSource& source, const std::string& labels) {
  const Communicator& comm = source.comm();
  const PartitionBook slices = PartitionBook::even(source.num_nodes(), comm.size());
  const Array<Index> nodes = consecutive(slices.begin(comm.rank()), slices.num_nodes(comm.rank()));
  const DataArray mine = source.read_node_data(0, labels, nodes);
  std::vector<double> values(nodes.size());
  convert_elements(mine.type, mine.bytes.data(), std::ssize(nodes), values.data());
  return num_classes(comm.all_reduce(largest_class(values), ReduceOp::max), source.num_nodes());
}

}  // namespace

double largest_class(std::span<const double> labels) {
  double largest = 0;
  for (const double label : labels) {
    if (label != std::floor(label) && !std::isnan(label)) return std::numeric_limits<double>::infinity();
    if (label > largest) largest = label;
  }
  return largest;
}

Index num_classes(double largest, Index num_nodes) {
  return largest < static_cast<double>(num_nodes) ? static_cast<Index>(largest) + 1 : 1;
}

Widths complete_widths(Widths widths, GraphSource& source, const DatasetOptions& options) {
  if (!source.types().is_homogeneous()) return widths;
  const std::vector<DataField>& fields = source.types().node_types[0].unread;
  const auto find = [&](const char* key, const char* other) {
    return source.comm().agree([&] {
      return find_field(fields, options.fields, key, {key, other}, source.name());
    });
  };
  const DataField* const features = find("features", "feat");
  if (widths.features == 0 && features != nullptr) {
    widths.features = features->row_size();
    widths.stored = stored_features(
        source.comm(), options.sparse_features, *features, source.num_nodes(),
        [&](std::span<const Index> nodes) { return source.read_node_data(0, features->name, nodes); });
  }
  const DataField* const labels = find("labels", "label");
  if (widths.classes == 0 && labels != nullptr)
    widths.classes = labels->row_size() == 1 ? count_classes(source, labels->name) : labels->row_size();
  return widths;
}

double stored_features(const Communicator& comm, SparseFeatures sparse, const DataField& field,
                       Index num_nodes, FunctionRef<DataArray(std::span<const Index>)> read) {
  if (!becomes_sparse(sparse, field, 1, 0)) return 0;
  const PartitionBook shares = PartitionBook::even(num_nodes, comm.size());
  Array<Index> sampled;
  for (Index node = shares.begin(comm.rank()); node < shares.end(comm.rank()); ++node)
    if (is_sampled(node, num_nodes)) sampled.push_back(node);
  const DataArray mine = read(sampled);
  const Index rows = comm.all_reduce(mine.num_rows), stored = comm.all_reduce(count_stored(mine));
  if (!becomes_sparse(sparse, field, rows, stored)) return 0;
  return static_cast<double>(stored) / static_cast<double>(rows);
}

}  // namespace sar::tools
