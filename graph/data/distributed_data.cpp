// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/graph/data/distributed_data.hpp>

namespace sar { inline namespace SAR_PRECISION {

DistributedTensor<> distributed_features(const Communicator& comm, const NodeData& data) {
  return comm.agree([&]() -> DistributedTensor<> {
    require<InputError>(data.sparse_features == nullptr, data.name,
                        ": the features are sparse rows, expected dense ones for a distributed tensor "
                        "(DatasetOptions::sparse_features = no)");
    return {comm, data.book, data.features};
  });
}

DistributedTensor<std::int64_t> distributed_labels(const Communicator& comm, const NodeData& data) {
  return DistributedTensor<std::int64_t>::borrow(comm, data.book, std::span(data.labels),
                                                 {std::ssize(data.labels)});
}

const DataArray& require_field(const DataColumns& columns, const std::string& name) {
  const auto found = columns.find(name);
  if (found != columns.end()) return found->second;
  throw InputError(concat("there is no field '", name,
                          "', expected one of: ", joined(columns, &DataColumns::value_type::first)));
}

}}  // namespace sar
