#include <sar/core/vector_math.hpp>

#include <Eigen/Core>

namespace sar::vector_math {
namespace {

using Values = Eigen::Array<real, Eigen::Dynamic, 1>;

Eigen::Map<const Values> in(const real* x, index n) {
  return {x, n};
}
Eigen::Map<Values> to(real* out, index n) {
  return {out, n};
}

}  // namespace

void exp(const real* x, real* out, index n) {
  to(out, n) = in(x, n).exp();
}
void expm1(const real* x, real* out, index n) {
  to(out, n) = in(x, n).expm1();
}
void log(const real* x, real* out, index n) {
  to(out, n) = in(x, n).log();
}
void tanh(const real* x, real* out, index n) {
  to(out, n) = in(x, n).tanh();
}
void sigmoid(const real* x, real* out, index n) {
  to(out, n) = in(x, n).logistic();
}

}  // namespace sar::vector_math
