/// The element types and shapes of NumPy's arrays, as files have them.
#pragma once

#include <sar/config.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sar::inline SAR_PRECISION {

/// The element types that are understood; little-endian.
enum class NpyType { float16, float32, float64, boolean, uint8, int8, int16, int32, int64 };

/// The type of sar::real.
inline constexpr NpyType npy_real = sizeof(real) == 8 ? NpyType::float64 : NpyType::float32;

[[nodiscard]] const char* to_string(NpyType type) noexcept;  ///< NumPy's name: "float16", "bool"
[[nodiscard]] Index element_bytes(NpyType type) noexcept;
[[nodiscard]] bool is_floating_point(NpyType type) noexcept;

/// NumPy's short name with the byte order, as a file's header has it: "<f2", "|b1".
[[nodiscard]] std::string npy_descr(NpyType type);
/// The type of such a name; nothing for a type that is not understood.
[[nodiscard]] std::optional<NpyType> parse_npy_descr(std::string_view descr) noexcept;

/// The number of elements. Throws InputError, beginning with `path`, when their bytes exceed 63 bits.
Index checked_num_elements(std::span<const Index> shape, NpyType type, const std::string& path);

/// "(2, 10556)", as Python writes a tuple.
std::string shape_to_string(std::span<const Index> shape);

}  // namespace sar
