// SPDX-License-Identifier: MIT
#include "support/reference.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/safetensors.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>
#include <span>
#include <string_view>

namespace sar::test {

namespace {

const std::string own_golden_directory = std::string(SAR_TEST_DATA) + "/golden";
const std::vector<std::string> own_groups{"gcn_norm", "peer", "pyg", "sparse", "versions"};

}  // namespace

std::string golden_directory() {
  const char* given = std::getenv("SAR_GOLDEN");
  return given == nullptr ? own_golden_directory : given;
}

/// An open file of golden vectors. Tensors are called "<case>/<array>", metadata "<case>/<argument>".
/// Some groups are not the generator's (tests/data/README.md).
struct GoldenFile {
  SafetensorsFile file;
  std::map<std::string, const SafetensorsEntry*> entries;

  explicit GoldenFile(const std::string& group)
      : file((std::ranges::count(own_groups, group) > 0 ? own_golden_directory : golden_directory()) + "/" +
             group + ".safetensors") {
    for (const SafetensorsEntry& entry : file.entries()) entries[entry.name] = &entry;
  }
};

namespace {

/// Each file is opened once.
const GoldenFile& golden_file(std::string_view group) {
  static std::map<std::string, GoldenFile> files;
  return files.try_emplace(std::string(group), std::string(group)).first->second;
}

template <class T>
std::vector<T> read_as(const GoldenFile& golden, const SafetensorsEntry& entry, SafetensorsType type) {
  require(entry.type == type, golden.file.path(), ": ", entry.name, " has type ", to_string(entry.type),
          ", expected ", to_string(type));
  std::vector<T> values(entry.size);
  golden.file.read_raw(entry, std::as_writable_bytes(std::span(values)));
  return values;
}

double relative_error(const real* a, const double* b, Index size) {
  double error = 0;
  double scale = std::numeric_limits<double>::min();
  for (Index i = 0; i < size; ++i) {
    if (!std::isfinite(a[i])) return std::numeric_limits<double>::infinity();
    error = std::max(error, std::abs(static_cast<double>(a[i]) - b[i]));
    scale = std::max(scale, std::abs(b[i]));
  }
  return error / scale;
}

}  // namespace

double tolerance() {
  return sizeof(real) == 8 ? 1e-9 : 1e-4;
}

double relative_error(const Tensor& a, const std::vector<double>& b) {
  if (a.size() != static_cast<Index>(b.size())) return std::numeric_limits<double>::infinity();
  return relative_error(a.data(), b.data(), a.size());
}

double relative_error(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape())) return std::numeric_limits<double>::infinity();
  return relative_error(a, std::vector<double>(b.values().begin(), b.values().end()));
}

std::vector<std::string> golden_cases(const std::string& group) {
  std::set<std::string> cases;
  for (const auto& [name, entry] : golden_file(group).entries)
    cases.insert(group + "/" + name.substr(0, name.find('/')));
  return {cases.begin(), cases.end()};
}

Case::Case(const std::string& name)
    : golden_(golden_file(std::string_view(name).substr(0, name.find('/')))),
      prefix_(name.substr(name.find('/') + 1) + "/") {
  require(golden_.file.metadata().contains(prefix_ + "case"), golden_.file.path(), ": there is no case ",
          name);
}

bool Case::has(const std::string& array) const {
  return golden_.entries.contains(prefix_ + array);
}

const SafetensorsEntry& Case::entry(const std::string& array) const {
  const auto found = golden_.entries.find(prefix_ + array);
  require(found != golden_.entries.end(), golden_.file.path(), ": there is no ", prefix_, array);
  return *found->second;
}

std::vector<double> Case::values(const std::string& array) const {
  return read_as<double>(golden_, entry(array), SafetensorsType::float64);
}

Tensor Case::tensor(const std::string& array) const {
  const std::vector<double> data = values(array);
  Tensor result{Shape(std::span(entry(array).shape))};
  std::transform(data.begin(), data.end(), result.data(), [](double x) { return static_cast<real>(x); });
  return result;
}

std::vector<Index> Case::indices(const std::string& array) const {
  return read_as<Index>(golden_, entry(array), SafetensorsType::int64);
}

std::vector<std::uint8_t> Case::mask(const std::string& array) const {
  return read_as<std::uint8_t>(golden_, entry(array), SafetensorsType::boolean);
}

std::vector<std::string> Case::arrays(const std::string& prefix) const {
  std::vector<std::string> names;
  const std::string begin = prefix_ + prefix;
  for (auto at = golden_.entries.lower_bound(begin);
       at != golden_.entries.end() && at->first.starts_with(begin); ++at)
    names.push_back(at->first.substr(begin.size()));
  return names;
}

std::string Case::arg(const std::string& key) const {
  const auto found = golden_.file.metadata().find(prefix_ + key);
  require(found != golden_.file.metadata().end(), golden_.file.path(), ": there is no argument ", prefix_,
          key);
  return found->second;
}

double Case::number(const std::string& key) const {
  return std::stod(arg(key));
}

}  // namespace sar::test
