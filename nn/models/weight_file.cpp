#include <sar/core/files/safetensors.hpp>
#include <sar/nn/models/weight_file.hpp>

#include <iterator>
#include <span>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Returns the name of the destinations' bias for a name of the sources' bias ("layers.0.fc_src.bias").
std::string of_destinations(std::string name) {
  return name.replace(name.rfind("fc_src"), 6, "fc_dst");
}

Tensor transposed(const Tensor& x) {
  Tensor y({x.shape()[1], x.shape()[0]});
  for (Index i = 0; i < y.num_rows(); ++i)
    for (Index j = 0; j < y.row_size(); ++j) y.row(i)[j] = x.row(j)[i];
  return y;
}

/// Converts a tensor of the model to the layout of the file; with one_head, to `size` elements.
Tensor to_file(const Tensor& value, WeightLayout layout, Index size) {
  if (layout == WeightLayout::transposed) return transposed(value);
  Tensor result = Tensor::zeros({size});
  if (layout == WeightLayout::one_head) {  // valid because logits are the mean of the heads
    const Index heads = value.size() / size;
    for (Index i = 0; i < value.size(); ++i)
      result.data()[i % size] += value.data()[i] / static_cast<real>(heads);
  }
  return result;
}

/// Returns the links between tensors of the file and of the model, four strings each.
std::vector<std::string> links_as_texts(const std::string& path, const StateDict& model,
                                        const WeightNames& names) {
  const SafetensorsFile file(path);
  std::vector<NamedShape> of_file, of_model;
  for (const SafetensorsEntry& entry : file.entries()) of_file.push_back({entry.name, entry.shape});
  for (const NamedBuffer& each : model.tensors) {
    NamedShape& named = of_model.emplace_back();
    named.name = each.name;
    for (int d = 0; d < each.tensor.shape().dims(); ++d) named.shape.push_back(each.tensor.shape()[d]);
  }
  for (const NamedCounter& each : model.counters) of_model.push_back({each.name, {}});
  std::vector<std::string> texts;
  for (const WeightLink& link : match_weights(of_file, of_model, names, path))
    texts.insert(texts.end(), {link.file, link.model, std::to_string(static_cast<int>(link.layout)),
                               std::to_string(link.size)});
  return texts;
}

}  // namespace

WeightFile::WeightFile(const Module& model) : model_(state_dict(model)) {
  for (const NamedBuffer& each : model_.tensors) links_.push_back({each.name, each.name});
  for (const NamedCounter& each : model_.counters) links_.push_back({each.name, each.name});
}

Tensor WeightFile::tensor(const std::string& model_name) const {
  return std::ranges::find(model_.tensors, model_name, &NamedBuffer::name)->tensor;
}

StateDict WeightFile::in_file() const {
  StateDict state;
  for (const WeightLink& link : links_) {
    const auto counter = std::ranges::find(model_.counters, link.model, &NamedCounter::name);
    if (counter != model_.counters.end())
      state.counters.push_back({link.file, counter->value});
    else if (link.layout == WeightLayout::same)
      state.tensors.push_back({link.file, tensor(link.model)});
    else
      state.tensors.push_back({link.file, to_file(tensor(link.model), link.layout, link.size)});
  }
  return state;
}

/// Rank 0 reads the header.
void WeightFile::recognise(const Communicator& comm, const std::string& path, const WeightNames& names) {
  comm.agree([&] {
    std::vector<std::string> texts;
    if (comm.rank() == 0) texts = links_as_texts(path, model_, names);
    auto count = std::ssize(texts);
    comm.broadcast(std::span(&count, 1), 0);
    texts.resize(static_cast<std::size_t>(count));
    for (std::string& text : texts) text = comm.broadcast(text, 0);
    links_.clear();
    for (std::size_t i = 0; i < texts.size(); i += 4)
      links_.push_back({texts[i], texts[i + 1], static_cast<WeightLayout>(std::stoi(texts[i + 2])),
                        std::stoll(texts[i + 3])});
  });
}

void WeightFile::take(const WeightLink& link, const Tensor& value) const {
  Tensor target = tensor(link.model);
  if (link.layout == WeightLayout::transposed) {
    target.copy_from(transposed(value));
    return;
  }
  const auto one = [&](Index i) { return value.data()[i % value.size()]; };
  if (link.layout == WeightLayout::one_head)
    for (Index i = 0; i < target.size(); ++i) target.data()[i] = one(i);
  if (link.layout != WeightLayout::added) return;
  Tensor destinations = tensor(of_destinations(link.model));
  for (Index i = 0; i < target.size(); ++i) {
    target.data()[i] += one(i);
    destinations.data()[i] -= one(i);
  }
}

std::vector<std::string> WeightFile::load(const Communicator& comm, const std::string& path,
                                          const WeightNames& names) {
  return comm.agree([&] {
    recognise(comm, path, names);
    const StateDict state = in_file();
    load_state_dict(comm, path, state);
    std::vector<std::string> lines;
    for (const bool added : {false, true})  // in this order: `added` changes values that are already there
      for (const WeightLink& link : links_) {
        if (added != (link.layout == WeightLayout::added)) continue;
        if (link.layout != WeightLayout::same)
          take(link, std::ranges::find(state.tensors, link.file, &NamedBuffer::name)->tensor);
        if (link.file == link.model && link.layout == WeightLayout::same) continue;
        lines.push_back(link.file + " is taken for " + link.model);
        if (link.layout == WeightLayout::transposed) lines.back() += ", transposed";
        if (link.layout == WeightLayout::one_head) lines.back() += ", for each head";
        if (added)
          lines.back() = link.file + " is added to " + link.model + " and subtracted from " +
                         of_destinations(link.model) + ", the same for every node that has an in-edge";
      }
    return lines;
  });
}

void WeightFile::save(const Communicator& comm, const std::string& path,
                      std::map<std::string, std::string> metadata) const {
  metadata["format"] = "pt";
  comm.agree([&] { save_state_dict(comm, path, in_file(), real_type, metadata); });
}

std::vector<std::string> load_model_weights(const Communicator& comm, const std::string& path, Module& module,
                                            const WeightNames& names) {
  return comm.agree([&] { return WeightFile(module).load(comm, path, names); });
}

}}  // namespace sar
