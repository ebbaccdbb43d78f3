#include <sar/comm/distributed.hpp>
#include <sar/core/error.hpp>
#include <sar/core/rows/elementwise.hpp>
#include <sar/core/trace/trace.hpp>

#include <cstdint>
#include <string>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Returns the values of all tensors, one after another.
Tensor flatten(std::span<const Tensor> tensors) {
  Index total = 0, begin = 0;
  for (const Tensor& tensor : tensors) total += tensor.defined() ? tensor.size() : 0;
  Tensor flat({total});
  for (const Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    flat.slice_rows(begin, begin + tensor.size()).copy_from(tensor.reshape({tensor.size()}));
    begin += tensor.size();
  }
  return flat;
}

void unflatten(const Tensor& flat, std::span<Tensor> tensors) {
  Index begin = 0;
  for (Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    tensor.copy_from(flat.slice_rows(begin, begin + tensor.size()).reshape(tensor.shape()));
    begin += tensor.size();
  }
}

std::string shapes(std::span<const Tensor> tensors) {
  std::string text;
  for (const Tensor& tensor : tensors)
    if (tensor.defined()) text += (text.empty() ? "" : ", ") + tensor.shape().to_string();
  return text.empty() ? "none" : text;
}

std::int64_t digest_of_shapes(std::span<const Tensor> tensors) {
  std::uint64_t digest = 0;
  for (const Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    digest = digest * 31 + tensor.shape().dims() + 1;
    for (int d = 0; d < tensor.shape().dims(); ++d)
      digest = (digest ^ static_cast<std::uint64_t>(tensor.shape()[d])) * 0x9e3779b97f4a7c15;
  }
  return static_cast<std::int64_t>(digest);
}

/// Throws ShapeError on all ranks if the shapes differ. Call it in the body of agree(). Collective.
void require_equal_shapes(const Communicator& comm, std::span<const Tensor> tensors, const char* call) {
  if (comm.all_equal(digest_of_shapes(tensors), call)) return;
  const std::string mine = shapes(tensors), root = comm.broadcast(mine, 0);
  require<ShapeError>(mine == root, call, " got tensors of shapes ", mine, ", expected ", root,
                      " as on rank 0");
}

}  // namespace

void sync_params(const Communicator& comm, std::span<Tensor> params) {
  const TraceScope scope("sync_params", TraceKind::communication);
  comm.agree([&] {
    require_equal_shapes(comm, params, "sync_params");
    Tensor flat = flatten(params);
    comm.broadcast(flat.values(), 0);
    unflatten(flat, params);
  });
}

void gather_grads(const Communicator& comm, std::span<Tensor> grads, bool average) {
  const TraceScope scope("gather_grads", TraceKind::communication);
  comm.agree([&] {
    if (comm.size() == 1) return;
    const CallScope compared(comm, CollectiveCall("gather_grads").equal("average", average));
    require_equal_shapes(comm, grads, "gather_grads");
    Tensor flat = flatten(grads);
    comm.all_reduce(flat.values());
    if (average) binary(BinaryOp::div, flat, Tensor::full({1}, static_cast<real>(comm.size())), flat);
    unflatten(flat, grads);
  });
}

}}  // namespace sar
