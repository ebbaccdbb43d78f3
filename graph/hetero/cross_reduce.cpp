// SPDX-License-Identifier: MIT

// Each result is read once, when it arrives, and reduced into one tensor in parallel blocks of 2^14
// elements; max and min also write 2 bytes per element. The backward pass of max, min and stack reads the
// gradient once for each of the R relations.
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/hetero/cross_reduce.hpp>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr Index grain = Index{1} << 14;

/// Returns the shape [nodes, R, ...] for results of this shape.
Shape stacked(const Shape& shape, std::size_t relations) {
  std::vector<Index> extents{shape[0], static_cast<Index>(relations)};
  for (int d = 1; d < shape.dims(); ++d) extents.push_back(shape[d]);
  return Shape(extents);
}

/// Calls body(node) for all nodes.
template <class Body>
void for_rows(const Shape& shape, const Body& body) {
  parallel_for_each(shape[0], std::max<Index>(grain / std::max<Index>(shape.row_size(), 1), 1), body);
}

}  // namespace

void CrossReducer::take(std::size_t k, Variable y) {
  require<ShapeError>(shape_.dims() == 0 || y.shape() == shape_, "relations give results of shapes ", shape_,
                      " and ", y.shape(), " for the same nodes");
  shape_ = y.shape();
  if (op_ == CrossReduce::sum || op_ == CrossReduce::mean) {
    sum_ = sum_.defined() ? add(std::exchange(sum_, {}), std::move(y)) : std::move(y);
    return;
  }
  refuse_tangents({&y}, "CrossReducer");
  gradients_.resize(num_relations_);
  if (Tape::current() != nullptr) gradients_[k] = y.gradient();
  if (op_ == CrossReduce::stack)
    take_row(k, y);
  else
    take_extremum(k, std::move(y));
}

void CrossReducer::take_extremum(std::size_t k, Variable y) {
  require<InputError>(k <= std::numeric_limits<std::uint16_t>::max(), num_relations_,
                      " relations into one node type are reduced by max or min, at most 65536 are possible");
  const auto number = static_cast<std::uint16_t>(k);
  Tensor value = y.value();
  y = Variable();
  if (!out_.defined()) {
    out_ = value.unique() ? std::move(value) : value.clone();
    from_.assign(static_cast<std::size_t>(out_.size()), number);
    return;
  }
  const bool max = op_ == CrossReduce::max;
  parallel_for(out_.size(), grain, [&](Index first, Index last) {
    const real* x = std::as_const(value).data();
    real* best = out_.data();
    for (Index i = first; i < last; ++i) {
      const bool is_nan = x[i] != x[i], was_nan = best[i] != best[i];
      const bool better = is_nan ? !was_nan : max ? x[i] > best[i] : x[i] < best[i];
      const bool same = is_nan ? was_nan : x[i] == best[i];
      if (!better && !(same && number < from_[i])) continue;
      best[i] = x[i];
      from_[i] = number;
    }
  });
}

void CrossReducer::take_row(std::size_t k, const Variable& y) {
  if (!out_.defined()) out_ = Tensor(stacked(shape_, num_relations_));
  const Index width = shape_.row_size();
  const Tensor value = y.value();
  for_rows(shape_,
           [&](Index i) { std::copy_n(value.row(i), width, out_.row(i) + static_cast<Index>(k) * width); });
}

Variable CrossReducer::result() {
  if (op_ == CrossReduce::sum) return std::exchange(sum_, {});
  if (op_ == CrossReduce::mean)
    return num_relations_ == 1 ? std::exchange(sum_, {})
                               : std::exchange(sum_, {}) * (real{1} / static_cast<real>(num_relations_));
  Tensor out = std::exchange(out_, {});
  if (std::ranges::none_of(gradients_, [](const auto& each) { return each != nullptr; })) return out;
  const Index width = shape_.row_size();
  if (op_ == CrossReduce::stack)
    return record(std::move(out), [=, gradients = std::move(gradients_), shape = shape_](const Tensor& grad) {
      for (std::size_t k = 0; k < gradients.size(); ++k) {
        if (gradients[k] == nullptr) continue;
        gradients[k]->add([&](Tensor& sum, bool accumulate) {
          for_rows(shape, [&](Index i) {
            const real* from = grad.row(i) + static_cast<Index>(k) * width;
            for (Index j = 0; j < width; ++j) sum.row(i)[j] = (accumulate ? sum.row(i)[j] : 0) + from[j];
          });
        });
      }
    });
  const auto from = std::make_shared<const Array<std::uint16_t>>(std::move(from_));
  return record(std::move(out), [from, gradients = std::move(gradients_)](const Tensor& grad) {
    for (std::size_t k = 0; k < gradients.size(); ++k) {
      if (gradients[k] == nullptr) continue;
      gradients[k]->add([&](Tensor& sum, bool accumulate) {
        parallel_for_each(sum.size(), grain, [&](Index i) {
          sum.data()[i] = (accumulate ? sum.data()[i] : 0) + ((*from)[i] == k ? grad.data()[i] : 0);
        });
      });
    }
  });
}

}}  // namespace sar
