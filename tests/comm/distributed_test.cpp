#include <doctest/doctest.h>

#include <sar/comm/distributed.hpp>
#include <sar/core/error.hpp>

#include <cstring>
#include <vector>

using namespace sar;

namespace {

TEST_CASE("sync_params gives every rank the values of rank 0") {
  const Communicator comm = Communicator::world();
  const auto mine = static_cast<real>(comm.rank());
  std::vector<Tensor> params{Tensor::full({3, 2}, mine), Tensor(), Tensor({0, 5}),
                             Tensor::full({4}, mine + 10)};
  sync_params(comm, params);
  for (const real value : params[0].values()) CHECK(value == 0);
  CHECK(!params[1].defined());
  for (const real value : params[3].values()) CHECK(value == 10);
  sync_params(comm, {});

  std::vector<Tensor> different{Tensor::zeros({comm.rank() + 1})};
  if (comm.size() > 1) CHECK_THROWS_AS(sync_params(comm, different), ShapeError);
}

TEST_CASE("gather_grads sums over the ranks, with the same bits on all of them") {
  const Communicator comm = Communicator::world();
  for (const std::size_t bytes : {std::size_t{1} << 30, std::size_t{64}}) {
    comm.set_max_collective_size(bytes);
    const int size = comm.size();
    std::vector<Tensor> grads{Tensor::full({3, 2}, static_cast<real>(comm.rank())), Tensor(),
                              Tensor::zeros({50, 7})};
    for (Index i = 0; i < grads[2].size(); ++i)
      grads[2].data()[i] = real(0.1) * static_cast<real>(i + 17 * comm.rank());
    gather_grads(comm, grads);
    for (const real value : grads[0].values()) CHECK(value == static_cast<real>(size * (size - 1) / 2));
    const std::vector<real> all = comm.all_gather(std::span<const real>(grads[2].values()));
    for (std::size_t q = 0; q < static_cast<std::size_t>(size); ++q)
      CHECK(std::memcmp(all.data() + q * 350, grads[2].data(), grads[2].bytes()) == 0);

    std::vector<Tensor> mean{Tensor::full({5}, static_cast<real>(comm.rank() + 1))};
    gather_grads(comm, mean, true);
    for (const real value : mean[0].values()) CHECK(value == doctest::Approx(0.5 * (size + 1)));
  }
}

}  // namespace
