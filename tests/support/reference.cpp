#include "support/reference.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

namespace sar::test {
namespace {

struct Npy {
  std::string dtype;
  std::vector<Index> shape;
  std::vector<char> bytes;
};

/// Only what the golden vectors use: format 1.0, C order, little endian.
Npy read_npy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  require(file.good(), "cannot open golden vector ", path);
  char magic[10];
  file.read(magic, sizeof magic);
  const auto header_bytes = static_cast<std::size_t>(static_cast<unsigned char>(magic[8])) +
                            256 * static_cast<std::size_t>(static_cast<unsigned char>(magic[9]));
  std::string header(header_bytes, ' ');
  file.read(header.data(), static_cast<std::streamsize>(header_bytes));
  Npy array;
  const auto descr = header.find("'descr': '") + 10;
  array.dtype = header.substr(descr, header.find('\'', descr) - descr);
  auto at = header.find('(') + 1;
  while (header[at] != ')') {
    if (header[at] >= '0' && header[at] <= '9') {
      std::size_t used = 0;
      array.shape.push_back(std::stoll(header.substr(at), &used));
      at += used;
    } else {
      ++at;
    }
  }
  array.bytes.assign(std::istreambuf_iterator<char>(file), {});
  return array;
}

template <class T>
std::vector<T> read_as(const std::string& path, const std::string& dtype) {
  const Npy array = read_npy(path);
  require(array.dtype == dtype, path, " has dtype ", array.dtype, ", expected ", dtype);
  std::vector<T> values(array.bytes.size() / sizeof(T));
  std::memcpy(values.data(), array.bytes.data(), values.size() * sizeof(T));
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

Case::Case(const std::string& name) : directory_(std::string(SAR_TEST_DATA) + "/" + name) {
  std::ifstream file(directory_ + "/args.txt");
  require(file.good(), "no golden vectors in ", directory_);
  for (std::string line; std::getline(file, line);)
    if (const auto equals = line.find('='); equals != std::string::npos)
      args_[line.substr(0, equals)] = line.substr(equals + 1);
}

bool Case::has(const std::string& file) const {
  return std::filesystem::exists(directory_ + "/" + file + ".npy");
}

std::vector<double> Case::values(const std::string& file) const {
  return read_as<double>(directory_ + "/" + file + ".npy", "<f8");
}

Tensor Case::tensor(const std::string& file) const {
  const std::vector<double> data = values(file);
  Tensor result{Shape(std::span<const Index>(read_npy(directory_ + "/" + file + ".npy").shape))};
  std::transform(data.begin(), data.end(), result.data(), [](double x) { return static_cast<real>(x); });
  return result;
}

std::vector<Index> Case::indices(const std::string& file) const {
  return read_as<Index>(directory_ + "/" + file + ".npy", "<i8");
}

std::vector<std::uint8_t> Case::mask(const std::string& file) const {
  return read_as<std::uint8_t>(directory_ + "/" + file + ".npy", "|b1");
}

std::vector<std::string> Case::files(const std::string& prefix) const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() == ".npy" && name.starts_with(prefix))
      names.push_back(name.substr(prefix.size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string Case::arg(const std::string& key) const {
  const auto found = args_.find(key);
  require(found != args_.end(), directory_, "/args.txt has no '", key, "'");
  return found->second;
}

double Case::number(const std::string& key) const {
  return std::stod(arg(key));
}

}  // namespace sar::test
