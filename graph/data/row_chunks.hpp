// SPDX-License-Identifier: MIT

/// A rank's rows of a field, taken in chunks of limited size. For implementation files.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/files/data_array.hpp>

#include <algorithm>
#include <numeric>

namespace sar { inline namespace SAR_PRECISION {

/// Local. Calls take(rows, first) for the rows first, first + 1, ... of this rank's even share of
/// `num_rows`, in chunks of about 16 MiB of the field. Every rank makes equally many calls, some of them
/// without rows, so that take() may communicate.
template <class Take>
void for_each_chunk(const Communicator& comm, const DataField& field, Index num_rows, const Take& take) {
  const PartitionBook shares = PartitionBook::even(num_rows, comm.size());
  const Index chunk = std::max<Index>(1, (Index{16} << 20) / std::max<Index>(1, field.row_bytes()));
  const Index chunks = (shares.num_nodes(0) + chunk - 1) / chunk;  // rank 0 has the most
  for (Index i = 0; i < chunks; ++i) {
    const Index first = std::min(shares.begin(comm.rank()) + i * chunk, shares.end(comm.rank()));
    Array<Index> rows(std::min(chunk, shares.end(comm.rank()) - first));
    std::iota(rows.begin(), rows.end(), first);
    take(rows, first);
  }
}

}}  // namespace sar
