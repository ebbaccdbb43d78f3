// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/sampling/sample_loader.hpp>

#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

namespace {

/// The ids of the samples at these positions, which must be distinct.
Array<Index> ids_of(const Communicator& comm, const GraphSamples& samples, std::span<const Index> positions,
                    const GraphOptions& options) {
  return comm.agree([&] {
    samples.check();
    comm.require_equal(
        CollectiveCall("SampleLoader").equal("list of fields", describe_fields(samples)).equal(options));
    Array<Index> ids;
    std::vector<bool> seen(samples.ids.size(), false);
    for (const Index i : positions) {
      require<InputError>(0 <= i && i < samples.num_graphs(), "there is no graph at position ", i,
                          ", expected ", index_range(samples.num_graphs()));
      require<InputError>(!seen[static_cast<std::size_t>(i)], "the graph at position ", i, " is given twice");
      seen[static_cast<std::size_t>(i)] = true;
      ids.push_back(samples.ids[i]);
    }
    return ids;
  });
}

}  // namespace

SampleLoader::SampleLoader(const Communicator& comm, std::shared_ptr<const GraphSamples> samples,
                           std::span<const Index> positions, const DataLoaderOptions& options,
                           const GraphOptions& graph_options)
    : comm_(comm),
      samples_(std::move(samples)),
      positions_(comm.agree([&] { return Array<Index>(positions.begin(), positions.end()); })),
      batches_(comm, ids_of(comm, *samples_, positions, graph_options), options),
      graph_options_(graph_options) {}

std::optional<Array<Index>> SampleLoader::positions_at_hand(const char* call) const {
  const auto chosen = batches_.at_hand(comm_, call);
  if (!chosen) return std::nullopt;
  Array<Index> positions;
  for (const Index i : *chosen) positions.push_back(positions_[i]);
  return positions;
}

std::optional<Array<Index>> SampleLoader::next_positions() {
  return comm_.agree([&] {
    auto positions = positions_at_hand("SampleLoader::next_positions");
    if (positions) batches_.advance();
    return positions;
  });
}

std::optional<SampleMiniBatch> SampleLoader::next() {
  return comm_.agree([&]() -> std::optional<SampleMiniBatch> {
    auto positions = positions_at_hand("SampleLoader::next");
    if (!positions) return std::nullopt;
    SampleBatch batch(comm_, samples_->select(*positions), graph_options_);
    SampleMiniBatch next{
        .number = batches_.number(), .positions = std::move(*positions), .batch = std::move(batch)};
    batches_.advance();
    return next;
  });
}
}}  // namespace sar
