/// Results of the nodes in the order of the original ids, in one file that all ranks write together.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/tensor.hpp>
#include <sar/graph/io/npy.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace sar::inline SAR_PRECISION {

/// Writes the array [N, shape of a row...]. Its row ids[i] is row i of this rank's `rows`; the ids of all
/// ranks together are 0 .. N - 1, each once. Each rank writes one range of the file, in chunks of about 4
/// MiB. `type` is float16, float32 or float64. Collective. Throws, the same on every rank, InputError for
/// other ids and when the file cannot be written (then it does not exist, or is as it was), ShapeError when
/// there are not as many rows as ids or rows differ in their length.
void write_npy_rows(const Communicator& comm, const std::string& path, const Tensor& rows,
                    std::span<const Index> ids, NpyType type = NpyType::float32);
/// Writes the array int64 [N] of one number for each node. Collective.
void write_npy_rows(const Communicator& comm, const std::string& path, std::span<const std::int64_t> values,
                    std::span<const Index> ids);

}  // namespace sar
