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

namespace {

thread_local MatmulPrecision current_precision = MatmulPrecision::highest;

}  // namespace

MatmulPrecisionScope::MatmulPrecisionScope(MatmulPrecision precision) noexcept
    : outer_(std::exchange(current_precision, precision)) {}
MatmulPrecisionScope::~MatmulPrecisionScope() {
  current_precision = outer_;
}

MatmulPrecision matmul_precision() noexcept {
  return current_precision;
}

const char* to_string(MatmulPrecision precision) noexcept {
  switch (precision) {
    case MatmulPrecision::high:
      return "high";
    case MatmulPrecision::medium:
      return "medium";
    case MatmulPrecision::highest:
      break;
  }
  return "highest";
}
}}  // namespace sar
