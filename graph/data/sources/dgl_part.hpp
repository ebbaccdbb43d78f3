// SPDX-License-Identifier: MIT

/// The files of one part of a DGL partition.
#pragma once

#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/data/sources/dgl_partition_json.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Local. Reads the files of one part. Books are left out, and so are the types of the ends of edges where
/// neither the JSON file nor an edge of the part tells them. Throws InputError.
GraphData read_dgl_part(const DglPartition& partition, int part);

}}  // namespace sar
