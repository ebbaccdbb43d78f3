// SPDX-License-Identifier: MIT
#include "zip_bytes.hpp"

#include <sar/core/files/npy.hpp>
#include <sar/core/numbers.hpp>

#include <zlib.h>

#include <concepts>
#include <cstdint>
#include <cstdlib>

namespace sar::test {
namespace {

std::string number_bytes(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i & 0xff);
  return text;
}

std::string deflate_bytes(const std::string& text) {
  z_stream z{};
  if (deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK) std::abort();
  std::string packed(deflateBound(&z, text.size()) + 64, ' ');
  z.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<unsigned char*>(packed.data());
  z.avail_out = static_cast<uInt>(packed.size());
  if (deflate(&z, Z_FINISH) != Z_STREAM_END) std::abort();
  packed.resize(z.total_out);
  deflateEnd(&z);
  return packed;
}

std::string element(NpyType type, double value) {
  std::string bytes;
  with_npy_type(type, [&](auto zero) {
    using Element = decltype(zero);
    Element converted{};
    if constexpr (std::same_as<Element, HalfBits>)
      converted.bits = float_to_half(value);
    else
      converted = static_cast<Element>(value);
    bytes.assign(reinterpret_cast<const char*>(&converted), sizeof converted);
  });
  return bytes;
}

}  // namespace

std::string zip(const std::map<std::string, std::string>& members, bool deflated) {
  std::string archive, directory;
  for (const auto& [name, text] : members) {
    const std::string data = deflated ? deflate_bytes(text) : text;
    const auto crc =
        crc32(0, reinterpret_cast<const unsigned char*>(text.data()), static_cast<uInt>(text.size()));
    const std::string common = number_bytes(20, 2) + number_bytes(0, 2) + number_bytes(deflated ? 8 : 0, 2) +
                               number_bytes(0, 4) + number_bytes(crc, 4) + number_bytes(data.size(), 4) +
                               number_bytes(text.size(), 4) + number_bytes(name.size(), 2) +
                               number_bytes(0, 2);
    directory += std::string("PK\1\2") + number_bytes(20, 2) + common + number_bytes(0, 10) +
                 number_bytes(archive.size(), 4) + name;
    archive += std::string("PK\3\4") + common + name + data;
  }
  return archive + directory + std::string("PK\5\6") + number_bytes(0, 4) + number_bytes(members.size(), 2) +
         number_bytes(members.size(), 2) + number_bytes(directory.size(), 4) +
         number_bytes(archive.size(), 4) + number_bytes(0, 2);
}

std::string raw_npy(const std::string& descr, const std::string& shape, const std::string& elements) {
  std::string text = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
  text.append(117 - text.size(), ' ');
  return std::string("\x93NUMPY\1\0", 8) + number_bytes(118, 2) + text + '\n' + elements;
}

std::string npy(NpyType type, std::vector<Index> shape, std::span<const double> values, bool fortran) {
  std::string bytes = format_npy_header(type, shape);
  if (!fortran) {
    for (const double value : values) bytes += element(type, value);
    return bytes;
  }
  bytes.replace(bytes.find("False"), 5, "True ");
  for (Index j = 0; j < shape.at(1); ++j)
    for (Index i = 0; i < shape.at(0); ++i)
      bytes += element(type, values[static_cast<std::size_t>(i * shape[1] + j)]);
  return bytes;
}

}  // namespace sar::test
