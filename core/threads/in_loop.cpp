// SPDX-License-Identifier: MIT
#include <sar/core/threads/in_loop.hpp>

namespace sar { inline namespace SAR_PRECISION {
namespace {

thread_local int loops_here = 0;

}  // namespace

InLoop::InLoop() noexcept {
  ++loops_here;
}
InLoop::~InLoop() {
  --loops_here;
}
bool InLoop::here() noexcept {
  return loops_here > 0;
}

}}  // namespace sar
