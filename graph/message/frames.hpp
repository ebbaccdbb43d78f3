/// The frames of a graph, shared by all copies of its handle.
#pragma once

#include <sar/graph/message/frame.hpp>

namespace sar {

struct Frames {
  bool one_kind;  ///< of nodes: sources and destinations are the same frame
  Frame src;
  Frame dst;
  Frame edge{"edata"};

  explicit Frames(bool one_kind_of_nodes)
      : one_kind(one_kind_of_nodes), src(one_kind_of_nodes ? "ndata" : "srcdata"), dst("dstdata") {}
  [[nodiscard]] Frame& destinations() noexcept { return one_kind ? src : dst; }
};

}  // namespace sar
