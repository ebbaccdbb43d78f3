// SPDX-License-Identifier: MIT

// Rows of int8 numbers with one scale per row (halo_format.hpp). A packed row is
//
//     float s, then int8 q_j = floor(x_j / s + u_j), u_j uniform in [0, 1)      (int8_rounding.hpp)
//
// Packing takes 32 rows at a time: first their scales, then for each row random words in a buffer in the L1
// cache (core/simd/drawn_rows.hpp) and the rounded columns. A row is read twice, the second time from cache.
// Unpacking and combining are bound by memory bandwidth. Bytes moved per number (float): packing reads 4 and
// writes 1, unpacking reads 1 and writes 4, combining reads 5 and writes 4.
#include <sar/comm/halo/int8_rounding.hpp>
#include <sar/comm/halo/wire_format.hpp>
#include <sar/core/simd/drawn_rows.hpp>
#include <sar/core/simd/independent_iterations.hpp>

#include <algorithm>
#include <cstring>

#include <sar/core/isa/isa_begin.hpp>

namespace {

constexpr Index rows_at_once = 32;  // rows drawn together

class Int8Rows final : public WireFormat {
 public:
  Int8Rows(Index row_size, const RowDraws& draws)
      : row_size_(std::max<Index>(row_size, 1)), row_bytes_(row_size_ + scale_bytes), draws_(draws) {}

  [[nodiscard]] Index group() const override { return row_size_; }
  [[nodiscard]] Index bytes(Index values) const override { return values / row_size_ * row_bytes_; }
  [[nodiscard]] bool as_stored(NumberType) const override { return false; }

  void pack(const TypedRows& rows_of_m, const Array<std::int32_t>& rows, Index begin, Index end,
            std::byte* out) const override {
    pack_rows(begin / row_size_, end / row_size_, out, [&](Index i) {
      return Row{rows_of_m.reals().row(rows[i]), draws_.owned_ids[static_cast<std::size_t>(rows[i])]};
    });
  }
  void pack(const real* values, Index begin, Index end, std::byte* out) const override {
    const Index first = begin / row_size_;
    pack_rows(first, end / row_size_, out, [&](Index i) {
      return Row{values + (i - first) * row_size_, draws_.first_halo_id + i};
    });
  }

  void unpack(const std::byte* packed, Index values, real* out) const override {
    for (const real* end = out + values; out != end; out += row_size_, packed += row_bytes_) {
      const auto [scale, q] = row_of(packed);
      for (Index j = 0; j < row_size_; ++j) out[j] = scale * static_cast<real>(q[j]);
    }
  }

  void combine(Tensor& tensor, const Array<std::int32_t>& rows, Index begin, Index end,
               const std::byte* packed, ReduceOp op) const override {
    const auto with = [&](const auto& combined) {
      for (Index i = begin / row_size_; i < end / row_size_; ++i, packed += row_bytes_) {
        const auto [scale, q] = row_of(packed);
        real* to = tensor.row(rows[i]);
        SAR_INDEPENDENT_ITERATIONS
        for (Index j = 0; j < row_size_; ++j) to[j] = combined(to[j], scale * static_cast<real>(q[j]));
      }
    };
    if (op == ReduceOp::sum) return with([](real a, real b) { return a + b; });
    if (op == ReduceOp::max) return with([](real a, real b) { return std::max(a, b); });
    with([](real a, real b) { return std::min(a, b); });
  }

 private:
  static constexpr Index scale_bytes = sizeof(float);
  struct Row {
    const real* values;
    Index id;
  };
  struct PackedRow {
    real scale;
    const std::int8_t* multiples;
  };
  static PackedRow row_of(const std::byte* packed) {
    float scale = 0;
    std::memcpy(&scale, packed, sizeof scale);
    return {scale, reinterpret_cast<const std::int8_t*>(packed + scale_bytes)};
  }

  /// Packs row(i) for rows [begin, end), one after another.
  template <class RowAt>
  void pack_rows(Index begin, Index end, std::byte* out, const RowAt& row) const {
    for (Index first = begin; first < end; first += rows_at_once) {
      const Index count = std::min(rows_at_once, end - first);
      const real* from[rows_at_once];
      Index ids[rows_at_once];
      float scales[rows_at_once];
      for (Index r = 0; r < count; ++r) {
        const Row at = row(first + r);
        scales[r] = int8_rounding::scale_of(at.values, row_size_);
        from[r] = at.values;
        ids[r] = at.id;
        std::memcpy(out + r * row_bytes_, &scales[r], sizeof scales[r]);
      }
      drawn_rows::for_drawn_rows(
          {ids, static_cast<std::size_t>(count)}, row_size_, draws_.key,
          [&](Index r, Index column, Index columns, const std::uint32_t* words) {
            auto* q = reinterpret_cast<std::int8_t*>(out + r * row_bytes_ + scale_bytes) + column;
            if (scales[r] > 0)
              int8_rounding::round_columns(from[r] + column, columns, scales[r], words, q);
            else
              std::fill_n(q, columns, std::int8_t{0});
          });
      out += count * row_bytes_;
    }
  }

  const Index row_size_, row_bytes_;
  const RowDraws draws_;
};

}  // namespace

WireFormatPtr make_int8_format(Index row_size, const RowDraws& draws) {
  return std::make_shared<const Int8Rows>(row_size, draws);
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(WireFormatPtr, make_int8_format, (Index row_size, const RowDraws& draws), (row_size, draws));
