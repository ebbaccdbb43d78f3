#include <sar/core/broadcast.hpp>
#include <sar/core/elementwise.hpp>
#include <sar/core/error.hpp>
#include <sar/core/parallel.hpp>
#include <sar/core/vector_math.hpp>

#include <algorithm>

namespace sar::inline SAR_PRECISION {
namespace {

constexpr Index grain = 1 << 16;  // elements per block: some 50 us of memory traffic

template <bool accumulate>
void store(real& out, real value) {
  if constexpr (accumulate) {
    out += value;
  } else {
    out = value;
  }
}

/// Runs `with` with a compile-time copy of a flag, to keep the branch out of the loops.
template <class With>
void dispatch(bool flag, const With& with) {
  if (flag) {
    with(std::true_type{});
  } else {
    with(std::false_type{});
  }
}

/// One line; a repeated operand has stride 0.
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
  // A long line is several chunks; a block has several short lines.
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

template <class Op>
void gradient_loop(Op op, const Tensor& kept, const Tensor& grad, Tensor& out, bool accumulate) {
  dispatch(accumulate, [&](auto adding) {
    parallel_for(out.size(), grain, [&](Index begin, Index end) {
      const real* y = kept.data();
      const real* g = grad.data();
      real* to = out.data();
      for (Index i = begin; i < end; ++i) store<decltype(adding)::value>(to[i], op(y[i], g[i]));
    });
  });
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
        for (Index i = 0; i < n; ++i) to[i] = from[i] < 0 ? real{0} : from[i];  // NaN stays
        break;
      case Unary::leaky_relu:
        for (Index i = 0; i < n; ++i) to[i] = from[i] > 0 ? from[i] : parameter * from[i];
        break;
      case Unary::elu: {
        constexpr Index buffer_size = 512;
        real negative[buffer_size];
        for (Index first = 0; first < n; first += buffer_size) {
          const Index count = std::min(buffer_size, n - first);
          vector_math::expm1(from + first, negative, count);
          for (Index i = 0; i < count; ++i)
            to[first + i] = from[first + i] > 0 ? from[first + i] : parameter * negative[i];
        }
        break;
      }
      case Unary::sigmoid:
        vector_math::sigmoid(from, to, n);
        break;
      case Unary::softplus:
        vector_math::softplus(from, to, n);
        break;
      case Unary::tanh:
        vector_math::tanh(from, to, n);
        break;
      case Unary::exp:
        vector_math::exp(from, to, n);
        break;
      case Unary::log:
        vector_math::log(from, to, n);
        break;
    }
  });
}

void unary_backward(Unary op, const Tensor& kept, const Tensor& grad, Tensor& out, bool accumulate,
                    real parameter) {
  require<ShapeError>(kept.shape() == grad.shape() && kept.shape() == out.shape(), "gradient of shape ",
                      grad.shape(), " for a value of shape ", kept.shape(), " into ", out.shape());
  switch (op) {
    case Unary::relu:
      return gradient_loop([](real y, real g) { return y > 0 ? g : real{0}; }, kept, grad, out, accumulate);
    case Unary::leaky_relu:
      return gradient_loop([=](real y, real g) { return y > 0 ? g : parameter * g; }, kept, grad, out,
                           accumulate);
    case Unary::elu:
      return gradient_loop([=](real y, real g) { return y > 0 ? g : (y + parameter) * g; }, kept, grad, out,
                           accumulate);
    case Unary::sigmoid:
      return gradient_loop([](real y, real g) { return g * y * (1 - y); }, kept, grad, out, accumulate);
    case Unary::softplus:  // 1 - exp(-y)
      return dispatch(accumulate, [&](auto adding) {
        parallel_for(out.size(), grain, [&](Index begin, Index end) {
          constexpr Index buffer_size = 512;
          real slope[buffer_size];
          for (Index first = begin; first < end; first += buffer_size) {
            const Index count = std::min(buffer_size, end - first);
            for (Index i = 0; i < count; ++i) slope[i] = -kept.data()[first + i];
            vector_math::expm1(slope, slope, count);
            for (Index i = 0; i < count; ++i)
              store<decltype(adding)::value>(out.data()[first + i], -slope[i] * grad.data()[first + i]);
          }
        });
      });
    case Unary::tanh:
      return gradient_loop([](real y, real g) { return g * (1 - y * y); }, kept, grad, out, accumulate);
    case Unary::exp:
      return gradient_loop([](real y, real g) { return g * y; }, kept, grad, out, accumulate);
    case Unary::log:
      return gradient_loop([](real x, real g) { return g / x; }, kept, grad, out, accumulate);
  }
}

}  // namespace sar
