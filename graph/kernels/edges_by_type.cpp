// SPDX-License-Identifier: MIT

// group() is a counting sort of the edges by type; within a type the order of the rows is kept, so equal
// rows are adjacent and become a pair. typed_blocks() wants 64 blocks of equal work (edges plus rows)
// and bounds the work of a block by 256 and max(most, 32 x types); blocks deviate by the edges of a row.
#include <sar/graph/kernels/edges_by_type.hpp>

#include <algorithm>
#include <ranges>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

// A counting sort by type: the first pass counts the edges of each type, the second one writes them.
void EdgesByType::group(const TypedEdges& edges, Index first, Index last, Index longest) {
  const auto for_edges = [&](const auto& visit) {
    for (Index i = first; i < last; ++i) {
      if (edges.end[i] - edges.begin[i] > longest) continue;
      for (Index k = edges.begin[i]; k < edges.end[i]; ++k) {
        const Index number = edges.first_edge + (edges.position_of != nullptr ? edges.position_of[k] : k);
        visit(i, k, number, edges.types[number]);
      }
    }
  };
  types_.clear();
  for_edges([&](Index, Index, Index, std::uint16_t type) {
    if (edges_of_type_[type]++ == 0) types_.push_back(type);
  });
  std::sort(types_.begin(), types_.end());
  local_index sum = 0;
  for (const std::uint16_t type : types_) sum += std::exchange(edges_of_type_[type], sum);

  for (std::vector<local_index>* list : {&row_, &other_, &edge_}) list->resize(sum);
  for_edges([&](Index i, Index k, Index number, std::uint16_t type) {
    const local_index at = edges_of_type_[type]++;
    row_[at] = static_cast<local_index>(i);
    other_[at] = edges.other[k];
    edge_[at] = static_cast<local_index>(number);
  });
  list_pairs();
}

void EdgesByType::list_pairs() {
  groups_.clear();
  rows_.clear();
  begin_.clear();
  local_index x = 0;
  for (const std::uint16_t type : types_) {
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

std::vector<Index> typed_blocks(const local_index* offsets, Index num_rows, Index num_types, Index most) {
  constexpr Index least = 256, edges_per_type = 32, wanted_blocks = 64;
  if (num_rows <= 0) return {0};
  const auto work_before = [&](Index i) { return offsets[i] - offsets[0] + i; };
  const Index total = work_before(num_rows - 1) + 1;
  most = std::max({most, edges_per_type * num_types, least});
  const Index grain = std::clamp(total / wanted_blocks, least, most);
  std::vector<Index> starts{0};
  for (Index work = grain; work < total; work += grain) {
    const auto rows = std::views::iota(starts.back(), num_rows);
    starts.push_back(*std::ranges::partition_point(rows, [&](Index i) { return work_before(i) < work; }));
  }
  starts.push_back(num_rows);
  return starts;
}

void for_typed_blocks(const local_index* offsets, Index num_rows, Index num_types,
                      FunctionRef<void(Index first, Index last)> body) {
  const std::vector<Index> starts = typed_blocks(offsets, num_rows, num_types);
  parallel_for(std::ssize(starts) - 1, 1,
               [&](Index block, Index) { body(starts[block], starts[block + 1]); });
}

}}  // namespace sar
