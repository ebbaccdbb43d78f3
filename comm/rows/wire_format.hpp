/// WireFormat: the type that the values of rows have while they travel. The halo exchange asks it for sizes,
/// packs through it and adds through it; a further format is a further instance in wire_format.cpp or
/// int8_format.cpp, and a plan that names it (HaloPlan::wire). Calls for different values may be made at the
/// same time.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/memory.hpp>
#include <sar/core/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace sar::inline SAR_PRECISION {

/// Values are those of a matrix M whose rows are M[i] = tensor[rows[i]], counted row by row.
class WireFormat {
 public:
  virtual ~WireFormat() = default;
  /// Values that only travel together: packets, and what is packed or added by one call, are whole groups of
  /// so many.
  [[nodiscard]] virtual Index group() const { return 1; }
  /// Bytes of so many values, whole groups.
  [[nodiscard]] virtual Index bytes(Index values) const = 0;
  /// Values travel as they lie in memory: neighbouring rows are sent from where they lie, and rows are
  /// received where they are needed, without a copy.
  [[nodiscard]] virtual bool as_stored() const = 0;
  /// out = values [begin, end) of M
  virtual void pack(const Tensor& tensor, const Array<std::int32_t>& rows, Index begin, Index end,
                    std::byte* out) const = 0;
  /// out = values [begin, end) of all halo rows of this rank, counted round after round; they lie one after
  /// the other from `values` on.
  virtual void pack(const real* values, Index begin, Index end, std::byte* out) const = 0;
  /// out[k] = value k of those in `packed`
  virtual void unpack(const std::byte* packed, Index values, real* out) const = 0;
  /// Values [begin, end) of M = M op packed (sum, max or min); the rows are different ones.
  virtual void combine(Tensor& tensor, const Array<std::int32_t>& rows, Index begin, Index end,
                       const std::byte* packed, ReduceOp op) const = 0;
};

/// Value: float or double. wire_format<real>() is the one as stored.
template <class Value>
const WireFormat& wire_format();

/// Numbers in double precision in the memory of tensors of `real`: a row of n of them has
/// doubles_shape(...)'s row size. As stored; added in double precision (sum only).
const WireFormat& wire_format_of_doubles();
inline constexpr Index reals_per_double = sizeof(double) / sizeof(real);
inline Shape doubles_shape(const Shape& rows) {
  return {rows[0], rows.row_size() * reals_per_double};
}

/// HaloFormat::bf16; a `double` is rounded to float first.
const WireFormat& bfloat16_format();

/// Which random words round a row: those of Random for `key` and the row's id.
struct RowDraws {
  std::array<std::uint32_t, 2> key{};
  std::span<const Index> owned_ids;  ///< of the rows of the tensor that is packed
  Index first_halo_id = 0;           ///< of halo row 0; the others follow
};

/// HaloFormat::int8 for rows of `row_size` numbers; a `double` is rounded to float first.
std::unique_ptr<const WireFormat> make_int8_format(Index row_size, const RowDraws& draws);

/// `format` for halo rows, to which the error of their last rounding is added before they are packed.
/// `errors` [halo rows, row_size] holds the errors from one pass to the next; where they are not finite, 0.
/// Both outlive the result.
std::unique_ptr<const WireFormat> make_error_feedback(const WireFormat& format, real* errors);

}  // namespace sar::inline SAR_PRECISION
