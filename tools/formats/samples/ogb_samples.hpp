// SPDX-License-Identifier: MIT

/// Datasets in the files of OGB's graph property prediction.
#pragma once

#include "formats/source_options.hpp"
#include "sample_dataset.hpp"

#include <sar/comm/communicator.hpp>

#include <string>

namespace sar::formats {

/// Collective. Reads a dataset; `folder` has raw/ and perhaps split/. Throws InputError as read_samples.
SampleDataset read_ogb_samples(const Communicator& comm, const std::string& folder,
                               const SourceOptions& options);

}  // namespace sar::formats
