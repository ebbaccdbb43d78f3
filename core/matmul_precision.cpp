#include <sar/core/error.hpp>
#include <sar/core/matmul_precision.hpp>

#include <atomic>

namespace sar::inline SAR_PRECISION {
namespace {

std::atomic<MatmulPrecision> of_process = MatmulPrecision::highest;

}  // namespace

void set_matmul_precision(MatmulPrecision precision) noexcept {
  of_process.store(precision, std::memory_order_relaxed);
}

void set_matmul_precision(std::string_view name) {
  for (const auto precision : {MatmulPrecision::highest, MatmulPrecision::high, MatmulPrecision::medium})
    if (name == to_string(precision)) return set_matmul_precision(precision);
  throw InputError(concat("matmul_precision is '", name, "', expected 'highest', 'high' or 'medium'"));
}

MatmulPrecision matmul_precision() noexcept {
  return of_process.load(std::memory_order_relaxed);
}

const char* to_string(MatmulPrecision precision) noexcept {
  switch (precision) {
    case MatmulPrecision::high:
      return "high";
    case MatmulPrecision::medium:
      return "medium";
    default:
      return "highest";
  }
}

}  // namespace sar
