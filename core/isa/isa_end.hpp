// SPDX-License-Identifier: MIT

// Closes a region of core/isa/isa_begin.hpp.
}}}  // namespace sar

#include <sar/core/isa/isa_pop.hpp>

#undef SAR_ISA_IS_OPEN
