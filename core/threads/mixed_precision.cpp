// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/threads/mixed_precision.hpp>

#include <type_traits>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

thread_local bool is_mixed = false;

}  // namespace

MixedPrecisionScope::MixedPrecisionScope(bool mixed) : outer_(is_mixed) {
  require<InputError>(!mixed || std::is_same_v<real, float>,
                      "mixed precision in a library of double precision, expected one of single precision");
  is_mixed = mixed;
}
MixedPrecisionScope::~MixedPrecisionScope() {
  is_mixed = outer_;
}

bool mixed_precision() noexcept {
  return is_mixed;
}

}}  // namespace sar
