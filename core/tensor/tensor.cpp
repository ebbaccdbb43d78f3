// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/memory/transaction.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <limits>
#include <ostream>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr Index copy_grain = 1 << 18;  // elements per parallel block

/// Converts element by element; rounds to nearest if `To` is narrower.
template <class From, class To>
void convert(std::span<const From> from, std::span<To> to) {
  parallel_for_each(static_cast<Index>(from.size()), copy_grain,
                    [&](Index i) { to[i] = static_cast<To>(from[i]); });
}

}  // namespace

Shape::Shape(std::initializer_list<Index> extents)
    : Shape(std::span<const Index>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const Index> extents) {
  require<ShapeError>(!extents.empty() && extents.size() <= 4, "a tensor has 1 to 4 dimensions, not ",
                      extents.size());
  Index size = 1;
  for (const Index extent : extents) {
    require<ShapeError>(extent >= 0, "negative extent ", extent, " in a tensor shape");
    require<ShapeError>(extent == 0 || size <= std::numeric_limits<Index>::max() / 64 / extent,
                        "a tensor shape has more elements than memory can address");
    size *= std::max<Index>(extent, 1);
    extents_[dims_++] = extent;
  }
}

Shape Shape::with_rows(Index rows) const {
  require<ShapeError>(dims_ > 0 && rows >= 0, "cannot give ", rows, " rows to a tensor of shape ",
                      to_string());
  Shape result = *this;
  result.extents_[0] = rows;
  return result;
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (int d = 0; d < dims_; ++d) text += (d > 0 ? ", " : "") + std::to_string((*this)[d]);
  return text + "]";
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << shape.to_string();
}

Tensor::Tensor(const Shape& shape) : shape_(shape) {
  require<ShapeError>(shape.dims() > 0, "a tensor needs at least one dimension");
  const std::size_t size_bytes = bytes();
  void* block = allocate_bytes(size_bytes);
  storage_ = std::shared_ptr<void>(block, BlockDeleter{size_bytes}, WorkspaceAllocator<char>());
  data_ = static_cast<real*>(block);
}

Tensor Tensor::full(const Shape& shape, real value) {
  Tensor result(shape);
  result.fill(value);
  return result;
}

Tensor Tensor::from(const Shape& shape, std::span<const real> values) {
  Tensor result(shape);
  result.copy_from(values);
  return result;
}

Tensor Tensor::from(const Shape& shape, std::initializer_list<real> values) {
  return from(shape, std::span<const real>(values.begin(), values.size()));
}

Tensor Tensor::from(const Shape& shape, std::span<const other_precision> values) {
  Tensor result(shape);
  result.copy_from(values);
  return result;
}

Tensor Tensor::borrow(real* data, const Shape& shape) {
  require<ShapeError>(shape.dims() > 0 && (data != nullptr || shape.size() == 0),
                      "cannot borrow null memory for shape ", shape);
  Tensor result;
  result.data_ = data;
  result.shape_ = shape;
  result.borrowed_ = true;
  return result;
}

Tensor Tensor::borrow(const real* data, const Shape& shape) {
  Tensor result = borrow(const_cast<real*>(data), shape);  // NOLINT: read_only_ prevents writing
  result.read_only_ = true;
  return result;
}

Tensor Tensor::borrow(real* data, const Shape& shape, std::shared_ptr<void> owner) {
  Tensor result = borrow(data, shape);
  result.storage_ = std::move(owner);
  return result;
}

Tensor Tensor::borrow(const real* data, const Shape& shape, std::shared_ptr<void> owner) {
  Tensor result = borrow(data, shape);
  result.storage_ = std::move(owner);
  return result;
}

void Tensor::require_length(std::size_t length, const Shape& shape) {
  require<ShapeError>(static_cast<Index>(length) == shape.size(), length, " values for a tensor of shape ",
                      shape, ", expected ", shape.size());
}

void Tensor::require_writable() const {
  require<InputError>(!read_only_, "a tensor of shape ", shape_,
                      " that was borrowed for reading cannot be written, expected memory that is not const");
}

real Tensor::item() const {
  require<ShapeError>(size() == 1, "item() needs a tensor of one element, not of shape ", shape_);
  return data_[0];
}

Tensor Tensor::slice_rows(Index begin, Index end) const {
  require<ShapeError>(0 <= begin && begin <= end && end <= num_rows(), "rows ", begin, " to ", end,
                      " of a tensor of shape ", shape_);
  Tensor result = *this;
  result.data_ += begin * row_size();
  result.shape_ = shape_.with_rows(end - begin);
  return result;
}

Tensor Tensor::reshape(const Shape& shape) const {
  require<ShapeError>(shape.dims() > 0 && shape.size() == size(), "cannot reshape ", shape_, " to ", shape);
  Tensor result = *this;
  result.shape_ = shape;
  return result;
}

Tensor Tensor::clone() const {
  if (!defined()) return {};
  Tensor result(shape_);
  result.copy_from(*this);
  return result;
}

void Tensor::fill(real value) {
  require_writable();
  parallel_for(size(), copy_grain,
               [&](Index begin, Index end) { std::fill(data_ + begin, data_ + end, value); });
}

void Tensor::save() const {
  Transaction::save_bytes(data_, bytes(), storage_);
}

void Tensor::copy_from(const Tensor& other) {
  require<ShapeError>(shape_ == other.shape_, "cannot copy a tensor of shape ", other.shape_,
                      " into one of shape ", shape_);
  convert(other.values(), values());
}

void Tensor::copy_from(std::span<const real> from) {
  require_length(from.size(), shape_);
  convert(from, values());
}

void Tensor::copy_from(std::span<const other_precision> from) {
  require_length(from.size(), shape_);
  convert(from, values());
}

void Tensor::copy_to(std::span<real> to) const {
  require_length(to.size(), shape_);
  convert(values(), to);
}

void Tensor::copy_to(std::span<other_precision> to) const {
  require_length(to.size(), shape_);
  convert(values(), to);
}

}}  // namespace sar
