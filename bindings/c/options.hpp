/// Parses the JSON options of sar.h.
#pragma once

#include <sar/graph/construct/host_graph.hpp>
#include <sar/nn/modules/module.hpp>
#include <sar/nn/train/optimizer.hpp>

#include <memory>
#include <string>

namespace sar { inline namespace SAR_PRECISION { namespace c_interface {

/// Returns the options of sar_graph_from_global(). Throws InputError for text that is not JSON, an unknown
/// key and a value of the wrong type; the graph itself checks ranges.
HostGraphOptions graph_options(const std::string& text);

/// Returns the optimizer of sar_optimizer_create(). Throws InputError as graph_options() does, and as the
/// optimizers. Adds kind and numbers to `call`.
std::unique_ptr<Optimizer> make_optimizer(const std::string& text, const Module& model, CollectiveCall& call);
}}}  // namespace sar
