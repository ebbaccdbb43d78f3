// SPDX-License-Identifier: MIT

/// Event files of TensorBoard: named numbers of each step.
#pragma once

#include <sar/core/files/file.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sar::tools {

/// Local. Returns the CRC-32C of bytes (Castagnoli, reflected polynomial 0x82f63b78).
[[nodiscard]] std::uint32_t crc32c(const std::string& bytes) noexcept;

/// Names with values: {"loss", 0.5}.
using Scalars = std::vector<std::pair<std::string, double>>;

/// A file `events.out.tfevents.SECONDS.HOST.PROCESS` that grows by a record a step while TensorBoard reads
/// it. A record is TensorFlow's TFRecord
///
///     uint64 length, uint32 masked CRC-32C of length, the message, uint32 masked CRC-32C of the message
///
/// in little endian, where the mask of a CRC c is ((c >> 15) | (c << 17)) + 0xa282ead8. The message is a
/// protobuf tensorflow.Event: wall_time = 1 (double), step = 2 (int64), file_version = 3, summary = 5 with
/// values = 1 of tag = 1 and simple_value = 2 (float), session_log = 7 with status = 1. For example:
///
///     EventFile events("runs/sage", 1);
///     events.add(1, {{"loss", 0.7}, {"acc/val", 0.5}});
class EventFile {
 public:
  /// Makes the file in an existing directory. It begins with a note that a session starts at `first_step`,
  /// for which TensorBoard drops the values that other files of the directory have for this step and later
  /// ones. Throws InputError if the file cannot be written.
  EventFile(const std::string& directory, std::int64_t first_step);
  /// Appends the values of a step; those that are not finite are left out. Throws InputError as LineFile.
  void add(std::int64_t step, const Scalars& scalars);

 private:
  LineFile file_;
};

}  // namespace sar::tools
