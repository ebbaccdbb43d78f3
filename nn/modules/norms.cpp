// SPDX-License-Identifier: MIT

// Memory traffic: the forward pass reads x twice (statistics, values) and writes y. The backward pass reads x
// and the gradient twice (sums, values) and writes dx, in place of the gradient if nothing else holds it.
#include <sar/autograd/op_support.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/error.hpp>
#include <sar/core/products/exact_product.hpp>
#include <sar/core/rows/batch_norm.hpp>
#include <sar/core/tensor/deferred_rows.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/nn/modules/norms.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

namespace {

/// Collective. Returns the moments of the rows of all ranks, merged in rank order, with the same bits on
/// every rank. Each rank merges its share of the columns and sends the result to the other ranks, so that a
/// rank holds 4 values per column and one per rank.
ColumnMoments merge_over_ranks(const Communicator& comm, const ColumnMoments& mine) {
  return comm.agree([&] {
    const auto columns = static_cast<Index>(mine.mean.size());
    const PartitionBook shares = PartitionBook::even(columns, comm.size());
    std::vector<double> packed;  // for each rank: count, means and second moments of its columns
    std::vector<Index> counts;
    for (int q = 0; q < comm.size(); ++q) {
      packed.push_back(mine.count);
      for (const std::vector<double>* numbers : {&mine.mean, &mine.m2})
        packed.insert(packed.end(), numbers->begin() + shares.begin(q), numbers->begin() + shares.end(q));
      counts.push_back(1 + 2 * shares.num_nodes(q));
    }
    const Index width = shares.num_nodes(comm.rank());
    const std::vector<Index> arriving(counts.size(), 1 + 2 * width);
    const std::vector<double> arrived = comm.all_to_all_v(std::span<const double>(packed), counts, arriving);
    ColumnMoments share{0, std::vector<double>(width), std::vector<double>(width)};
    for (auto from = arrived.begin(); from != arrived.end(); from += 1 + 2 * width)
      share.merge({*from, {from + 1, from + 1 + width}, {from + 1 + width, from + 1 + 2 * width}});
    share.mean.insert(share.mean.end(), share.m2.begin(), share.m2.end());
    const std::vector<double> merged = comm.all_gather(std::span<const double>(share.mean));
    ColumnMoments total{share.count, {}, {}};
    auto from = merged.begin();
    for (int q = 0; q < comm.size(); ++q)
      for (std::vector<double>* numbers : {&total.mean, &total.m2}) {
        numbers->insert(numbers->end(), from, from + shares.num_nodes(q));
        from += shares.num_nodes(q);
      }
    return total;
  });
}

Tensor rounded(std::span<const double> sums) {
  Tensor values({std::ssize(sums)});
  std::transform(sums.begin(), sums.end(), values.data(), [](double s) { return static_cast<real>(s); });
  return values;
}

/// Rows that are computed when they are added up.
template <class Compute>
class ComputedRows final : public DeferredRows {
 public:
  ComputedRows(const Shape& shape, const Compute& compute) : DeferredRows(shape), compute_(compute) {}
  void compute(Index first, Index count, real* out) const override { compute_(first, count, out); }

 private:
  const Compute& compute_;
};

/// Collective, in RankSums::agree. The moments of the rows of all ranks: the means, then the squared
/// deviations from them.
ColumnMoments exact_moments(const RankSums& ranks, const Tensor& x) {
  const Index columns = x.row_size();
  double count = static_cast<double>(x.num_rows());
  ranks.sum({&count, 1});
  ColumnMoments moments{count, exact_column_sums(ranks, RowOperand(x)), {}};
  for (double& mean : moments.mean) mean /= std::max(count, 1.0);
  // squares in double precision: those of small and of large numbers are no real
  std::vector<ExactSum> squares(static_cast<std::size_t>(columns));
  std::mutex mutex;
  parallel_for(x.num_rows(), 1024, [&](Index begin, Index end) {
    std::vector<ExactSum> mine(squares.size());
    for (Index i = begin; i < end; ++i)
      for (Index j = 0; j < columns; ++j) {
        const double deviation = static_cast<double>(x.row(i)[j]) - moments.mean[j];
        mine[j].add(deviation * deviation);
      }
    const std::lock_guard lock(mutex);
    for (Index j = 0; j < columns; ++j) squares[j].add(mine[j]);
  });
  ranks.sum(std::span(squares));
  for (const ExactSum& sum : squares) moments.m2.push_back(sum.value());
  return moments;
}

}  // namespace

/// The coefficients of a call.
struct DistributedBN1D::Statistics {
  BatchNormCoefficients coefficients;
  double count = 0;  // number of rows in the statistics; 0: constant statistics (evaluation)
  bool over_ranks = false;
};

/// What the tape keeps of a call.
struct DistributedBN1D::Call {
  TypedRows x;
  Statistics statistics;
  NormActivation activation;
};

/// The deferred result of a call, computed from x when it is read.
class DistributedBN1D::Rows : public DeferredRows {
 public:
  explicit Rows(std::shared_ptr<const Call> call)
      : DeferredRows(call->x.shape(), type_of_results()), call_(std::move(call)) {}
  void compute(Index first, Index count, real* out) const override {
    batch_norm_rows(call_->x, call_->statistics.coefficients, call_->activation, first, count, out);
  }
  void compute_rounded(Index first, Index count, Bfloat16* out) const override {
    batch_norm_rows(call_->x, call_->statistics.coefficients, call_->activation, first, count, out);
  }
  [[nodiscard]] std::span<const std::byte> reads(Index first, Index count) const override {
    const Index width = call_->x.row_size();
    return {static_cast<const std::byte*>(call_->x.at(first * width)),
            static_cast<std::size_t>(count * width * bytes_of(call_->x.type()))};
  }

 private:
  std::shared_ptr<const Call> call_;
};

DistributedBN1D::DistributedBN1D(Index num_features, const Communicator& comm,
                                 const BatchNormOptions& options)
    : comm_(comm), options_(options) {
  require<InputError>(num_features > 0 && options.eps >= 0 && options.momentum >= 0 && options.momentum <= 1,
                      "DistributedBN1D of ", num_features, " features with eps ", options.eps,
                      " and momentum ", options.momentum);
  if (options.affine) {
    register_parameter("weight", weight_, Tensor::full({num_features}, 1));
    register_parameter("bias", bias_, Tensor::zeros({num_features}));
  }
  running_mean_ = Tensor::zeros({num_features});
  running_var_ = Tensor::full({num_features}, 1);
  register_buffer("running_mean", running_mean_);
  register_buffer("running_var", running_var_);
  register_counter("num_batches_tracked", num_batches_tracked_, /*in_state_dict=*/true);
}

DistributedBN1D::Statistics DistributedBN1D::statistics(const TypedRows& x) {
  const Index columns = running_mean_.size();
  Statistics s{BatchNormCoefficients(columns)};
  const auto set = [&](Index j, double mean, double var) {
    s.coefficients.set(j, mean, var, options_.eps, weight_.defined() ? weight_.value().data()[j] : 1,
                       bias_.defined() ? bias_.value().data()[j] : 0);
  };
  if (!is_training()) {
    for (Index j = 0; j < columns; ++j) set(j, running_mean_.data()[j], running_var_.data()[j]);
    return s;
  }

  const RankSumsPtr& ranks = rank_sums();
  const bool exact = ranks != nullptr && !options_.local;
  ColumnMoments moments;
  if (exact)
    ranks->agree([&] { moments = exact_moments(*ranks, x.to_tensor()); });
  else
    moments = column_moments(x);
  if (!options_.local) {
    if (!exact) moments = merge_over_ranks(comm_, moments);
    require<InputError>(moments.count >= 2,
                        "batch norm in training needs two rows at least; all ranks together have ",
                        moments.count);
  }
  s.count = std::max(moments.count, 1.0);
  s.over_ranks = !options_.local;
  for (Index j = 0; j < columns; ++j) set(j, moments.mean[j], moments.m2[j] / s.count);
  track(moments);
  return s;
}

void DistributedBN1D::track(const ColumnMoments& moments) {
  if (moments.count < 2) return;
  running_mean_.save();
  running_var_.save();
  const auto move_to = [&](real& running, double value) {
    running = static_cast<real>((1 - options_.momentum) * running + options_.momentum * value);
  };
  for (Index j = 0; j < std::ssize(moments.mean); ++j) {
    move_to(running_mean_.data()[j], moments.mean[j]);
    move_to(running_var_.data()[j], moments.m2[j] / (moments.count - 1));
  }
  ++num_batches_tracked_.change();
}

Variable DistributedBN1D::apply(Variable x, bool relu, Dropout* dropout, const RowIds& row_ids) {
  const auto normalize = [&](CollectiveCall& call) {
    const Transaction transaction;
    std::optional<DropoutMask> mask;
    if (dropout != nullptr) {
      mask.emplace(dropout->next_call(), dropout->p());
      call.equal("scale of dropout", mask->keep_scale()).equal("random key of dropout", mask->draw().key[0]);
    }
    return normalized(std::move(x), relu, mask ? &*mask : nullptr, row_ids);
  };
  CollectiveCall call("batch norm");
  if (!is_training() || options_.local) return normalize(call);
  return comm_.agree([&] {
    call.equal("number of features", running_mean_.size())
        .equal("eps", options_.eps)
        .equal("momentum", options_.momentum)
        .equal("affine", options_.affine)
        .equal("activation", relu ? "relu" : "none")
        .equal("recording for a backward pass", recording({&x, &weight_, &bias_}));
    CallScope compared(comm_, call);
    return normalize(compared.call());
  });
}

Variable DistributedBN1D::normalized(Variable x, bool relu, const DropoutMask* mask, const RowIds& row_ids) {
  const Index columns = running_mean_.size();
  require<ShapeError>(x.shape().dims() == 2 && x.shape().row_size() == columns, "batch norm of ", columns,
                      " features got a tensor of shape ", x.shape());
  require<ShapeError>(mask == nullptr || row_ids.size() == x.num_rows(), "dropout of ", x.num_rows(),
                      " rows with ", row_ids.size(), " row ids");
  const bool records = recording({&x, &weight_, &bias_});
  const GradientPtr dx = x.gradient();
  TypedRows input = x.take_rows();
  Statistics s = statistics(input);
  const NormActivation activation{
      .relu = relu, .dropout = mask != nullptr ? DropoutBits(*mask, row_ids.span(), columns) : DropoutBits()};
  if (!records) {
    const bool overwrites = input.unique() && input.type() == type_of_results();
    TypedRows y = overwrites ? input : TypedRows(input.shape(), type_of_results());
    batch_norm(input, s.coefficients, activation, y);
    return y;
  }
  const bool over_ranks = s.over_ranks,
             sums_exactly = !options_.local &&
                            (over_ranks || weight_.gradient() != nullptr || bias_.gradient() != nullptr);
  const auto call = std::make_shared<const Call>(Call{std::move(input), std::move(s), activation});
  Variable y;
  if (relu) {
    y = Variable(std::make_shared<const Rows>(call));
  } else {  // the next operation may overwrite it
    TypedRows values(call->x.shape(), type_of_results());
    batch_norm(call->x, call->statistics.coefficients, activation, values);
    y = std::move(values);
  }
  const auto backward = [call, dx, dweight = weight_.gradient(), dbias = bias_.gradient(), comm = comm_,
                         ranks = sums_exactly ? rank_sums() : nullptr](TypedRows grad) {
    pass_back(*call, std::move(grad), dx, dweight, dbias, comm, ranks);
  };
  return over_ranks ? record_collective(comm_, y, backward) : record(y, backward);
}

std::vector<ExactSum> DistributedBN1D::exact_backward_sums(const Call& call, const TypedRows& grad,
                                                           const RankSums& ranks) {
  const auto compute = [&](Index first, Index rows, real* out) {
    batch_norm_backward_terms(call.x, call.statistics.coefficients, call.activation, grad, first, rows, out);
  };
  const ComputedRows terms({call.x.num_rows(), 2 * call.x.row_size()}, compute);
  if (ranks.is_of_chunk()) return exact_products_of_chunk(nullptr, RowOperand(terms), true);
  std::vector<ExactSum> sums;
  ranks.agree([&] {
    for (const double sum : exact_column_sums(ranks, RowOperand(terms))) sums.push_back({sum, 0});
  });
  return sums;
}

void DistributedBN1D::pass_back(const Call& call, TypedRows grad, const GradientPtr& dx,
                                const GradientPtr& dweight, const GradientPtr& dbias,
                                const Communicator& comm, const RankSumsPtr& ranks) {
  const TypedRows& x = call.x;
  const Statistics& s = call.statistics;
  const auto width = x.row_size();
  std::vector<double> sums(2 * width);  // of g, then of g xhat
  std::vector<ExactSum> exact;          // the same, of the rows of all ranks or of a chunk
  if (ranks != nullptr) {
    exact = exact_backward_sums(call, grad, *ranks);
    std::ranges::transform(exact, sums.begin(), &ExactSum::value);
  } else {
    batch_norm_backward_sums(x, s.coefficients, call.activation, grad, sums);
  }
  const auto add_sums = [&](const GradientPtr& to, Index first) {
    if (to == nullptr) return;
    if (ranks != nullptr && ranks->is_of_chunk()) {
      TypedRows rows({width}, NumberType::exact_sums);
      std::copy_n(exact.begin() + first, width, rows.exact_sums());
      return to->add(std::move(rows));
    }
    const auto of_rows = std::span<const double>(sums).subspan(static_cast<std::size_t>(first), width);
    to->add(ranks == nullptr || ranks->is_first() ? rounded(of_rows) : Tensor::zeros({width}));
  };
  add_sums(dbias, 0);
  add_sums(dweight, width);
  if (dx == nullptr) return;

  // Means over the rows of the statistics. In evaluation the statistics are constants and these terms are
  // absent.
  if (s.over_ranks && ranks == nullptr) comm.all_reduce(std::span<double>(sums));
  std::vector<real> mean_g(width), mean_gx(width);
  if (s.count > 0)
    for (Index j = 0; j < width; ++j) {
      mean_g[j] = static_cast<real>(sums[j] / s.count);
      mean_gx[j] = static_cast<real>(sums[width + j] / s.count);
    }
  const bool overwrites = grad.unique() && grad.type() == dx->type();
  TypedRows result = overwrites ? grad : TypedRows(grad.shape(), dx->type());
  batch_norm_backward_x(x, s.coefficients, call.activation, grad, mean_g, mean_gx, result);
  grad = {};
  dx->add(std::move(result));
}

Variable DistributedBN1D::operator()(Variable x) {
  return apply(std::move(x), false, nullptr, {});
}

Variable batch_norm_relu_dropout(Variable x, DistributedBN1D& norm, Dropout& dropout, RowIds row_ids) {
  return norm.apply(std::move(x), true, dropout.is_active() ? &dropout : nullptr, row_ids);
}

LayerNorm::LayerNorm(Index features, double eps, bool affine) : features_(features), eps_(eps) {
  require<InputError>(features > 0 && eps >= 0, "LayerNorm over ", features, " features with eps ", eps);
  if (!affine) return;
  register_parameter("weight", weight_, Tensor::full({features}, 1));
  register_parameter("bias", bias_, Tensor::zeros({features}));
}

Variable LayerNorm::operator()(const Variable& x) const {
  require<ShapeError>(x.shape().dims() == 2 && x.shape().row_size() == features_, "LayerNorm over ",
                      features_, " features got a tensor of shape ", x.shape());
  return layer_norm(x, weight_, bias_, eps_);
}

namespace {

/// Deviations below this fraction of the mean are rounding errors of the values or of their double precision
/// moments.
constexpr double resolution =
    std::max<double>(std::numeric_limits<real>::epsilon(), 16 * std::numeric_limits<double>::epsilon());

double joined(const Tensor& high, const Tensor& low, Index j) {
  return static_cast<double>(high.data()[j]) + static_cast<double>(low.data()[j]);
}

void split(double value, Tensor& high, Tensor& low, Index j) {
  high.data()[j] = static_cast<real>(value);
  low.data()[j] = static_cast<real>(value - static_cast<double>(high.data()[j]));
}

}  // namespace

Normalizer::Normalizer(Index num_features, const Communicator& comm) : comm_(comm) {
  require<InputError>(num_features > 0, "Normalizer of ", num_features, " features, expected 1 or more");
  mean_ = Tensor::zeros({num_features});
  mean_low_ = Tensor::zeros({num_features});
  std_ = Tensor::full({num_features}, 1);
  std_low_ = Tensor::zeros({num_features});
  register_buffer("mean", mean_);
  register_buffer("mean_low", mean_low_);
  register_buffer("std", std_);
  register_buffer("std_low", std_low_);
  register_counter("count", count_, /*in_state_dict=*/true);
}

void Normalizer::check_width(const Shape& shape) const {
  require<ShapeError>(shape.dims() == 2 && shape[1] == mean_.size(), "Normalizer of ", mean_.size(),
                      " features got a tensor of shape ", shape);
}

void Normalizer::update(const Tensor& x) {
  comm_.agree([&] {
    check_width(x.shape());
    const CallScope compared(comm_,
                             CollectiveCall("Normalizer::update").equal("number of features", mean_.size()));
    ColumnMoments all{static_cast<double>(count_), std::vector<double>(mean_.size()),
                      std::vector<double>(mean_.size())};
    for (Index j = 0; j < mean_.size(); ++j) {
      all.mean[j] = joined(mean_, mean_low_, j);
      const double deviation = joined(std_, std_low_, j);
      all.m2[j] = deviation * deviation * all.count;
    }
    const RankSumsPtr& ranks = rank_sums();
    all.merge(ranks != nullptr ? exact_moments(*ranks, x) : merge_over_ranks(comm_, column_moments(x)));
    for (Index j = 0; j < mean_.size(); ++j)
      require<InputError>(std::isfinite(all.mean[j]) && std::isfinite(all.m2[j]), "Normalizer: column ", j,
                          " has a value that is not finite");
    if (all.count == 0) return;
    for (const Tensor& buffer : {mean_, mean_low_, std_, std_low_}) buffer.save();
    count_ = static_cast<std::uint64_t>(all.count);
    for (Index j = 0; j < mean_.size(); ++j) {
      split(all.mean[j], mean_, mean_low_, j);
      split(std::sqrt(all.m2[j] / all.count), std_, std_low_, j);
    }
  });
}

Tensor Normalizer::std() const {
  Tensor result(mean_.shape());
  for (Index j = 0; j < mean_.size(); ++j) {
    const double deviation = joined(std_, std_low_, j);
    const double rounding = std::abs(joined(mean_, mean_low_, j)) * resolution;
    result.data()[j] = deviation > rounding ? static_cast<real>(deviation) : real{1};
  }
  return result;
}

Variable Normalizer::operator()(Variable x) const {
  check_width(x.shape());
  return sub(sub(std::move(x), mean_.clone()), mean_low_.clone()) / Variable(std());
}

Variable Normalizer::inverse(Variable x) const {
  check_width(x.shape());
  return std::move(x) * Variable(std()) + Variable(mean_low_.clone()) + Variable(mean_.clone());
}
}}  // namespace sar
