/// The frames of a graph, shared by all copies of its handle.
#pragma once

#include <sar/graph/message/frame.hpp>

namespace sar {

struct Frames {
  bool one_kind;  ///< of nodes: sources and destinations are the same frame
  Frame src;
  Frame dst;
  Frame edge{"edata"};

  explicit Frames(bool is_homogeneous)
      : one_kind(is_homogeneous), src(is_homogeneous ? "ndata" : "srcdata"), dst("dstdata") {}
  [[nodiscard]] Frame& destinations() noexcept { return one_kind ? src : dst; }
};

}  // namespace sar
