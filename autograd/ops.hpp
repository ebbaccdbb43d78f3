// SPDX-License-Identifier: MIT

/// Differentiable dense operations.
///
/// An operation is recorded if a tape is current and an operand requires a gradient; for the backward pass it
/// keeps only what its docstring names. Operands are passed by value: an operation may write the result into
/// the memory of a temporary (or std::move(x)) that no other handle refers to, so that chains such as
/// relu(linear(x, w, b)) hold one tensor.
///
/// N is the number of rows, D the last dimension. Operations throw ShapeError, with the shapes, if shapes do
/// not match. All operations are local.
#pragma once

#include <sar/autograd/activations.hpp>
#include <sar/autograd/arithmetic.hpp>
#include <sar/autograd/layout.hpp>
#include <sar/autograd/products.hpp>
#include <sar/autograd/sparse_variable.hpp>
#include <sar/autograd/sums.hpp>
#include <sar/autograd/variable.hpp>
