// SPDX-License-Identifier: MIT
#include "sliced_rows.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace sar::formats {

void send_rows(const Communicator& comm, const PartitionBook& book, Index first,
               std::span<const std::byte> rows, Index row_bytes, std::byte* mine) {
  const Index count = row_bytes == 0 ? 0 : static_cast<Index>(rows.size()) / row_bytes;
  std::vector<Index> bytes(static_cast<std::size_t>(comm.size()));
  const auto overlap = [&](int rank, Index begin, Index end) {
    return std::max<Index>(0, std::min(book.end(rank), end) - std::max(book.begin(rank), begin));
  };
  for (int rank = 0; rank < comm.size(); ++rank)
    bytes[rank] = overlap(rank, first, first + count) * row_bytes;
  const auto ranges = comm.all_gather(std::array<Index, 2>{first, first + count});
  const auto received = comm.all_to_all_v(rows, bytes);
  const std::byte* from = received.values.data();
  for (const auto& [begin, end] : ranges) {
    const Index size = overlap(comm.rank(), begin, end) * row_bytes;
    std::copy_n(from, size, mine + std::max<Index>(0, begin - book.begin(comm.rank())) * row_bytes);
    from += size;
  }
}

}  // namespace sar::formats
