#include <sar/comm/rows/row_route.hpp>
#include <sar/core/error.hpp>
#include <sar/core/parallel.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

namespace sar {
namespace {

constexpr std::size_t round_bytes = std::size_t{4} << 20;  // of a rank to all others

/// Rows in groups, one for each rank: as they lie, or by a list of their numbers.
struct Groups {
  std::span<const Index> begin;
  std::span<const std::int32_t> order;

  [[nodiscard]] Index size(int rank) const { return begin[rank + 1] - begin[rank]; }
  [[nodiscard]] std::size_t row(Index position) const {
    return order.empty() ? position : static_cast<std::size_t>(order[position]);
  }
};

/// Row i of group q of `from` becomes row i of group (this rank) of `to` on rank q.
void move_rows(const Communicator& comm, Index longest, std::size_t row_bytes, const Groups& from,
               const std::byte* in, const Groups& to, std::byte* out) {
  const int me = comm.rank();
  if (row_bytes == 0) return;
  parallel_for(from.size(me), Index{1} << 14, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i)
      std::memcpy(out + to.row(to.begin[me] + i) * row_bytes, in + from.row(from.begin[me] + i) * row_bytes,
                  row_bytes);
  });
  if (comm.size() == 1) return;

  const auto share = static_cast<Index>(
      std::max<std::size_t>(1, round_bytes / row_bytes / static_cast<std::size_t>(comm.size() - 1)));
  std::vector<std::byte> packed;
  std::vector<Index> counts(comm.size());
  for (Index first = 0; first < longest; first += share) {
    const auto rows_of = [&](const Groups& groups, int q) {
      return q == me ? Index{0} : std::clamp<Index>(groups.size(q) - first, 0, share);
    };
    packed.clear();
    for (int q = 0; q < comm.size(); ++q) {
      const Index rows = rows_of(from, q);
      for (Index i = 0; i < rows; ++i) {
        const std::byte* row = in + from.row(from.begin[q] + first + i) * row_bytes;
        packed.insert(packed.end(), row, row + row_bytes);
      }
      counts[q] = rows * static_cast<Index>(row_bytes);
    }
    const auto received = comm.all_to_all_v(std::span<const std::byte>(packed), counts).values;
    const std::byte* row = received.data();
    for (int q = 0; q < comm.size(); ++q) {
      const Index rows = rows_of(to, q);
      for (Index i = 0; i < rows; ++i, row += row_bytes)
        std::memcpy(out + to.row(to.begin[q] + first + i) * row_bytes, row, row_bytes);
    }
  }
}

}  // namespace

RowRoute::RowRoute(const Communicator& comm, std::span<const std::int32_t> targets) : comm_(comm) {
  comm.agree([&] {
    out_begin_.assign(comm.size() + 1, 0);
    in_begin_ = out_begin_;
    require<InputError>(targets.size() <= std::numeric_limits<std::int32_t>::max(), "rank ", comm.rank(),
                        " has ", targets.size(), " rows to send, expected less than 2^31: use more ranks");
    for (const std::int32_t target : targets) ++out_begin_[target + 1];
    std::partial_sum(out_begin_.begin(), out_begin_.end(), out_begin_.begin());
    if (!std::is_sorted(targets.begin(), targets.end())) {
      std::vector<Index> next(out_begin_);
      order_.resize(targets.size());
      for (std::size_t i = 0; i < targets.size(); ++i)
        order_[next[targets[i]]++] = static_cast<std::int32_t>(i);
    }
    std::vector<Index> counts(comm.size());
    std::adjacent_difference(out_begin_.begin() + 1, out_begin_.end(), counts.begin());
    const auto received =
        comm.all_to_all_v(std::span<const Index>(counts), std::vector<Index>(counts.size(), 1)).values;
    std::partial_sum(received.begin(), received.end(), in_begin_.begin() + 1);
    counts[comm.rank()] = 0;
    longest_ = comm.all_reduce(*std::max_element(counts.begin(), counts.end()), ReduceOp::max);
  });
}

void RowRoute::there(const std::byte* rows, std::size_t row_bytes, std::byte* arrived) const {
  comm_.agree([&] {
    move_rows(comm_, longest_, row_bytes, {out_begin_, order_}, rows, {in_begin_, {}}, arrived);
  });
}

void RowRoute::back(const std::byte* arrived, std::size_t row_bytes, std::byte* rows) const {
  comm_.agree([&] {
    move_rows(comm_, longest_, row_bytes, {in_begin_, {}}, arrived, {out_begin_, order_}, rows);
  });
}

}  // namespace sar
