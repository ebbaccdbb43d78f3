// SPDX-License-Identifier: MIT

// Conversion between rows and messages, row by row and vectorized within a row. Gathered rows are prefetched
// some rows ahead. Bytes moved per number: pack reads sizeof(real) and writes sizeof(Value), unpack the
// reverse; combine reads both, and writes sizeof(real).
#include <sar/comm/halo/wire_format.hpp>
#include <sar/core/error.hpp>
#include <sar/core/simd/drawn_rows.hpp>
#include <sar/core/simd/lanes.hpp>

#include <cstring>

#include <sar/core/isa/isa_begin.hpp>

namespace {

/// Prefetches a row some rows before its use: scattered rows are too short for the hardware prefetcher.
template <class Number>
void prefetch_later_row(const Number* first_row, Index row_size, const Array<std::int32_t>& rows, Index i) {
  const Index row_bytes = row_size * static_cast<Index>(sizeof(Number)), later = i + rows_ahead(row_bytes);
  if (later < std::ssize(rows)) prefetch_bytes(first_row + rows[later] * row_size, row_bytes);
}

/// Calls work(i, column, length) for the row parts that values [begin, end) consist of.
template <class Work>
void for_each_row(Index row_size, Index begin, Index end, const Work& work) {
  while (begin < end) {
    const Index column = begin % row_size;
    const Index length = std::min(row_size - column, end - begin);
    work(begin / row_size, column, length);
    begin += length;
  }
}

/// Values [begin, end) of M = combined(M, packed Values); M has rows `rows` of those from `first_row` on.
template <class Value, class Combined>
void combine_rows(real* first_row, Index row_size, const Array<std::int32_t>& rows, Index begin, Index end,
                  const std::byte* packed, const Combined& combined) {
  const auto* values = reinterpret_cast<const Value*>(packed);
  for_each_row(row_size, begin, end, [&](Index i, Index column, Index length) {
    prefetch_later_row(first_row, row_size, rows, i);
    real* __restrict to = first_row + rows[i] * row_size + column;
    const Value* __restrict from = values;
    for (Index j = 0; j < length; ++j) to[j] = combined(to[j], lanes::number(from[j]));
    values += length;
  });
}

template <class Value>
class ValuesAs : public WireFormat {
 public:
  [[nodiscard]] Index bytes(Index values) const override {
    return values * static_cast<Index>(sizeof(Value));
  }
  [[nodiscard]] bool as_stored(NumberType type) const override {
    return type == NumberType::bfloat16 ? std::is_same_v<Value, Bfloat16> : std::is_same_v<Value, real>;
  }

  void pack(const TypedRows& rows_of_m, const Array<std::int32_t>& rows, Index begin, Index end,
            std::byte* out) const override {
    if constexpr (std::is_same_v<Value, Bfloat16>)
      if (rows_of_m.is_bfloat16())
        return pack_rows(rows_of_m.bfloat16(), rows_of_m.row_size(), rows, begin, end, out);
    pack_rows(rows_of_m.reals().data(), rows_of_m.row_size(), rows, begin, end, out);
  }

  void pack(const real* values, Index begin, Index end, std::byte* out) const override {
    convert(values, end - begin, reinterpret_cast<Value*>(out));
  }

  void unpack(const std::byte* packed, Index values, real* out) const override {
    convert(reinterpret_cast<const Value*>(packed), values, out);
  }

  void combine(Tensor& tensor, const Array<std::int32_t>& rows, Index begin, Index end,
               const std::byte* packed, ReduceOp op) const override {
    const auto with = [&](const auto& combined) {
      combine_rows<Value>(tensor.data(), tensor.row_size(), rows, begin, end, packed, combined);
    };
    if (op == ReduceOp::sum) return with([](real a, real b) { return a + b; });
    if (op == ReduceOp::max) return with([](real a, real b) { return std::max(a, b); });
    with([](real a, real b) { return std::min(a, b); });
  }

 private:
  template <class From>
  static void pack_rows(const From* first_row, Index row_size, const Array<std::int32_t>& rows, Index begin,
                        Index end, std::byte* out) {
    auto* to = reinterpret_cast<Value*>(out);
    for_each_row(row_size, begin, end, [&](Index i, Index column, Index length) {
      prefetch_later_row(first_row, row_size, rows, i);
      to = convert(first_row + rows[i] * row_size + column, length, to);
    });
  }
  template <class From, class To>
  static To* convert(const From* from, Index n, To* to) {
    if constexpr (std::is_same_v<From, To>) {
      return std::copy_n(from, n, to);
    } else {
      SAR_INDEPENDENT_ITERATIONS
      for (Index i = 0; i < n; ++i) lanes::set_number(to[i], lanes::number(from[i]));
      return to + n;
    }
  }
};

/// Exact sums travel as they are stored: nothing is packed.
class StoredExactSums final : public WireFormat {
 public:
  [[nodiscard]] Index bytes(Index values) const override { return values * bytes_of(NumberType::exact_sums); }
  [[nodiscard]] bool as_stored(NumberType type) const override { return type == NumberType::exact_sums; }
  void pack(const TypedRows&, const Array<std::int32_t>&, Index, Index, std::byte*) const override { fail(); }
  void pack(const real*, Index, Index, std::byte*) const override { fail(); }
  void unpack(const std::byte*, Index, real*) const override { fail(); }
  void combine(Tensor&, const Array<std::int32_t>&, Index, Index, const std::byte*, ReduceOp) const override {
    fail();
  }

 private:
  [[noreturn]] static void fail() { throw CommunicationError("exact sums in another format"); }
};

/// The one object of a format. It lives until the program ends, so the pointer counts nothing.
template <class Format>
WireFormatPtr the_format() {
  static const Format format;
  return {WireFormatPtr(), &format};
}

}  // namespace

WireFormatPtr stored_format(NumberType type) {
  switch (type) {
    case NumberType::reals:
      return the_format<ValuesAs<real>>();
    case NumberType::bfloat16:
      return the_format<ValuesAs<Bfloat16>>();
    case NumberType::exact_sums:
      return the_format<StoredExactSums>();
  }
  return nullptr;
}

void add_exact_sums(ExactSum* sums, Index row_size, const Array<std::int32_t>& rows, Index begin, Index end,
                    const std::byte* packed) {
  const auto* values = reinterpret_cast<const ExactSum*>(packed);
  for_each_row(row_size, begin, end, [&](Index i, Index column, Index length) {
    prefetch_later_row(sums, row_size, rows, i);
    ExactSum* to = sums + rows[i] * row_size + column;
    for (Index j = 0; j < length; ++j) to[j].add(*values++);
  });
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(WireFormatPtr, stored_format, (NumberType type), (type));
SAR_DISPATCH(void, add_exact_sums,
             (ExactSum * sums, Index row_size, const Array<std::int32_t>& rows, Index begin, Index end,
              const std::byte* packed),
             (sums, row_size, rows, begin, end, packed));

#if SAR_COMPILED_ONCE

namespace sar { inline namespace SAR_PRECISION {

WireFormatPtr make_wire_format(HaloFormat format, Index row_size, const RowDraws& draws) {
  switch (format) {
    case HaloFormat::exact:
      return stored_format(NumberType::reals);
    case HaloFormat::bf16:
      return stored_format(NumberType::bfloat16);
    case HaloFormat::int8:
      return make_int8_format(row_size, draws);
  }
  return nullptr;
}
}}  // namespace sar

#endif

// Rows of int8 numbers with one scale per row (halo_format.hpp). A packed row is
//
//     float s, then int8 q_j = floor(x_j / s + u_j), u_j uniform in [0, 1)
//
// Packing takes 32 rows at a time: first their scales, then for each row random words in a buffer in the L1
// cache (core/simd/drawn_rows.hpp) and the rounded columns. A row is read twice, the second time from cache.
// Unpacking and combining are bound by memory bandwidth. Bytes moved per number (float): packing reads 4 and
// writes 1, unpacking reads 1 and writes 4, combining reads 5 and writes 4.

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
