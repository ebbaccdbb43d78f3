// Closes a region of core/isa_begin.hpp.
}  // namespace sar

#include <sar/core/isa_pop.hpp>

#undef SAR_ISA_IS_OPEN
