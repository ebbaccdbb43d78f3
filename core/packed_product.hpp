/// Eigen's products with packing buffers from allocate_bytes. Eigen would take them from the stack, hundreds
/// of kilobytes, which ends the program where a thread has less; or from malloc, which maps buffers of that
/// size afresh in every call, a fault for every page. The threads are ours. For the sources of core/ only.
#pragma once

#define EIGEN_DONT_PARALLELIZE
#define EIGEN_STACK_ALLOCATION_LIMIT (16 * 1024)
#include <sar/core/memory.hpp>
#include <sar/core/tensor.hpp>

#include <Eigen/Core>

namespace sar::inline SAR_PRECISION {

/// The buffers of one product [rows, depth] [depth, cols], row after row. Eigen computes its transpose.
class PackingBuffers : public Eigen::internal::level3_blocking<real, real> {
 public:
  PackingBuffers(Eigen::Index rows, Eigen::Index cols, Eigen::Index depth) {
    m_mc = cols;
    m_nc = rows;
    m_kc = depth;
    Eigen::internal::computeProductBlockingSizes<real, real>(m_kc, m_mc, m_nc, Eigen::Index{1});
    constexpr Eigen::Index line = 64 / sizeof(real);
    const Eigen::Index size_a = (m_mc * m_kc + line - 1) / line * line;
    memory_.resize(size_a + m_kc * m_nc);
    m_blockA = memory_.data();
    m_blockB = memory_.data() + size_a;
  }

 private:
  Array<real> memory_;
};

/// out += a b, where out lies row after row. Small products and those with vectors need no packing.
template <class Out, class A, class B>
void add_product(Out out, const A& a, const B& b) {
  static_assert(Out::IsRowMajor && Out::InnerStrideAtCompileTime == 1);
  const Eigen::Index rows = out.rows(), cols = out.cols(), depth = a.cols();
  if (rows == 0 || cols == 0 || depth == 0) return;
  if (rows == 1 || cols == 1 || rows + cols + depth < 20) {
    out.noalias() += a * b;
    return;
  }
  constexpr auto order = [](bool row_major) { return row_major ? Eigen::RowMajor : Eigen::ColMajor; };
  PackingBuffers buffers(rows, cols, depth);
  Eigen::internal::general_matrix_matrix_product<Eigen::Index, real, order(A::IsRowMajor), false, real,
                                                 order(B::IsRowMajor), false, Eigen::RowMajor,
                                                 1>::run(rows, cols, depth, a.data(), a.outerStride(),
                                                         b.data(), b.outerStride(), out.data(), 1,
                                                         out.outerStride(), real{1}, buffers, nullptr);
}

}  // namespace sar::inline SAR_PRECISION
