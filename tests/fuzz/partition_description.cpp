// SPDX-License-Identifier: MIT
#include "fuzz.hpp"

#include <sar/graph/data/partition_description.hpp>

#include <string>

using namespace sar;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  return fuzz::run([&] {
    const std::string text(reinterpret_cast<const char*>(bytes), size);
    const std::string understood =
        format_partition_description(parse_partition_description(text, "partition.json"));
    // what has been understood is written so that it is understood again
    if (format_partition_description(parse_partition_description(understood, "again")) != understood)
      std::abort();
  });
}
