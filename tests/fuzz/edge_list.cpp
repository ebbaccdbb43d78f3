// SPDX-License-Identifier: MIT
#include "fuzz.hpp"

#include <formats/edge_list.hpp>

#include <string_view>

using namespace sar;

/// The bytes as lines of numbers and of names, with the format that is guessed from them.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  return fuzz::run([&] {
    const std::string_view text(reinterpret_cast<const char*>(bytes), size);
    formats::SourceOptions options;
    options.ignore_data = size % 2 == 1;
    const formats::EdgeListFormat format =
        formats::guess_edge_list_format(formats::first_lines(text), options);
    if (format.columns.empty()) return;
    const std::string_view lines = text.substr(static_cast<std::size_t>(format.begin.byte));
    formats::KeyedEdges named;
    const auto counts = formats::parse_edges(lines, format, named);
    if (static_cast<Index>(named.ends.size()) != 2 * counts.rows) std::abort();
    formats::EdgeChunk edges;
    formats::parse_edges(lines, format, edges);
  });
}
