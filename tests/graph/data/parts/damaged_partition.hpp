// SPDX-License-Identifier: MIT

/// For the tests of DGL's partitions: copies of a partition that are damaged.
#pragma once

#include "support/damage.hpp"

#include <sar/graph/data/dgl_partition.hpp>

#include <filesystem>
#include <functional>
#include <string>
#include <utility>

namespace sar::test {

/// Partitions that DGL wrote.
inline const std::string dgl_data = std::string(SAR_TEST_DATA) + "/dgl/";

/// A copy of a partition, which rank 0 damages and all ranks load.
class DamagedPartition {
 public:
  explicit DamagedPartition(std::string name = "homogeneous", std::string json = "cycle.json")
      : name_(std::move(name)), json_(std::move(json)), directory_(comm_) {}

  std::string message(const std::function<void()>& damage) const {
    comm_.barrier();
    if (comm_.rank() == 0) {
      std::filesystem::remove_all(path());
      std::filesystem::copy(dgl_data + name_, path(), std::filesystem::copy_options::recursive);
      damage();
    }
    comm_.barrier();
    const std::string text = thrown_by_all<InputError>(comm_, [&] { load_dgl_partition(comm_, json()); });
    return text.starts_with(path() + "/") ? text.substr(path().size() + 1) : text;
  }
  [[nodiscard]] std::string path() const { return directory_.path() + "/copy"; }
  [[nodiscard]] std::string json() const { return path() + "/" + json_; }
  [[nodiscard]] const Communicator& comm() const { return comm_; }

 private:
  Communicator comm_ = Communicator::world();
  std::string name_, json_;
  TemporaryDirectory directory_;
};

}  // namespace sar::test
