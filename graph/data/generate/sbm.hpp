// SPDX-License-Identifier: MIT

/// Generated graphs with planted classes.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/data/graph_source.hpp>
#include <sar/graph/data/node_data.hpp>

#include <cstdint>
#include <memory>

namespace sar { inline namespace SAR_PRECISION {

struct SbmOptions {
  Index nodes = 20000;
  double degree = 16;  ///< average number of in-edges
  Index classes = 16;
  Index features = 64;     ///< width
  double homophily = 0.7;  ///< share of the edges that join two nodes of one class
  std::uint64_t seed = 0;
  /// Distance of the class centres from the origin; the noise has standard deviation 1 in each direction.
  /// At 1.6 and 16 classes, the features of a node alone tell its class in a little less than half of the
  /// cases.
  double signal = 1.6;
  double train_share = 0.6;  ///< of the nodes are training nodes; half of the others validate, half test
};

/// Collective. A stochastic block model with power-law degrees and planted classes (degree-corrected:
/// Karrer and Newman, Phys. Rev. E 83, 2011), generated in closed form, so that a rank holds its share and
/// nothing else.
///
/// B is a keyed bijection of the ids. Node v has position j = B^-1(v) and class j mod classes.
/// round(nodes * degree / 2) undirected edges are drawn, without self loops; parallel edges are possible.
/// - The first end is drawn with a density proportional to (j + 1)^(-1/2), so that degrees follow a power law
///   of exponent 3.
/// - The second end is drawn in the same way and moved to the nearest position of a class: that of the first
///   end with probability `homophily`, another one otherwise.
/// - Edge m becomes two directed edges with ids 2m and 2m + 1.
///
/// Features are the centre of the class plus Gaussian noise. A keyed permutation of the nodes begins with the
/// training nodes and ends with the test nodes.
///
/// Throws InputError for options out of range: nodes < 2 classes, degree or width not positive, homophily
/// outside [0, 1], train_share outside (0, 1], or fewer nodes than ranks.
NodeData make_sbm(const Communicator& comm, const SbmOptions& sbm, const DatasetOptions& options = {});
/// The same graph as a source; features in the precision of the library. Local; throws as make_sbm.
std::unique_ptr<GraphSource> sbm_source(const Communicator& comm, const SbmOptions& sbm);

}}  // namespace sar
