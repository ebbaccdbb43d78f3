// SPDX-License-Identifier: MIT

/// Numbers that remember how they were computed: differentiation of scalar formulas, one record an operation.
///
/// What the stress test's reference is written in. It shares no code with the library: double precision, no
/// tensors, no kernels. Formulas are loops over nodes, edges and columns, and their gradients come by the
/// chain rule from the records.
#pragma once

#include <sar/config.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sar::test {

class Number {
 public:
  Number() : Number(0) {}
  Number(double value) : value_(value), record_(-1) {}  // NOLINT: a constant
  /// What gradients are asked for.
  static Number leaf(double value) { return push(value, {}, 0, {}, 0); }

  [[nodiscard]] double value() const { return value_; }
  /// After backward().
  [[nodiscard]] double gradient() const {
    return record_ < 0 ? 0 : tape().records[static_cast<std::size_t>(record_)].gradient;
  }

  /// Adds `seed` to the gradient of this number: backward() passes it on.
  void seed(double seed) const {
    if (record_ >= 0) tape().records[static_cast<std::size_t>(record_)].gradient += seed;
  }
  /// Gradients of everything from the seeds.
  static void backward() {
    auto& records = tape().records;
    for (std::size_t i = records.size(); i-- > 0;) {
      const Record& r = records[i];
      if (r.gradient == 0) continue;
      if (r.a >= 0) records[static_cast<std::size_t>(r.a)].gradient += r.gradient * r.slope_a;
      if (r.b >= 0) records[static_cast<std::size_t>(r.b)].gradient += r.gradient * r.slope_b;
    }
  }
  /// Forgets all records.
  static void clear() { tape() = {}; }
  /// Whether two computed numbers were compared since clear() that are as good as equal: another order of
  /// summation may see the other one as the larger, and send the gradient there.
  static bool had_close_call() { return tape().close_call; }

  /// a = value(a, b) with the slopes in a and in b.
  static Number made(double value, Number a, double slope_a, Number b = {}, double slope_b = 0) {
    return a.record_ < 0 && b.record_ < 0 ? Number(value) : push(value, a, slope_a, b, slope_b);
  }
  friend Number operator+(Number a, Number b) { return made(a.value_ + b.value_, a, 1, b, 1); }
  friend Number operator-(Number a, Number b) { return made(a.value_ - b.value_, a, 1, b, -1); }
  friend Number operator*(Number a, Number b) { return made(a.value_ * b.value_, a, b.value_, b, a.value_); }
  friend Number operator/(Number a, Number b) {
    const double q = a.value_ / b.value_;
    return made(q, a, 1 / b.value_, b, -q / b.value_);
  }
  friend Number operator-(Number a) { return made(-a.value_, a, -1); }
  friend bool operator<(Number a, Number b) {
    const double gap = std::abs(a.value_ - b.value_);
    const bool same = gap == 0 && (a.value_ == 0 || a.record_ == b.record_ || (a.is_given() && b.is_given()));
    if (!same && gap < 1e-5 * (1 + std::abs(a.value_) + std::abs(b.value_))) tape().close_call = true;
    return a.value_ < b.value_;
  }

 private:
  struct Record {
    std::int32_t a, b;
    double slope_a, slope_b;
    double gradient;
  };
  struct Records {
    std::vector<Record> records;
    bool close_call = false;
  };
  static Records& tape() {
    static Records records;
    return records;
  }
  static Number push(double value, Number a, double slope_a, Number b, double slope_b) {
    auto& records = tape().records;
    Number result(value);
    result.record_ = static_cast<std::int32_t>(records.size());
    records.push_back({a.record_, b.record_, slope_a, slope_b, 0});
    return result;
  }
  /// A leaf or a constant: the same bits in the library.
  [[nodiscard]] bool is_given() const {
    if (record_ < 0) return true;
    const Record& r = tape().records[static_cast<std::size_t>(record_)];
    return r.a < 0 && r.b < 0;
  }

  double value_;
  std::int32_t record_;  ///< -1: a constant
};

inline Number exp(Number x) {
  const double y = std::exp(x.value());
  return Number::made(y, x, y);
}
inline Number log(Number x) {
  return Number::made(std::log(x.value()), x, 1 / x.value());
}
inline Number sqrt(Number x) {
  const double y = std::sqrt(x.value());
  return Number::made(y, x, 0.5 / y);
}
inline Number tanh(Number x) {
  const double y = std::tanh(x.value());
  return Number::made(y, x, 1 - y * y);
}
inline Number sigmoid(Number x) {
  return 1 / (1 + exp(-x));
}
inline Number softplus(Number x) {
  return log(1 + exp(x));
}
inline Number leaky_relu(Number x, double slope) {
  return Number(0) < x ? x : x * slope;
}
inline Number relu(Number x) {
  return Number(0) < x ? x : Number(0);
}

/// Rows of numbers.
class Matrix {
 public:
  Matrix() = default;
  Matrix(Index rows, Index cols)
      : rows_(rows), cols_(cols), numbers_(static_cast<std::size_t>(rows * cols)) {}

  [[nodiscard]] Index rows() const { return rows_; }
  [[nodiscard]] Index cols() const { return cols_; }
  [[nodiscard]] bool defined() const { return cols_ > 0; }
  Number& operator()(Index i, Index j) { return numbers_[static_cast<std::size_t>(i * cols_ + j)]; }
  const Number& operator()(Index i, Index j) const {
    return numbers_[static_cast<std::size_t>(i * cols_ + j)];
  }
  std::vector<Number>& numbers() { return numbers_; }
  [[nodiscard]] const std::vector<Number>& numbers() const { return numbers_; }

 private:
  Index rows_ = 0, cols_ = 0;
  std::vector<Number> numbers_;
};

/// f(i, j) for every element.
template <class F>
Matrix matrix(Index rows, Index cols, const F& f) {
  Matrix result(rows, cols);
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < cols; ++j) result(i, j) = f(i, j);
  return result;
}

template <class F>
Number sum(Index n, const F& term) {
  Number total;
  for (Index k = 0; k < n; ++k) total = k == 0 ? term(k) : total + term(k);
  return total;
}

template <class F>
Matrix map(const Matrix& x, const F& f) {
  return matrix(x.rows(), x.cols(), [&](Index i, Index j) { return f(x(i, j)); });
}

inline Matrix operator+(const Matrix& a, const Matrix& b) {
  return matrix(a.rows(), a.cols(), [&](Index i, Index j) { return a(i, j) + b(i, j); });
}

/// x W^T + b, W [out, in]; b may be undefined.
inline Matrix linear(const Matrix& x, const Matrix& weight, const Matrix& bias = {}) {
  return matrix(x.rows(), weight.rows(), [&](Index i, Index o) {
    const Number y = sum(x.cols(), [&](Index k) { return x(i, k) * weight(o, k); });
    return bias.defined() ? y + bias.numbers()[static_cast<std::size_t>(o)] : y;
  });
}

inline Matrix transposed(const Matrix& x) {
  return matrix(x.cols(), x.rows(), [&](Index i, Index j) { return x(j, i); });
}

}  // namespace sar::test
