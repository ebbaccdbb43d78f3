// SPDX-License-Identifier: MIT

// A counting sort by owner, whose range is found by binary search: O(n log P) time for n ids and P ranks,
// and 16 bytes per id. Each id is looked up twice.
#include <sar/comm/rows/rows_by_owner.hpp>
#include <sar/core/error.hpp>

#include <numeric>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

void require_rows(const PartitionBook& book, std::span<const Index> ids, const char* call) {
  const std::string expected = index_range(book.num_nodes());
  for (std::size_t i = 0; i < ids.size(); ++i)
    require<InputError>(0 <= ids[i] && ids[i] < book.num_nodes(), call, ": id ", i, " of ", ids.size(),
                        " is ", ids[i], ", expected ", expected);
}

RowsByOwner::RowsByOwner(const PartitionBook& book, std::span<const Index> ids, const char* call)
    : begin(book.num_parts() + 1), rows(ids.size()), places(ids.size()) {
  require_rows(book, ids, call);
  for (const Index id : ids) ++begin[book.owner(id) + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<Index> next(begin);
  for (Index i = 0; i < std::ssize(ids); ++i) {
    const int owner = book.owner(ids[i]);
    const Index k = next[owner]++;
    rows[k] = ids[i] - book.begin(owner);
    places[k] = i;
  }
}

}}  // namespace sar
