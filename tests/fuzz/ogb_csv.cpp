// SPDX-License-Identifier: MIT
#include "fuzz.hpp"

#include <formats/csv_table.hpp>

#include <string_view>
#include <vector>

using namespace sar;

/// The bytes as a table of floating-point numbers, of labels, and of edges.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  formats::TableFormat format{.columns = formats::count_columns(text)};
  if (format.columns == 0) return 0;
  fuzz::run([&] {
    std::vector<float> values;
    const auto counts = formats::parse_table(text, format, values);
    if (static_cast<Index>(values.size()) != counts.rows * format.columns) std::abort();
  });
  format.may_miss = true;
  fuzz::run([&] {
    std::vector<std::int64_t> values;
    formats::parse_table(text, format, values);
  });
  return fuzz::run([&] {
    std::vector<std::int64_t> values;
    formats::parse_table(text, {.columns = 2, .smallest = 0, .largest = 9}, values);
  });
}
