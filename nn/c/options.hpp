/// Options of sar.h that are JSON texts.
#pragma once

#include <sar/graph/build/host_graph.hpp>
#include <sar/nn/module.hpp>
#include <sar/nn/optimizer.hpp>

#include <memory>
#include <string>

namespace sar::inline SAR_PRECISION::c_interface {

/// Those of sar_graph_from_global(). Throws InputError for a text that is no JSON, an unknown key and a wrong
/// value; the graph itself checks ranges.
HostGraphOptions graph_options(const std::string& text);

/// That of sar_optimizer_create(). Throws InputError as graph_options() does, and as the optimizers.
std::unique_ptr<Optimizer> make_optimizer(const std::string& text, const Module& model);

}  // namespace sar
