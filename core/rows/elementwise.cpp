// SPDX-License-Identifier: MIT

// Elementwise kernels: parallel blocks of 2^16 elements, vectorized within a block. Broadcasting is reduced
// to at most four nested loops (BroadcastLoops), whose innermost loop has stride 0 or 1 for each operand; a
// repeated operand stays in a register. Functions with a transcendental part (gelu, silu, ...) fill a buffer
// of 512 values in the L1 cache, then combine it with x.
//
// Bytes moved: each operand is read once and the result written once (and read, to accumulate).
#include <sar/core/error.hpp>
#include <sar/core/rows/elementwise.hpp>
#include <sar/core/simd/lanes.hpp>
#include <sar/core/simd/vector_math.hpp>
#include <sar/core/tensor/broadcast.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <sar/core/isa/isa_begin.hpp>

namespace {

constexpr Index grain = 1 << 16;  // elements per parallel block
constexpr Index buffer_size = 512;

template <bool accumulate>
void store(real& out, real value) {
  if constexpr (accumulate)
    out += value;
  else
    out = value;
}

/// Calls `with` with the flag as a compile-time constant, which keeps the branch out of the loops.
template <class With>
void dispatch(bool flag, const With& with) {
  flag ? with(std::true_type{}) : with(std::false_type{});
}

/// One innermost line of broadcasting; a repeated operand has stride 0.
template <bool accumulate, class Op>
void binary_line(Op op, const real* a, Index stride_a, const real* b, Index stride_b, real* out, Index n) {
  if (stride_a != 0 && stride_b != 0) {
    for (Index i = 0; i < n; ++i) store<accumulate>(out[i], op(a[i], b[i]));
  } else if (stride_a != 0) {
    const real constant = b[0];
    for (Index i = 0; i < n; ++i) store<accumulate>(out[i], op(a[i], constant));
  } else if (stride_b != 0) {
    const real constant = a[0];
    for (Index i = 0; i < n; ++i) store<accumulate>(out[i], op(constant, b[i]));
  } else {
    const real constant = op(a[0], b[0]);
    for (Index i = 0; i < n; ++i) store<accumulate>(out[i], constant);
  }
}

template <class Op>
void binary_loops(Op op, const Tensor& a, const Tensor& b, Tensor& out, bool accumulate) {
  const BroadcastLoops loops(a.shape(), b.shape(), out.shape());
  const int innermost = loops.dims - 1;
  const Index stride_a = loops.stride_a[innermost];
  const Index stride_b = loops.stride_b[innermost];
  // A long line is split into chunks; a block contains several short lines.
  const Index inner = loops.inner();
  const Index chunk = std::clamp<Index>(inner, 1, grain);
  const Index chunks_per_line = (inner + chunk - 1) / chunk;
  dispatch(accumulate, [&](auto adding) {
    parallel_for(loops.lines() * chunks_per_line, grain / chunk, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        const Index line = i / chunks_per_line;
        const Index first = i % chunks_per_line * chunk;
        const auto [at_a, at_b] = loops.offsets(line);
        binary_line<decltype(adding)::value>(
            op, a.data() + at_a + first * stride_a, stride_a, b.data() + at_b + first * stride_b, stride_b,
            out.data() + line * inner + first, std::min(chunk, inner - first));
      }
    });
  });
}

/// to[i] (+)= op(a[i], b[i]) for n numbers, a vector of them at a time: `op` is a function of vectors. A
/// choice between two values computes both, as vectors do; branches would be taken at random. `to` may be a
/// or b.
template <bool accumulate, class Op>
void combine_numbers(const Op& op, const real* a, const real* b, real* to, Index n) {
  lanes::for_lanes(0, n, [&](auto count, Index i) {
    const lanes::Vector<count> v = op(lanes::load<count>(a + i), lanes::load<count>(b + i));
    lanes::store<count>(to + i, accumulate ? lanes::load<count>(to + i) + v : v);
  });
}

/// out (+)= op(kept, grad)
template <class Op>
void gradient_loop(Op op, const Tensor& kept, const Tensor& grad, Tensor& out, bool accumulate) {
  dispatch(accumulate, [&](auto adding) {
    parallel_for(out.size(), grain, [&](Index begin, Index end) {
      combine_numbers<decltype(adding)::value>(op, kept.data() + begin, grad.data() + begin,
                                               out.data() + begin, end - begin);
    });
  });
}

/// out (+)= grad * slope, where slopes(kept, n, slope) computes up to buffer_size slopes at a time.
template <class Slopes>
void buffered_gradient_loop(const Slopes& slopes, const Tensor& kept, const Tensor& grad, Tensor& out,
                            bool accumulate) {
  dispatch(accumulate, [&](auto adding) {
    parallel_for(out.size(), grain, [&](Index begin, Index end) {
      real slope[buffer_size];
      for (Index first = begin; first < end; first += buffer_size) {
        const Index count = std::min(buffer_size, end - first);
        slopes(kept.data() + first, count, slope);
        const real* g = grad.data() + first;
        real* to = out.data() + first;
        for (Index i = 0; i < count; ++i) store<decltype(adding)::value>(to[i], g[i] * slope[i]);
      }
    });
  });
}

/// to[i] = combine(x[i], buffer[i]), where fill(x, buffer, count) computes up to buffer_size values at a
/// time. `to` may be x.
template <class Fill, class Combine>
void buffered_values(const real* x, real* to, Index n, const Fill& fill, const Combine& combine) {
  real buffer[buffer_size];
  for (Index first = 0; first < n; first += buffer_size) {
    const Index count = std::min(buffer_size, n - first);
    fill(x + first, buffer, count);
    combine_numbers<false>(combine, x + first, buffer, to + first, count);
  }
}

constexpr real sqrt_half = std::numbers::sqrt2_v<real> / 2;
constexpr real inv_sqrt_2pi = std::numbers::inv_sqrtpi_v<real> * sqrt_half;
constexpr real gelu_scale = 2 * std::numbers::inv_sqrtpi_v<real> * sqrt_half;  // sqrt(2 / pi)
constexpr real gelu_cubic = static_cast<real>(0.044715);

/// erf(x / sqrt(2))
void erf_of_share(const real* x, real* erf, Index n) {
  for (Index i = 0; i < n; ++i) erf[i] = x[i] * sqrt_half;
  vector_math::erf(erf, erf, n);
}

/// tanh(sqrt(2 / pi) (x + 0.044715 x^3))
void tanh_of_cubic(const real* x, real* tanh, Index n) {
  for (Index i = 0; i < n; ++i) tanh[i] = gelu_scale * (x[i] + gelu_cubic * x[i] * x[i] * x[i]);
  vector_math::tanh(tanh, tanh, n);
}

/// 1 - exp(-y) for y = softplus(x)
void softplus_slopes(const real* y, Index n, real* slope) {
  for (Index i = 0; i < n; ++i) slope[i] = -y[i];
  vector_math::expm1(slope, slope, n);
  for (Index i = 0; i < n; ++i) slope[i] = -slope[i];
}

/// s + x s (1 - s) for s = sigmoid(x)
void silu_slopes(const real* x, Index n, real* slope) {
  vector_math::sigmoid(x, slope, n);
  for (Index i = 0; i < n; ++i) slope[i] += x[i] * slope[i] * (1 - slope[i]);
}

/// (1 + erf(x / sqrt(2))) / 2 + x exp(-x^2 / 2) / sqrt(2 pi)
void gelu_slopes(const real* x, Index n, real* slope) {
  real density[buffer_size] = {};
  for (Index i = 0; i < n; ++i) density[i] = -x[i] * x[i] / 2;
  vector_math::exp(density, density, n);
  erf_of_share(x, slope, n);
  for (Index i = 0; i < n; ++i) slope[i] = (1 + slope[i]) / 2 + x[i] * density[i] * inv_sqrt_2pi;
}

/// (1 + t) / 2 + x (1 - t^2) sqrt(2 / pi) (1 + 3 * 0.044715 x^2) / 2 with t from tanh_of_cubic()
void gelu_tanh_slopes(const real* x, Index n, real* slope) {
  tanh_of_cubic(x, slope, n);
  for (Index i = 0; i < n; ++i) {
    const real t = slope[i];
    const real inner = gelu_scale * (1 + 3 * gelu_cubic * x[i] * x[i]);
    slope[i] = (1 + t) / 2 + x[i] * (1 - t * t) * inner / 2;
  }
}

/// y = f(x) for the functions of the form x times a transcendental function.
void gated_values(Unary op, const real* from, real* to, Index n) {
  if (op == Unary::silu)
    return buffered_values(from, to, n, vector_math::sigmoid, [](auto x, auto s) { return x * s; });
  const auto gate = [](auto x, auto t) { return x * (1 + t) / 2; };
  if (op == Unary::gelu) return buffered_values(from, to, n, erf_of_share, gate);
  buffered_values(from, to, n, tanh_of_cubic, gate);
}

}  // namespace

void binary(BinaryOp op, const Tensor& a, const Tensor& b, Tensor& out, bool accumulate) {
  const Shape common = broadcast(a.shape(), b.shape());
  require<ShapeError>(broadcast(common, out.shape()) == out.shape(), "result of shape ", out.shape(),
                      " for operands of shapes ", a.shape(), " and ", b.shape());
  switch (op) {
    case BinaryOp::add:
      return binary_loops([](real x, real y) { return x + y; }, a, b, out, accumulate);
    case BinaryOp::sub:
      return binary_loops([](real x, real y) { return x - y; }, a, b, out, accumulate);
    case BinaryOp::mul:
      return binary_loops([](real x, real y) { return x * y; }, a, b, out, accumulate);
    case BinaryOp::div:
      return binary_loops([](real x, real y) { return x / y; }, a, b, out, accumulate);
  }
}

void scale_shift(const Tensor& x, real scale, real shift, Tensor& out, bool accumulate) {
  require<ShapeError>(x.shape() == out.shape(), "cannot scale a tensor of shape ", x.shape(),
                      " into one of shape ", out.shape());
  dispatch(accumulate, [&](auto adding) {
    parallel_for(out.size(), grain, [&](Index begin, Index end) {
      const real* from = x.data();
      real* to = out.data();
      for (Index i = begin; i < end; ++i) store<decltype(adding)::value>(to[i], scale * from[i] + shift);
    });
  });
}

void unary(Unary op, const Tensor& x, Tensor& out, real parameter) {
  require<ShapeError>(x.shape() == out.shape(), "result of shape ", out.shape(), " for an operand of shape ",
                      x.shape());
  require(parameter >= 0, "the slope of leaky_relu and the scale of elu must not be negative: ", parameter);
  parallel_for(x.size(), grain, [&](Index begin, Index end) {
    const real* from = x.data() + begin;
    real* to = out.data() + begin;
    const Index n = end - begin;
    switch (op) {
      case Unary::relu:
        for (Index i = 0; i < n; ++i) to[i] = from[i] < 0 ? real{0} : from[i];  // NaN stays NaN
        break;
      case Unary::leaky_relu:
        return combine_numbers<false>([=](auto value, auto) { return value > 0 ? value : parameter * value; },
                                      from, from, to, n);
      case Unary::elu:
        return buffered_values(from, to, n, vector_math::expm1, [=](auto value, auto negative) {
          return value > 0 ? value : parameter * negative;
        });
      case Unary::sigmoid:
        return vector_math::sigmoid(from, to, n);
      case Unary::softplus:
        return vector_math::softplus(from, to, n);
      case Unary::tanh:
        return vector_math::tanh(from, to, n);
      case Unary::exp:
        return vector_math::exp(from, to, n);
      case Unary::log:
        return vector_math::log(from, to, n);
      case Unary::sqrt:
        for (Index i = 0; i < n; ++i) to[i] = std::sqrt(from[i]);
        break;
      case Unary::abs:
        for (Index i = 0; i < n; ++i) to[i] = std::abs(from[i]);
        break;
      case Unary::silu:
      case Unary::gelu:
      case Unary::gelu_tanh:
        return gated_values(op, from, to, n);
    }
  });
}

void unary_backward(Unary op, const Tensor& kept, const Tensor& grad, Tensor& out, bool accumulate,
                    real parameter) {
  require<ShapeError>(kept.shape() == grad.shape() && kept.shape() == out.shape(), "gradient of shape ",
                      grad.shape(), " for a value of shape ", kept.shape(), " into ", out.shape());
  switch (op) {
    case Unary::relu:
      return gradient_loop([](auto y, auto g) { return y > 0 ? g : decltype(g){}; }, kept, grad, out,
                           accumulate);
    case Unary::leaky_relu:
      return gradient_loop([=](auto y, auto g) { return y > 0 ? g : parameter * g; }, kept, grad, out,
                           accumulate);
    case Unary::elu:
      return gradient_loop([=](auto y, auto g) { return y > 0 ? g : (y + parameter) * g; }, kept, grad, out,
                           accumulate);
    case Unary::sigmoid:
      return gradient_loop([](auto y, auto g) { return g * y * (1 - y); }, kept, grad, out, accumulate);
    case Unary::softplus:
      return buffered_gradient_loop(softplus_slopes, kept, grad, out, accumulate);
    case Unary::tanh:
      return gradient_loop([](auto y, auto g) { return g * (1 - y * y); }, kept, grad, out, accumulate);
    case Unary::exp:
      return gradient_loop([](auto y, auto g) { return g * y; }, kept, grad, out, accumulate);
    case Unary::log:
      return gradient_loop([](auto x, auto g) { return g / x; }, kept, grad, out, accumulate);
    case Unary::sqrt:
      return gradient_loop([](auto y, auto g) { return g / (2 * y); }, kept, grad, out, accumulate);
    case Unary::abs:  // x * g gives 0 at 0 and NaN at NaN
      return gradient_loop(
          [](auto x, auto g) {
            const auto below = x < 0 ? -g : x * g;
            return x > 0 ? g : below;
          },
          kept, grad, out, accumulate);
    case Unary::silu:
      return buffered_gradient_loop(silu_slopes, kept, grad, out, accumulate);
    case Unary::gelu:
      return buffered_gradient_loop(gelu_slopes, kept, grad, out, accumulate);
    case Unary::gelu_tanh:
      return buffered_gradient_loop(gelu_tanh_slopes, kept, grad, out, accumulate);
  }
}

void clamp(const Tensor& x, real low, real high, Tensor& out) {
  require<ShapeError>(x.shape() == out.shape(), "result of shape ", out.shape(), " for an operand of shape ",
                      x.shape());
  parallel_for(out.size(), grain, [from = x.data(), to = out.data(), low, high](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const real raised = from[i] < low ? low : from[i];
      to[i] = raised > high ? high : raised;
    }
  });
}

void clamp_backward(const Tensor& x, real low, real high, const Tensor& grad, Tensor& out, bool accumulate) {
  require<ShapeError>(x.shape() == grad.shape() && x.shape() == out.shape(), "gradient of shape ",
                      grad.shape(), " for a value of shape ", x.shape(), " into ", out.shape());
  gradient_loop(
      [=](auto value, auto g) {
        const auto up_to_high = value <= high ? g : decltype(g){};
        return value >= low ? up_to_high : decltype(g){};
      },
      x, grad, out, accumulate);
}

void select(const Tensor& condition, const Tensor& a, const Tensor& b, Tensor& out) {
  require<ShapeError>(
      condition.shape() == out.shape() && a.shape() == out.shape() && b.shape() == out.shape(),
      "result of shape ", out.shape(), " where the condition has shape ", condition.shape(),
      " and the operands have shapes ", a.shape(), " and ", b.shape());
  parallel_for(out.size(), grain,
               [c = condition.data(), x = a.data(), y = b.data(), to = out.data()](Index begin, Index end) {
                 for (Index i = begin; i < end; ++i) to[i] = c[i] != 0 ? x[i] : y[i];
               });
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(void, binary, (BinaryOp op, const Tensor& a, const Tensor& b, Tensor& out, bool accumulate),
             (op, a, b, out, accumulate));
SAR_DISPATCH(void, scale_shift, (const Tensor& x, real scale, real shift, Tensor& out, bool accumulate),
             (x, scale, shift, out, accumulate));
SAR_DISPATCH(void, unary, (Unary op, const Tensor& x, Tensor& out, real parameter), (op, x, out, parameter));
SAR_DISPATCH(void, unary_backward,
             (Unary op, const Tensor& kept, const Tensor& grad, Tensor& out, bool accumulate, real parameter),
             (op, kept, grad, out, accumulate, parameter));
SAR_DISPATCH(void, clamp, (const Tensor& x, real low, real high, Tensor& out), (x, low, high, out));
SAR_DISPATCH(void, clamp_backward,
             (const Tensor& x, real low, real high, const Tensor& grad, Tensor& out, bool accumulate),
             (x, low, high, grad, out, accumulate));
SAR_DISPATCH(void, select, (const Tensor& condition, const Tensor& a, const Tensor& b, Tensor& out),
             (condition, a, b, out));
