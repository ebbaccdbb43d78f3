#include <sar/core/error.hpp>
#include <sar/core/number_text.hpp>
#include <sar/graph/io/safetensors.hpp>
#include <sar/graph/message/sharded_graph.hpp>
#include <sar/nn/halo_errors.hpp>

#include <bit>
#include <string_view>
#include <utility>

namespace sar::inline SAR_PRECISION {
namespace {

std::string file_of(const std::string& directory, int rank) {
  return concat(directory, "/rank-", rank, ".safetensors");
}

void add_to(std::uint64_t& hash, std::uint64_t number) {
  hash = std::rotl((hash ^ number) * 0x9e3779b97f4a7c15u, 29);
}

}  // namespace

std::string describe_halos(const Communicator& comm, std::span<const GraphShardManager> graphs) {
  if (graphs.empty()) return {};
  std::uint64_t mine = 0;
  for (const GraphShardManager& graph : graphs) {
    require<InputError>(graph.comm().size() == comm.size(), "a graph with error feedback is on ",
                        graph.comm().size(), " ranks, its checkpoints on ", comm.size(),
                        ", expected the same ranks");
    graph.comm().agree([&] {
      const Array<Index> ids = graph.shards()->with_halo({graph.src_ids().data(), graph.src_ids().size()});
      add_to(mine, ids.size());
      for (const Index id : ids) add_to(mine, static_cast<std::uint64_t>(id));
    });
  }
  return comm.agree([&] {
    std::uint64_t all = 0;
    for (const std::uint64_t of_rank : comm.all_gather(mine)) add_to(all, of_rank);
    return concat(all);
  });
}

void write_halo_errors(const std::string& directory, int rank, std::span<const GraphShardManager> graphs) {
  std::vector<NamedTensor> tensors;
  for (std::size_t g = 0; g < graphs.size(); ++g)
    for (const auto& [operation, errors] : graphs[g].shards()->gradient_errors)
      if (errors.size() > 0) tensors.push_back({concat(g, '.', operation), errors});
  write_safetensors(file_of(directory, rank), tensors, {}, real_type);
}

HaloErrors read_halo_errors(const std::string& directory, int rank,
                            std::span<const GraphShardManager> graphs) {
  const SafetensorsFile file(file_of(directory, rank));
  file.verify_checksum();
  HaloErrors errors(graphs.size());
  for (const SafetensorsEntry& entry : file.entries()) {
    const std::string_view name = entry.name;
    const std::size_t dot = name.find('.');
    const auto g = to_number<std::size_t>(name.substr(0, dot));
    const auto operation = to_number<std::uint64_t>(name.substr(dot + 1));
    require<InputError>(dot != name.npos && g && operation && *g < graphs.size() && entry.shape.size() == 2 &&
                            entry.shape[0] == graphs[*g].shards()->remote.num_src_rows,
                        file.path(), ": there is a tensor '", name,
                        "', expected errors of the halo rows of rank ", rank);
    errors[*g][*operation] = file.tensor(entry);
  }
  return errors;
}

void set_halo_errors(std::span<const GraphShardManager> graphs, HaloErrors errors) noexcept {
  for (std::size_t g = 0; g < graphs.size(); ++g) {
    auto& of_graph = graphs[g].shards()->gradient_errors;
    of_graph.clear();
    if (!errors.empty()) of_graph.swap(errors[g]);
  }
}

}  // namespace sar
