// SPDX-License-Identifier: MIT
#include <sar/graph/message/source_rows.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {

SourceRows::SourceRows(const GraphShard& remote, TypedRows rows) : remote_(remote), rows_(std::move(rows)) {
  if (remote.num_src_rows > 0) stages_.push_back({0, remote.num_src_rows});
}
SourceRows::SourceRows(const GraphShard& remote, PassVector<HaloStage> stages)
    : remote_(remote), stages_(std::move(stages)) {}
SourceRows::SourceRows(const GraphShard& remote, const std::vector<HaloRows>& kept)
    : remote_(remote), kept_(&kept) {
  for (const HaloRows& stage : kept) stages_.push_back(stage.stage);
}
SourceRows::SourceRows(const GraphShard& remote, const Communicator& comm, const TypedRows& owned,
                       HaloPlan plan, std::vector<HaloRows>* keep)
    : remote_(remote), stages_(plan.halo), keep_(keep) {
  fetch_.emplace(comm, owned, std::move(plan), HaloStart::later);
}

void SourceRows::start(HaloPush* push) {
  if (fetch_)
    fetch_->start(push);
  else if (push != nullptr)
    push->start();
}

Stage SourceRows::next() {
  const std::size_t k = next_++;
  const HaloStage& stage = stages_[k];
  if (fetch_) held_ = *fetch_->next();
  const TypedRows& rows = fetch_ ? held_.rows : kept_ != nullptr ? (*kept_)[k].rows : rows_;
  return {remote_, stage.begin, stage.end, rows.numbers()};
}

void SourceRows::release() {
  if (!fetch_) return;
  if (keep_ != nullptr) keep_->push_back(std::move(held_));
  held_ = {};
  fetch_->release();
}

void SourceRows::finish() {
  if (fetch_) fetch_->finish();
}

}}  // namespace sar
