#include "node_classifier.hpp"

#include <sar/models.hpp>

namespace sar::tools {

ModelDescription with_widths(ModelDescription description, Index in_feats, Index out_feats) {
  description.in_feats = in_feats;
  description.out_feats = out_feats;
  return description;
}

NodeClassifier::NodeClassifier(const ModelDescription& description, const Communicator& comm, Generator& gen,
                               bool cached)
    : description_(description.checked("the model")),
      is_described_(!model_type(description.type).has_relations),
      stack_(description_, comm, gen, cached) {
  for (const auto& [name, part] : stack_.parts()) register_module(name, *part);
}

void NodeClassifier::add_input(Module& input) {
  is_described_ = false;
  register_module("input", input);
}

std::map<std::string, std::string> NodeClassifier::metadata() const {
  if (!is_described_) return {};
  return {{model_key, description_.to_json()}};
}

}  // namespace sar::tools
