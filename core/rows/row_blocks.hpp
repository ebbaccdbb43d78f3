// SPDX-License-Identifier: MIT

/// Parallel loops over rows of unequal work, in blocks of about equal work. For implementation files.
#pragma once

#include <sar/core/threads/parallel.hpp>


namespace sar { inline namespace SAR_PRECISION {

/// Calls body(first, last) for blocks of rows with about `grain` of work each, in parallel. work_before(i) is
/// the work of the rows before row i: work_before(0) = 0, and it increases by at least 1 per row. `total` is
/// the work of all rows. No block is empty, and the blocks do not depend on the number of threads.
template <class WorkBefore, class Body>
void for_blocks_of_work(Index rows, Index total, Index grain, const WorkBefore& work_before,
                        const Body& body) {
  const Index blocks = (total + grain - 1) / grain;
  const auto first_row = [&](Index block) {  // the first row with work_before(row) >= block * grain
    Index low = 0, high = rows;
    while (low < high) {
      const Index middle = low + (high - low) / 2;
      if (work_before(middle) < block * grain)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  };
  parallel_for(blocks, 1, [&](Index block, Index) {
    const Index first = first_row(block), last = block + 1 == blocks ? rows : first_row(block + 1);
    if (first < last) body(first, last);
  });
}

}}  // namespace sar
