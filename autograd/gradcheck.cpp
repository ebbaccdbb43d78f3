// SPDX-License-Identifier: MIT

// One forward and backward pass gives the gradients of sum(w fn), with w uniform in [-1, 1). Then two
// evaluations for each element,
//
//     (f(x + h e_i) - f(x - h e_i)) / (2 h),
//
// or two for each direction, in which each of the n elements moves by +h or -h at random. Both slopes
// along a direction are divided by sqrt(n), so that the tolerance means the same for inputs of any size.
#include <sar/autograd/gradcheck.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/random.hpp>

#include <algorithm>
#include <cmath>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr bool is_double = sizeof(real) == 8;

using Function = std::function<Variable(const std::vector<Variable>&)>;

/// The function as a scalar: the sum of the result with random weights.
class Scalarized {
 public:
  Scalarized(const Function& fn, const std::vector<Variable>& inputs, std::uint64_t seed)
      : fn_(fn), inputs_(inputs) {
    Tape tape;
    const Variable output = fn_(inputs_);
    require(output.requires_grad(),
            "gradcheck: the result does not depend on an input that requires a gradient");
    const Random random({seed, RandomStream::gradcheck_weights + 0, 0});
    weights_ = Tensor(output.shape());
    for (Index i = 0; i < weights_.size(); ++i)
      weights_.data()[i] = static_cast<real>(2 * random.uniform(static_cast<std::uint64_t>(i)) - 1);
    tape.backward(output, weights_.clone());
  }

  [[nodiscard]] double operator()() const {
    const NoTape inference;
    const Variable output = fn_(inputs_);
    require<ShapeError>(output.shape() == weights_.shape(), "gradcheck: the result has shape ",
                        output.shape(), " now and had ", weights_.shape());
    double sum = 0;
    for (Index i = 0; i < weights_.size(); ++i)
      sum += static_cast<double>(weights_.data()[i]) * static_cast<double>(output.value().data()[i]);
    return sum;
  }

 private:
  const Function& fn_;
  const std::vector<Variable>& inputs_;
  Tensor weights_;
};

/// Changes an input's values during its lifetime and restores them at the end.
class Moved : NonCopyable {
 public:
  explicit Moved(Tensor value) : value_(std::move(value)), original_(value_.clone()) {
    value_.require_writable();
  }
  ~Moved() { std::copy(original_.values().begin(), original_.values().end(), value_.data()); }

  /// Sets element i to its original value plus `delta`. Returns the actual change after rounding.
  double move(Index i, double delta) {
    value_.data()[i] = static_cast<real>(static_cast<double>(original_.data()[i]) + delta);
    return static_cast<double>(value_.data()[i]) - static_cast<double>(original_.data()[i]);
  }

 private:
  Tensor value_;
  Tensor original_;
};

/// Returns |tape - difference| / max(1, |difference|); throws Error if it exceeds the tolerance.
double checked_error(double tape, double difference, double tolerance, const std::string& where) {
  const double error = std::abs(tape - difference) / std::max(1.0, std::abs(difference));
  require(error <= tolerance, "gradcheck: ", where, ": the tape says ", tape, ", central differences say ",
          difference, " (relative error ", error, ", tolerance ", tolerance, ")");
  return error;
}

double gradient_at(const Variable& input, Index i) {
  const Tensor gradient = input.grad();
  return gradient.defined() ? static_cast<double>(gradient.data()[i]) : 0;
}

/// Compares the gradients of single elements, two evaluations of f for each. Returns the largest error.
double check_elements(const Scalarized& f, const std::vector<Variable>& inputs,
                      const GradcheckOptions& options) {
  double worst = 0;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (!inputs[k].requires_grad()) continue;
    const Index size = inputs[k].value().size();
    const Index count = std::min(size, options.max_elements);
    Moved value(inputs[k].value());
    for (Index n = 0; n < count; ++n) {
      const Index i = n * size / count;
      const double right = value.move(i, options.step);
      const double above = f();
      const double left = value.move(i, -options.step);
      const double below = f();
      value.move(i, 0);
      worst = std::max(
          worst, checked_error(gradient_at(inputs[k], i), (above - below) / (right - left), options.tolerance,
                               concat("input ", k, " of shape ", inputs[k].shape(), ", element ", i)));
    }
  }
  return worst;
}

/// Compares the slope along one random direction of all inputs. Returns the error.
double check_direction(const Scalarized& f, const std::vector<Variable>& inputs,
                       const GradcheckOptions& options, int direction) {
  const auto over_ranks = [&](double x) { return options.sum_over_ranks ? options.sum_over_ranks(x) : x; };
  std::vector<std::unique_ptr<Moved>> values;
  for (const Variable& input : inputs) values.push_back(std::make_unique<Moved>(input.value()));
  // Every element moves by plus or minus a step. The slope along the direction is divided by the square root
  // of the number of elements, which keeps it of order 1.
  double elements = 0;
  double slope = 0;
  double side[2] = {};
  for (const int sign : {1, -1}) {
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (!inputs[k].requires_grad()) continue;
      const Random random(
          {options.seed, RandomStream::gradcheck_directions + k, static_cast<std::uint64_t>(direction)});
      for (Index i = 0; i < inputs[k].value().size(); ++i) {
        const double delta =
            random.bits(static_cast<std::uint64_t>(i)) % 2 == 0 ? options.step : -options.step;
        slope += sign * values[k]->move(i, sign * delta) * gradient_at(inputs[k], i);
        ++elements;
      }
    }
    side[sign > 0 ? 0 : 1] = over_ranks(f());
  }
  const double scale = 2 * options.step * std::sqrt(std::max(1.0, over_ranks(elements) / 2));
  return checked_error(over_ranks(slope) / scale, (side[0] - side[1]) / scale, options.tolerance,
                       concat("random direction ", direction));
}

}  // namespace

double gradcheck(const Function& fn, std::vector<Variable> inputs, const GradcheckOptions& given) {
  GradcheckOptions options = given;
  if (options.step <= 0) options.step = is_double ? 1e-5 : 1e-2;
  if (options.tolerance <= 0) options.tolerance = is_double ? 1e-7 : 1e-3;
  require(!options.sum_over_ranks || options.directions > 0,
          "gradcheck over several ranks needs random directions");

  for (Variable& input : inputs) input.zero_grad();
  const Scalarized f(fn, inputs, options.seed);
  double worst = 0;
  if (options.directions > 0) {
    for (int d = 0; d < options.directions; ++d)
      worst = std::max(worst, check_direction(f, inputs, options, d));
  } else {
    worst = check_elements(f, inputs, options);
  }
  for (Variable& input : inputs) input.zero_grad();
  return worst;
}

}}  // namespace sar
