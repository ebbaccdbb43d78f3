/// Writing any graph as a dataset directory.
#pragma once

#include <sar/graph/data/graph_source.hpp>

#include <string>

namespace sar {

/// Writes edge_index.npy [2, E], NAME.npy for each field of node data, and edge_NAME.npy for each field of
/// edge data (weight: edge_weight.npy; a name that begins with edge_ stays as it is) into a new directory,
/// the form that load_dataset reads. Edges and nodes keep their numbers. Memory of a rank is its share of the
/// edges and some MB. Collective. Throws InputError, the same on every rank, when the directory exists or
/// cannot be written, for a name that is not a file's, and what the source throws; then nothing stays.
void write_dataset(GraphSource& source, const std::string& directory);

}  // namespace sar
