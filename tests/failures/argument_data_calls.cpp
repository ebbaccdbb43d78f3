// SPDX-License-Identifier: MIT
#include "failures/argument_calls.hpp"

#include <sar/graph/partition/partition.hpp>

namespace sar::test {
namespace {

void add_samples(ArgumentCalls& calls, const Communicator& comm) {
  using Ids = std::vector<Index>;
  add(
      calls, comm, "graph/sampling/negative_sampler.hpp NegativeSampler",
      [](Scene& s, Index k, std::uint64_t seed, bool loops) {
        const NegativeSampler made(s.graph, {.k = k, .seed = seed, .exclude_self_loops = loops});
      },
      Values<Index>{"k", 1, 2}, Values<std::uint64_t>{"seed", 0, 1},
      Values<bool>{"exclude_self_loops", false, true});
  const Values<std::uint64_t> epoch{"epoch", 0, 1};
  add(
      calls, comm, "graph/sampling/negative_sampler.hpp NegativeSampler::global_uniform",
      [](Scene& s, std::uint64_t e) {
        (void)NegativeSampler(s.graph).global_uniform(Ids{4, 5}, e);
      },
      epoch);
  add(
      calls, comm, "graph/sampling/negative_sampler.hpp NegativeSampler::per_source",
      [](Scene& s, std::uint64_t e) { (void)NegativeSampler(s.graph).per_source(Ids{1}, Ids{4}, e); }, epoch);
  add(
      calls, comm, "graph/sampling/negative_sampler.hpp NegativeSampler::replaced_end",
      [](Scene& s, std::uint64_t e) {
        const std::vector<RelationEnds> may_be{{0, scene_nodes, 0, scene_nodes}};
        (void)NegativeSampler(s.graph).replaced_end(Ids{1}, Ids{2}, Ids{0}, Ids{4}, may_be, e);
      },
      epoch);
  add(
      calls, comm, "graph/sampling/neighbor_sampler.hpp NeighborSampler",
      [](Scene& s, Index fan_out, NeighborMethod method, bool replace, bool redraw, std::uint64_t seed) {
        const NeighborSampler made(s.graph, Ids{2, fan_out},
                                   {.method = method, .replace = replace, .redraw = redraw, .seed = seed});
      },
      Values<Index>{"fan-out", 1, 2},
      Values<NeighborMethod>{"method", NeighborMethod::uniform, NeighborMethod::labor},
      Values<bool>{"replace", false, true}, Values<bool>{"redraw", false, true},
      Values<std::uint64_t>{"seed", 0, 1});
  add(
      calls, comm, "graph/sampling/neighbor_sampler.hpp NeighborSampler::sample_blocks",
      [](Scene& s, std::uint64_t e, Index batch) {
        const Ids seeds{s.book.begin(s.comm.rank())};
        (void)NeighborSampler(s.graph, Ids{2}).sample_blocks(seeds, e, {}, batch);
      },
      epoch, Values<Index>{"batch", 0, 1});
  const auto clusters_of = [](const Scene& s) {
    Array<std::int32_t> clusters;
    for (const Index id : s.graph.dst_ids()) clusters.push_back(static_cast<std::int32_t>(id % 4));
    return clusters;
  };
  add(
      calls, comm, "graph/sampling/cluster_loader.hpp ClusterLoader",
      [=](Scene& s, Index count, bool mix, std::uint64_t of) {
        const ClusterLoader made(s.graph, clusters_of(s),
                                 {.clusters_per_batch = count, .shuffle = mix, .seed = of});
      },
      Values<Index>{"clusters per batch", 1, 2}, Values<bool>{"shuffle", true, false},
      Values<std::uint64_t>{"seed", 0, 1});
  add(
      calls, comm, "graph/sampling/cluster_loader.hpp ClusterLoader::next",
      [=](Scene& s, std::uint64_t e, Index batch) {
        ClusterLoader loader(s.graph, clusters_of(s));
        loader.start_epoch(e, batch);
        (void)loader.next();
      },
      epoch, Values<Index>{"batch", 0, 1});
  add(
      calls, comm, "graph/sampling/saint_loader.hpp SaintLoader",
      [](Scene& s, SaintMethod method, Index draws, Index steps, Index batches, Index coverage, bool scale,
         std::uint64_t of) {
        const SaintLoader made(s.graph, {.method = method,
                                         .draws = draws,
                                         .walk_length = steps,
                                         .batches = batches,
                                         .coverage = coverage,
                                         .scale_messages = scale,
                                         .seed = of});
      },
      Values<SaintMethod>{"method", SaintMethod::edge, SaintMethod::walk}, Values<Index>{"draws", 4, 5},
      Values<Index>{"walk_length", 2, 3}, Values<Index>{"batches", 1, 2}, Values<Index>{"coverage", 1, 2},
      Values<bool>{"scale_messages", true, false}, Values<std::uint64_t>{"seed", 0, 1});
  add(
      calls, comm, "graph/sampling/saint_loader.hpp SaintLoader::next",
      [](Scene& s, std::uint64_t e, Index batch) {
        SaintLoader loader(s.graph, {.draws = 4, .batches = 3});
        loader.start_epoch(e, batch);
        (void)loader.next();
      },
      epoch, Values<Index>{"batch", 0, 1});
  add(
      calls, comm, "graph/sampling/halo_row_cache.hpp HaloRowCache",
      [](Scene& s, Index bytes, Index width) {
        const HaloRowCache made(s.graph, Tensor::full({s.graph.num_nodes(), width}, 1), bytes);
      },
      Values<Index>{"max_bytes", 0, 8}, Values<Index>{"width", 1, 2});
  const Values<Index> size{"batch size", 1, 2};
  const Values<bool> per_rank{"per_rank", false, true}, shuffle{"shuffle", true, false},
      drop{"drop_last", false, true};
  const Values<std::uint64_t> seed{"seed", 0, 1};
  add(
      calls, comm, "graph/sampling/data_loader.hpp SeedBatches",
      [](Scene& s, Index n, bool each, bool mix, bool last, std::uint64_t of) {
        const SeedBatches made(
            s.comm, Ids{s.comm.rank()},
            {.batch_size = n, .per_rank = each, .shuffle = mix, .drop_last = last, .seed = of});
      },
      size, per_rank, shuffle, drop, seed);
  add(
      calls, comm,
      "graph/sampling/data_loader.hpp DataLoader, graph/sampling/data_loader.hpp DataLoader::next",
      [](Scene& s, std::uint64_t e, Index batch) {
        DataLoader loader(NeighborSampler(s.graph, Ids{2}), Ids{s.book.begin(s.comm.rank())},
                          {.batch_size = 1});
        loader.start_epoch(e, batch);
        (void)loader.next();
      },
      epoch, Values<Index>{"batch", 0, 1});
  add(
      calls, comm,
      "graph/sampling/data_loader.hpp EdgeDataLoader, graph/sampling/data_loader.hpp "
      "EdgeDataLoader::next",
      [](Scene& s, ExcludeEdges exclude, Negatives negatives, std::uint64_t e) {
        EdgeDataLoader loader(NeighborSampler(s.graph, Ids{2}), SeedEdges{.src = {0}, .dst = {1}, .id = {2}},
                              {.exclude = exclude, .negatives = negatives});
        loader.start_epoch(e);
        (void)loader.next();
      },
      Values<ExcludeEdges>{"exclude", ExcludeEdges::reverse, ExcludeEdges::none},
      Values<Negatives>{"negatives", Negatives::per_source, Negatives::none}, epoch);
  const auto graphs_of = [](const Scene& s, Index columns) {
    GraphSamples samples;
    samples.add(s.comm.rank(), 2, Ids{0}, Ids{1});
    samples.nodes.tensors["x"] = scene_values({2, columns}, 0);
    return samples;
  };
  const Values<Index> fields{"list of fields", 1, 2};
  add(
      calls, comm, "graph/sampling/graph_samples.hpp SampleBatch",
      [=](Scene& s, Index columns) { const SampleBatch made(s.comm, graphs_of(s, columns)); }, fields);
  add(
      calls, comm, "graph/sampling/graph_samples.hpp SpreadBatch",
      [=](Scene& s, Index columns) { const SpreadBatch made(s.comm, graphs_of(s, columns)); }, fields);
  const auto cell_of = [](double length, bool periodic) {
    return Cell{.vectors = {{{3, 0, 0}, {0, 3, 0}, {0, 0, length}}}, .periodic = {true, true, periodic}};
  };
  const auto atom_of = [](const Scene& s) { return std::vector<double>{0, 0, 0.7 * s.comm.rank()}; };
  const Values<double> cell{"cell", 3, 4};
  const Values<bool> periodic{"periodic direction", false, true};
  add(
      calls, comm, "nn/atoms/neighbor_list.hpp NeighborList",
      [=](Scene& s, double length, bool repeats, double cutoff, double margin, Index block) {
        GraphOptions options;
        options.edge_chunk = block;
        const NeighborList made(s.comm, atom_of(s), cell_of(length, repeats), cutoff, margin, options);
      },
      cell, periodic, Values<double>{"cutoff", 1, 2}, Values<double>{"margin", 0, 1},
      Values<Index>{"edge_chunk", 64, 128});
  add(
      calls, comm, "nn/atoms/neighbor_list.hpp NeighborList::update",
      [=](Scene& s, double length, bool repeats) {
        const std::vector<double> x = atom_of(s);
        NeighborList(s.comm, x, cell_of(3, true), 1).update(x, cell_of(length, repeats));
      },
      cell, periodic);
  add(
      calls, comm, "nn/atoms/energy_shifts.hpp fit_energy_shifts",
      [](Scene& s, Index species) {
        (void)fit_energy_shifts(s.comm, std::vector<double>(static_cast<std::size_t>(species), 1),
                                std::vector<double>{1}, species);
      },
      Values<Index>{"num_species", 1, 2});
  add(
      calls, comm, "nn/atoms/potentials/potential_labels.hpp fit_potential",
      [](Scene& s, Index species) {
        GraphSamples atoms;
        atoms.add(s.comm.rank(), 1, {}, {});
        atoms.nodes.integers["species"].values = {0};
        const std::vector<StructureLabels> labels{{.energy = 1}};
        (void)fit_potential(s.comm, atoms, labels, Tensor::full({1, 3}, 1), std::vector<std::uint8_t>{1},
                            species);
      },
      Values<Index>{"num_species", 1, 2});
  const auto learner_calls = [](Scene& s, const LearnerOptions& options, Index steps, Index first, int root) {
    Generator gen(0);
    Potential potential({.type = "painn", .hidden = 1, .layers = 1, .species = {"A"}, .num_basis = 1}, gen);
    PotentialLearner learner(s.comm, potential, options);
    learner.add({.positions = {0, 0, 0}, .species = {0}, .energy = 1}, root);
    learner.train(steps);
    (void)learner.errors(first);
  };
  add(
      calls, comm, "nn/atoms/potentials/potential_learner.hpp PotentialLearner",
      [=](Scene& s, Index batch_size, double lr, double energy, double forces, double stress, double delta,
          double clip_norm, double average, std::uint64_t draws) {
        learner_calls(
            s,
            {.batch_size = batch_size,
             .lr = lr,
             .weights = {.energy = energy, .forces = forces, .stress = stress, .huber_delta = delta},
             .clip_norm = clip_norm,
             .average = average,
             .seed = draws},
            0, 0, 0);
      },
      Values<Index>{"batch_size", 1, 2}, Values<double>{"lr", 0.1, 0.2},
      Values<double>{"weight of energies", 1, 2}, Values<double>{"weight of forces", 1, 2},
      Values<double>{"weight of stresses", 1, 2}, Values<double>{"huber_delta", 1, 2},
      Values<double>{"clip_norm", 1, 2}, Values<double>{"average", 0.5, 0.6},
      Values<std::uint64_t>{"seed", 0, 1});
  add(
      calls, comm, "nn/atoms/potentials/potential_learner.hpp PotentialLearner::add",
      [=](Scene& s, int root) { learner_calls(s, {}, 0, 0, root); }, Values<int>{"root", 0, 1});
  add(
      calls, comm, "nn/atoms/potentials/potential_learner.hpp PotentialLearner::train",
      [=](Scene& s, Index steps) { learner_calls(s, {}, steps, 0, 0); }, Values<Index>{"steps", 1, 2});
  add(
      calls, comm, "nn/atoms/potentials/potential_learner.hpp PotentialLearner::errors",
      [=](Scene& s, Index first) { learner_calls(s, {}, 0, first, 0); }, Values<Index>{"first", 0, 1});
  add(
      calls, comm, "graph/sampling/graph_samples.hpp SampleLoader",
      [=](Scene& s, Index columns) {
        const SampleLoader made(s.comm, std::make_shared<const GraphSamples>(graphs_of(s, columns)), Ids{0});
      },
      fields);
  add(
      calls, comm, "graph/sampling/graph_samples.hpp SampleLoader::next",
      [=](Scene& s, std::uint64_t e, Index batch) {
        SampleLoader loader(s.comm, std::make_shared<const GraphSamples>(graphs_of(s, 1)), Ids{0},
                            {.batch_size = 1});
        loader.start_epoch(e, batch);
        (void)loader.next();
      },
      epoch, Values<Index>{"batch", 0, 1});
  add(
      calls, comm, "graph/sampling/graph_samples.hpp SampleLoader::next_positions",
      [=](Scene& s, std::uint64_t e, Index batch) {
        SampleLoader loader(s.comm, std::make_shared<const GraphSamples>(graphs_of(s, 1)), Ids{0},
                            {.batch_size = 1});
        loader.start_epoch(e, batch);
        (void)loader.next_positions();
      },
      epoch, Values<Index>{"batch", 0, 1});
  add(
      calls, comm, "graph/construct/message_flow_graph.hpp construct_mfgs",
      [](Scene& s, int layers) { (void)construct_mfgs(s.graph, Ids{s.book.begin(s.comm.rank())}, layers); },
      Values<int>{"number of layers", 1, 2});
}

void add_data(ArgumentCalls& calls, const Communicator& comm, const std::string& directory) {
  add(
      calls, comm, "graph/data/splits.hpp split_edges",
      [](Scene& s, double valid, double test, std::uint64_t seed) {
        NodeData data;
        data.book = s.book;
        data.edges = scene_edges(s.book, s.comm.rank());
        for (Index v = s.book.begin(s.comm.rank()); v < s.book.end(s.comm.rank()); ++v)
          data.original_ids.push_back(v);
        (void)split_edges(s.comm, data, {.valid = valid, .test = test, .seed = seed});
      },
      Values<double>{"valid", 0.1, 0.2}, Values<double>{"test", 0.1, 0.2},
      Values<std::uint64_t>{"seed", 0, 1});
  const auto share = [](double of) { return SplitPart{.share = of}; };
  add(
      calls, comm, "graph/data/splits.hpp draw_split",
      [=](Scene& s, double train, double valid, double test, std::uint64_t seed) {
        NodeData data;
        data.book = s.book;
        for (Index v = s.book.begin(s.comm.rank()); v < s.book.end(s.comm.rank()); ++v) {
          data.original_ids.push_back(v);
          data.labels.push_back(0);
        }
        data.num_classes = 1;
        draw_split(s.comm, data, {share(train), share(valid), share(test), seed});
      },
      Values<double>{"train", 0.3, 0.4}, Values<double>{"valid", 0.1, 0.2}, Values<double>{"test", 0.1, 0.2},
      Values<std::uint64_t>{"seed", 0, 1});
  const Values<PartitionMethod> method{"method", PartitionMethod::ldg, PartitionMethod::random};
  const Values<std::uint64_t> seed{"seed", 0, 1};
  add(
      calls, comm, "graph/partition/partition.hpp partition_nodes",
      [](Scene& s, PartitionMethod by, std::uint64_t of) {
        (void)partition_nodes(s.comm, scene_nodes, scene_edges(s.book, s.comm.rank()), by, of);
      },
      method, seed);
  add(
      calls, comm, "graph/partition/partition.hpp assign_nodes",
      [](Scene& s, PartitionMethod by, int parts, std::uint64_t of, bool balance, int passes) {
        const AssignmentOptions options{
            .parts = parts, .seed = of, .balance_edges = balance, .passes = passes};
        (void)assign_nodes(s.comm, scene_nodes, scene_edges(s.book, s.comm.rank()), by, options);
      },
      method, Values<int>{"number of parts", 3, 2}, seed, Values<bool>{"balance_edges", true, false},
      Values<int>{"passes", 2, 3});
  add(
      calls, comm, "graph/partition/clusters.hpp cluster_nodes",
      [](Scene& s, Index clusters, PartitionMethod by, std::uint64_t of) {
        (void)cluster_nodes(s.comm, s.book, s.graph.dst_ids(), scene_edges(s.book, s.comm.rank()),
                            {.clusters = clusters, .method = by, .seed = of});
      },
      Values<Index>{"number of clusters", 3, 2}, method, seed);
  add(
      calls, comm, "graph/data/partition_graph.hpp partition_graph",
      [=, number = std::make_shared<int>(0)](Scene& s, int parts, PartitionMethod by, NodeOrder order,
                                             std::uint64_t of, bool edges, bool training, bool self) {
        const PartitionGraphOptions options{
            .parts = parts,
            .data = {.add_self_loops = self, .partition = by, .partition_seed = of},
            .order = order,
            .balance_edges = edges,
            .balance_training = training};
        const std::string path = concat(directory, "/parts", ++*number);
        (void)partition_graph(*karate_source(s.comm), path, options);
      },
      Values<int>{"number of parts", 2, 3},
      Values<PartitionMethod>{"partition", PartitionMethod::ldg, PartitionMethod::random},
      Values<NodeOrder>{"order", NodeOrder::clusters, NodeOrder::original},
      Values<std::uint64_t>{"partition_seed", 0, 1}, Values<bool>{"balance_edges", true, false},
      Values<bool>{"balance_training", true, false}, Values<bool>{"add_self_loops", false, true});
  add(
      calls, comm, "graph/partition/node_partition.hpp NodePartition::from_assignment",
      [](Scene& s, int parts) {
        const PartitionBook slices = PartitionBook::even(scene_nodes, s.comm.size());
        const std::vector<std::int32_t> part_of(static_cast<std::size_t>(slices.num_nodes(s.comm.rank())), 1);
        (void)NodePartition::from_assignment(s.comm, part_of, parts);
      },
      Values<int>{"number of parts", 3, 2});
  add(
      calls, comm, "graph/data/generators.hpp make_sbm",
      [](Scene& s, Index nodes, double degree, Index classes, Index width, double homophily, std::uint64_t of,
         double signal, double training) {
        (void)make_sbm(s.comm, {nodes, degree, classes, width, homophily, of, signal, training});
      },
      Values<Index>{"nodes", 24, 25}, Values<double>{"degree", 3, 4}, Values<Index>{"classes", 2, 3},
      Values<Index>{"features", 3, 4}, Values<double>{"homophily", 0.7, 0.6}, seed,
      Values<double>{"signal", 1.6, 1.5}, Values<double>{"train_share", 0.6, 0.5});
  const Values<bool> loops{"add_self_loops", false, true}, labels{"labels", true, false};
  add(
      calls, comm, "graph/data/load_dataset.hpp load_graph",
      [](Scene& s, bool with) { (void)load_graph(*karate_source(s.comm), {.add_self_loops = with}); }, loops);
  add(
      calls, comm, "graph/data/graph_view.hpp to_node_data",
      [](Scene& s, bool with) {
        (void)to_node_data(s.comm, load_graph(*karate_source(s.comm), {}), {.labels = with});
      },
      labels);
  const auto type_of = [](const GraphData& graph) { return graph.node_types.front().name; };
  add(
      calls, comm, "graph/data/graph_view.hpp node_data_of",
      [=](Scene& s, bool with) {
        const GraphData graph = load_graph(*karate_source(s.comm), {});
        (void)node_data_of(s.comm, graph, type_of(graph), {.labels = with});
      },
      labels);
  add(
      calls, comm, "graph/data/graph_view.hpp category_data",
      [=](Scene& s, bool with, bool trains) {
        const GraphData graph = load_graph(*karate_source(s.comm), {});
        (void)category_data(s.comm, graph, type_of(graph), {.labels = with}, trains);
      },
      labels, Values<bool>{"choice of training", false, true});
  add(
      calls, comm, "graph/data/generators.hpp make_karate, graph/data/load_dataset.hpp load_dataset",
      [](Scene& s, bool reverse, bool self, bool once, bool normal, PartitionMethod by, std::uint64_t of,
         SparseFeatures sparse) {
        DatasetOptions options{reverse, self, once, normal, by, of};
        options.sparse_features = sparse;
        (void)make_karate(s.comm, options);
      },
      Values<bool>{"add_reverse_edges", false, true}, loops, Values<bool>{"drop_duplicates", false, true},
      Values<bool>{"normalize_features", false, true},
      Values<PartitionMethod>{"partition", PartitionMethod::random, PartitionMethod::contiguous},
      Values<std::uint64_t>{"partition_seed", 0, 1},
      Values<SparseFeatures>{"sparse_features", SparseFeatures::no, SparseFeatures::yes});
}

}  // namespace

void add_data_arguments(ArgumentCalls& calls, const Communicator& comm, const std::string& directory) {
  add_samples(calls, comm);
  add_data(calls, comm, directory);
}

std::map<std::string, std::string> functions_without_arguments() {
  const std::string by_length =
      "the communicator compares length, root and type of number, or nothing can differ";
  const std::string of_rows =
      "what a rank has may differ; the shape of a row is checked in the test of the header";
  const std::string by_parts =
      "the functions that it calls compare their arguments; its options are a model's state";
  const std::string of_rank_0 = "rank 0 accesses the file, and sends what it has read";
  const std::string none = "no argument must be equal but the objects";
  return {{"comm/communicator.hpp ", by_length},
          {"comm/broadcast_texts.hpp ", by_length},
          {"comm/environment.hpp default_num_threads", none},
          {"graph/sampling/halo_row_cache.hpp HaloRowCache::keep_hottest", none},
          {"graph/sampling/halo_row_cache.hpp HaloRowCache::start", none},
          {"comm/rows/", of_rows},
          {"comm/trace.hpp ", "each rank writes its part"},
          {"graph/sampling/graph_samples.hpp SpreadBatch::to_samples", of_rows},
          {"graph/sampling/negative_sampler.hpp ", of_rows},
          {"graph/data/splits.hpp ", of_rows},
          {"graph/construct/message_flow_graph.hpp MessageFlowGraph", none},
          {"graph/construct/message_flow_graph.hpp with_types", none},
          {"graph/sampling/neighbor_sampler.hpp NeighborSampler::nodes_of", of_rows},
          {"graph/message/started_sum.hpp StartedSum::finish", of_rows},
          {"graph/sampling/node_pairs.hpp ", of_rows},
          {"graph/data/distributed_data.hpp ", of_rows},
          {"graph/data/generators.hpp words_source", none},
          {"graph/data/graph_source.hpp ", of_rows},
          {"graph/data/relation_data.hpp construct_hetero_graph", by_parts},
          {"graph/data/partition_directory.hpp ", of_rank_0},
          {"graph/data/dataset_source.hpp DatasetSource", of_rank_0},
          {"graph/data/load_dataset.hpp open_dataset", of_rank_0},
          {"graph/data/dataset_source.hpp write_dataset", of_rank_0},
          {"graph/message/graph.hpp Graph::call", by_parts},
          {"graph/message/graph.hpp Graph::to_homogeneous", none},
          {"graph/message/graph.hpp fetch_edge_rows", of_rows},
          {"graph/message/graph.hpp Graph::local_edge_rows", of_rows},
          {"graph/partition/node_partition.hpp NodePartition::to_partitioned", of_rows},
          {"nn/conv/", by_parts},
          {"nn/models/ranking.hpp KnownEdges", of_rows},
          {"nn/models/ranking.hpp relation_edges", none},
          {"nn/models/link_predictor.hpp link_bce_with_logits", none},
          {"nn/models/link_predictor.hpp ", by_parts},
          {"nn/models/ranking.hpp mean_reciprocal_rank", none},
          {"nn/models/gcn_norm.hpp count_self_loops", none},
          {"nn/models/gcn_norm.hpp gcn_norm_of_weights", of_rank_0},
          {"nn/models/graph_model.hpp GraphModel::operator", by_parts},
          {"nn/models/graph_model.hpp load_model", of_rank_0},
          {"nn/models/graph_model.hpp save_model", of_rank_0},
          {"nn/models/relations.hpp relations_of", none},
          {"nn/models/layer_stack.hpp ", by_parts},
          {"nn/models/mesh_graph_net.hpp ", by_parts},
          {"nn/atoms/mace.hpp ", by_parts},
          {"nn/atoms/potential_network.hpp ", by_parts},
          {"nn/atoms/tensor_product_sums.hpp ", by_parts},
          {"nn/atoms/painn_conv.hpp ", by_parts},
          {"nn/atoms/potential_loss.hpp ", by_parts},
          {"nn/atoms/potentials/potential.hpp Potential::operator", by_parts},
          {"nn/atoms/potentials/potential.hpp load_potential", of_rank_0},
          {"nn/atoms/potentials/potential.hpp save_potential", of_rank_0},
          {"nn/models/predictor.hpp ", "the first prediction compares what the network calls"},
          {"nn/models/weight_file.hpp ", of_rank_0},
          {"nn/modules/reductions.hpp dot", none},
          {"nn/train/metrics.hpp ", none},
          {"nn/train/checkpoint.hpp Checkpointer::info", of_rank_0},
          {"nn/train/checkpoint.hpp Checkpointer::latest", of_rank_0},
          {"nn/train/checkpoint.hpp Checkpointer::lock", none},
          {"nn/train/checkpoint.hpp Checkpointer::wait", none},
          {"nn/train/distributed.hpp compare_params", "compares the parameters"},
          {"nn/train/distributed.hpp sync_params", "compares the names and shapes of the parameters"},
          {"nn/train/hetero_embedding.hpp HeteroEmbedding::operator", by_parts},
          {"nn/train/hetero_embedding.hpp HeteroEmbedding::set_weight", of_rows},
          {"nn/train/loss.hpp ", by_parts},
          {"nn/train/optimizer.hpp SparseOptimizer::load", of_rank_0},
          {"nn/train/optimizer.hpp SparseOptimizer::save", by_parts},
          {"nn/train/state_dict.hpp ", of_rank_0}};
}}  // namespace sar::test
