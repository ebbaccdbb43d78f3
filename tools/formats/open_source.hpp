// SPDX-License-Identifier: MIT

/// Opens a graph in files, of whatever format.
///
/// Room tools/formats: Readers of the formats in which people have graphs, for the tools. The library itself
/// needs no zlib.
#pragma once

#include "source_options.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/graph_source.hpp>
#include <sar/graph/data/load_dataset.hpp>

#include <memory>
#include <string>

namespace sar::formats {

/// The source that `path` is:
///     a directory with edge_index.npy          dataset directory
///     a directory with hetero.json             dataset directory with types
///     a directory with raw/                    OGB node property folder, homogeneous or with types
///     a zip archive with .npy files            NumPy's archive (.npz)
///     a zip archive with raw/                  OGB folder as it was downloaded
///     a file that begins with %%MatrixMarket   Matrix Market, plain or gzip; so is one called .mtx
///     any other text                           edge list, plain or gzip
///     empty, with SourceOptions::relations     several edge lists, one for each type of edges
/// Collective; path and options are the same on every rank. Throws InputError, the same on every rank, for
/// what is none of these, is damaged, or does not go with the options.
std::unique_ptr<GraphSource> open_source(const Communicator& comm, const std::string& path,
                                         const SourceOptions& options = {});
/// Collective. The same of what was found at the path; rank 0 decides.
std::unique_ptr<GraphSource> open_source(const Communicator& comm, const FoundDataset& found,
                                         const SourceOptions& options);

}  // namespace sar::formats
