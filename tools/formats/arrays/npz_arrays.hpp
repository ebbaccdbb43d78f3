// SPDX-License-Identifier: MIT

/// Arrays of a .npz archive as edges and fields of a graph.
///
/// Room tools/formats/arrays: Graphs in NumPy's archives, by the names of their arrays.
#pragma once

#include "formats/edge_chunks.hpp"
#include "formats/field_data.hpp"
#include "formats/packed/npz.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/files/npy.hpp>

#include <string>
#include <vector>

namespace sar::formats {

/// NumPy's type of the elements of an array, whatever it is: "<f4", "<U33", "|O". Local; throws InputError.
std::string dtype_of(const NpzFile& archive, const NpzMember& member);
/// The text of an array that is one short text, such as `format` of SciPy's archives. Local; throws
/// InputError.
std::string text_of(const NpzFile& archive, const NpzMember& member);
/// Local. Throws InputError for an array of texts or Python objects, and says how Python makes numbers of
/// them.
void require_numbers(const NpzFile& archive, const NpzMember& member);

/// Type and shape of an array of numbers. Collective; throws InputError, the same on every rank.
NpyHeader header_of(const Communicator& comm, const NpzFile& archive, const NpzMember& member);
/// All elements of an array of at most `most` whole numbers, on all ranks. Collective; throws as header_of.
std::vector<Index> read_integers(const Communicator& comm, const NpzFile& archive, const NpzMember& member,
                                 Index most = 1 << 20);

/// The edges of an array [2, E], or [E, 2] if `by_edge`, in the order of their numbers; each rank gets its
/// even share. Ends are only known to be whole
/// numbers from 0 on.
/// Collective; throws InputError, the same on every rank.
void read_edge_array(const Communicator& comm, const NpzFile& archive, const NpzMember& member, bool by_edge,
                     EdgeChunks& chunks);

/// Adds an array with `rows` rows as a field. A stored array is read when its rows are asked for, others at
/// once. `transposed`: rows are the columns of the array. `of` says what has rows: "node of features".
/// Collective; throws InputError, the same on every rank.
void add_array_field(const Communicator& comm, FieldTable& to, const std::string& field,
                     const NpzFile& archive, const NpzMember& member, Index rows, const std::string& of,
                     bool transposed = false);

}  // namespace sar::formats
