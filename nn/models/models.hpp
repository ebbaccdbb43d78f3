// SPDX-License-Identifier: MIT

/// Umbrella header of sar::models: networks built from a description, mesh and atomistic models, link
/// prediction.
///
/// Room nn/models: Whole networks: those that a description names, files of their weights, link prediction.
#pragma once

#include <sar/nn/atoms/cell.hpp>
#include <sar/nn/atoms/energy_shifts.hpp>
#include <sar/nn/atoms/mace.hpp>
#include <sar/nn/atoms/neighbor_list.hpp>
#include <sar/nn/atoms/painn.hpp>
#include <sar/nn/atoms/painn_conv.hpp>
#include <sar/nn/atoms/potential_loss.hpp>
#include <sar/nn/atoms/potentials/potential.hpp>
#include <sar/nn/atoms/potentials/potential_labels.hpp>
#include <sar/nn/atoms/potentials/potential_learner.hpp>
#include <sar/nn/models/gcn_norm.hpp>
#include <sar/nn/models/graph_model.hpp>
#include <sar/nn/models/layer_stack.hpp>
#include <sar/nn/models/link_predictor.hpp>
#include <sar/nn/models/mesh_graph_net.hpp>
#include <sar/nn/models/model_description.hpp>
#include <sar/nn/models/predictor.hpp>
#include <sar/nn/models/propagation.hpp>
#include <sar/nn/models/ranking.hpp>
#include <sar/nn/models/relations.hpp>
#include <sar/nn/models/weight_file.hpp>
#include <sar/sar.hpp>
