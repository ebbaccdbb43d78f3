// SPDX-License-Identifier: MIT
#include "curves/event_file.hpp"

#include <sar/core/error.hpp>

#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <ctime>

namespace sar::tools {
namespace {

constexpr std::array<std::uint32_t, 256> crc_of_bytes = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78U : 0U);
    table[byte] = crc;
  }
  return table;
}();

/// The bytes of a whole number, the lowest first.
template <class T>
std::string little_endian(T value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    bytes += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xff);
  return bytes;
}

std::string masked_crc(const std::string& bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return little_endian(((crc >> 15) | (crc << 17)) + 0xa282ead8U);
}

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7f) | 0x80);
  return bytes + static_cast<char>(value);
}

// Fields of protobuf: the number of the field and the type of what follows, then the value.
std::string field_key(unsigned field, unsigned type) {
  return varint(field << 3 | type);
}
std::string whole_field(unsigned field, std::uint64_t value) {
  return field_key(field, 0) + varint(value);
}
std::string double_field(unsigned field, double value) {
  return field_key(field, 1) + little_endian(std::bit_cast<std::uint64_t>(value));
}
std::string float_field(unsigned field, float value) {
  return field_key(field, 5) + little_endian(std::bit_cast<std::uint32_t>(value));
}
std::string bytes_field(unsigned field, const std::string& value) {
  return field_key(field, 2) + varint(value.size()) + value;
}

/// An Event with the time of now. `what`: a field of it.
std::string record_of(std::int64_t step, const std::string& what) {
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const std::string event = double_field(1, now) + whole_field(2, static_cast<std::uint64_t>(step)) + what;
  const std::string length = little_endian(static_cast<std::uint64_t>(event.size()));
  return length + masked_crc(length) + event + masked_crc(event);
}

std::string path_in(const std::string& directory) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0 || host[0] == '\0') host = {"host"};
  return concat(directory, "/events.out.tfevents.", std::time(nullptr), ".", host.data(), ".", ::getpid());
}

}  // namespace

std::uint32_t crc32c(const std::string& bytes) noexcept {
  std::uint32_t crc = 0xffffffffU;
  for (const char c : bytes) crc = (crc >> 8) ^ crc_of_bytes[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}

EventFile::EventFile(const std::string& directory, std::int64_t first_step)
    : file_(path_in(directory), /*append=*/true) {
  constexpr std::uint64_t start = 1;  // SessionLog::START
  file_.add(record_of(0, bytes_field(3, "brain.Event:2")));
  file_.add(record_of(first_step, bytes_field(7, whole_field(1, start))));
}

void EventFile::add(std::int64_t step, const Scalars& scalars) {
  std::string values;
  for (const auto& [tag, value] : scalars)
    if (std::isfinite(value))
      values += bytes_field(1, bytes_field(1, tag) + float_field(2, static_cast<float>(value)));
  file_.add(record_of(step, bytes_field(5, values)));
}

}  // namespace sar::tools
