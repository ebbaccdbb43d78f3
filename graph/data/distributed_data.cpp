#include <sar/core/error.hpp>
#include <sar/graph/construct/edge_ends.hpp>
#include <sar/graph/data/distributed_data.hpp>

namespace sar { inline namespace SAR_PRECISION {

DistributedTensor<> distributed_features(const Communicator& comm, const NodeData& data) {
  return {comm, data.book, data.features};
}

DistributedTensor<std::int64_t> distributed_labels(const Communicator& comm, const NodeData& data) {
  return DistributedTensor<std::int64_t>::borrow(comm, data.book, std::span(data.labels),
                                                 {std::ssize(data.labels)});
}

PartitionBook edge_book(const Communicator& comm, Index mine) {
  return comm.agree([&] { return gather_book(comm, mine); });
}

const DataArray& require_field(const DataColumns& columns, const std::string& name) {
  const auto found = columns.find(name);
  if (found != columns.end()) return found->second;
  std::string names;
  for (const auto& [other, column] : columns) names += (names.empty() ? "" : ", ") + other;
  throw InputError(concat("there is no field '", name, "', expected one of: ", names));
}

}}  // namespace sar
