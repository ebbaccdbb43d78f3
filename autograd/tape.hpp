/// Tape: records differentiable operations while it is in scope, on the thread that made it.
///
///     {                                   // without a tape in scope nothing is recorded or kept (inference)
///       sar::Tape tape;
///       Variable loss = cross_entropy(model(graph, x), labels, mask);
///       tape.backward(loss);              // reverse order; each record is freed as soon as it is used
///     }
///
/// Tapes nest: the innermost one records. A variable of an outer tape that is used under an inner one is a
/// leaf there and collects its gradient, which the outer tape passes on later. Rematerialization is built
/// from that.
#pragma once

#include <sar/autograd/variable.hpp>

#include <functional>
#include <initializer_list>
#include <vector>

namespace sar::inline SAR_PRECISION {

class Tape {
 public:
  Tape();
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// Gradient of a scalar result with respect to everything it was computed from. Empties the tape, also when
  /// it throws: a second backward() from the same result, or from anything that was computed from results of
  /// an emptied tape, throws Error. Throws ShapeError when `output` has more than one element.
  void backward(const Variable& output);
  /// Vector-Jacobian product: as if the scalar sum(output * seed) were differentiated.
  void backward(const Variable& output, Tensor seed);

  [[nodiscard]] std::size_t num_records() const noexcept { return records_.size(); }

  /// The tape that records on this thread now, or null.
  static Tape* current() noexcept;

  /// The backward pass of an operation: receives the gradient of its output, and adds to the gradients of its
  /// inputs. It may overwrite the gradient when that is unique().
  using Backward = std::function<void(Tensor grad)>;
  void record(GradientPtr output, Backward backward);

  /// For authors of operations, in the backward pass of an operation whose record follows those from number
  /// `first` on: differentiates these now, in place of after it, so that they run while the operation waits
  /// for other ranks.
  void run_back_to(std::size_t first);

 private:
  struct Record {
    GradientPtr output;
    Backward backward;
  };
  void clear() noexcept;

  std::vector<Record> records_;
  Tape* outer_;
};

/// While alive, nothing is recorded on this thread.
class NoTape {
 public:
  NoTape();
  ~NoTape();
  NoTape(const NoTape&) = delete;
  NoTape& operator=(const NoTape&) = delete;

 private:
  Tape* hidden_;
};

/// For authors of operations: true when a tape is in scope and one of the inputs wants a gradient. Only then
/// an operation keeps values for the backward pass.
bool recording(std::initializer_list<const Variable*> inputs) noexcept;

/// For authors of operations: makes `value`, a constant, the output of a recorded operation.
Variable record(const Variable& value, Tape::Backward backward);

}  // namespace sar
