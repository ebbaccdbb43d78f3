// SPDX-License-Identifier: MIT
#include "fuzz.hpp"

#include <formats/matrix_market.hpp>

#include <string_view>

using namespace sar;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  return fuzz::run([&] {
    const std::string_view text(reinterpret_cast<const char*>(bytes), size);
    const auto header = formats::parse_matrix_market_header(text);
    formats::MatrixEdges edges;
    formats::parse_matrix_entries(text.substr(header.begin.byte), header, edges);
    for (const Index node : edges.src)
      if (node < 0 || node >= header.size) std::abort();
  });
}
