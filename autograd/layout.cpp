// SPDX-License-Identifier: MIT

// Copies and gathers move each element once; slices of rows and reshape() share memory. gather_rows() and
// scatter_add_rows() are the backward passes of each other. The gradient of a part of x is added to the
// whole gradient of x: if it is the first, all rows are set to zero before. A slice of all rows is x itself,
// except in a ReproducibleScope: whether it has all rows depends on the rank, and without a record of the
// slice, the gradient of x would be added in another order there.
#include <sar/autograd/layout.hpp>
#include <sar/autograd/op_support.hpp>
#include <sar/autograd/sparse_variable.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/rows/elementwise.hpp>
#include <sar/core/rows/rows.hpp>
#include <sar/core/threads/rank_sums.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

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

/// Columns [from, from + count) of x to columns [at, at + count) of y, which keeps the others.
void copy_typed_columns(const TypedRows& x, Index from, TypedRows& y, Index at, Index count,
                        bool accumulate = false) {
  const bool keep = accumulate || count < y.row_size();
  on_real_rows(y, keep, [&](Index first, Tensor& rows) {
    copy_columns(real_rows(x, first, first + rows.num_rows()), from, rows, at, count, accumulate);
  });
}

/// Returns the concatenation along dimension `d`, in bfloat16 if all parts are: copy(part, y, begin, count)
/// writes a part, pass(gradient of the part, grad, begin, count) adds to its gradient.
template <class Copy, class Pass>
Variable concatenate(std::span<const Variable> parts, int d, const Copy& copy, Pass pass) {
  require<ShapeError>(!parts.empty(), "concat of no tensor");
  PartLayout layout;
  const bool small =
      std::ranges::all_of(parts, [](const Variable& part) { return part.type() == NumberType::bfloat16; });
  TypedRows y(concat_shape(parts, d, layout), small ? NumberType::bfloat16 : NumberType::reals);
  Index begin = 0;
  for (Index i = 0; i < std::ssize(parts); ++i) {
    copy(parts[i].rows(), y, begin, layout.sizes[i]);
    begin += layout.sizes[i];
  }
  if (std::ranges::none_of(parts, [](const Variable& part) { return recording({&part}); })) return y;
  return record(std::move(y), [layout = std::move(layout), pass](const TypedRows& grad) {
    Index first = 0;
    for (Index i = 0; i < std::ssize(layout.sizes); ++i) {
      if (layout.gradients[i] != nullptr) pass(*layout.gradients[i], grad, first, layout.sizes[i]);
      first += layout.sizes[i];
    }
  });
}

/// Returns rows [begin, end) of x, of any type.
Variable record_rows(const Variable& x, Index begin, Index end) {
  TypedRows y = x.rows().slice_rows(begin, end);
  if (!recording({&x})) return y;
  return record(std::move(y), [dx = x.gradient(), begin, end](const TypedRows& grad) {
    dx->add_rows([&](TypedRows& out, bool accumulate) {
      if (!accumulate) out.set_zero();
      TypedRows rows = out.slice_rows(begin, end);
      add_rows(grad, rows);
    });
  });
}

/// Returns y, computed from parts of x; add(grad, out) adds to these parts of the gradient of x.
template <class Add>
Variable record_part(const Variable& x, Tensor y, Add add) {
  if (!recording({&x})) return y;
  return record(std::move(y), [dx = x.gradient(), add = std::move(add)](const Tensor& grad) {
    dx->add([&](Tensor& out, bool accumulate) {
      if (!accumulate) out.fill(0);
      add(grad, out);
    });
  });
}

/// Concatenates the values and the tangents, with zeros for constants.
template <class Concat>
Variable concatenate_duals(std::span<const Variable> parts, const Concat& concat) {
  std::vector<Variable> values, tangents;
  for (const Variable& part : parts) {
    values.push_back(part.primal());
    tangents.push_back(tangent_or_zeros(part));
  }
  return make_dual(concat(values), concat(tangents));
}

Variable concat_columns_of(const std::vector<Variable>& parts) {
  return concat_columns(std::span(parts));
}
Variable concat_rows_of(const std::vector<Variable>& parts) {
  return concat_rows(std::span(parts));
}

}  // namespace

Variable concat_columns(std::span<const Variable> parts) {
  if (std::ranges::any_of(parts, &Variable::is_dual)) return concatenate_duals(parts, concat_columns_of);
  return concatenate(
      parts, -1,
      [](const TypedRows& part, TypedRows& y, Index begin, Index count) {
        copy_typed_columns(part, 0, y, begin, count);
      },
      [](Gradient& to, const TypedRows& grad, Index begin, Index count) {
        to.add_rows([&](TypedRows& out, bool accumulate) {
          copy_typed_columns(grad, begin, out, 0, count, accumulate);
        });
      });
}

Variable concat_rows(std::span<const Variable> parts) {
  if (std::ranges::any_of(parts, &Variable::is_dual)) return concatenate_duals(parts, concat_rows_of);
  std::vector<std::shared_ptr<const SparseMatrix>> sparse;
  for (const Variable& part : parts) sparse.push_back(sparse_matrix(part));
  if (!sparse.empty() && std::ranges::find(sparse, nullptr) == sparse.end()) return concat_sparse(sparse);
  return concatenate(
      parts, 0,
      [](const TypedRows& part, TypedRows& y, Index begin, Index count) {
        TypedRows rows = y.slice_rows(begin, begin + count);
        add_rows(part, rows, false);
      },
      [](Gradient& to, const TypedRows& grad, Index begin, Index count) {
        to.add(grad.slice_rows(begin, begin + count));
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
  if (x.is_dual())
    return apply_linear(x, [&](Variable part) { return slice_columns(std::move(part), begin, end); });
  TypedRows y(with_columns(x.shape(), end - begin), x.type());
  copy_typed_columns(x.rows(), begin, y, 0, end - begin);
  if (!recording({&x})) return y;
  return record(std::move(y), [dx = x.gradient(), begin, end](const TypedRows& grad) {
    dx->add_rows([&](TypedRows& out, bool accumulate) {
      if (!accumulate) out.set_zero();
      copy_typed_columns(grad, 0, out, begin, end - begin, true);
    });
  });
}

Variable slice_rows(Variable x, Index begin, Index end) {
  const bool is_whole = x.defined() && begin == 0 && end == x.num_rows();
  if (is_whole && (rank_sums() == nullptr || !x.requires_grad())) return x;
  if (x.is_dual())
    return apply_linear(x, [&](Variable part) { return slice_rows(std::move(part), begin, end); });
  if (const auto gathered = gathered_rows(x); gathered && !x.requires_grad())
    return Variable(gathered->slice(begin, end));
  if (const auto sparse = sparse_matrix(x)) return Variable(sparse->slice(begin, end));
  return record_rows(x, begin, end);
}

Variable reshape(Variable x, const Shape& shape) {
  if (x.is_dual()) return apply_linear(x, [&](Variable part) { return reshape(std::move(part), shape); });
  TypedRows y = x.rows().reshape(shape);
  if (!recording({&x})) return y;
  return record(
      std::move(y), [dx = x.gradient()](const TypedRows& grad) { dx->add(grad.reshape(dx->shape())); },
      Tape::ExactSums::taken);
}

Variable gather_rows(Variable x, RowIds ids) {
  require<ShapeError>(x.defined(), "gather_rows of an undefined tensor");
  if (x.is_dual()) return apply_linear(x, [&](Variable part) { return gather_rows(std::move(part), ids); });
  if (const auto sparse = sparse_matrix(x)) return Variable(sparse->gather(ids.span()));
  Tensor y(x.shape().with_rows(ids.size()));
  gather_rows(x.value(), ids.span(), y);
  return record_part(x, std::move(y), [ids = std::move(ids)](const Tensor& grad, Tensor& out) {
    scatter_add_rows(grad, ids.span(), out);
  });
}

Variable scatter_add_rows(Variable x, RowIds ids, Index num_rows) {
  require<ShapeError>(x.defined(), "scatter_add_rows of an undefined tensor");
  if (x.is_dual())
    return apply_linear(x, [&](Variable part) { return scatter_add_rows(std::move(part), ids, num_rows); });
  Tensor y = Tensor::zeros(x.shape().with_rows(num_rows));
  scatter_add_rows(x.value(), ids.span(), y);
  if (!recording({&x})) return y;
  return record(std::move(y), [dx = x.gradient(), ids = std::move(ids)](const Tensor& grad) {
    dx->add([&](Tensor& out, bool accumulate) { gather_rows(grad, ids.span(), out, accumulate); });
  });
}

}}  // namespace sar
