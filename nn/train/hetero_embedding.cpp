// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/nn/train/hetero_embedding.hpp>

namespace sar { inline namespace SAR_PRECISION {

HeteroEmbedding::HeteroEmbedding(const Graph& graph, const std::vector<std::string>& types, Index width,
                                 Generator& gen, double bound)
    : comm_(graph.comm()) {
  comm_.agree([&] {
    for (const std::string& type : types) {
      (void)graph.book(type);
      require<InputError>(!of_type_.contains(type), "HeteroEmbedding got the type '", type, "' twice");
      of_type_.try_emplace(type);
    }
  });
  for (const std::string& type : types)
    of_type_.at(type).emplace(type, comm_, graph.book(type), graph.node_ids(type), width, gen, bound);
}

DistributedEmbedding& HeteroEmbedding::operator[](const std::string& type) {
  const auto found = of_type_.find(type);
  require<InputError>(found != of_type_.end(), "HeteroEmbedding has no rows of the type '", type, "'");
  return *found->second;
}

HeteroEmbedding::Rows HeteroEmbedding::operator()() {
  Rows rows;
  for (auto& [type, embedding] : of_type_) rows.emplace(type, (*embedding)());
  return rows;
}

HeteroEmbedding::Rows HeteroEmbedding::operator()(const std::map<std::string, std::span<const Index>>& ids) {
  return comm_.agree([&] {
    Rows rows;
    for (const auto& [type, of_type] : ids) rows.emplace(type, (*this)[type](of_type));
    return rows;
  });
}

EmbeddingRefs HeteroEmbedding::refs() {
  EmbeddingRefs refs;
  for (auto& [type, embedding] : of_type_) refs.emplace_back(*embedding);
  return refs;
}

}}  // namespace sar
