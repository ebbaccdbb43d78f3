// Forward reads x twice (statistics, values) and writes y. Backward reads x and the gradient, writes the
// gradient before the activation over it while taking its sums, then reads both again and writes dx:
// everything in the memory of the incoming gradient when nobody else holds that.
#include <sar/autograd/tape.hpp>
#include <sar/core/dropout.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory.hpp>
#include <sar/core/parallel.hpp>
#include <sar/core/reduce.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/nn/batch_norm.hpp>
#include <sar/nn/column_moments.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace sar {
namespace {

/// Rows that a kernel takes at once: what it reads and writes of them stays in the second-level cache.
Index rows_at_once(Index columns) {
  return std::max<Index>(1, (1 << 14) / columns);
}

ColumnMoments merge_over_ranks(const Communicator& comm, const ColumnMoments& mine) {
  std::vector<double> packed{mine.count};
  packed.insert(packed.end(), mine.mean.begin(), mine.mean.end());
  packed.insert(packed.end(), mine.m2.begin(), mine.m2.end());
  const std::vector<double> all = comm.all_gather(std::span<const double>(packed));

  const std::size_t columns = mine.mean.size();
  ColumnMoments total{0, std::vector<double>(columns), std::vector<double>(columns)};
  for (auto rank = all.begin(); rank != all.end(); rank += static_cast<std::ptrdiff_t>(packed.size())) {
    const auto mean = rank + 1;
    const auto m2 = mean + static_cast<std::ptrdiff_t>(columns);
    const auto end = m2 + static_cast<std::ptrdiff_t>(columns);
    total.merge({*rank, {mean, m2}, {m2, end}});
  }
  return total;
}

}  // namespace

/// Per column: with d = x - center, xhat = d * inv_std + xhat_shift and y = d * scale + shift. The center is
/// the mean rounded to `real`, so that d is exact for x near the mean; the shifts hold the rounding error.
struct DistributedBN1D::Coefficients {
  std::vector<real> center, inv_std, xhat_shift, scale, shift;
  double count = 0;  // rows that the statistics come from; 0: they are constants (evaluation)
  bool over_ranks = false;

  explicit Coefficients(std::size_t columns)
      : center(columns), inv_std(columns), xhat_shift(columns), scale(columns), shift(columns) {}

  void set(std::size_t j, double mean, double var, double eps, double weight, double bias) {
    const double inverse = 1 / std::sqrt(var + eps);
    center[j] = static_cast<real>(mean);
    const double rounded_off = mean - static_cast<double>(center[j]);
    inv_std[j] = static_cast<real>(inverse);
    xhat_shift[j] = static_cast<real>(-rounded_off * inverse);
    scale[j] = static_cast<real>(inverse * weight);
    shift[j] = static_cast<real>(bias - rounded_off * inverse * weight);
  }
};

/// What follows the normalization in the same operation: nothing, or ReLU and dropout.
struct DistributedBN1D::Activation {
  bool relu = false;
  std::optional<DropoutMask> mask;
  RowIds row_ids = {};

  /// The mask's factors of rows [begin, end).
  void draw(Index begin, Index end, Index columns, Array<real>& factors) const {
    factors.resize((end - begin) * columns);
    mask->factors(row_ids.span().subspan(begin, end - begin), columns, factors.data());
  }
};

DistributedBN1D::DistributedBN1D(Index num_features, const Communicator& comm,
                                 const BatchNormOptions& options)
    : comm_(comm), options_(options) {
  require<InputError>(num_features > 0 && options.eps >= 0 && options.momentum >= 0 && options.momentum <= 1,
                      "DistributedBN1D of ", num_features, " features with eps ", options.eps,
                      " and momentum ", options.momentum);
  if (options.affine) {
    weight_ = Variable(Tensor::full({num_features}, 1), true);
    bias_ = Variable(Tensor::zeros({num_features}), true);
    register_parameter("weight", weight_);
    register_parameter("bias", bias_);
  }
  running_mean_ = Tensor::zeros({num_features});
  running_var_ = Tensor::full({num_features}, 1);
  register_buffer("running_mean", running_mean_);
  register_buffer("running_var", running_var_);
  register_counter("num_batches_tracked", num_batches_tracked_, /*in_state_dict=*/true);
}

DistributedBN1D::Coefficients DistributedBN1D::coefficients(const Tensor& x,
                                                            std::optional<ColumnMoments>& seen) const {
  const auto columns = static_cast<std::size_t>(running_mean_.size());
  Coefficients c(columns);
  const auto set = [&](std::size_t j, double mean, double var) {
    c.set(j, mean, var, options_.eps, weight_.defined() ? weight_.value().data()[j] : 1,
          bias_.defined() ? bias_.value().data()[j] : 0);
  };
  if (!is_training()) {
    for (std::size_t j = 0; j < columns; ++j) set(j, running_mean_.data()[j], running_var_.data()[j]);
    return c;
  }

  ColumnMoments moments = column_moments(x);
  if (!options_.local) {
    moments = merge_over_ranks(comm_, moments);
    require<InputError>(moments.count >= 2,
                        "batch norm in training needs two rows at least; all ranks together have ",
                        moments.count);
  }
  c.count = std::max(moments.count, 1.0);
  c.over_ranks = !options_.local;
  for (std::size_t j = 0; j < columns; ++j) set(j, moments.mean[j], moments.m2[j] / c.count);
  seen = std::move(moments);
  return c;
}

void DistributedBN1D::track(const ColumnMoments& moments) {
  if (moments.count < 2) return;
  const auto move_to = [&](real& running, double value) {
    running = static_cast<real>((1 - options_.momentum) * running + options_.momentum * value);
  };
  for (std::size_t j = 0; j < moments.mean.size(); ++j) {
    move_to(running_mean_.data()[j], moments.mean[j]);
    move_to(running_var_.data()[j], moments.m2[j] / (moments.count - 1));
  }
  ++num_batches_tracked_;
}

// Running statistics move when no rank can fail any more, so that they stay the same on all.
Variable DistributedBN1D::apply(Variable x, const Activation& activation) {
  std::optional<ColumnMoments> seen;
  const auto normalize = [&] { return normalized(std::move(x), activation, seen); };
  Variable y = is_training() && !options_.local ? comm_.agree(normalize) : normalize();
  if (seen) track(*seen);
  return y;
}

Variable DistributedBN1D::normalized(Variable x, const Activation& activation,
                                     std::optional<ColumnMoments>& seen) const {
  const Index columns = running_mean_.size();
  require<ShapeError>(x.shape().dims() == 2 && x.value().row_size() == columns, "batch norm of ", columns,
                      " features got a tensor of shape ", x.shape());
  require<ShapeError>(!activation.mask || activation.row_ids.size() == x.num_rows(), "dropout of ",
                      x.num_rows(), " rows with ", activation.row_ids.size(), " row ids");
  const bool records = recording({&x, &weight_, &bias_});
  const GradientPtr to_x = x.gradient();
  Tensor input = std::exchange(x.value(), Tensor());
  const Coefficients c = coefficients(input, seen);

  Tensor y = !records && input.unique() ? input : Tensor(input.shape());
  parallel_for(input.num_rows(), rows_at_once(columns), [&](Index begin, Index end) {
    Array<real> factors;
    if (activation.mask) activation.draw(begin, end, columns, factors);
    for (Index i = begin; i < end; ++i) {
      const real* from = input.row(i);
      real* to = y.row(i);
      for (Index j = 0; j < columns; ++j) to[j] = (from[j] - c.center[j]) * c.scale[j] + c.shift[j];
      if (activation.relu)
        for (Index j = 0; j < columns; ++j) to[j] = to[j] < 0 ? 0 : to[j];
      if (activation.mask) {
        const real* factor = factors.data() + (i - begin) * columns;
        for (Index j = 0; j < columns; ++j) to[j] *= factor[j];
      }
    }
  });
  if (!records) return y;

  const auto backward = [input, c, activation, columns, to_x, to_weight = weight_.gradient(),
                         to_bias = bias_.gradient(), comm = comm_](Tensor grad) {
    const auto width = static_cast<std::size_t>(columns);
    // g: gradient before the activation, and its sums over the rows: of g, then of g * xhat
    Tensor g = grad.unique() || !activation.relu ? grad : Tensor(grad.shape());
    std::vector<double> sums(2 * width);
    sum_row_blocks(
        input.num_rows(), 4 * columns,
        [&](Index block_begin, Index block_end, double* sum_g) {
          double* sum_gx = sum_g + columns;
          Array<real> factors;
          for (Index begin = block_begin; begin < block_end; begin += rows_at_once(columns)) {
            const Index end = std::min(block_end, begin + rows_at_once(columns));
            if (activation.mask) activation.draw(begin, end, columns, factors);
            for (Index i = begin; i < end; ++i) {
              const real* from = input.row(i);
              real* to = g.row(i);
              if (activation.relu) {
                const real* incoming = grad.row(i);
                for (Index j = 0; j < columns; ++j)
                  to[j] = (from[j] - c.center[j]) * c.scale[j] + c.shift[j] > 0 ? incoming[j] : 0;
              }
              if (activation.mask) {
                const real* factor = factors.data() + (i - begin) * columns;
                for (Index j = 0; j < columns; ++j) to[j] *= factor[j];
              }
              for (Index j = 0; j < columns; ++j) {
                sum_g[j] += to[j];
                sum_gx[j] +=
                    static_cast<double>(to[j]) * ((from[j] - c.center[j]) * c.inv_std[j] + c.xhat_shift[j]);
              }
            }
          }
        },
        sums);
    grad = Tensor();
    const auto send_sums = [&](const GradientPtr& gradient, const double* sum) {
      if (gradient == nullptr) return;
      Tensor values({columns});
      std::transform(sum, sum + columns, values.data(), [](double s) { return static_cast<real>(s); });
      gradient->add(std::move(values));
    };
    send_sums(to_bias, sums.data());
    send_sums(to_weight, sums.data() + width);
    if (to_x == nullptr) return;

    // dx = scale (g - mean g - xhat mean(g xhat)), the means over the rows that the statistics came from;
    // without statistics (evaluation) the means are absent.
    if (c.over_ranks) comm.all_reduce(std::span<double>(sums));
    std::vector<real> mean_g(width), mean_gx(width);
    if (c.count > 0)
      for (std::size_t j = 0; j < width; ++j) {
        mean_g[j] = static_cast<real>(sums[j] / c.count);
        mean_gx[j] = static_cast<real>(sums[width + j] / c.count);
      }
    Tensor dx = g.unique() ? g : Tensor(g.shape());
    parallel_for(input.num_rows(), rows_at_once(columns), [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        const real* from = input.row(i);
        const real* before = g.row(i);
        real* to = dx.row(i);
        for (Index j = 0; j < columns; ++j) {
          const real xhat = (from[j] - c.center[j]) * c.inv_std[j] + c.xhat_shift[j];
          to[j] = c.scale[j] * (before[j] - mean_g[j] - xhat * mean_gx[j]);
        }
      }
    });
    g = Tensor();
    to_x->add(std::move(dx));
  };
  return c.over_ranks ? record_collective(comm_, std::move(y), backward) : record(std::move(y), backward);
}

Variable DistributedBN1D::operator()(Variable x) {
  return apply(std::move(x), {});
}

Variable batch_norm_relu_dropout(Variable x, DistributedBN1D& norm, Dropout& dropout, RowIds row_ids) {
  DistributedBN1D::Activation activation;
  activation.relu = true;
  if (dropout.is_active()) {
    activation.mask.emplace(dropout.next_call(), dropout.p());
    activation.row_ids = std::move(row_ids);
  }
  return norm.apply(std::move(x), activation);
}

}  // namespace sar
