// SPDX-License-Identifier: MIT
#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/deferred_rows.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION {

void DeferredRows::compute_rounded(Index first, Index count, Bfloat16* out) const {
  Array<real> some(count * shape_.row_size());
  compute(first, count, some.data());
  narrow(some.data(), std::ssize(some), out);
}

void DeferredRows::compute_all(TypedRows& rows) const {
  constexpr Index grain = 1 << 14;  // elements
  const Index width = rows.row_size();
  parallel_for(rows.num_rows(), std::max<Index>(1, grain / std::max<Index>(width, 1)),
               [&](Index begin, Index end) {
                 if (!rows.is_bfloat16()) return compute(begin, end - begin, rows.reals().row(begin));
                 compute_rounded(begin, end - begin, rows.bfloat16() + begin * width);
               });
}

void DeferredRows::store() const {
  if (stored_.defined()) return;
  TypedRows rows(shape_, type_);
  compute_all(rows);
  stored_ = std::move(rows);
}

void DeferredRows::forget() const {
  const std::lock_guard lock(mutex_);
  stored_ = {};
  wide_ = {};
}

const TypedRows& DeferredRows::stored() const {
  const std::lock_guard lock(mutex_);
  store();
  return stored_;
}

const Tensor& DeferredRows::all() const {
  const std::lock_guard lock(mutex_);
  store();
  if (type_ == NumberType::reals) return stored_.reals();
  if (!wide_.defined()) wide_ = stored_.to_tensor();
  return wide_;
}

void Bfloat16Rows::compute(Index first, Index count, real* out) const {
  const TypedRows rows = computed();
  widen(rows.bfloat16() + first * rows.row_size(), count * rows.row_size(), out);
}
}}  // namespace sar
