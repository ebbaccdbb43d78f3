// SPDX-License-Identifier: MIT
#include "fuzz.hpp"

#include <formats/packed/npz.hpp>
#include <sar/core/files/npy.hpp>

#include <algorithm>
#include <vector>

using namespace sar;

/// Every array of an archive, read whole; some first bytes of those that are packed.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  return fuzz::run([&] {
    const formats::NpzFile archive(fuzz::write_input(bytes, size));
    for (const formats::NpzMember& member : archive.members()) {
      fuzz::run([&] {
        if (member.packed) {
          formats::PackedArray array(member);
          std::vector<std::byte> values(std::min<Index>(member.bytes, 1 << 20));
          const Index header =
              member.bytes - checked_num_elements(array.header().shape, array.header().type, "") *
                                 element_bytes(array.header().type);
          array.read(values.data(), std::min(static_cast<Index>(values.size()), member.bytes - header));
        } else {
          const NpyFile array(archive.path(), {member.name, member.begin, member.bytes});
          std::vector<double> values(array.size());
          array.read(0, array.size(), std::span<double>(values));
        }
      });
    }
  });
}
