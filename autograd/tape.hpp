// SPDX-License-Identifier: MIT

/// Tape: records differentiable operations of the thread that made it, during its lifetime.
///
///     {                                   // without a tape, nothing is recorded or kept (inference)
///       sar::Tape tape;
///       Variable loss = cross_entropy(model(graph, x), labels, mask);
///       tape.backward(loss);              // reverse order; each record is freed as soon as it is used
///     }
///
/// Tapes nest; the innermost one records. A variable of an outer tape that is used under an inner one is a
/// leaf there: it accumulates a gradient that the outer tape passes on later. Rematerialization is built on
/// this.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/config.hpp>

#include <functional>
#include <initializer_list>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// A tape; it becomes the current tape of this thread.
///
/// @code
/// Variable w(Tensor::full({3}, 2), /*requires_grad=*/true);
/// {
///   Tape tape;                    // records from here on
///   tape.backward(sum(w * w));
/// }
/// const Tensor gradient = w.grad();  // 2 w
/// @endcode
class Tape : NonCopyable {
 public:
  /// Whether the backward pass of an operation takes exact sums, which come from operations on a chunk of
  /// rows (chunk_sums()) and are rounded only when those of all chunks are added up.
  enum class ExactSums { refused, taken };

  Tape();
  ~Tape();

  /// Adds the gradient of a scalar result to everything it was computed from, or nothing if it throws.
  /// Empties the tape, also if it throws: a second backward() from the same result, or from anything computed
  /// from results of an emptied tape, throws Error. Throws ShapeError if `output` has more than one element.
  /// Collective if recorded operations are.
  void backward(const Variable& output);
  /// Vector-Jacobian product: differentiates the scalar sum(output * seed). `seed` has the shape of `output`.
  void backward(const Variable& output, TypedRows seed);

  /// Returns the tape that records on this thread, or null.
  static Tape* current() noexcept;

  /// The backward pass of an operation: receives the gradient of its output and adds to the gradients of its
  /// inputs. It may overwrite the received gradient if it is unique(). A function of a Tensor receives rows
  /// stored in bfloat16 widened.
  using Backward = std::function<void(TypedRows grad)>;
  /// Appends a record: `backward` is called with the gradient of `output`. Where that is an exact sum that
  /// the operation does not take, the pass throws InputError.
  void record(GradientPtr output, Backward backward, ExactSums sums = ExactSums::refused);

 private:
  struct Record {
    GradientPtr output;
    Backward backward;
    ExactSums sums;
  };
  void run_back();
  void clear() noexcept;

  std::vector<Record> records_;
  Tape* outer_;
};

/// Disables recording on this thread during its lifetime.
///
/// @code
/// const Linear net(64, 4, gen);
/// const Tape tape;
/// const NoTape constants;
/// const Variable y = net(features);  // a constant: the tape keeps nothing
/// @endcode
class NoTape : NonCopyable {
 public:
  NoTape();
  ~NoTape();

 private:
  Tape* hidden_;
};

/// For authors of operations: returns true if a tape is current and one of the inputs requires a gradient.
/// Only then an operation keeps values for the backward pass. Throws InputError, as refuse_tangents() does,
/// if an input is a dual variable: operations that have a tangent (variable.hpp) handle it before.
bool recording(std::initializer_list<const Variable*> inputs, const char* operation = __builtin_FUNCTION());

/// For authors of operations: throws InputError, with the name of the operation, if an input is a dual
/// variable. A collective operation without a tangent calls it before it communicates.
void refuse_tangents(std::initializer_list<const Variable*> inputs,
                     const char* operation = __builtin_FUNCTION());

/// For authors of operations: returns the constant `value` as the output of a recorded operation.
Variable record(const Variable& value, Tape::Backward backward,
                Tape::ExactSums sums = Tape::ExactSums::refused);
}}  // namespace sar
