#include <sar/core/error.hpp>
#include <sar/core/matmul.hpp>
#include <sar/core/parallel.hpp>

#include <Eigen/Core>

namespace sar {
namespace {

using Matrix = Eigen::Matrix<real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using View = Eigen::Map<Matrix>;
using ConstView = Eigen::Map<const Matrix>;

ConstView view(const Tensor& t) { return {t.data(), t.shape()[0], t.shape()[1]}; }
View view(Tensor& t) { return {t.data(), t.shape()[0], t.shape()[1]}; }

}  // namespace

void matmul(const Tensor& a, const Tensor& b, Tensor& out, bool accumulate) {
  if (!accumulate) out.fill(0);
  view(out).noalias() += view(a) * view(b);
}

void matmul_tn(const Tensor& a, const Tensor& b, Tensor& out, bool accumulate) {
  if (!accumulate) out.fill(0);
  view(out).noalias() += view(a).transpose() * view(b);
}

void matmul_nt(const Tensor& a, const Tensor& b, Tensor& out, bool accumulate) {
  if (!accumulate) out.fill(0);
  view(out).noalias() += view(a) * view(b).transpose();
}

}  // namespace sar
