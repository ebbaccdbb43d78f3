// SPDX-License-Identifier: MIT

/// Built-in and generated graphs, the same for every number of ranks and every partitioning.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/data/graph_source.hpp>

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

/// Collective. Zachary's karate club (J. Anthropological Research 33, 1977): 34 nodes, 78 friendships in
/// both directions. The label is 0 on the side of the instructor (node 0) and 1 on that of the officer
/// (node 33). Features are one-hot, [34, 34]. These two nodes are the training nodes, nodes 1, 3, 30 and 32
/// are for validation, the others for testing. Throws InputError for more ranks than nodes.
NodeData make_karate(const Communicator& comm, const DatasetOptions& options = {});
/// Local. Returns the same graph as a source.
std::unique_ptr<GraphSource> karate_source(const Communicator& comm);

/// Collective. A homogeneous graph of papers whose features are words, such as Cora, as a graph of papers
/// and words without features: paper:cites:paper has the edges of `papers`, and for each feature of a paper
/// that is not 0 there are an edge of paper:has:word and one of word:in:paper, numbered by paper and word.
/// Papers keep their other data. `papers` outlives the result. A rank needs memory for its share of the
/// words. Throws InputError, the same on every rank, for a graph with several types or without features.
std::unique_ptr<GraphSource> words_source(GraphSource& papers);
}}  // namespace sar
