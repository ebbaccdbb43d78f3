#include <sar/comm/rows/halo_rows.hpp>
#include <sar/core/error.hpp>

#include <algorithm>

namespace sar {
namespace {

/// Scattered rows are too short for the processor to see a stream: ask for a row a few rows ahead of its use.
void prefetch_later_row(const Tensor& tensor, const Array<std::int32_t>& rows, std::size_t i) {
  constexpr std::size_t distance = 4;
  constexpr Index cache_line = 64 / sizeof(real);
  if (i + distance >= rows.size()) return;
  const real* row = tensor.row(rows[i + distance]);
  for (Index j = 0; j < tensor.row_size(); j += cache_line) __builtin_prefetch(row + j);
}

/// work(i, column, length) for the parts of rows that elements [begin, end) consist of.
template <class Work>
void for_each_row(Index row_size, Index begin, Index end, const Work& work) {
  while (begin < end) {
    const Index column = begin % row_size;
    const Index length = std::min(row_size - column, end - begin);
    work(static_cast<std::size_t>(begin / row_size), column, length);
    begin += length;
  }
}

}  // namespace

void check_rounds(const std::vector<HaloRound>& rounds, const Tensor& owned) {
  require<ShapeError>(owned.defined(), "a halo exchange needs a defined tensor");
  for (const HaloRound& round : rounds)
    require<ShapeError>(round.send_rows.empty() ||
                            (round.send_rows.front() >= 0 && round.send_rows.back() < owned.num_rows()),
                        "rank ", round.reader, " reads rows up to ",
                        round.send_rows.empty() ? 0 : round.send_rows.back(), " of a tensor of shape ",
                        owned.shape());
}

void pack_elements(const Tensor& tensor, const Array<std::int32_t>& rows, Index begin, Index end, real* out) {
  for_each_row(tensor.row_size(), begin, end, [&](std::size_t i, Index column, Index length) {
    prefetch_later_row(tensor, rows, i);
    out = std::copy_n(tensor.row(rows[i]) + column, length, out);
  });
}

void add_elements(Tensor& tensor, const Array<std::int32_t>& rows, Index begin, Index end,
                  const real* values) {
  for_each_row(tensor.row_size(), begin, end, [&](std::size_t i, Index column, Index length) {
    prefetch_later_row(tensor, rows, i);
    real* __restrict to = tensor.row(rows[i]) + column;
    const real* __restrict from = values;
    for (Index j = 0; j < length; ++j) to[j] += from[j];
    values += length;
  });
}

}  // namespace sar
