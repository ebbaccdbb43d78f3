// SPDX-License-Identifier: MIT

// Closes a region of core/isa/isa_begin.hpp.
}}}  // namespace sar

SAR_ISA_POP

#undef SAR_ISA_IS_OPEN
