#include <sar/core/tensor/deferred_rows.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

const Tensor& DeferredRows::all() const {
  constexpr Index grain = 1 << 14;  // elements
  const std::lock_guard lock(mutex_);
  if (!all_.defined()) {
    Tensor rows(shape_);
    parallel_for(rows.num_rows(), std::max<Index>(1, grain / std::max<Index>(rows.row_size(), 1)),
                 [&](Index begin, Index end) { compute(begin, end - begin, rows.row(begin)); });
    all_ = std::move(rows);
  }
  return all_;
}

}}  // namespace sar
