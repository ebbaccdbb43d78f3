#include <sar/autograd/tape.hpp>
#include <sar/core/elementwise.hpp>
#include <sar/core/error.hpp>
#include <sar/core/reduce.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/nn/reductions.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace sar::inline SAR_PRECISION {
namespace {

/// The sum over the ranks, in double precision.
Tensor summed(const Communicator& comm, const Tensor& mine) {
  std::vector<double> sums(mine.values().begin(), mine.values().end());
  comm.all_reduce(std::span<double>(sums));
  Tensor result(mine.shape());
  std::transform(sums.begin(), sums.end(), result.data(), [](double s) { return static_cast<real>(s); });
  return result;
}

/// scale times the sum over the rows of all ranks, where `share` is that of this rank's rows; a loss. The
/// gradient of x is scale times that of the result, repeated.
Variable loss_of_sums(const Variable& x, Tensor total, double scale) {
  if (scale != 1) scale_shift(total, static_cast<real>(scale), 0, total);
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
  if (over == ReduceDim::all || shape.dims() == 1) return {1};
  std::vector<Index> extents;
  for (int d = 1; d < shape.dims(); ++d) extents.push_back(shape[d]);
  return Shape(extents);
}

/// This rank's part, and the sum of all.
Tensor total_of(const Variable& x, const Communicator& comm, ReduceDim over, const char* operation) {
  Tensor mine(shape_of_sum(x.shape(), over, operation));
  sum_to(x.value(), mine);
  CollectiveCall(operation)
      .equal("shape of the result", mine.shape())
      .equal("number of columns", mine.num_rows())
      .require_equal(comm);
  return summed(comm, mine);
}

/// For each element the rank whose value is the result: the lowest that has the largest (smallest), or NaN.
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
  return comm.agree([&] { return loss_of_sums(x, total_of(x, comm, over, "sum"), 1); });
}

Variable mean(const Variable& x, const Communicator& comm, ReduceDim over) {
  return comm.agree([&] {
    Tensor total = total_of(x, comm, over, "mean");
    const Index mine = over == ReduceDim::rows ? x.num_rows() : x.value().size();
    const auto count = static_cast<double>(comm.all_reduce(mine));
    require<InputError>(count > 0, "mean over all ranks of no elements");
    return loss_of_sums(x, std::move(total), 1 / count);
  });
}

Variable dot(const Variable& x, const Variable& y, const Communicator& comm) {
  return comm.agree([&]() -> Variable {
    require<ShapeError>(x.defined() && x.shape() == y.shape(), "dot over all ranks: operands of shapes ",
                        x.shape(), " and ", y.shape(), ", expected the same");
    Tensor total({1});
    sum_products_to(x.value(), y.value(), total);
    total = summed(comm, total);
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

Variable all_reduce(const Variable& x, const Communicator& comm, ReduceOp op) {
  const bool records = recording({&x});
  return collective(
      comm,
      [&] {
        require<ShapeError>(x.defined(), "all_reduce of an undefined tensor");
        return CollectiveCall("all_reduce")
            .equal("operation", op)
            .equal("shape", x.shape())
            .equal("number of rows", x.num_rows())
            .equal("need of a gradient", records);
      },
      [&]() -> Variable {
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

}  // namespace sar
