// SPDX-License-Identifier: MIT

/// Training of a potential on energies, forces and stresses.
#pragma once

#include <sar/autograd/gathered_rows.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/nn/atoms/potential_network.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// One or several structures in one graph, with their labels. A label that is undefined takes no part in the
/// loss; the same labels are defined on all ranks. Nor does a number that is NaN, for structures without that
/// label. S structures may be spread over the ranks in any way.
struct LabelledAtoms {
  RowIds species;      ///< [local nodes]
  Tensor positions;    ///< [local nodes, 3]
  Tensor shifts = {};  ///< [local edges, 3], as of PaiNN; undefined: 0
  RowIds structures =
      {};                ///< the structure of each local node, from 0 to S - 1; empty: all are of structure 0
  Tensor energies;       ///< E of each structure, [S]; the same on every rank. Never undefined
  Tensor forces = {};    ///< F, [local nodes, 3]
  Tensor stresses = {};  ///< sigma = dE / d strain / volume, [S, 3, 3]; the same on every rank
  Tensor volumes = {};   ///< [S], positive, if there are stresses; the same on every rank
  /// u, [S, 3]: weights of each structure's energy, forces and stress; undefined: 1; the same on every rank
  Tensor weights = {};
  /// The head of a committee that each structure trains, [S], the same on every rank; empty: their mean
  RowIds heads = {};
};

/// What errors of energies are divided by.
enum class EnergyError {
  per_atom,  ///< N
  per_root,  ///< the root of N
  total      ///< 1
};

/// The weights of the terms of potential_loss, and how errors count.
struct PotentialWeights {
  double energy = 1;
  double forces = 1;
  double stress = 1;
  EnergyError energy_error = EnergyError::per_atom;
  double huber_delta = 0;  ///< errors above it count linearly; 0: all count as squares
};

/// The loss and mean absolute errors, the same on every rank. 0 where there are no labels.
struct PotentialErrors {
  double loss = 0;
  double energy_per_atom = 0;  ///< of E / number of atoms, over the structures
  double force = 0;            ///< over all components
  double stress = 0;           ///< over all components
};

/// Collective. Adds to the gradients of the model's parameters those of the loss, with the N_s atoms of
/// structure s and means over structures, components of forces and components of stresses that have labels:
///
///     L = w_E mean u_s1 h((E_s - E_s') / N_s) + w_F mean u_s2 h(F - F') + w_S mean u_s3 h(sigma - sigma')
///
///     h(d) = d^2, and with huber_delta also 2 delta |d| - delta^2 where |d| > delta
///
/// where sqrt(N_s) or 1 may be in place of N_s, F = -dE/dx, and sigma_ab is the derivative in the strain e of
/// positions x (1 + e) and shifts t (1 + e), divided by the volume. Call gather_grads() before the
/// optimizer's step. The gradients are exact (nn/train/loss.hpp). Throws the same exception on every
/// rank: ShapeError if shapes do not match, InputError for a structure that does not exist or has no atoms,
/// for weights of structures or a huber_delta that are negative or not finite, and as
/// PotentialNetwork::energy().
PotentialErrors backward_potential_loss(const PotentialNetwork& model, const Graph& graph,
                                        const LabelledAtoms& atoms, const PotentialWeights& weights = {});
}}  // namespace sar
