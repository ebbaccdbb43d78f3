// SPDX-License-Identifier: MIT

/// Parses the JSON options of sar.h.
#pragma once

#include <sar/bindings/c/handle_table.hpp>
#include <sar/graph/construct/host_graph.hpp>

#include <memory>
#include <string>

namespace sar { inline namespace SAR_PRECISION { namespace c_interface {

/// Returns the options of sar_graph_from_global(). Throws InputError for text that is not JSON, an unknown
/// key and a value of the wrong type; the graph itself checks ranges.
HostGraphOptions graph_options(const std::string& text);

/// Returns the object of sar_optimizer_create(). Throws InputError as graph_options() does, as the
/// optimizers, and for limits of clipping that are negative. Adds kind and numbers to `call`.
std::shared_ptr<OptimizerObject> make_optimizer(const std::string& text, std::shared_ptr<ModelObject> model,
                                                CollectiveCall& call);
}}}  // namespace sar
