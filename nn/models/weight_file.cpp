// SPDX-License-Identifier: MIT
#include <sar/comm/broadcast_texts.hpp>
#include <sar/core/files/safetensors.hpp>
#include <sar/nn/models/weight_file.hpp>

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

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

/// Returns whether two tensors of the file have the same type, shape and bytes.
bool same_tensors(const SafetensorsFile& file, const std::string& a, const std::string& b) {
  const auto entry = [&](const std::string& name) {
    return *std::ranges::find(file.entries(), name, &SafetensorsEntry::name);
  };
  const SafetensorsEntry of_a = entry(a), of_b = entry(b);
  if (of_a.type != of_b.type || of_a.shape != of_b.shape) return false;
  const auto bytes = [&](const SafetensorsEntry& of) {
    std::vector<std::byte> read(static_cast<std::size_t>(of.bytes()));
    file.read_raw(of, read);
    return read;
  };
  return bytes(of_a) == bytes(of_b);
}

/// Matches the header of a file with the model.
WeightMatch match_file(const std::string& path, const StateDict& model, const WeightNames& names) {
  const SafetensorsFile file(path);
  std::vector<NamedShape> of_file, of_model;
  for (const SafetensorsEntry& entry : file.entries()) of_file.push_back({entry.name, entry.shape});
  for (const NamedBuffer& each : model.tensors) {
    NamedShape& named = of_model.emplace_back();
    named.name = each.name;
    for (int d = 0; d < each.tensor.shape().dims(); ++d) named.shape.push_back(each.tensor.shape()[d]);
  }
  for (const NamedCounter& each : model.counters) of_model.push_back({each.name, {}});
  return match_weights(of_file, of_model, names, path,
                       [&](const std::string& a, const std::string& b) { return same_tensors(file, a, b); });
}

/// Sends the match of rank 0 to all ranks. Collective.
WeightMatch broadcast(const Communicator& comm, const WeightMatch& match) {
  std::vector<std::string> texts;
  for (const WeightLink& link : match.links)
    texts.insert(texts.end(), {link.file, link.model, std::to_string(static_cast<int>(link.layout)),
                               std::to_string(link.size), link.saved});
  texts = broadcast_texts(comm, std::move(texts));
  WeightMatch all{.links = {},
                  .missing = broadcast_texts(comm, match.missing),
                  .absent_biases = broadcast_texts(comm, match.absent_biases)};
  std::vector<std::string> zeros;
  for (const ZeroBias& zero : match.zeros) zeros.insert(zeros.end(), {zero.name, zero.other});
  zeros = broadcast_texts(comm, std::move(zeros));
  for (std::size_t i = 0; i < zeros.size(); i += 2) all.zeros.push_back({zeros[i], zeros[i + 1]});
  for (std::size_t i = 0; i < texts.size(); i += 5)
    all.links.push_back({.file = texts[i],
                         .model = texts[i + 1],
                         .layout = static_cast<WeightLayout>(std::stoi(texts[i + 2])),
                         .size = std::stoll(texts[i + 3]),
                         .saved = texts[i + 4]});
  return all;
}

}  // namespace

WeightFile::WeightFile(const Module& model) : model_(state_dict(model)) {
  for (const NamedBuffer& each : model_.tensors)
    links_.push_back({.file = each.name, .model = each.name, .saved = each.name});
  for (const NamedCounter& each : model_.counters)
    links_.push_back({.file = each.name, .model = each.name, .saved = each.name});
}

Tensor WeightFile::tensor(const std::string& model_name) const {
  return std::ranges::find(model_.tensors, model_name, &NamedBuffer::name)->tensor;
}

Tensor WeightFile::with_other_bias(const std::string& model_name) const {
  const Tensor value = tensor(model_name);
  const auto zero = std::ranges::find(zeros_, model_name, &ZeroBias::other);
  if (zero == zeros_.end()) return value;
  Tensor sum = value.clone();
  const Tensor other = tensor(zero->name);
  for (Index i = 0; i < sum.size(); ++i) sum.data()[i] += other.data()[i];
  return sum;
}

const NamedCounter* WeightFile::counter(const std::string& model_name) const {
  const auto found = std::ranges::find(model_.counters, model_name, &NamedCounter::name);
  return found == model_.counters.end() ? nullptr : &*found;
}

/// Returns a place for each tensor of the file: the model's own tensor where it is read as it is, for one of
/// the model's tensors, and otherwise a new one.
StateDict WeightFile::to_read() const {
  StateDict state;
  std::set<std::string> read;
  for (const WeightLink& link : links_) {
    if (!read.insert(link.file).second) continue;
    if (const NamedCounter* const of_model = counter(link.model))
      state.counters.push_back({link.file, of_model->value});
    else if (link.layout == WeightLayout::same)
      state.tensors.push_back({link.file, tensor(link.model)});
    else if (const Shape shape = tensor(link.model).shape(); link.layout == WeightLayout::transposed)
      state.tensors.push_back({link.file, Tensor({shape[1], shape[0]})});
    else
      state.tensors.push_back({link.file, Tensor({link.size})});
  }
  return state;
}

StateDict WeightFile::to_write() const {
  const bool lacks_both = std::ranges::any_of(zeros_, [&](const ZeroBias& zero) {
    return std::ranges::find(zeros_, zero.other, &ZeroBias::name) != zeros_.end();
  });
  if (!missing_.empty() || lacks_both) return model_;
  StateDict state;
  for (const WeightLink& link : links_) {
    if (const NamedCounter* const of_model = counter(link.model))
      state.counters.push_back({link.saved, of_model->value});
    else if (link.layout == WeightLayout::same)
      state.tensors.push_back({link.saved, with_other_bias(link.model)});
    else
      state.tensors.push_back({link.saved, to_file(with_other_bias(link.model), link.layout, link.size)});
  }
  return state;
}

/// Rank 0 reads the header.
void WeightFile::recognise(const Communicator& comm, const std::string& path, const WeightNames& names) {
  comm.agree([&] {
    WeightMatch match;
    if (comm.rank() == 0) match = match_file(path, model_, names);
    match = broadcast(comm, match);
    links_ = std::move(match.links);
    missing_ = std::move(match.missing);
    absent_biases_ = std::move(match.absent_biases);
    zeros_ = std::move(match.zeros);
  });
}

void WeightFile::take(const WeightLink& link, const Tensor& value) const {
  Tensor target = tensor(link.model);
  target.save();
  if (link.layout == WeightLayout::same && target.data() != value.data())
    target.copy_from(value.reshape(target.shape()));
  if (link.layout == WeightLayout::transposed) target.copy_from(transposed(value));
  const auto one = [&](Index i) { return value.data()[i % value.size()]; };
  if (link.layout == WeightLayout::one_head)
    for (Index i = 0; i < target.size(); ++i) target.data()[i] = one(i);
  if (link.layout != WeightLayout::added) return;
  Tensor destinations = tensor(of_destinations(link.model));
  destinations.save();
  for (Index i = 0; i < target.size(); ++i) {
    target.data()[i] += one(i);
    destinations.data()[i] -= one(i);
  }
}

std::vector<std::string> WeightFile::lines() const {
  std::vector<std::string> lines;
  for (const bool added : {false, true})
    for (const WeightLink& link : links_) {
      if (added != (link.layout == WeightLayout::added) ||
          (link.file == link.model && link.layout == WeightLayout::same))
        continue;
      lines.push_back(link.file + " is taken for " + link.model);
      if (link.layout == WeightLayout::transposed) lines.back() += ", transposed";
      if (link.layout == WeightLayout::one_head) lines.back() += ", for each head";
      if (link.file != link.saved) lines.back() += ", which " + link.saved + " would name";
      if (added)
        lines.back() = link.file + " is added to " + link.model + " and subtracted from " +
                       of_destinations(link.model) + ", the same for every node that has an in-edge";
    }
  for (const ZeroBias& zero : zeros_)
    lines.push_back(zero.name + " is not in the file and becomes 0, because " + zero.other +
                    " is added to the same rows");
  for (const std::string& name : missing_)
    lines.push_back(name + (std::ranges::find(absent_biases_, name) != absent_biases_.end()
                                ? " is not in the file and becomes 0: the layer has no bias there"
                                : " is not in the file and keeps its initial value"));
  return lines;
}

std::vector<std::string> WeightFile::load(const Communicator& comm, const std::string& path,
                                          const WeightNames& names) {
  return comm.agree([&] {
    recognise(comm, path, names);
    const StateDict state = to_read();
    load_state_dict(comm, path, state, {.strict = false});  // all that was dropped is left alone
    for (const bool added : {false, true})  // in this order: `added` changes values that are already there
      for (const WeightLink& link : links_)
        if (added == (link.layout == WeightLayout::added) && counter(link.model) == nullptr)
          take(link, std::ranges::find(state.tensors, link.file, &NamedBuffer::name)->tensor);
    const auto set_zero = [&](const std::string& name) {
      Tensor value = tensor(name);
      value.save();
      value.copy_from(Tensor::zeros(value.shape()));
    };
    for (const ZeroBias& zero : zeros_) set_zero(zero.name);
    for (const std::string& name : absent_biases_) set_zero(name);
    return lines();
  });
}

bool WeightFile::adds_self_loops() const {
  return std::ranges::any_of(links_, [](const WeightLink& link) {
    const std::string leaf = link.file.substr(link.file.rfind('.') + 1);
    return link.layout == WeightLayout::transposed || leaf == "att_src" || leaf == "att_l" || leaf == "att";
  });
}

void WeightFile::save(const Communicator& comm, const std::string& path,
                      std::map<std::string, std::string> metadata) const {
  metadata["format"] = "pt";
  comm.agree([&] { save_state_dict(comm, path, to_write(), real_type, metadata); });
}

std::vector<std::string> load_model_weights(const Communicator& comm, const std::string& path, Module& module,
                                            const WeightNames& names) {
  return comm.agree([&] { return WeightFile(module).load(comm, path, names); });
}

}}  // namespace sar
