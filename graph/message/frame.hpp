// SPDX-License-Identifier: MIT

/// Frames: named tensors of a graph's sources, destinations and edges, as in DGL.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/graph/message/edge_types.hpp>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Fields by name. The first dimension of a field counts this rank's nodes (edges); whether it fits is
/// checked, on all ranks together, by the operation that reads it.
class Frame {
 public:
  explicit Frame(std::string name) : name_(std::move(name)) {}

  /// The field, made when it does not exist: frame["h"] = x.
  Variable& operator[](const std::string& field) { return fields_[field]; }
  /// Throws InputError naming the field, the frame and what there is instead.
  [[nodiscard]] const Variable& at(const std::string& field) const;
  [[nodiscard]] bool contains(const std::string& field) const { return fields_.count(field) > 0; }
  void erase(const std::string& field) { fields_.erase(field); }
  [[nodiscard]] std::vector<std::string> keys() const;
  [[nodiscard]] const std::string& name() const noexcept {
    return name_;
  }  ///< "srcdata", "dstdata", "edata"; "ndata" for both ends

 private:
  std::string name_;
  std::map<std::string, Variable> fields_;
};

struct GraphTypes;

/// The frames of a relation, shared by all copies of its handle; those of nodes also by all relations that
/// have these nodes.
struct Frames {
  std::shared_ptr<Frame> src, dst;  ///< the same where sources and destinations are the same nodes
  std::shared_ptr<Frame> edge = std::make_shared<Frame>("edata");
  EdgeType type{"_N", "_E", "_N"};
  std::shared_ptr<GraphTypes> types = nullptr;  ///< of the relation alone, from when they are asked for

  Frames(std::shared_ptr<Frame> sources, std::shared_ptr<Frame> destinations, EdgeType edge_type)
      : src(std::move(sources)), dst(std::move(destinations)), type(std::move(edge_type)) {}
  explicit Frames(bool is_homogeneous)
      : src(std::make_shared<Frame>(is_homogeneous ? "ndata" : "srcdata")),
        dst(is_homogeneous ? src : std::make_shared<Frame>("dstdata")) {}
};

}}  // namespace sar
