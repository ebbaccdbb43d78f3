// SPDX-License-Identifier: MIT

/// NumPy's archives as sources of graphs.
#pragma once

#include "formats/file_source.hpp"
#include "formats/source_options.hpp"

#include <memory>
#include <string>

namespace sar::formats {

/// A graph in a .npz file, by the names of its arrays (ArrayRoles). Edges are an array [E, 2] or [2, E] of
/// sources and destinations, or a sparse matrix whose entry (i, j) is the edge i -> j and, unless all are 1,
/// has its weight. Node data are "features" [N, F], dense or sparse, "labels" [N] or one-hot [N, classes],
/// "train_mask", "val_mask" and "test_mask" [N], or [N, S] of S splits, also where the file has [S, N]; edge
/// data "weight" and "features". A role that SourceOptions::fields names has that name.
///
/// What scipy.sparse.save_npz writes (csr, csc, coo) is a graph without node data.
///
/// Reads everything, except for arrays that are stored and not deflated: their rows are read when they are
/// asked for. Collective; throws InputError, the same on every rank.
std::unique_ptr<GraphSource> open_npz_source(const Communicator& comm, const std::string& path,
                                             const SourceOptions& options);

}  // namespace sar::formats
