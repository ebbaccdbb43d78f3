// SPDX-License-Identifier: MIT
#include "npz.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/npy.hpp>

#include <algorithm>
#include <utility>

namespace sar::formats {

NpzFile::NpzFile(const std::string& path) : zip_(path, "a .npz file") {
  constexpr std::size_t extension = 4;
  for (NpzMember member : zip_.members()) {
    if (!member.name.ends_with(".npy")) continue;
    member.name.resize(member.name.size() - extension);
    members_.push_back(std::move(member));
  }
}

const NpzMember* NpzFile::find(const std::string& name) const {
  const auto found = std::ranges::find(members_, name, &NpzMember::name);
  return found == members_.end() ? nullptr : &*found;
}

PackedArray::PackedArray(const NpzFile& archive, const NpzMember& member)
    : place_(archive.place_of(member)), bytes_(archive.zip(), member, place_), left_(member.bytes) {
  unsigned char head[12] = {};
  const Index head_bytes = std::min<Index>(left_, 10);
  unpack(head, head_bytes);
  if (head_bytes == 10 && head[6] > 1 && left_ >= 2) unpack(head + 10, 2);
  const NpyPreamble preamble = parse_npy_preamble(head, member.bytes, place_);
  std::string text(static_cast<std::size_t>(preamble.data_begin - preamble.text_begin), ' ');
  unpack(text.data(), static_cast<Index>(text.size()));
  header_ = parse_npy_header(text, place_);
  const Index bytes = checked_num_elements(header_.shape, header_.type, place_) * element_bytes(header_.type);
  require<InputError>(bytes == left_, place_, ": the file has ", left_, " bytes of data, expected ", bytes,
                      " for shape ", shape_to_string(header_.shape), " of ", to_string(header_.type));
}

void PackedArray::read(std::byte* out, Index bytes) {
  require<ShapeError>(bytes <= left_, place_, ": cannot read ", bytes, " bytes of ", left_);
  unpack(out, bytes);
  if (header_.big_endian) swap_bytes(header_.type, {out, static_cast<std::size_t>(bytes)});
}

void PackedArray::unpack(void* out, Index bytes) {
  left_ -= bytes_.read(static_cast<char*>(out), bytes);
}

}  // namespace sar::formats
