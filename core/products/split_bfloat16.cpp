// SPDX-License-Identifier: MIT

// One pass over x along its contiguous dimension, line by line. The low parts of a line read its high
// parts again, from cache. Bytes moved per number (float): x is read with 4, and 4 or 8 are written.
#include <sar/core/products/right_operand.hpp>
#include <sar/core/simd/lanes.hpp>
#include <sar/core/tensor/typed_rows.hpp>

#include <algorithm>
#include <bit>

#include <sar/core/isa/isa_begin.hpp>

namespace {

/// Returns x rounded to the nearest bfloat16 number.
float rounded(float x) {
  return std::bit_cast<float>(lanes::rounded_word(x) & 0xffff0000u);
}

}  // namespace

void split_bfloat16(const MatrixView& x, real* high, real* low) {
  const MatrixView lines = x.col_step == 1 ? x : x.transposed();
  for (Index i = 0; i < lines.rows; ++i) {
    if (lines.bfloat16 != nullptr) {
      widen(lines.bfloat16 + i * lines.row_step, lines.cols, high + i * lines.cols);
      if (low != nullptr) std::fill_n(low + i * lines.cols, lines.cols, real{0});
      continue;
    }
    const real* from = lines.data + i * lines.row_step;
    for (Index j = 0; j < lines.cols; ++j) high[i * lines.cols + j] = rounded(static_cast<float>(from[j]));
    if (low == nullptr) continue;
    for (Index j = 0; j < lines.cols; ++j)
      low[i * lines.cols + j] = rounded(static_cast<float>(from[j] - high[i * lines.cols + j]));
  }
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(void, split_bfloat16, (const MatrixView& x, real* high, real* low), (x, high, low));
