/// Reading several parts of a partition directory as one.
#pragma once

#include <sar/graph/data/partition_directory.hpp>

#include <string>

namespace sar {

/// Parts [first, last), one after the other; books are those of the directory. Checked as by read_part().
/// Local.
GraphData read_parts(const std::string& directory, const PartitionDescription& description, int first,
                     int last);

}  // namespace sar
