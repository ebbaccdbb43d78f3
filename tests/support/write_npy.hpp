// SPDX-License-Identifier: MIT

/// Files of arrays for tests.
#pragma once

#include <sar/core/error.hpp>
#include <sar/core/files/npy.hpp>

#include <algorithm>
#include <concepts>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace sar::test {

/// Writes `values`, converted to `type`, as an array of `shape` in C order, like NpyWriter. Conversion to
/// float16 rounds to nearest, ties to even; conversion to bool gives 1 for every value but 0. Throws
/// InputError if writing fails, ShapeError unless there is one value per element of the shape.
template <class T>
void write_npy(const std::string& path, std::span<const Index> shape, std::span<const T> values,
               NpyType type) {
  const Index size = checked_num_elements(shape, type, path);
  require<ShapeError>(size == static_cast<Index>(values.size()), path, ": shape ", shape_to_string(shape),
                      " needs ", size, " values, not ", values.size());
  NpyWriter file(path, shape, type);
  with_npy_type(type, [&](auto element) {
    using Stored = decltype(element);
    constexpr std::size_t chunk = std::size_t{1} << 16;
    std::vector<std::byte> bytes(std::min(chunk, values.size()) * sizeof(Stored));
    for (std::size_t begin = 0; begin < values.size(); begin += chunk) {
      const std::size_t count = std::min(chunk, values.size() - begin);
      for (std::size_t i = 0; i < count; ++i) {
        if constexpr (std::same_as<Stored, HalfBits>)
          element.bits = float_to_half(static_cast<double>(values[begin + i]));
        else
          element = static_cast<Stored>(values[begin + i]);
        std::memcpy(bytes.data() + i * sizeof(Stored), &element, sizeof(Stored));
      }
      file.write(std::span(bytes).first(count * sizeof(Stored)));
    }
  });
  file.commit();
}

}  // namespace sar::test
