// SPDX-License-Identifier: MIT
#include "train_sample_batches.hpp"

#include <string>
#include <utility>

namespace sar::tools {

void SampleBatchSteps::start_batches() {
  if (o_.epochs == 0) return;
  Array<Index> training = labelled_nodes(data_, comm_, {data_.train_mask});
  for (Index& sample : training) sample -= data_.book.begin(comm_.rank());
  loader_.emplace(comm_, samples_, training,
                  DataLoaderOptions{.batch_size = o_.sample.batch_size,
                                    .per_rank = o_.sample.batch_per_rank,
                                    .drop_last = o_.sample.drop_last,
                                    .seed = o_.seed});
  const std::string name = "training " + data_.item + "s";
  require_batches(comm_, o_, loader_->num_batches(), std::ssize(training), name.c_str());
}

void SampleBatchSteps::for_batches(Which which, FunctionRef<void(const Array<Index>& positions)> each) const {
  Array<Index> wanted;
  for (Index g = 0; g < samples_->num_graphs(); ++g)
    if (which == Which::all || data_.train_mask[g] != 0 || data_.val_mask[g] != 0 || data_.test_mask[g] != 0)
      wanted.push_back(g);
  SampleLoader loader(
      comm_, samples_, wanted,
      {.batch_size = o_.sample.batch_size, .per_rank = o_.sample.batch_per_rank, .shuffle = false});
  while (const std::optional<Array<Index>> positions = loader.next_positions()) each(*positions);
}

std::optional<Index> SampleBatchSteps::next_batch() {
  std::optional<Array<Index>> next = loader_->next_positions();
  if (!next) return std::nullopt;
  positions_ = std::move(*next);
  return std::ssize(positions_);
}

}  // namespace sar::tools
