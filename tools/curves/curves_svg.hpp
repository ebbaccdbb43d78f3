// SPDX-License-Identifier: MIT

/// Learning curves as a picture.
///
/// Room tools/curves: What a run shows besides its lines: learning curves and the files of TensorBoard.
/// Nothing here is collective.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sar::tools {

/// A line of a panel. A point that is not finite leaves a gap.
struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points = {};  ///< (x, y), x ascending
};

/// Curves that share their axes, such as the values of a metric on three splits. The y axis is logarithmic if
/// all values are positive and the largest is at least 30 times the least.
struct CurvePanel {
  std::string title;
  std::vector<Curve> curves = {};
};

struct CurvePicture {
  std::string title;
  std::string x_name;  ///< below each panel
  std::vector<CurvePanel> panels = {};
  double mark = 0;             ///< x of a vertical line in each panel; 0: none
  std::string mark_name = {};  ///< what the line stands for
};

/// Local. Returns the picture as SVG, with a panel below the other. A panel without a finite value says so.
[[nodiscard]] std::string to_svg(const CurvePicture& picture);

}  // namespace sar::tools
