// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/tensor/typed_rows.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <cstring>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr Index numbers_at_once = 1 << 15;  // per parallel block

}  // namespace

TypedRows::TypedRows(const Shape& shape, NumberType type) : shape_(shape), type_(type) {
  if (type == NumberType::reals) {
    reals_ = Tensor(shape);
    return;
  }
  require<ShapeError>(shape.dims() > 0, "rows need at least one dimension");
  const auto bytes = static_cast<std::size_t>(shape.size() * bytes_of(type));
  memory_ = std::shared_ptr<void>(allocate_bytes(bytes), BlockDeleter{bytes}, WorkspaceAllocator<char>());
}

TypedRows::TypedRows(const Tensor& rows, NumberType type) {
  if (type == NumberType::reals) {
    *this = rows;
    return;
  }
  require(type == NumberType::bfloat16, "rows of a tensor as exact sums");
  *this = TypedRows(rows.shape(), type);
  parallel_for(size(), numbers_at_once,
               [&](Index begin, Index end) { narrow(rows.data() + begin, end - begin, bfloat16() + begin); });
}

// Numbers [n, 2 n) of reals are rounded to where numbers [n / 2, n) were, which have been rounded already: n
// doubles, and each pass is parallel.
TypedRows TypedRows::as(NumberType type) && {
  const auto bytes = static_cast<std::size_t>(size()) * sizeof(Bfloat16);
  const auto in_place = [&] {
    return type == NumberType::bfloat16 && is_real() && reals_.unique() && size() > numbers_at_once &&
           reals_.storage_.get() == reals_.data() && can_shrink(reals_.data(), bytes);
  };
  if (type == type_) return std::move(*this);
  if (!in_place()) return std::as_const(*this).as(type);
  Tensor from = std::exchange(reals_, {});
  auto* const to = reinterpret_cast<Bfloat16*>(from.data());
  Array<Bfloat16> front(numbers_at_once);
  narrow(from.data(), numbers_at_once, front.data());
  std::memcpy(from.data(), front.data(), front.size() * sizeof(Bfloat16));
  for (Index done = numbers_at_once; done < from.size(); done *= 2)
    parallel_for(std::min(done, from.size() - done), numbers_at_once, [&](Index begin, Index end) {
      narrow(from.data() + done + begin, end - begin, to + done + begin);
    });

  TypedRows rounded;
  rounded.type_ = type;
  rounded.shape_ = std::exchange(shape_, {});
  rounded.memory_ = std::move(from.storage_);
  std::size_t& block_bytes = std::get_deleter<BlockDeleter>(rounded.memory_)->bytes;
  shrink_block(rounded.memory_.get(), block_bytes, bytes);
  block_bytes = bytes;
  return rounded;
}

TypedRows TypedRows::slice_rows(Index begin, Index end) const {
  if (type_ == NumberType::reals) return reals_.slice_rows(begin, end);
  require<ShapeError>(0 <= begin && begin <= end && end <= num_rows(), "rows ", begin, " to ", end,
                      " of rows of shape ", shape_);
  TypedRows part = *this;
  part.offset_ += begin * row_size();
  part.shape_ = shape_.with_rows(end - begin);
  return part;
}

TypedRows TypedRows::reshape(const Shape& shape) const {
  if (type_ == NumberType::reals) return reals_.reshape(shape);
  require<ShapeError>(shape.dims() > 0 && shape.size() == size(), "cannot reshape ", shape_, " to ", shape);
  TypedRows same = *this;
  same.shape_ = shape;
  return same;
}

TypedRows TypedRows::clone() const {
  if (type_ == NumberType::reals) return reals_.clone();
  TypedRows copy(shape_, type_);
  parallel_for(size(), numbers_at_once, [&](Index begin, Index end) {
    std::copy_n(static_cast<const char*>(at(begin)), (end - begin) * bytes_of(type_),
                static_cast<char*>(copy.at(begin)));
  });
  return copy;
}

void TypedRows::set_zero() {
  if (type_ == NumberType::reals) return reals_.fill(0);
  parallel_for(size(), numbers_at_once, [&](Index begin, Index end) {
    std::fill_n(static_cast<char*>(at(begin)), (end - begin) * bytes_of(type_), char{0});
  });
}

Tensor TypedRows::to_tensor() const {
  if (type_ == NumberType::reals) return reals_;
  TypedRows wide(shape_, NumberType::reals);
  add_rows(*this, wide, false);
  return wide.reals();
}

}}  // namespace sar
