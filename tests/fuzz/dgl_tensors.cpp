// SPDX-License-Identifier: MIT
#include "fuzz.hpp"

#include <sar/graph/data/dgl_file.hpp>

using namespace sar;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  return fuzz::run([&] { read_dgl_tensors(fuzz::write_input(bytes, size)); });
}
