#include "source_widths.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <algorithm>
#include <numeric>
#include <vector>

namespace sar::tools {
namespace {

/// The largest label + 1. Collective.
Index count_classes(GraphSource& source, const std::string& labels) {
  const Communicator& comm = source.comm();
  const PartitionBook slices = PartitionBook::even(source.num_nodes(), comm.size());
  std::vector<Index> nodes(static_cast<std::size_t>(slices.num_nodes(comm.rank())));
  std::iota(nodes.begin(), nodes.end(), slices.begin(comm.rank()));
  const DataArray mine = source.read_node_data(0, labels, nodes);
  std::vector<double> values(nodes.size());
  convert_elements(mine.type, mine.bytes.data(), std::ssize(nodes), values.data());
  double largest = 0;
  for (const double label : values) largest = std::max(largest, label);  // not NaN
  return static_cast<Index>(std::min(comm.all_reduce(largest, ReduceOp::max), 0x1p31)) + 1;
}

}  // namespace

Widths complete_widths(Widths widths, GraphSource& source, const std::map<std::string, std::string>& names) {
  const auto is = [&](const DataField& field, const std::string& name, const char* other) {
    const auto given = names.find(name);
    return given != names.end() ? field.name == given->second : field.name == name || field.name == other;
  };
  if (!source.types().is_homogeneous()) return widths;
  for (const DataField& field : source.types().node_types[0].unread) {
    if (widths.features == 0 && is(field, "features", "feat")) widths.features = field.row_size();
    if (widths.classes == 0 && is(field, "labels", "label"))
      widths.classes = field.row_size() == 1 ? count_classes(source, field.name) : field.row_size();
  }
  return widths;
}

}  // namespace sar::tools
