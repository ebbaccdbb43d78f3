// SPDX-License-Identifier: MIT

// Loading: rank 0 reads the file, verifies its checksum and checks every name, shape and value. Then the
// values are broadcast tensor by tensor into copies, and copied to the state only when all ranks have all
// of them. Memory: a copy of the values and, until the transaction ends, one of the old state.
#include <sar/comm/broadcast_texts.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/modules/relation_key.hpp>
#include <sar/nn/train/state_dict.hpp>

#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Reserved metadata keys: torch's format and the checksums.
constexpr const char* taken_keys[] = {"format", "crc32", "header_crc32"};

/// Returns, for messages: 'a', 'b' and 3 more
std::string list(const std::vector<std::string>& names) {
  constexpr std::size_t most = 20;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < most; ++i) text += (i > 0 ? ", '" : "'") + names[i] + "'";
  return names.size() > most ? concat(text, " and ", names.size() - most, " more") : text;
}

std::string outline(const StateDict& state) {
  std::string text;
  for (const auto& [name, tensor] : state.tensors) text += name + tensor.shape().to_string() + "\n";
  for (const NamedCounter& counter : state.counters) text += counter.name + "\n";
  return text;
}

/// The values of the file in the order of `state`, or the values of `state` for names that the file lacks.
struct Values {
  std::vector<Tensor> tensors;
  std::vector<std::uint64_t> counters;
};

using Entries = std::map<std::string, const SafetensorsEntry*>;

/// Accepts files that name the layers of relations by the relations' names instead of DGL's keys.
void take_old_name(Entries& entries, const std::string& name) {
  if (name.find("('") == std::string::npos && name.find("(\"") == std::string::npos) return;
  const auto old = std::ranges::find_if(
      entries, [&](const auto& entry) { return with_relation_keys(entry.first) == name; });
  if (old == entries.end()) return;
  const SafetensorsEntry* entry = old->second;
  entries.erase(old);
  entries[name] = entry;
}

/// Reads the file. Called on rank 0 only.
LoadReport read(const std::string& path, const StateDict& state, const LoadOptions& options, Values& values) {
  const SafetensorsFile file(path);
  file.verify_checksum();
  LoadReport report;
  Entries entries;
  for (const SafetensorsEntry& entry : file.entries())
    if (entry.name.starts_with(options.strip_prefix))
      entries[entry.name.substr(options.strip_prefix.size())] = &entry;
    else
      report.unexpected.push_back(entry.name);
  const auto take = [&](const std::string& name) -> const SafetensorsEntry* {
    if (!entries.contains(name)) take_old_name(entries, name);
    const auto found = entries.extract(name);
    if (found.empty()) report.missing.push_back(name);
    return found.empty() ? nullptr : found.mapped();
  };
  std::vector<const SafetensorsEntry*> of_tensors, of_counters;
  for (const NamedBuffer& named : state.tensors) of_tensors.push_back(take(named.name));
  for (const NamedCounter& named : state.counters) of_counters.push_back(take(named.name));
  for (const auto& [name, entry] : entries) report.unexpected.push_back(entry->name);
  const std::string expected = ", expected the names of the model";
  require<InputError>(!options.strict || report.unexpected.empty() || !report.missing.empty(), path,
                      ": the file has ", list(report.unexpected), ", which the model has not", expected);
  require<InputError>(
      !options.strict || report.missing.empty(), path, ": the file has no ", list(report.missing),
      report.unexpected.empty() ? "" : ", and has " + list(report.unexpected) + ", which the model has not",
      expected);

  for (std::size_t i = 0; i < of_tensors.size(); ++i) {
    if (of_tensors[i] == nullptr) continue;
    const Tensor found = file.tensor(*of_tensors[i]);
    const Shape& expected_shape = state.tensors[i].tensor.shape();
    require<InputError>(found.shape() == expected_shape, path, ": the tensor '", of_tensors[i]->name,
                        "' has shape ", found.shape(), ", expected ", expected_shape);
    values.tensors[i] = found;
  }
  for (std::size_t i = 0; i < of_counters.size(); ++i) {
    if (of_counters[i] == nullptr) continue;
    const std::int64_t value = file.integer(*of_counters[i]);
    require<InputError>(value >= 0, path, ": the tensor '", of_counters[i]->name, "' is ", value,
                        ", expected 0 or more");
    values.counters[i] = static_cast<std::uint64_t>(value);
  }
  return report;
}

}  // namespace

StateDict state_dict(const Module& module) {
  StateDict state;
  for (const auto& [name, parameter] : module.named_parameters())
    state.tensors.push_back({name, parameter.value()});
  for (NamedBuffer& buffer : module.named_buffers()) state.tensors.push_back(std::move(buffer));
  state.counters = module.state_dict_counters();
  return state;
}

LoadReport load_state_dict(const Communicator& comm, const std::string& path, const StateDict& state,
                           const LoadOptions& options) {
  return comm.agree([&] {
    const std::string mine = outline(state), first = comm.broadcast(mine, 0);
    Values values;
    LoadReport report;
    comm.agree([&] {  // check that all ranks have the same model before comparing it with the file
      require<InputError>(mine == first, path, ": rank ", comm.rank(),
                          " has other names or shapes than rank 0, expected the same model on all ranks");
    });
    for (const NamedBuffer& named : state.tensors) values.tensors.push_back(named.tensor.clone());
    for (const NamedCounter& named : state.counters) values.counters.push_back(*named.value);
    if (comm.rank() == 0) report = read(path, state, options, values);
    for (Tensor& tensor : values.tensors) comm.broadcast(tensor.values(), 0);
    comm.broadcast(std::span<std::uint64_t>(values.counters), 0);
    report.missing = broadcast_texts(comm, std::move(report.missing));
    report.unexpected = broadcast_texts(comm, std::move(report.unexpected));

    for (std::size_t i = 0; i < values.tensors.size(); ++i) {
      Tensor target = state.tensors[i].tensor;
      target.save();
      target.copy_from(values.tensors[i]);
    }
    for (std::size_t i = 0; i < values.counters.size(); ++i) *state.counters[i].value = values.counters[i];
    return report;
  });
}

std::vector<NamedInteger> integers_of(const std::string& path, const std::vector<NamedCounter>& counters) {
  std::vector<NamedInteger> integers;
  for (const auto& [name, value] : counters) {
    require<InputError>(*value <= std::numeric_limits<std::int64_t>::max(), path, ": the counter '", name,
                        "' is ", *value, ", expected less than 2^63");
    integers.push_back({name, static_cast<std::int64_t>(*value)});
  }
  return integers;
}

void write_state_dict(const std::string& path, const StateDict& state, SafetensorsType type,
                      const std::map<std::string, std::string>& metadata) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, tensor] : state.tensors) tensors.push_back({name, tensor});
  write_safetensors(path, tensors, integers_of(path, state.counters), type, metadata);
}

void save_state_dict(const Communicator& comm, const std::string& path, const StateDict& state,
                     SafetensorsType type, const std::map<std::string, std::string>& metadata) {
  comm.agree([&] {
    if (comm.rank() == 0) write_state_dict(path, state, type, metadata);
  });
}

LoadReport load_weights(const Communicator& comm, const std::string& path, Module& module,
                        const LoadOptions& options) {
  return comm.agree([&] { return load_state_dict(comm, path, state_dict(module), options); });
}

void save_weights(const Communicator& comm, const std::string& path, const Module& module,
                  SafetensorsType type, const std::map<std::string, std::string>& metadata) {
  comm.agree([&] {
    std::map<std::string, std::string> all = metadata;
    for (const char* taken : taken_keys)
      require<InputError>(!all.contains(taken), path, ": the metadata have the key '", taken,
                          "', expected another one");
    all["format"] = "pt";
    save_state_dict(comm, path, state_dict(module), type, all);
  });
}

std::map<std::string, std::string> load_metadata(const Communicator& comm, const std::string& path) {
  return comm.agree([&] {
    std::vector<std::string> texts;
    if (comm.rank() == 0) {
      const SafetensorsFile file(path);
      for (const auto& [key, value] : file.metadata())
        if (std::ranges::find(taken_keys, key) == std::end(taken_keys))
          texts.insert(texts.end(), {key, value});
    }
    texts = broadcast_texts(comm, std::move(texts));
    std::map<std::string, std::string> metadata;
    for (std::size_t i = 0; i < texts.size(); i += 2) metadata[texts[i]] = texts[i + 1];
    return metadata;
  });
}

}}  // namespace sar
