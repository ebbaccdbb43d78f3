/// Counter-based random numbers: a draw is a function of (seed, stream, step, row, element) and of nothing
/// else, so that it is the same for every number of workers and threads, and can be drawn again instead of
/// being stored. Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3",
/// SC'11.
#pragma once

#include <sar/config.hpp>

#include <array>
#include <cstdint>

namespace sar::inline SAR_PRECISION {

/// Names one family of draws: `stream` is, for example, a layer, `step` a training step.
struct RandomKey {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  std::uint64_t step = 0;
};

/// Four 32-bit words by Philox4x32-10 for a 128-bit counter and a 64-bit key.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) noexcept;

/// The draws of one family. Row is a GLOBAL node or edge id; element i of a row is word i % 4 of block i / 4.
class Random {
 public:
  explicit Random(const RandomKey& key) noexcept;
  /// The Philox key of the family, for loops that draw many blocks at once.
  [[nodiscard]] std::array<std::uint32_t, 2> key() const noexcept { return key_; }
  /// Words 4*block .. 4*block+3 of a row.
  [[nodiscard]] std::array<std::uint32_t, 4> words(std::uint64_t row, std::uint64_t block) const noexcept {
    return philox({static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(row >> 32),
                   static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32)},
                  key_);
  }
  /// A 64-bit word: element `i` of a row of 64-bit words.
  [[nodiscard]] std::uint64_t bits(std::uint64_t row, std::uint64_t i = 0) const noexcept;
  /// Uniform in [0, 1) with 53 bits: element `i` of a row.
  [[nodiscard]] double uniform(std::uint64_t row, std::uint64_t i = 0) const noexcept;
  /// Standard normal by Box and Muller: element `i` of a row.
  [[nodiscard]] double normal(std::uint64_t row, std::uint64_t i = 0) const noexcept;

 private:
  std::array<std::uint32_t, 2> key_;
};

/// A 32-bit word as a uniform number in [0, 1).
inline double to_unit(std::uint32_t word) noexcept {
  return word * (1.0 / 4294967296.0);
}

}  // namespace sar
