// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/threads/rank_sums.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

thread_local RankSumsPtr current;

class ChunkSums final : public RankSums {
 public:
  void agree(FunctionRef<void()> body) const override { body(); }
  void maximum(std::span<double> /*numbers*/) const override {
    throw InputError(
        "statistics over all rows, such as those of batch norm, in a function of a part of the rows");
  }
  void sum(std::span<double> /*numbers*/) const override {}
  void sum(std::span<ExactSum> /*sums*/) const override {}
  [[nodiscard]] bool is_first() const override { return true; }
  [[nodiscard]] bool is_of_chunk() const override { return true; }
};

}  // namespace

const RankSumsPtr& chunk_sums() {
  static const RankSumsPtr sums = std::make_shared<const ChunkSums>();
  return sums;
}

RankSumsScope::RankSumsScope(RankSumsPtr sums) : outer_(std::exchange(current, std::move(sums))) {}
RankSumsScope::~RankSumsScope() {
  current = std::move(outer_);
}

const RankSumsPtr& rank_sums() noexcept {
  return current;
}

}}  // namespace sar
