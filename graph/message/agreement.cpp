// SPDX-License-Identifier: MIT
#include <sar/graph/message/agreement.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {

void add_arguments(CollectiveCall& call, const GraphOptions& options) {
  for_each_field(options, [&call]<class Field>(const char* name, Field field) {
    if constexpr (std::is_enum_v<Field>)
      call.equal(name, field, name_of<Field>);
    else
      call.equal(name, field);
  });
}

Variable record_collective(const Communicator& comm, const Variable& value, Tape::Backward backward) {
  return record(value, [comm, backward = std::move(backward)](TypedRows grad) {
    comm.agree([&] { backward(std::move(grad)); }, "a backward pass");
  });
}

}}  // namespace sar
