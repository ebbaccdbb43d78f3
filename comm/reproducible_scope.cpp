// SPDX-License-Identifier: MIT
#include <sar/comm/exact_sums.hpp>
#include <sar/comm/reproducible_scope.hpp>

#include <algorithm>
#include <memory>

namespace sar { inline namespace SAR_PRECISION {
namespace {

class SumsOverRanks final : public RankSums {
 public:
  explicit SumsOverRanks(const Communicator& comm) : comm_(comm) {}
  void agree(FunctionRef<void()> body) const override {
    comm_.agree([&] { body(); }, "a reproducible sum");
  }
  void maximum(std::span<double> numbers) const override { comm_.all_reduce(numbers, ReduceOp::max); }
  void sum(std::span<double> numbers) const override { comm_.all_reduce(numbers); }
  void sum(std::span<ExactSum> sums) const override {
    std::ranges::copy(exact_sum_over_ranks(comm_, sums), sums.begin());
  }
  [[nodiscard]] bool is_first() const override { return comm_.rank() == 0; }

 private:
  Communicator comm_;
};

}  // namespace

ReproducibleScope::ReproducibleScope(const Communicator& comm, bool on)
    : scope_(on ? std::make_shared<const SumsOverRanks>(comm) : nullptr) {}

}}  // namespace sar
