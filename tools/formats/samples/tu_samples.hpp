// SPDX-License-Identifier: MIT

/// Datasets in the files of the TU collection.
#pragma once

#include "formats/source_options.hpp"
#include "sample_dataset.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/dataset_options.hpp>

#include <string>

namespace sar::formats {

/// Collective. Reads a dataset; `folder` has NAME_A.txt and the other files. Throws InputError as
/// read_samples.
SampleDataset read_tu_samples(const Communicator& comm, const std::string& folder, const std::string& name,
                              const SourceOptions& options, LabelType labels);

}  // namespace sar::formats
