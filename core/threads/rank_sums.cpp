// SPDX-License-Identifier: MIT
#include <sar/core/threads/rank_sums.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

thread_local RankSumsPtr current;

}  // namespace

RankSumsScope::RankSumsScope(RankSumsPtr sums) : outer_(std::exchange(current, std::move(sums))) {}
RankSumsScope::~RankSumsScope() {
  current = std::move(outer_);
}

const RankSumsPtr& rank_sums() noexcept {
  return current;
}

}}  // namespace sar
