#include <sar/autograd/deferred_rows.hpp>

#include <utility>

namespace sar::inline SAR_PRECISION {

const Tensor& DeferredRows::all() const {
  const std::lock_guard lock(mutex_);
  if (!all_.defined()) {
    Tensor rows(shape_);
    compute(0, rows);
    all_ = std::move(rows);
  }
  return all_;
}

}  // namespace sar
