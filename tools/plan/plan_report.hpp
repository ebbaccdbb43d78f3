// SPDX-License-Identifier: MIT

/// The output of `plan`: a table for people, JSON for programs.
#pragma once

#include "plan_prediction.hpp"

#include <string>

namespace sar::tools {

struct Plan {
  PlanOptions options;
  GraphShape shape;
  Rates rates;
  Prediction prediction;
  std::vector<std::string> advice;
};

/// Local.
void print_plan(const Plan& plan);

/// Local. Throws InputError when the file cannot be written.
void write_plan(const std::string& file, const Plan& plan);

}  // namespace sar::tools
