/// Results by node, in the order of the original ids, into one file that all workers write together.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/tensor.hpp>
#include <sar/graph/io/npy.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace sar {

/// Writes the array [N, rows' shape...] whose row ids[i] is row i of this rank's `rows`; the ids of all ranks
/// are 0 .. N - 1, each once. Each rank writes one range of the file; rows travel to it in blocks of about 4
/// MiB. `type` is float16, float32 or float64. Collective. Throws, the same on every rank, InputError when
/// the file cannot be written (then it is not there, or as it was) or ids are not such, ShapeError when there
/// is another number of rows than ids or ranks differ in their width.
void write_npy_rows(const Communicator& comm, const std::string& path, const Tensor& rows,
                    std::span<const Index> ids, NpyType type = NpyType::float32);
/// The array int64 [N] of one number for each node.
void write_npy_rows(const Communicator& comm, const std::string& path, std::span<const std::int64_t> values,
                    std::span<const Index> ids);

}  // namespace sar
