#include <sar/comm/distributed.hpp>
#include <sar/core/elementwise.hpp>
#include <sar/core/error.hpp>
#include <sar/core/trace.hpp>

namespace sar::inline SAR_PRECISION {
namespace {

Index total_size(std::span<const Tensor> tensors) {
  Index total = 0;
  for (const Tensor& tensor : tensors)
    if (tensor.defined()) total += tensor.size();
  return total;
}

/// The values of all tensors, one after the other.
Tensor flatten(std::span<const Tensor> tensors) {
  Tensor flat({total_size(tensors)});
  Index begin = 0;
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

}  // namespace

void sync_params(const Communicator& comm, std::span<Tensor> params) {
  const TraceScope scope("sync_params", TraceKind::communication);
  comm.agree([&] {
    const Index mine = total_size(params);
    const Index root = comm.all_gather(mine).front();
    require<ShapeError>(mine == root, "rank ", comm.rank(), " has parameters of ", mine,
                        " elements, rank 0 of ", root);
    Tensor flat = flatten(params);
    comm.broadcast(flat.values(), 0);
    unflatten(flat, params);
  });
}

void gather_grads(const Communicator& comm, std::span<Tensor> grads, bool average) {
  const TraceScope scope("gather_grads", TraceKind::communication);
  comm.agree([&] {
    if (comm.size() == 1) return;
    Tensor flat = flatten(grads);
    comm.all_reduce(flat.values());
    if (average) binary(BinaryOp::div, flat, Tensor::full({1}, static_cast<real>(comm.size())), flat);
    unflatten(flat, grads);
  });
}

}  // namespace sar
