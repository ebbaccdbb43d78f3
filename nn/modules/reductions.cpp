// SPDX-License-Identifier: MIT
#include <sar/autograd/arithmetic.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/autograd/variable.hpp>
#include <sar/comm/exact_sums.hpp>
#include <sar/core/error.hpp>
#include <sar/core/rows/elementwise.hpp>
#include <sar/core/rows/rows.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/nn/modules/reductions.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Returns the sum over the ranks, accumulated in double precision.
Tensor summed(const Communicator& comm, const Tensor& mine) {
  std::vector<double> sums(mine.values().begin(), mine.values().end());
  comm.all_reduce(std::span<double>(sums));
  return Tensor::from(mine.shape(), sums);
}

/// Returns a loss: scale times the sums over all ranks, in the given shape, rounded here. The gradient of x
/// is scale times the gradient of the result, repeated.
Variable loss_of_sums(const Variable& x, const Shape& shape, std::vector<double> sums, double scale) {
  for (double& sum : sums) sum *= scale;
  Tensor total = Tensor::from(shape, sums);
  if (!recording({&x})) return total;
  return record(std::move(total), [dx = x.gradient(), scale](const Tensor& grad) {
    dx->add([&](Tensor& out, bool accumulate) {
      binary(BinaryOp::mul, grad, Tensor::full({1}, static_cast<real>(scale)), out, accumulate);
    });
  });
}

Shape shape_of_sum(const Shape& shape, ReduceDim over, const char* operation) {
  require<ShapeError>(shape.dims() > 0 && over != ReduceDim::columns, operation,
                      " over all ranks: of a tensor of shape ", shape,
                      ", expected ReduceDim::all or ReduceDim::rows of a tensor");
  return summed_shape(shape, over);
}

/// Collective. Returns `width` sums over all ranks: of term(i) for i = j, j + width, ... below n.
template <class Term>
std::vector<double> sums_over_ranks(const Communicator& comm, Index width, Index n, const Term& term) {
  constexpr Index grain = 1 << 14;
  using Sums = std::vector<ExactSum>;
  const Index rows = width == 0 ? 0 : n / width;
  const Sums mine = parallel_reduce(
      rows, std::max<Index>(grain / std::max<Index>(width, 1), 1), Sums(static_cast<std::size_t>(width)),
      [&](Index begin, Index end) {
        Sums sums(static_cast<std::size_t>(width));
        for (Index i = begin; i < end; ++i)
          for (Index j = 0; j < width; ++j) sums[j].add(term(i * width + j));
        return sums;
      },
      [](Sums sums, const Sums& more) {
        for (std::size_t j = 0; j < sums.size(); ++j) sums[j].add(more[j]);
        return sums;
      });
  std::vector<double> totals;
  for (const ExactSum& sum : exact_sum_over_ranks(comm, mine)) totals.push_back(sum.value());
  return totals;
}

/// Returns the sums over all ranks without rounding to `real`: the result must not depend on how the rows are
/// distributed.
std::vector<double> total_of(const Variable& x, const Communicator& comm, const Shape& shape,
                             const char* operation) {
  comm.require_equal(
      CollectiveCall(operation).equal("shape of the result", shape).equal("number of columns", shape[0]));
  const Tensor& rows = x.value();
  const Index width = shape.size();
  return sums_over_ranks(comm, width, rows.size(),
                         [&, values = rows.data()](Index i) { return static_cast<double>(values[i]); });
}

/// Writes the maximum (or minimum) of each element to `result` and returns the lowest rank that has it. NaN
/// wins.
std::vector<std::int32_t> choose(const std::vector<real>& of_ranks, Tensor& result, bool larger) {
  const std::size_t n = static_cast<std::size_t>(result.size());
  std::vector<std::int32_t> rank_of(n, 0);
  real* best = result.data();
  std::copy_n(of_ranks.begin(), n, best);
  for (std::size_t k = n; k < of_ranks.size(); ++k) {
    const std::size_t i = k % n;
    const real value = of_ranks[k];
    if (std::isnan(best[i]) || !(std::isnan(value) || (larger ? value > best[i] : value < best[i]))) continue;
    best[i] = value;
    rank_of[i] = static_cast<std::int32_t>(k / n);
  }
  return rank_of;
}

}  // namespace

Variable sum(const Variable& x, const Communicator& comm, ReduceDim over) {
  return comm.agree([&] {
    const Shape shape = shape_of_sum(x.shape(), over, "sum");
    if (x.is_dual()) return apply_linear(x, [&](const Variable& part) { return sum(part, comm, over); });
    return loss_of_sums(x, shape, total_of(x, comm, shape, "sum"), 1);
  });
}

Variable mean(const Variable& x, const Communicator& comm, ReduceDim over) {
  return comm.agree([&] {
    const Shape shape = shape_of_sum(x.shape(), over, "mean");
    if (x.is_dual()) return apply_linear(x, [&](const Variable& part) { return mean(part, comm, over); });
    const std::vector<double> sums = total_of(x, comm, shape, "mean");
    const Index mine = over == ReduceDim::rows ? x.num_rows() : x.value().size();
    const auto count = static_cast<double>(comm.all_reduce(mine));
    require<InputError>(count > 0, "mean over all ranks of no elements");
    return loss_of_sums(x, shape, sums, 1 / count);
  });
}

Variable dot(const Variable& x, const Variable& y, const Communicator& comm) {
  return comm.agree([&]() -> Variable {
    require<ShapeError>(x.defined() && x.shape() == y.shape(), "dot over all ranks: operands of shapes ",
                        x.shape(), " and ", y.shape(), ", expected the same");
    if (any_dual({&x, &y}))
      return apply_bilinear(x, y, [&](const Variable& a, const Variable& b) { return dot(a, b, comm); });
    const CallScope compared(comm, CollectiveCall("dot"));
    const double sum =
        sums_over_ranks(comm, 1, x.value().size(), [a = x.value().data(), b = y.value().data()](Index i) {
          return static_cast<double>(a[i]) * static_cast<double>(b[i]);
        }).front();
    Tensor total = Tensor::full({1}, static_cast<real>(sum));
    if (!recording({&x, &y})) return total;
    return record(std::move(total), [dx = x.gradient(), dy = y.gradient(),
                                     kept_x = y.requires_grad() ? x.value() : Tensor(),
                                     kept_y = x.requires_grad() ? y.value() : Tensor()](const Tensor& grad) {
      const auto pass = [&](const GradientPtr& to, const Tensor& other) {
        if (to == nullptr) return;
        to->add([&](Tensor& out, bool accumulate) { binary(BinaryOp::mul, other, grad, out, accumulate); });
      };
      pass(dx, kept_y);
      pass(dy, kept_x);
    });
  });
}

Variable sum_of_groups(const Variable& x, const RowIds& groups_of, Index groups, const Communicator& comm) {
  return comm.agree([&]() -> Variable {
    require<ShapeError>(x.defined() && x.shape() == Shape{groups_of.size(), 1}, "sum_of_groups: x of shape ",
                        x.shape(), " for ", groups_of.size(), " groups, expected [", groups_of.size(),
                        ", 1]");
    if (x.is_dual())
      return apply_linear(x,
                          [&](const Variable& part) { return sum_of_groups(part, groups_of, groups, comm); });
    std::vector<ExactSum> mine(static_cast<std::size_t>(groups));
    for (Index i = 0; i < groups_of.size(); ++i) {
      const Index group = groups_of.span()[static_cast<std::size_t>(i)];
      require<ShapeError>(0 <= group && group < groups, "sum_of_groups: row ", i, " is of group ", group,
                          ", expected ", index_range(groups));
      mine[static_cast<std::size_t>(group)].add(static_cast<double>(x.value().data()[i]));
    }
    const CallScope compared(comm, CollectiveCall("sum_of_groups").equal("number of groups", groups));
    Tensor total({groups});
    Index g = 0;
    for (const ExactSum& sum : exact_sum_over_ranks(comm, mine))
      total.data()[g++] = static_cast<real>(sum.value());
    if (!recording({&x})) return total;
    return record(std::move(total), [dx = x.gradient(), groups_of, groups](const Tensor& grad) {
      dx->add([&](Tensor& out, bool accumulate) {
        gather_rows(grad.reshape({groups, 1}), groups_of.span(), out, accumulate);
      });
    });
  });
}

Variable all_reduce(const Variable& x, const Communicator& comm, ReduceOp op) {
  const Variable value = x.primal();
  const bool records = recording({&value});
  return collective(
      comm,
      [&] {
        require<ShapeError>(x.defined(), "all_reduce of an undefined tensor");
        if (op != ReduceOp::sum) refuse_tangents({&x}, "all_reduce");
        return CollectiveCall("all_reduce")
            .equal("operation", op)
            .equal("shape", x.shape())
            .equal("number of rows", x.num_rows())
            .equal("need of a gradient", records);
      },
      [&]() -> Variable {
        if (x.is_dual())
          return apply_linear(x, [&](const Variable& part) { return all_reduce(part, comm, op); });
        if (op == ReduceOp::sum) {
          Tensor y = summed(comm, x.value());
          if (!records) return y;
          return record_collective(comm, std::move(y), [dx = x.gradient(), comm](const Tensor& grad) {
            dx->add(summed(comm, grad));
          });
        }
        Tensor y(x.shape());
        const std::vector<real> all = comm.all_gather(std::as_const(x.value()).values());
        const std::vector<std::int32_t> rank_of = choose(all, y, op == ReduceOp::max);
        if (!records) return y;
        return record_collective(comm, std::move(y), [dx = x.gradient(), comm, rank_of](const Tensor& grad) {
          Tensor mine = summed(comm, grad);
          for (Index i = 0; i < mine.size(); ++i)
            if (rank_of[static_cast<std::size_t>(i)] != comm.rank()) mine.data()[i] = 0;
          dx->add(std::move(mine));
        });
      });
}

}}  // namespace sar
