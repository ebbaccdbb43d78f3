#include <sar/comm/known_calls.hpp>

#include <algorithm>
#include <mutex>
#include <utility>

namespace sar::inline SAR_PRECISION {
namespace {

thread_local KnownCalls* innermost = nullptr;

/// Those of all threads. Never destroyed: records of static storage may live longer.
struct Records {
  std::mutex mutex;
  std::vector<WorkRecord*> records;

  static Records& all() {
    static auto* const instance = new Records;
    return *instance;
  }
};

}  // namespace

WorkRecord::WorkRecord(MPI_Comm of) : comm(of) {
  Records& all = Records::all();
  const std::lock_guard lock(all.mutex);
  all.records.push_back(this);
}

WorkRecord::~WorkRecord() {
  Records& all = Records::all();
  const std::lock_guard lock(all.mutex);
  std::erase(all.records, this);
}

void WorkRecord::forget_all(MPI_Comm comm) noexcept {
  Records& all = Records::all();
  const std::lock_guard lock(all.mutex);
  for (WorkRecord* record : all.records)
    if (record->comm == comm) record->known = false;
}

KnownCalls::KnownCalls(WorkRecord& record, bool known,
                       const std::vector<PendingExchange*>& under_way) noexcept
    : record_(record), under_way_(under_way), outer_(innermost), known_(known) {
  if (outer_ != nullptr) {
    outer_->leave();
    known_ = false;
    return;
  }
  innermost = this;
  if (known_) return;
  record_.fetches_only = true;
  record_.spent = false;
  record_.exchanges.clear();
}

KnownCalls::~KnownCalls() {
  if (outer_ != nullptr) return;
  if (next() != nullptr) leave();
  innermost = nullptr;
}

KnownCalls* KnownCalls::current() noexcept {
  return innermost;
}

bool KnownCalls::of(MPI_Comm comm) noexcept {
  return innermost != nullptr && innermost->known_ && innermost->is_of(comm);
}

void KnownCalls::before_other_call() noexcept {
  if (innermost != nullptr && !innermost->expected_ && !innermost->once_) innermost->leave();
}

KnownCalls::Expected::Expected() noexcept : calls_(innermost) {
  if (calls_ != nullptr) before_ = std::exchange(calls_->expected_, true);
}
KnownCalls::Expected::~Expected() {
  if (calls_ != nullptr) calls_->expected_ = before_;
}

KnownCalls::Once::Once() noexcept : calls_(innermost != nullptr && !innermost->known_ ? innermost : nullptr) {
  if (calls_ != nullptr) before_ = std::exchange(calls_->once_, true);
}
KnownCalls::Once::~Once() {
  if (calls_ != nullptr) calls_->once_ = before_;
}

void KnownCalls::record(std::unique_ptr<KnownExchange> exchange) {
  record_.sink.resize(std::max(record_.sink.size(), exchange->largest_message()));
  record_.exchanges.push_back(std::move(exchange));
}

const KnownExchange* KnownCalls::next() const noexcept {
  const bool is_known = known_ && record_.fetches_only && !left_ && next_ < record_.exchanges.size();
  return is_known ? record_.exchanges[next_].get() : nullptr;
}

void KnownCalls::leave() noexcept {
  if (!known_) {
    record_.fetches_only = false;
    record_.exchanges.clear();
    return;
  }
  if (left_ || !record_.fetches_only) return;
  if (all_are_here() && next() != nullptr) {
    for (PendingExchange* exchange : under_way_)  // a peer may wait for it first
      if (exchange->under_way_in_agree()) exchange->drain();
    while (next() != nullptr) record_.exchanges[next_++]->take_part_without_rows(record_.sink.data());
  }
  left_ = true;
  record_.spent = true;
}

}  // namespace sar
