// SPDX-License-Identifier: MIT

// For each chunk of about 4 MiB, a route to the owners carries the row numbers there (8 bytes per row) and
// the rows back. An owner copies the requested rows to a buffer. A row that is listed several times is
// sent several times.
#include <sar/comm/rows/distributed_rows.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/core/error.hpp>

#include <algorithm>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

void fetch_row_bytes(const Communicator& comm, const PartitionBook& book, const std::byte* mine,
                     Index row_bytes, std::span<const Index> rows, std::byte* out) {
  comm.agree([&] {
    for (const Index row : rows)
      require<InputError>(0 <= row && row < book.num_nodes(), "there is no row ", row, ", expected ",
                          index_range(book.num_nodes()));
    const Index first_row = book.begin(comm.rank());
    std::vector<std::byte> answers;
    route_chunks(
        comm, static_cast<Index>(rows.size()), row_bytes, [&](Index i) { return book.owner(rows[i]); },
        [&](const RowRoute& route, Index first, Index last) {
          const Array<Index> asked = route.forward(rows.subspan(first, last - first));
          answers.resize(route.num_arrived() * row_bytes);
          for (Index i = 0; i < route.num_arrived(); ++i)
            std::copy_n(mine + (asked[i] - first_row) * row_bytes, row_bytes, answers.data() + i * row_bytes);
          route.back(answers.data(), row_bytes, out + first * row_bytes);
        });
  });
}

DataArray fetch_rows(const Communicator& comm, const PartitionBook& book, const DataArray& mine,
                     std::span<const Index> rows) {
  return comm.agree([&] {
    DataArray out(mine.type, mine.row_shape, static_cast<Index>(rows.size()));
    fetch_row_bytes(comm, book, mine.bytes.data(), mine.row_bytes(), rows, out.bytes.data());
    return out;
  });
}
}}  // namespace sar
