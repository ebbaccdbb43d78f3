// SPDX-License-Identifier: MIT
#include <sar/core/threads/matmul_precision.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {
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
