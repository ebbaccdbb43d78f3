/// Selects the WireFormat of the halo rows and gradients of a pass, from GraphOptions::halo_format. For the
/// sources of graph/ only.
#pragma once

#include <sar/comm/halo/wire_format.hpp>
#include <sar/graph/message/graph_options.hpp>
#include <sar/graph/message/halo_step.hpp>
#include <sar/graph/topology/graph_topology.hpp>

#include <memory>

namespace sar { inline namespace SAR_PRECISION {

/// The formats of one pass, for rows of `row_size` numbers.
class PassFormats {
 public:
  PassFormats(const GraphTopology& graph, const GraphOptions& options, const HaloDraws& draws,
              Index row_size);

  [[nodiscard]] const WireFormat& rows() const noexcept { return *rows_; }
  [[nodiscard]] const WireFormat& gradients() const noexcept { return *gradients_; }

 private:
  std::unique_ptr<const WireFormat> int8_rows_, int8_gradients_;
  const WireFormat* rows_;
  const WireFormat* gradients_;
};

}}  // namespace sar
