// SPDX-License-Identifier: MIT
#include "fuzz.hpp"

#include <sar/core/files/safetensors.hpp>

using namespace sar;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  return fuzz::run([&] {
    const SafetensorsFile file(fuzz::write_input(bytes, size));
    for (const SafetensorsEntry& entry : file.entries()) {
      fuzz::run([&] { static_cast<void>(file.tensor(entry)); });
      fuzz::run([&] { static_cast<void>(file.integer(entry)); });
    }
    file.verify_checksum();
  });
}
