#include <sar/comm/rows/distributed_rows.hpp>
#include <sar/core/error.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace sar {

void fetch_row_bytes(const Communicator& comm, const PartitionBook& book, const std::byte* mine,
                     Index row_bytes, std::span<const Index> rows, std::byte* out) {
  comm.agree([&] {
    comm.agree([&] {
      for (const Index row : rows)
        require<InputError>(0 <= row && row < book.num_nodes(), "there is no row ", row, ", expected 0 to ",
                            book.num_nodes() - 1);
    });
    const auto ranks = static_cast<std::size_t>(comm.size());
    const auto bytes = static_cast<std::size_t>(row_bytes);
    const std::size_t round =
        std::max<std::size_t>(1, (std::size_t{4} << 20) / std::max<std::size_t>(bytes, sizeof(Index)));
    const auto rounds = comm.all_reduce(static_cast<Index>((rows.size() + round - 1) / round), ReduceOp::max);
    const Index first_row = book.begin(comm.rank());

    std::vector<std::int32_t> owners;
    std::vector<Index> wanted;
    std::vector<std::byte> answers;
    for (Index r = 0; r < rounds; ++r) {
      const std::size_t begin = std::min(rows.size(), static_cast<std::size_t>(r) * round);
      const auto part = rows.subspan(begin, std::min(round, rows.size() - begin));

      std::vector<Index> counts(ranks, 0);
      owners.resize(part.size());
      for (std::size_t i = 0; i < part.size(); ++i) {
        owners[i] = book.owner(part[i]);
        ++counts[owners[i]];
      }
      std::vector<Index> next(ranks, 0);  // where the next request to each rank goes, and comes back
      for (std::size_t p = 1; p < ranks; ++p) next[p] = next[p - 1] + counts[p - 1];
      wanted.resize(part.size());
      std::vector<Index> begins = next;
      for (std::size_t i = 0; i < part.size(); ++i) wanted[next[owners[i]]++] = part[i];

      const auto requests = comm.all_to_all_v(std::span<const Index>(wanted), counts);
      answers.resize(requests.values.size() * bytes);
      for (std::size_t i = 0; i < requests.values.size(); ++i)
        std::copy_n(mine + (requests.values[i] - first_row) * row_bytes, bytes, answers.data() + i * bytes);
      std::vector<Index> answer_counts(requests.counts);
      for (Index& count : answer_counts) count *= row_bytes;
      const auto got = comm.all_to_all_v(std::span<const std::byte>(answers), answer_counts).values;
      for (std::size_t i = 0; i < part.size(); ++i)
        std::copy_n(got.data() + static_cast<std::size_t>(begins[owners[i]]++) * bytes, bytes,
                    out + (begin + i) * bytes);
    }
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

}  // namespace sar
