// SPDX-License-Identifier: MIT

// EdgesByType::group() is a counting sort of the edges by type; within a type the order of the rows is kept,
// so equal rows are adjacent and become a pair. typed_blocks() wants 64 blocks of equal work (edges plus
// rows) and bounds the work of a block by 256 and max(most, 32 x types); blocks deviate by the edges of a
// row.
//
// A chunk is found by binary search in the number of edges before each row, so threads write chunks in any
// order: O(log(rows) + chunk size). Groups need no sort if the ids ascend; otherwise a radix sort with
// digits of 11 bits, stable and linear, orders the positions.
#include <sar/core/memory/index_arrays.hpp>
#include <sar/core/rows/row_access.hpp>
#include <sar/graph/kernels/edge_walk.hpp>

#include <mutex>
#include <numeric>
#include <ranges>

namespace sar {
inline namespace SAR_PRECISION {

void for_row_blocks(const EdgeRows& rows, Index bytes_per_edge, FunctionRef<void(Index, Index)> body) {
  constexpr Index block_bytes = Index{1} << 19;  // gathered bytes of a block
  if (rows.num_rows <= 0) return;
  // Work is the number of edges plus one per row, because rows without edges are written too.
  const local_index* const offsets = rows.offsets();
  const auto work_before = [&](Index i) { return offsets[i] - offsets[0] + i; };
  const Index grain = std::max<Index>(block_bytes / std::max<Index>(bytes_per_edge, 1), 16);
  for_blocks_of_work(rows.num_rows, work_before(rows.num_rows - 1) + 1, grain, work_before, body);
}

EdgeParts::EdgeParts(const EdgeRows& rows, Index longest, Index of_part) : rows_(rows) {
  constexpr Index grain = 1 << 14;
  PassVector<Index> long_rows;
  std::mutex mutex;
  parallel_for(rows.num_rows, grain, [&](Index from, Index to) {
    for (Index i = from; i < to; ++i) {
      if (rows.size(i) <= longest) continue;
      const std::lock_guard lock(mutex);
      long_rows.push_back(i);
    }
  });
  std::ranges::sort(long_rows);
  for (const Index i : long_rows) {
    first_part_.push_back(size());
    for (Index k = rows.begin[i]; k < rows.end[i]; k += of_part) {
      before_.push_back(before_.empty() ? 0 : before_.back() + (end_.back() - begin_.back()));
      row_of_.push_back(static_cast<local_index>(rows.row(i)));
      begin_.push_back(static_cast<local_index>(k));
      end_.push_back(static_cast<local_index>(std::min<Index>(rows.end[i], k + of_part)));
    }
  }
  first_part_.push_back(size());
  rows_.longest = longest;
}

// A counting sort by type. The first pass only reads the types, which are at random places: no step depends
// on the one before, so that several reads overlap. The second pass counts the types, and the third one
// writes the edges.
void EdgesByType::group(const EdgeRows& rows, Index first, Index last) {
  const auto for_edges = [&](const auto& visit) {
    Index x = 0;
    for (Index i = first; i < last; ++i) {
      if (rows.size(i) > rows.longest) continue;
      for (Index k = rows.begin[i]; k < rows.end[i]; ++k, ++x) visit(i, k, x);
    }
    return x;
  };
  type_.resize(for_edges([](Index, Index, Index) {}));
  for_edges([&](Index, Index k, Index x) { type_[x] = types_[rows.edge(k)]; });
  found_.clear();
  for (const std::uint16_t type : type_)
    if (edges_of_type_[type]++ == 0) found_.push_back(type);
  std::sort(found_.begin(), found_.end());
  local_index sum = 0;
  for (const std::uint16_t type : found_) sum += std::exchange(edges_of_type_[type], sum);

  for (std::vector<local_index>* list : {&row_, &other_, &edge_}) list->resize(sum);
  for_edges([&](Index i, Index k, Index x) {
    const local_index at = edges_of_type_[type_[x]]++;
    row_[at] = static_cast<local_index>(i);
    other_[at] = rows.other[k];
    edge_[at] = static_cast<local_index>(rows.edge(k));
  });
  list_pairs();
  pairs_ = {.num_rows = std::ssize(rows_),
            .begin = begin_.data(),
            .end = begin_.data() + 1,
            .rows = rows_.data(),
            .other = other_.data(),
            .offset = rows.offset,
            .position_of = edge_.data()};
}

void EdgesByType::list_pairs() {
  groups_.clear();
  rows_.clear();
  begin_.clear();
  local_index x = 0;
  for (const std::uint16_t type : found_) {
    const Index first_pair = std::ssize(rows_);
    for (const local_index end = std::exchange(edges_of_type_[type], 0); x < end; ++x) {
      if (std::ssize(rows_) > first_pair && rows_.back() == row_[x]) continue;
      rows_.push_back(row_[x]);
      begin_.push_back(x);
    }
    groups_.push_back({type, first_pair, std::ssize(rows_)});
  }
  begin_.push_back(x);
}

std::vector<Index> typed_blocks(const EdgeRows& rows, Index num_types, Index most) {
  constexpr Index least = 256, edges_per_type = 32, wanted_blocks = 64;
  if (rows.num_rows <= 0) return {0};
  const local_index* const offsets = rows.offsets();
  const auto work_before = [&](Index i) { return offsets[i] - offsets[0] + i; };
  const Index total = work_before(rows.num_rows - 1) + 1;
  most = std::max({most, edges_per_type * num_types, least});
  const Index grain = std::clamp(total / wanted_blocks, least, most);
  std::vector<Index> starts{0};
  for (Index work = grain; work < total; work += grain) {
    const auto later = std::views::iota(starts.back(), rows.num_rows);
    starts.push_back(*std::ranges::partition_point(later, [&](Index i) { return work_before(i) < work; }));
  }
  starts.push_back(rows.num_rows);
  return starts;
}

void for_typed_blocks(const EdgeRows& rows, Index num_types,
                      FunctionRef<void(Index first, Index last)> body) {
  const std::vector<Index> starts = typed_blocks(rows, num_types);
  parallel_for(std::ssize(starts) - 1, 1,
               [&](Index block, Index) { body(starts[block], starts[block + 1]); });
}

/// Whole rows: as many as fit.
void EdgeBlocks::divide(const EdgeRows& rows) {
  rows_ = rows;
  num_edges_ = rows.num_edges();
  first_.assign(1, 0);
  if (of_rows_ == Rows::split) return;
  const auto before = [&](Index row) {
    return row < rows.num_rows ? Index{rows.offsets()[row]} - rows.offsets()[0] : num_edges_;
  };
  for (Index row = 0; row < rows.num_rows;) {
    ++row;
    while (row < rows.num_rows && before(row + 1) - first_.back() <= max_size_) ++row;
    if (before(row) > first_.back()) first_.push_back(before(row));
  }
}

void EdgeBlocks::write(Index b, EdgeBlock& block, BlockGroups& groups) const {
  const Index first = first_edge(b), n = first_edge(b + 1) - first;
  for (Array<local_index>* list : {&block.src, &block.dst, &block.edge}) list->resize(n);
  groups.clear();
  Array<local_index>&own = by_source_ ? block.src : block.dst, &other = by_source_ ? block.dst : block.src;
  const auto offset = static_cast<local_index>(rows_.offset);
  const local_index* const before = rows_.offsets();
  const auto edges_before = static_cast<local_index>(before[0] + first);
  Index row = std::upper_bound(before, before + rows_.num_rows, edges_before) - before - 1;
  Index k = Index{rows_.begin[row]} + edges_before - before[row];
  for (Index at = 0; at < n; ++row) {
    const Index count = std::min<Index>(rows_.end[row] - k, n - at);
    if (count > 0) {
      const auto number = static_cast<local_index>(rows_.row(row));
      groups.append(number, count);
      std::fill_n(own.data() + at, count, number);
      for (Index i = 0; i < count; ++i) {
        other[at + i] = rows_.other[k + i] - offset;
        block.edge[at + i] = static_cast<local_index>(rows_.edge(k + i));
      }
    }
    at += count;
    if (at < n) k = rows_.begin[row + 1];
  }
}

void BlockGroups::clear() {
  order.clear();
  rows.clear();
  begin.assign(1, 0);
}

void BlockGroups::append(local_index row, Index positions) {
  rows.push_back(row);
  begin.push_back(begin.back() + static_cast<local_index>(positions));
}

void BlockGroups::build(const Array<local_index>& ids) {
  clear();
  if (!std::is_sorted(ids.begin(), ids.end())) {
    order.resize(ids.size());
    std::iota(order.begin(), order.end(), 0);
    sort_by_digits(order, *std::ranges::max_element(ids), [&](local_index at) { return Index{ids[at]}; });
  }
  const auto n = static_cast<Index>(ids.size());
  for (Index k = 0, first = 0; k < n; first = k) {
    const local_index row = ids[position(k)];
    while (k < n && ids[position(k)] == row) ++k;
    append(row, k - first);
  }
}
}  // namespace SAR_PRECISION
}  // namespace sar
