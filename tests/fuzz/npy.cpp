// SPDX-License-Identifier: MIT
#include "fuzz.hpp"

#include <sar/core/files/npy.hpp>

#include <algorithm>
#include <vector>

using namespace sar;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  return fuzz::run([&] {
    const NpyFile file(fuzz::write_input(bytes, size));
    std::vector<double> values(file.size());
    file.read(0, file.size(), std::span<double>(values));
    if (file.num_rows() == 0) return;
    const std::vector<Index> rows{file.num_rows() - 1, 0};
    std::vector<double> ends(2 * file.row_size());
    file.read_rows(rows, std::span<double>(ends));
  });
}
