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

#include <string>
#include <vector>

namespace sar::formats {

/// The shape of an array of numbers. Collective; throws InputError, the same on every rank.
std::vector<Index> shape_of(const Communicator& comm, const NpzMember& member);
/// All elements of an array of at most `most` whole numbers, on all ranks. Collective; throws as shape_of.
std::vector<Index> read_integers(const Communicator& comm, const NpzMember& member, Index most = 1 << 20);

/// The edges of an array [2, E], or [E, 2] if `by_edge`, in the order of their numbers; each rank gets its
/// even share. Ends are only known to be whole numbers from 0 on. Collective; throws InputError, the same on
/// every rank.
void read_edge_array(const Communicator& comm, const NpzMember& member, bool by_edge, EdgeChunks& chunks);

/// Adds an array with `rows` rows as a field. A stored array is read when its rows are asked for, others at
/// once. `transposed`: rows are the columns of the array. `of` says what has rows: "node of features".
/// Returns the shape. Collective; throws InputError, the same on every rank.
std::vector<Index> add_array_field(const Communicator& comm, FieldTable& to, const std::string& field,
                                   const NpzMember& member, Index rows, const std::string& of,
                                   bool transposed = false);

}  // namespace sar::formats
