// SPDX-License-Identifier: MIT

/// The last step of a product whose sum over rows is computed in parts. For implementation files of core/.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/core/threads/parallel.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// out += partial_0 + partial_1 + ... for partial [parts, ...], element by element in this order, in double
/// precision and rounded once. Reads each part once.
inline void add_parts(const Tensor& partial, Tensor& out) {
  constexpr Index grain = 1 << 12;
  parallel_for(out.size(), grain, [&](Index begin, Index end) {
    Array<double> total(end - begin, 0);
    for (Index part = 0; part <= partial.num_rows(); ++part) {
      const real* addend = (part == 0 ? out.data() : partial.row(part - 1)) + begin;
      for (Index i = 0; i < end - begin; ++i) total[i] += static_cast<double>(addend[i]);
    }
    for (Index i = begin; i < end; ++i) out.data()[i] = static_cast<real>(total[i - begin]);
  });
}

}}  // namespace sar
