// SPDX-License-Identifier: MIT
#include "fuzz.hpp"

#include <formats/packed/text_file.hpp>

using namespace sar;

/// Unpacked in pieces, up to 16 MiB.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  return fuzz::run([&] {
    formats::TextFile file(fuzz::write_input(bytes, size));
    std::string piece(size % 7 == 0 ? 1000 : 1 << 16, ' ');
    Index total = 0;
    for (Index got = 1; got > 0 && total < (1 << 24); total += got)
      got = file.read(piece.data(), static_cast<Index>(piece.size()));
    if (total > file.max_text_bytes()) std::abort();
  });
}
