// SPDX-License-Identifier: MIT

/// Words as nodes of a type of their own.
#pragma once

#include <sar/graph/data/graph_source.hpp>

#include <memory>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. A homogeneous graph of papers whose features are words, such as Cora, as a graph of papers
/// and words without features: paper:cites:paper has the edges of `papers`, and for each feature of a paper
/// that is not 0 there are an edge of paper:has:word and one of word:in:paper, numbered by paper and word.
/// Papers keep their other data. `papers` outlives the result. A rank needs memory for its share of the
/// words. Throws InputError, the same on every rank, for a graph with several types or without features.
std::unique_ptr<GraphSource> words_source(GraphSource& papers);

}}  // namespace sar
