#include <sar/graph/message/agreement.hpp>
#include <sar/graph/message/trace_names.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {

void add_arguments(CollectiveCall& call, const GraphOptions& options) {
  call.equal("mode", options.mode, name_of<HaloMode>)
      .equal("pipeline_depth", options.pipeline_depth)
      .equal("aggregate_in_double", options.aggregate_in_double)
      .equal("max_halo_bytes", options.max_halo_bytes)
      .equal("edge_block", options.edge_block)
      .equal("halo_format", options.halo_format, name_of<HaloFormat>);
}

Variable record_collective(const Communicator& comm, const Variable& value, Tape::Backward backward) {
  return record(value, [comm, backward = std::move(backward)](Tensor grad) {
    comm.agree([&] { backward(std::move(grad)); }, "a backward pass");
  });
}

}}  // namespace sar
