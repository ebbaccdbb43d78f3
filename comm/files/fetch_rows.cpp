// SPDX-License-Identifier: MIT
#include <sar/comm/files/fetch_rows.hpp>
#include <sar/comm/rows/distributed_rows.hpp>

namespace sar { inline namespace SAR_PRECISION {

DataArray fetch_rows(const Communicator& comm, const PartitionBook& book, const DataArray& mine,
                     std::span<const Index> rows) {
  return comm.agree([&] {
    DataArray out(mine.type, mine.row_shape, static_cast<Index>(rows.size()));
    fetch_row_bytes(comm, book, mine.bytes.data(), mine.row_bytes(), rows, out.bytes.data());
    return out;
  });
}

}}  // namespace sar
