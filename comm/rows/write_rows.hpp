// SPDX-License-Identifier: MIT

/// Writes node results in the order of the original ids to one file, all ranks together.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/files/npy.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. Writes the array [N, shape of a row...], whose row ids[i] is row i of this rank's `rows`.
/// The ids of all ranks together must be 0 to N - 1, each once. Each rank writes one range of the file, in
/// chunks of about 4 MiB. `type` is float16, float32 or float64. Throws, the same on every rank, InputError
/// for other ids or if the file cannot be written (a previous file is then left unchanged), and ShapeError
/// if the numbers of rows and ids or the row lengths differ.
void write_npy_rows(const Communicator& comm, const std::string& path, const Tensor& rows,
                    std::span<const Index> ids, NpyType type = NpyType::float32);
/// Collective. Writes an int64 array [N] with one number per node.
void write_npy_rows(const Communicator& comm, const std::string& path, std::span<const std::int64_t> values,
                    std::span<const Index> ids);
}}  // namespace sar
