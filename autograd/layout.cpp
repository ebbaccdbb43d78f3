#include <sar/autograd/gathered_rows.hpp>
#include <sar/autograd/layout.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/rows/elementwise.hpp>
#include <sar/core/rows/rows.hpp>

#include <array>
#include <span>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Returns whether a tape records and a part requires a gradient.
bool any_recorded(std::span<const Variable> parts) noexcept {
  for (const Variable& part : parts)
    if (recording({&part})) return true;
  return false;
}

/// The gradients of the parts, and their numbers of rows or columns.
struct PartLayout {
  std::vector<GradientPtr> gradients;
  std::vector<Index> sizes;
};

/// Returns the shape of the concatenation along dimension `d` (-1: the last). The other dimensions must be
/// equal.
Shape concat_shape(std::span<const Variable> parts, int d, PartLayout& layout) {
  const Shape& first = parts.front().shape();
  require<ShapeError>(first.dims() > 0, "concat of an undefined tensor");
  std::vector<Index> extents;
  for (int i = 0; i < first.dims(); ++i) extents.push_back(first[i]);
  const int at = d < 0 ? first.dims() - 1 : d;
  extents[at] = 0;
  for (const Variable& part : parts) {
    const Shape& shape = part.shape();
    bool fits = shape.dims() == first.dims();
    for (int i = 0; fits && i < first.dims(); ++i) fits = i == at || shape[i] == first[i];
    require<ShapeError>(fits, "concat of shapes ", first, " and ", shape, ": only dimension ", at,
                        " may differ");
    extents[at] += shape[at];
    layout.sizes.push_back(shape[at]);
    layout.gradients.push_back(part.gradient());
  }
  return Shape(extents);
}

/// Zeroes a gradient that is still undefined, before a part of it is added to.
void begin_partial(Tensor& out, bool accumulate) {
  if (!accumulate) out.fill(0);
}

}  // namespace

Variable concat_columns(std::span<const Variable> parts) {
  require<ShapeError>(!parts.empty(), "concat of no tensor");
  PartLayout layout;
  Tensor y(concat_shape(parts, -1, layout));
  Index begin = 0;
  for (Index i = 0; i < std::ssize(parts); ++i) {
    copy_columns(parts[i].value(), 0, y, begin, layout.sizes[i]);
    begin += layout.sizes[i];
  }
  if (!any_recorded(parts)) return y;
  return record(std::move(y), [layout = std::move(layout)](const Tensor& grad) {
    Index first = 0;
    for (Index i = 0; i < std::ssize(layout.sizes); ++i) {
      const Index count = layout.sizes[i];
      if (layout.gradients[i] != nullptr)
        layout.gradients[i]->add(
            [&](Tensor& out, bool accumulate) { copy_columns(grad, first, out, 0, count, accumulate); });
      first += count;
    }
  });
}

Variable concat_rows(std::span<const Variable> parts) {
  require<ShapeError>(!parts.empty(), "concat of no tensor");
  PartLayout layout;
  Tensor y(concat_shape(parts, 0, layout));
  Index begin = 0;
  for (Index i = 0; i < std::ssize(parts); ++i) {
    y.slice_rows(begin, begin + layout.sizes[i]).copy_from(parts[i].value());
    begin += layout.sizes[i];
  }
  if (!any_recorded(parts)) return y;
  return record(std::move(y), [layout = std::move(layout)](const Tensor& grad) {
    Index first = 0;
    for (Index i = 0; i < std::ssize(layout.sizes); ++i) {
      const Index last = first + layout.sizes[i];
      if (layout.gradients[i] != nullptr) layout.gradients[i]->add(grad.slice_rows(first, last));
      first = last;
    }
  });
}

Variable concat_columns(std::initializer_list<Variable> parts) {
  return concat_columns(std::span(parts.begin(), parts.size()));
}
Variable concat_rows(std::initializer_list<Variable> parts) {
  return concat_rows(std::span(parts.begin(), parts.size()));
}

Variable slice_columns(Variable x, Index begin, Index end) {
  require<ShapeError>(x.defined() && 0 <= begin && begin <= end && end <= x.shape()[x.shape().dims() - 1],
                      "columns ", begin, " to ", end, " of a tensor of shape ", x.shape());
  const int dims = x.shape().dims();
  std::array<Index, 4> extents{};
  for (int d = 0; d < dims; ++d) extents[d] = d + 1 < dims ? x.shape()[d] : end - begin;
  Tensor y{Shape(std::span<const Index>(extents.data(), dims))};
  copy_columns(x.value(), begin, y, 0, end - begin);
  if (!recording({&x})) return y;
  return record(std::move(y), [dx = x.gradient(), begin, end](const Tensor& grad) {
    dx->add([&](Tensor& out, bool accumulate) {
      begin_partial(out, accumulate);
      copy_columns(grad, 0, out, begin, end - begin, true);
    });
  });
}

Variable slice_rows(Variable x, Index begin, Index end) {
  if (const auto gathered = gathered_rows(x); gathered && !x.requires_grad())
    return Variable(gathered->slice(begin, end));
  Tensor y = x.value().slice_rows(begin, end);
  if (!recording({&x})) return y;
  return record(std::move(y), [dx = x.gradient(), begin, end](const Tensor& grad) {
    dx->add([&](Tensor& out, bool accumulate) {
      begin_partial(out, accumulate);
      Tensor rows = out.slice_rows(begin, end);
      binary(BinaryOp::add, rows, grad, rows);
    });
  });
}

Variable reshape(Variable x, const Shape& shape) {
  Tensor y = x.value().reshape(shape);
  if (!recording({&x})) return y;
  return record(std::move(y),
                [dx = x.gradient()](const Tensor& grad) { dx->add(grad.reshape(dx->shape())); });
}

Variable gather_rows(Variable x, RowIds ids) {
  require<ShapeError>(x.defined(), "gather_rows of an undefined tensor");
  Tensor y(x.shape().with_rows(ids.size()));
  gather_rows(x.value(), ids.span(), y);
  if (!recording({&x})) return y;
  return record(std::move(y), [dx = x.gradient(), ids = std::move(ids)](const Tensor& grad) {
    dx->add([&](Tensor& out, bool accumulate) {
      begin_partial(out, accumulate);
      scatter_add_rows(grad, ids.span(), out);
    });
  });
}

Variable scatter_add_rows(Variable x, RowIds ids, Index num_rows) {
  require<ShapeError>(x.defined(), "scatter_add_rows of an undefined tensor");
  Tensor y = Tensor::zeros(x.shape().with_rows(num_rows));
  scatter_add_rows(x.value(), ids.span(), y);
  if (!recording({&x})) return y;
  return record(std::move(y), [dx = x.gradient(), ids = std::move(ids)](const Tensor& grad) {
    dx->add([&](Tensor& out, bool accumulate) { gather_rows(grad, ids.span(), out, accumulate); });
  });
}

}}  // namespace sar
