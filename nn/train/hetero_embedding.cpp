#include <sar/core/error.hpp>
#include <sar/nn/train/hetero_embedding.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION {

HeteroEmbedding::HeteroEmbedding(const HeteroGraph& graph, const std::vector<std::string>& types, Index width,
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

void HeteroEmbedding::set_weight(const std::string& type, const Tensor& whole) {
  comm_.agree([&] {
    DistributedEmbedding& embedding = (*this)[type];
    const Shape expected{embedding.book().num_nodes(), embedding.width()};
    require<ShapeError>(whole.shape() == expected, "the rows of '", type, "' have shape ", whole.shape(),
                        ", expected ", expected);
    const std::span<const Index> ids = embedding.original_ids();
    for (const Index id : ids)
      require<InputError>(id >= 0 && id < whole.num_rows(), "'", type, "' has a node of original id ", id,
                          ", there are rows for ", whole.num_rows());
    comm_.barrier();
    Tensor mine = embedding.mine();
    for (Index i = 0; i < mine.num_rows(); ++i) std::copy_n(whole.row(ids[i]), whole.row_size(), mine.row(i));
    embedding.rows().barrier();
  });
}

}}  // namespace sar
