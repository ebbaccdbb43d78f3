// SPDX-License-Identifier: MIT

/* Every function of sar.h with every argument wrong in turn on the last rank, and right on the others: a
 * collective function returns the same error with the same text on all ranks and changes nothing, any other
 * returns an error on that rank; and the next call, with right arguments, works. Arguments that are good but
 * differ between the ranks are refused, too, unless they may differ. The argument is a folder for files. */
#include "arguments.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NODES = 5, EDGES = 2 * NODES };

static int failures = 0, num_calls = 0, my_rank = 0, size = 1, is_last = 1;
static const char* folder = "arguments";
static arguments good, freed;    /* right arguments; freed handles */
static void* results[2 * EDGES]; /* room for results of every type */

/* Calls. */

static void fail(const char* call, const char* argument, const char* what, int status) {
  ++failures;
  fprintf(stderr, "rank %d: %s, %s: %s; the status is %d, the last error '%s'\n", my_rank, call, argument,
          what, status, sar_last_error());
}

enum { COLLECTIVE, LOCAL };
enum { REFUSED, ACCEPTED };

/* The status and the text are the same on all ranks. */
static void check_on_all_ranks(const char* call, const char* argument, const char* text, int status) {
  const int mine[2] = {status, -status};
  char first[600] = "";
  int most[2];
  MPI_Allreduce((void*)mine, most, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (most[0] != -most[1]) fail(call, argument, "the ranks have several statuses", status);
  strncpy(first, sar_last_error(), sizeof first - 1);
  MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (most[0] == -most[1] && status != SAR_OK && strncmp(first, sar_last_error(), sizeof first - 1) != 0)
    fail(call, argument, "the ranks have several texts", status);
  if (status != SAR_OK && strstr(sar_last_error(), text) == NULL) fail(call, argument, text, status);
}

/* Calls with one argument that is wrong on the last rank, then with right ones. `release` frees what the
 * function makes. */
static void attempt(function f, int kind, function release, const arguments* a, int expected,
                    const char* call, const char* argument, const char* text) {
  int status;
  memset(results, 0, sizeof results);
  status = f(a);
  ++num_calls;
  if (kind == COLLECTIVE) check_on_all_ranks(call, argument, text, status);
  if (expected == REFUSED && status == SAR_OK && (kind == COLLECTIVE || is_last))
    fail(call, argument, "is not refused", status);
  if (expected == REFUSED && kind == LOCAL && !is_last && status != SAR_OK)
    fail(call, argument, "is refused on ranks where it is right", status);
  if (expected == ACCEPTED && status != SAR_OK) fail(call, argument, "is refused", status);
  if (status != SAR_OK && results[0] != NULL) fail(call, argument, "a result in spite of the error", status);
  if (status == SAR_OK && release != NULL) release(a);
  memset(results, 0, sizeof results);
  status = f(&good);
  if (status != SAR_OK) fail(call, argument, "the call after it, with right arguments, fails", status);
  if (status == SAR_OK && release != NULL) release(&good);
}

/* In the scope of a function: f, kind, release, call. */
#define TRY(field, value, expected, text)                                                  \
  do {                                                                                     \
    arguments a = good;                                                                    \
    if (is_last) a.field = (value);                                                        \
    attempt(f, kind, release, &a, expected, call, #field " = " #value " on a rank", text); \
  } while (0)
#define WRONG(field, value) TRY(field, value, REFUSED, "")
#define DIFFERENT(field, value, text) \
  if (size > 1) TRY(field, value, REFUSED, text)
#define MAY_DIFFER(field, value) TRY(field, value, ACCEPTED, "")
#define WRONG_HANDLE(field, type, other) \
  WRONG(field, NULL);                    \
  WRONG(field, freed.field);             \
  WRONG(field, (type)(void*)good.other); \
  WRONG(field, (type)(void*)&failures)
#define FUNCTION(name, its_kind, its_release)     \
  const function f = name, release = its_release; \
  const int kind = its_kind;                      \
  const char* const call = #name;                 \
  (void)release

/* A name of results[0] as an object, which frees it. */
#define RELEASE(name, type)                       \
  static int release_##name(const arguments* a) { \
    type made;                                    \
    (void)a;                                      \
    memcpy(&made, results, sizeof made);          \
    return sar_##name##_free(made);               \
  }
RELEASE(comm, sar_comm)
RELEASE(graph, sar_graph)
RELEASE(model, sar_model)
RELEASE(optimizer, sar_optimizer)
RELEASE(predictor, sar_predictor)
RELEASE(potential, sar_potential)
RELEASE(learner, sar_learner)
RELEASE(checkpoints, sar_checkpoints)
static int release_trace(const arguments* a) {
  sar_trace made;
  (void)a;
  memcpy(&made, results, sizeof made);
  return sar_trace_write(made);
}

/* Good arguments. */

static const char mesh[] =
    "{\"sar_model\": 1, \"type\": \"mesh_graph_net\", \"in_feats\": 2, \"edge_feats\": 1, \"hidden\": 4, "
    "\"out_feats\": 2, \"layers\": 1, \"mlp_layers\": 1, \"normalize\": true}";
static const char wide_mesh[] =
    "{\"sar_model\": 1, \"type\": \"mesh_graph_net\", \"in_feats\": 2, \"edge_feats\": 1, \"hidden\": 5, "
    "\"out_feats\": 2, \"layers\": 1, \"mlp_layers\": 1, \"normalize\": true}";
static const char typed[] =
    "{\"sar_model\": 1, \"type\": \"rgcn\", \"in_feats\": 2, \"hidden\": 4, \"out_feats\": 2, \"layers\": 1, "
    "\"node_types\": [\"a\", \"b\"], \"edge_types\": [[\"a\", \"r\", \"a\"], [\"a\", \"s\", \"b\"]]}";
static const char adam[] = "{\"optimizer\": \"adam\", \"lr\": 0.01, \"clip_grad_norm\": 1}";

static int64_t ids[NODES + 1], src[EDGES], dst[EDGES], given_ids[EDGES], labels[NODES], far_ids[EDGES];
static int32_t local_src[EDGES], local_dst[EDGES], far_ends[EDGES];
static uint8_t mask[NODES], no_mask[NODES];
static double values[64], not_finite[64], room[64], weights[64]; /* weights: the same on all ranks */
static int32_t species[NODES], unknown_species[NODES];
static double places[3 * NODES], room_of_forces[3 * NODES];
static sar_array positions, vectors, nan_positions, short_positions, forces;
static const char potential_path[] = SAR_TEST_DATA "/weights/potential.safetensors";
static sar_array x, edges, target, weight, out, short_x, narrow_x, short_edges, nan_x, nan_edges, nan_target,
    wrong_precision, wrong_order, wrong_leading, no_data, parameter_in, parameter_out, many_edges, edges_out,
    short_target, wide_edges;
static char path[1200], other_path[1300];
static sar_model wide_model;
static sar_optimizer wide_optimizer;
static sar_graph other_graph;

static void must(int status, const char* what) {
  if (status != SAR_OK) fail(what, "preparation", "fails", status);
}
#define MUST(call) must((call), #call)

static void make_arrays(void) {
  int i;
  for (i = 0; i < NODES; ++i) {
    const int64_t node = (int64_t)my_rank * NODES + i, all = (int64_t)size * NODES;
    ids[i] = 100 + node;
    src[2 * i] = 100 + node;
    dst[2 * i] = 100 + (node + 1) % all;
    src[2 * i + 1] = 100 + (node + 1) % all;
    dst[2 * i + 1] = 100 + node;
    labels[i] = i % 2;
    mask[i] = 1;
    local_src[2 * i] = local_dst[2 * i + 1] = i;
    local_dst[2 * i] = local_src[2 * i + 1] = (i + 1) % NODES;
  }
  for (i = 0; i < EDGES; ++i) {
    given_ids[i] = (int64_t)my_rank * EDGES + i;
    far_ids[i] = 1000000;
    far_ends[i] = NODES + 7;
  }
  for (i = 0; i < 64; ++i) values[i] = (double)(i * 7 % 11 + my_rank) / 10 + 0.1;
  for (i = 0; i < NODES; ++i) {
    species[i] = i % 2;
    unknown_species[i] = 2;
    places[3 * i] = (double)(my_rank * NODES + i);
    places[3 * i + 1] = (double)(i % 2);
  }
  positions = sar_array_double(places, NODES, 3);
  short_positions = sar_array_double(places, NODES - 1, 3);
  nan_positions = sar_array_double(not_finite, NODES, 3);
  vectors = sar_array_double(values, EDGES, 3);
  forces = sar_array_double(room_of_forces, NODES, 3);
  for (i = 0; i < 64; ++i) weights[i] = (double)(i % 5) / 10;
  memcpy(not_finite, values, sizeof values);
  not_finite[3] = NAN;
  x = sar_array_double(values, NODES, 2);
  edges = sar_array_double(values, EDGES, 1);
  target = sar_array_double(values + 5, NODES, 2);
  weight = sar_array_double(values, EDGES, 1);
  out = sar_array_double(room, NODES, 2);
  edges_out = sar_array_double(room, EDGES, 1);
  short_x = sar_array_double(values, NODES - 1, 2);
  narrow_x = sar_array_double(values, NODES, 1);
  short_target = sar_array_double(values, NODES - 1, 2);
  short_edges = sar_array_double(values, EDGES - 1, 1);
  wide_edges = sar_array_double(values, EDGES, 2);
  many_edges = sar_array_double(values, EDGES + 1, 1);
  nan_x = sar_array_double(not_finite, NODES, 2);
  nan_edges = sar_array_double(not_finite, EDGES, 1);
  nan_target = sar_array_double(not_finite, NODES, 2);
  wrong_precision = wrong_order = wrong_leading = no_data = x;
  wrong_precision.precision = 2;
  wrong_order.order = 2;
  wrong_leading.leading = 1;
  no_data.data = NULL;
}

static void make_objects(arguments* a) {
  sar_comm comm;
  MUST(sar_comm_create(MPI_COMM_WORLD, &a->comm));
  comm = a->comm;
  MUST(sar_graph_from_global(comm, NODES, ids, EDGES, src, dst, NULL, NULL, NULL, &a->graph));
  MUST(sar_model_create(comm, mesh, 1, &a->model));
  MUST(sar_model_update_statistics(a->model, &x, &edges, &target));
  MUST(sar_optimizer_create(a->model, adam, &a->optimizer));
  MUST(sar_graph_create(comm, NULL, &a->building));
  MUST(sar_graph_create(comm, NULL, &a->typed_graph));
  MUST(sar_graph_add_nodes(a->typed_graph, "a", NODES, ids));
  MUST(sar_graph_add_nodes(a->typed_graph, "b", NODES, ids));
  MUST(sar_graph_add_edges(a->typed_graph, "a", "r", "a", EDGES, src, dst, NULL, NULL, 0));
  MUST(sar_graph_add_edges(a->typed_graph, "a", "s", "b", EDGES - 1, src, dst, NULL, NULL, 0));
  MUST(sar_graph_build(a->typed_graph));
  MUST(sar_graph_set_rows(a->typed_graph, "b", &x));
  MUST(sar_model_create(comm, typed, 1, &a->typed_model));
  MUST(sar_optimizer_create(a->typed_model, adam, &a->typed_optimizer));
  MUST(sar_predictor_create(a->model, a->graph, &a->predictor));
  MUST(sar_potential_load(comm, potential_path, &a->potential));
  MUST(sar_learner_create(a->potential, NULL, 1, 0.001, &a->learner));
  MUST(sar_checkpoints_create(comm, a == &freed ? other_path : path, 2, 7, &a->checkpoints));
}

static void free_objects(const arguments* a) {
  MUST(sar_checkpoints_free(a->checkpoints));
  MUST(sar_learner_free(a->learner));
  MUST(sar_potential_free(a->potential));
  MUST(sar_predictor_free(a->predictor));
  MUST(sar_optimizer_free(a->typed_optimizer));
  MUST(sar_model_free(a->typed_model));
  MUST(sar_graph_free(a->typed_graph));
  MUST(sar_graph_free(a->building));
  MUST(sar_optimizer_free(a->optimizer));
  MUST(sar_model_free(a->model));
  MUST(sar_graph_free(a->graph));
  MUST(sar_comm_free(a->comm));
}

static void make_good_arguments(void) {
  arguments defaults = {0};
  snprintf(path, sizeof path, "%s/checkpoints", folder);
  snprintf(other_path, sizeof other_path, "%s/freed", folder);
  freed = good = defaults;
  make_objects(&freed);
  snprintf(other_path, sizeof other_path, "%s/freed.json", folder);
  MUST(sar_trace_start(freed.comm, other_path, &freed.trace));
  MUST(sar_trace_write(freed.trace));
  free_objects(&freed);
  make_objects(&good);
  MUST(sar_model_create(good.comm, wide_mesh, 1, &wide_model));
  MUST(sar_model_update_statistics(wide_model, &x, &edges, &target));
  MUST(sar_optimizer_create(wide_model, adam, &wide_optimizer));
  MUST(sar_graph_from_global(good.comm, NODES, ids, NODES, src, dst, NULL, NULL, NULL, &other_graph));
  good.mpi_comm = MPI_COMM_WORLD;
  good.num_nodes = good.num_owned = NODES;
  good.num_edges = good.length = EDGES;
  good.num_labels = good.mask_length = NODES;
  good.ids = ids;
  good.src = src;
  good.dst = dst;
  good.labels = labels;
  good.local_src = local_src;
  good.local_dst = local_dst;
  good.x = &x;
  good.edges = &edges;
  good.target = &target;
  good.out = &out;
  good.mask = mask;
  good.lr = 0.01;
  good.seed = 1;
  good.type = good.source = "a";
  good.relation = "r";
  good.result = results;
}

/* Functions. */

static void tries_comms(void) {
  {
    FUNCTION(comm_create, COLLECTIVE, release_comm);
    WRONG(result, NULL);
  }
  {
    FUNCTION(comm_create_f, COLLECTIVE, release_comm);
    WRONG(result, NULL);
  }
  {
    FUNCTION(comm_world, COLLECTIVE, release_comm);
    WRONG(result, NULL);
  }
  {
    FUNCTION(comm_rank, LOCAL, NULL);
    WRONG_HANDLE(comm, sar_comm, graph);
    WRONG(result, NULL);
  }
  {
    FUNCTION(comm_size, LOCAL, NULL);
    WRONG_HANDLE(comm, sar_comm, graph);
    WRONG(result, NULL);
  }
  {
    FUNCTION(comm_threads, COLLECTIVE, NULL);
    WRONG_HANDLE(comm, sar_comm, graph);
    WRONG(result, NULL);
  }
  {
    FUNCTION(set_num_threads, LOCAL, NULL);
    WRONG(number, -1);
    MAY_DIFFER(number, 1);
  }
}

/* What functions that make a graph have in common. */
#define WRONG_GRAPH()            \
  WRONG(num_nodes, -1);          \
  WRONG(ids, NULL);              \
  WRONG(ids, far_ids);           \
  WRONG(num_edges, -1);          \
  DIFFERENT(edge_ids, NULL, ""); \
  WRONG(edge_ids, far_ids);      \
  DIFFERENT(weight, NULL, "");   \
  WRONG(weight, &short_edges);   \
  WRONG(weight, &x);             \
  MAY_DIFFER(num_edges, EDGES)

static void tries_graphs(void) {
  const arguments before = good;
  good.edge_ids = given_ids;
  good.weight = &weight;
  {
    FUNCTION(from_global, COLLECTIVE, release_graph);
    good.text = "{\"pipeline_depth\": 2}";
    WRONG_HANDLE(comm, sar_comm, graph);
    WRONG_GRAPH();
    WRONG(num_nodes, NODES - 1);
    WRONG(src, NULL);
    WRONG(src, far_ids);
    WRONG(dst, NULL);
    WRONG(dst, far_ids);
    WRONG(text, "{\"pipeline_depth\": -1}");
    WRONG(text, "{\"mode\": \"fast\"}");
    WRONG(text, "nothing");
    DIFFERENT(text, "{\"pipeline_depth\": 3}", "different pipeline_depth");
    DIFFERENT(text, NULL, "different pipeline_depth");
    WRONG(result, NULL);
  }
  {
    FUNCTION(from_local, COLLECTIVE, release_graph);
    WRONG_HANDLE(comm, sar_comm, graph);
    WRONG_GRAPH();
    WRONG(num_owned, -1);
    WRONG(num_owned, NODES + 1);
    WRONG(local_src, NULL);
    WRONG(local_src, far_ends);
    WRONG(local_dst, NULL);
    WRONG(local_dst, far_ends);
    DIFFERENT(text, "{\"pipeline_depth\": 2, \"add_reverse_edges\": true}", "different add_reverse_edges");
    WRONG(text, "{\"halo_format\": \"int4\"}");
    WRONG(result, NULL);
  }
  {
    FUNCTION(rebuild_from_global, COLLECTIVE, NULL);
    WRONG_HANDLE(graph, sar_graph, model);
    WRONG_GRAPH();
    WRONG(num_nodes, NODES - 1);
    WRONG(src, NULL);
    WRONG(src, far_ids);
    WRONG(dst, NULL);
    WRONG(dst, far_ids);
  }
  {
    FUNCTION(rebuild_from_local, COLLECTIVE, NULL);
    WRONG_HANDLE(graph, sar_graph, model);
    WRONG_GRAPH();
    WRONG(num_owned, -1);
    WRONG(num_owned, NODES + 1);
    WRONG(local_src, NULL);
    WRONG(local_src, far_ends);
    WRONG(local_dst, NULL);
    WRONG(local_dst, far_ends);
  }
  good = before;
  MUST(sar_graph_rebuild_from_global(good.graph, NODES, ids, EDGES, src, dst, NULL, NULL));
}

static void tries_edges(void) {
  const arguments before = good;
  {
    FUNCTION(num_nodes, LOCAL, NULL);
    WRONG_HANDLE(graph, sar_graph, comm);
    WRONG(graph, good.building);
    WRONG(node_type, "b");
    MAY_DIFFER(result, NULL);
  }
  {
    FUNCTION(num_edges, LOCAL, NULL);
    WRONG_HANDLE(graph, sar_graph, comm);
    WRONG(graph, good.building);
    WRONG(edge_type, "r");
    MAY_DIFFER(result, NULL);
  }
  {
    FUNCTION(edge_ids, LOCAL, NULL);
    WRONG_HANDLE(graph, sar_graph, comm);
    WRONG(graph, good.building);
    WRONG(edge_type, "r");
    WRONG(length, EDGES - 1);
    WRONG(length, -1);
    WRONG(result, NULL);
  }
  good.out = &edges_out;
  {
    FUNCTION(to_graph_order, COLLECTIVE, NULL);
    WRONG_HANDLE(graph, sar_graph, comm);
    WRONG(graph, good.building);
    WRONG(edge_type, "r");
    WRONG(edges, NULL);
    WRONG(edges, &short_edges);
    WRONG(edges, &wide_edges);
    WRONG(weight, &edges); /* rows of reverse edges, where there are none */
    WRONG(out, NULL);
    WRONG(out, &short_edges);
    WRONG(out, &wide_edges);
  }
  {
    FUNCTION(to_given_order, COLLECTIVE, NULL);
    WRONG_HANDLE(graph, sar_graph, comm);
    WRONG(graph, good.building);
    WRONG(edge_type, "r");
    WRONG(edges, NULL);
    WRONG(edges, &many_edges);
    WRONG(edges, &wide_edges);
    WRONG(number, 1); /* reverse edges, where there are none */
    WRONG(out, NULL);
    WRONG(out, &short_edges);
  }
  good = before;
}

static void tries_models(void) {
  const arguments before = good;
  {
    FUNCTION(model_create, COLLECTIVE, release_model);
    good.text = mesh;
    WRONG_HANDLE(comm, sar_comm, graph);
    WRONG(text, NULL);
    WRONG(text, "{}");
    DIFFERENT(text, wide_mesh, "different hidden");
    DIFFERENT(seed, 2, "different seed");
    WRONG(result, NULL);
  }
  snprintf(other_path, sizeof other_path, "%s/model.safetensors", folder);
  {
    FUNCTION(model_save, COLLECTIVE, NULL);
    good.text = other_path;
    WRONG_HANDLE(model, sar_model, graph);
    WRONG(text, NULL);
    DIFFERENT(model, wide_model, "different description");
    DIFFERENT(text, "elsewhere.safetensors", "different path");
  }
  {
    FUNCTION(model_load, COLLECTIVE, release_model);
    WRONG_HANDLE(comm, sar_comm, graph);
    WRONG(text, NULL);
    DIFFERENT(text, "elsewhere.safetensors", "different path");
    WRONG(result, NULL);
  }
  {
    FUNCTION(model_description, LOCAL, NULL);
    WRONG_HANDLE(model, sar_model, graph);
    WRONG(result, NULL);
  }
  {
    FUNCTION(model_feats, LOCAL, NULL);
    WRONG_HANDLE(model, sar_model, graph);
    WRONG(result, NULL);
  }
  {
    FUNCTION(num_parameters, LOCAL, NULL);
    WRONG_HANDLE(model, sar_model, graph);
    WRONG(result, NULL);
  }
  {
    FUNCTION(parameter, LOCAL, NULL);
    WRONG_HANDLE(model, sar_model, graph);
    WRONG(index, -1);
    WRONG(index, 1000);
    MAY_DIFFER(result, NULL);
  }
  good = before;
}

static void tries_parameters(void) {
  const arguments before = good;
  int64_t rows = 0, fields = 0;
  MUST(sar_model_parameter(good.model, 0, NULL, &rows, &fields));
  parameter_in = sar_array_double(weights, rows, fields);
  parameter_out = sar_array_double(room, rows, fields);
  good.out = &parameter_out;
  good.x = &parameter_in;
  {
    FUNCTION(get_parameter, LOCAL, NULL);
    WRONG_HANDLE(model, sar_model, graph);
    WRONG(index, -1);
    WRONG(index, 1);
    WRONG(out, NULL);
    WRONG(out, &many_edges);
  }
  {
    FUNCTION(set_parameter, LOCAL, NULL);
    WRONG_HANDLE(model, sar_model, graph);
    WRONG(index, -1);
    WRONG(index, 1);
    WRONG(x, NULL);
    WRONG(x, &many_edges);
  }
  good = before;
  {
    FUNCTION(update_statistics, COLLECTIVE, NULL);
    WRONG_HANDLE(model, sar_model, graph);
    WRONG(x, NULL);
    WRONG(x, &narrow_x);
    WRONG(x, &nan_x);
    WRONG(edges, NULL);
    WRONG(edges, &wide_edges);
    WRONG(edges, &nan_edges);
    WRONG(target, NULL);
    WRONG(target, &narrow_x);
    WRONG(target, &nan_target);
    DIFFERENT(model, wide_model, "different description");
    MAY_DIFFER(x, &short_x);
  }
}

static void tries_optimizers(void) {
  const arguments before = good;
  {
    FUNCTION(optimizer_create, COLLECTIVE, release_optimizer);
    good.text = adam;
    WRONG_HANDLE(model, sar_model, graph);
    WRONG(text, NULL);
    WRONG(text, "{\"optimizer\": \"adam\", \"lr\": -1}");
    WRONG(text, "{\"optimizer\": \"adam\", \"clip_grad_norm\": -1}");
    WRONG(text, "{\"optimizer\": \"adam\", \"clip_grad_value\": -1}");
    WRONG(text, "{\"optimizer\": \"adam\", \"require_finite\": 1}");
    WRONG(text, "{\"optimizer\": \"adam\", \"precision\": \"half\"}");
    DIFFERENT(text, "{\"optimizer\": \"sgd\"}", "different optimizer");
    DIFFERENT(text, "{\"optimizer\": \"adam\", \"lr\": 0.02, \"clip_grad_norm\": 1}", "different lr");
    DIFFERENT(text, "{\"optimizer\": \"adam\", \"lr\": 0.01}", "different clip_grad_norm");
    DIFFERENT(text,
              "{\"optimizer\": \"adam\", \"lr\": 0.01, \"clip_grad_norm\": 1, \"require_finite\": false}",
              "different require_finite");
    DIFFERENT(model, wide_model, "different description");
    WRONG(result, NULL);
  }
  {
    FUNCTION(get_lr, LOCAL, NULL);
    WRONG_HANDLE(optimizer, sar_optimizer, model);
    WRONG(result, NULL);
  }
  {
    FUNCTION(set_lr, LOCAL, NULL);
    WRONG_HANDLE(optimizer, sar_optimizer, model);
    WRONG(lr, -1);
    WRONG(lr, NAN);
    WRONG(lr, HUGE_VAL);
  }
  good = before;
}

/* What steps and losses have in common. */
#define WRONG_PASS()                       \
  WRONG_HANDLE(model, sar_model, graph);   \
  WRONG_HANDLE(graph, sar_graph, comm);    \
  WRONG(graph, good.building);             \
  WRONG(node_type, "b");                   \
  WRONG(x, NULL);                          \
  WRONG(x, &short_x);                      \
  WRONG(x, &narrow_x);                     \
  WRONG(x, &wrong_precision);              \
  WRONG(x, &wrong_order);                  \
  WRONG(x, &wrong_leading);                \
  WRONG(x, &no_data);                      \
  WRONG(edges, NULL);                      \
  WRONG(edges, &short_edges);              \
  WRONG(mask_length, 3);                   \
  WRONG(mask_length, -1);                  \
  WRONG(mask, NULL);                       \
  if (size > 1) MAY_DIFFER(mask, no_mask); \
  DIFFERENT(graph, other_graph, "")
#define WRONG_LABELS()          \
  WRONG(num_labels, -1);        \
  WRONG(num_labels, NODES - 1); \
  WRONG(labels, NULL);          \
  WRONG(labels, far_ids)

static void tries_training(void) {
  const arguments before = good;
  {
    FUNCTION(train_step, COLLECTIVE, NULL);
    WRONG_PASS();
    WRONG_HANDLE(optimizer, sar_optimizer, model);
    WRONG(optimizer, wide_optimizer);
    WRONG(number, -1);
    WRONG(number, 99);
    WRONG(target, NULL);
    WRONG(target, &short_target);
    WRONG(x, &nan_x);
    WRONG(edges, &nan_edges);
    WRONG(target, &nan_target);
    DIFFERENT(number, SAR_LOSS_L1, "different calls");
    MAY_DIFFER(result, NULL);
  }
  {
    FUNCTION(train_step_labels, COLLECTIVE, NULL);
    WRONG_PASS();
    WRONG_HANDLE(optimizer, sar_optimizer, model);
    WRONG(optimizer, wide_optimizer);
    WRONG_LABELS();
    WRONG(x, &nan_x);
    MAY_DIFFER(result, NULL);
  }
  {
    FUNCTION(evaluate, COLLECTIVE, NULL);
    WRONG_PASS();
    WRONG(number, -1);
    WRONG(target, NULL);
    WRONG(target, &short_target);
    DIFFERENT(number, SAR_LOSS_L1, "different calls");
    DIFFERENT(model, wide_model, "different description");
    WRONG(result, NULL);
  }
  {
    FUNCTION(evaluate_labels, COLLECTIVE, NULL);
    WRONG_PASS();
    WRONG_LABELS();
    DIFFERENT(model, wide_model, "different description");
    WRONG(result, NULL);
  }
  good = before;
}

/* A new graph that waits for nodes, with the nodes of a type, and with edges. */
static void begin_graph(int has_nodes, int has_edges) {
  MUST(sar_graph_free(good.building));
  MUST(sar_graph_create(good.comm, NULL, &good.building));
  if (has_nodes) MUST(sar_graph_add_nodes(good.building, "a", NODES, ids));
  if (has_edges) MUST(sar_graph_add_edges(good.building, "a", "r", "a", EDGES, src, dst, NULL, NULL, 0));
}
static int release_nodes(const arguments* a) {
  (void)a;
  begin_graph(0, 0);
  return SAR_OK;
}
static int release_edges(const arguments* a) {
  (void)a;
  begin_graph(1, 0);
  return SAR_OK;
}
static int release_build(const arguments* a) {
  (void)a;
  begin_graph(1, 1);
  return SAR_OK;
}

static void tries_building(void) {
  const arguments before = good;
  arguments last;
  {
    FUNCTION(graph_create, COLLECTIVE, release_graph);
    good.text = "{\"pipeline_depth\": 2}";
    WRONG_HANDLE(comm, sar_comm, graph);
    WRONG(text, "nothing");
    WRONG(text, "{\"add_reverse_edges\": true}");
    DIFFERENT(text, "{\"pipeline_depth\": 3}", "different pipeline_depth");
    WRONG(result, NULL);
  }
  good.number = 1; /* with reverse edges */
  {
    FUNCTION(add_nodes, COLLECTIVE, release_nodes);
    WRONG_HANDLE(building, sar_graph, model);
    WRONG(type, NULL);
    WRONG(type, "");
    WRONG(num_nodes, -1);
    WRONG(ids, NULL);
    DIFFERENT(type, "b", "different node type");
    MAY_DIFFER(num_nodes, 0);
  }
  begin_graph(1, 0);
  {
    FUNCTION(add_edges, COLLECTIVE, release_edges);
    WRONG_HANDLE(building, sar_graph, model);
    WRONG(source, NULL);
    WRONG(relation, NULL);
    WRONG(type, NULL);
    WRONG(num_edges, -1);
    WRONG(src, NULL);
    WRONG(dst, NULL);
    WRONG(weight, &short_edges);
    DIFFERENT(relation, "s", "different edge type");
    DIFFERENT(number, 0, "different choice of add_reverse_edges");
    MAY_DIFFER(num_edges, 0);
  }
  begin_graph(1, 1);
  {
    FUNCTION(build, COLLECTIVE, release_build);
    WRONG_HANDLE(building, sar_graph, model);
    attempt(f, kind, release, &good, ACCEPTED, call, "a second time", "");
  }
  /* types and ends of edges that do not fit are found by the build, and what was added stays */
  begin_graph(1, 1);
  last = good;
  check_on_all_ranks("add_nodes", "type", "added twice", add_nodes(&last));
  check_on_all_ranks("add_edges", "type", "added twice", add_edges(&last));
  MUST(sar_graph_add_edges(last.building, "b", "r", "a", 0, NULL, NULL, NULL, NULL, 0));
  check_on_all_ranks("build", "type", "there is no node type 'b'", build(&last));
  begin_graph(1, 0);
  last = good;
  MUST(sar_graph_add_edges(last.building, "a", "r", "a", is_last ? EDGES : 0, src, is_last ? far_ids : dst,
                           NULL, NULL, 0));
  check_on_all_ranks("build", "dst", "1000000", build(&last));
  begin_graph(0, 0);
  last = good;
  check_on_all_ranks("build", "nothing", "expected sar_graph_add_nodes()", build(&last));
  last.graph = last.building;
  last.node_type = "a";
  check_on_all_ranks("set_rows", "graph", "sar_graph_build()", set_rows(&last));
  {
    const sar_graph building = good.building;
    good = before;
    good.building = building;
  }
}

/* What passes on a graph with types have in common. */
#define WRONG_TYPED_PASS()               \
  WRONG_HANDLE(graph, sar_graph, comm);  \
  WRONG(graph, good.building);           \
  WRONG(graph, before.graph);            \
  WRONG_HANDLE(model, sar_model, graph); \
  WRONG(model, before.model);            \
  WRONG(node_type, NULL);                \
  WRONG(node_type, "c");                 \
  DIFFERENT(node_type, "b", "");         \
  WRONG(x, NULL);                        \
  WRONG(x, &short_x);                    \
  WRONG(x, &narrow_x);                   \
  WRONG(edges, &edges)

#define WRONG_TYPED_MASK() \
  WRONG(mask_length, 3);   \
  WRONG(mask, NULL)

/* Sizes, rows and orders of one of several types. */
static void tries_parts(void) {
  const arguments before = good;
  arguments last;
  {
    FUNCTION(num_nodes, LOCAL, NULL);
    WRONG_HANDLE(graph, sar_graph, comm);
    WRONG(graph, good.building);
    WRONG(node_type, "c");
    MAY_DIFFER(node_type, NULL);
    MAY_DIFFER(result, NULL);
  }
  {
    FUNCTION(num_edges, LOCAL, NULL);
    WRONG_HANDLE(graph, sar_graph, comm);
    WRONG(edge_type, "t");
    WRONG(edge_type, "b:s:a");
    MAY_DIFFER(edge_type, NULL);
    MAY_DIFFER(edge_type, "a:s:b");
    MAY_DIFFER(result, NULL);
  }
  {
    FUNCTION(edge_ids, LOCAL, NULL);
    WRONG(edge_type, NULL);
    WRONG(edge_type, "t");
    WRONG(length, EDGES - 1);
  }
  good.out = &edges_out;
  good.edges = &edges;
  {
    FUNCTION(to_graph_order, COLLECTIVE, NULL);
    WRONG(edge_type, NULL);
    WRONG(edge_type, "t");
    DIFFERENT(edge_type, "s", "");
    MAY_DIFFER(edge_type, "a:r:a");
    WRONG(edges, &short_edges);
    WRONG(out, &short_edges);
  }
  {
    FUNCTION(to_given_order, COLLECTIVE, NULL);
    WRONG(edge_type, NULL);
    WRONG(edge_type, "t");
    DIFFERENT(edge_type, "s", "");
    WRONG(edges, &many_edges);
    WRONG(number, 1); /* reverse edges, where there are none */
    WRONG(out, &short_edges);
  }
  last = good;
  last.node_type = last.edge_type = NULL;
  check_on_all_ranks("to_graph_order", "edge_type", "null for a graph of the edge types a:r:a, a:s:b",
                     to_graph_order(&last));
  check_on_all_ranks("set_rows", "type", "null for a graph of the node types a, b", set_rows(&last));
  last.edge_type = "t";
  check_on_all_ranks("to_given_order", "edge_type", "the edge types are 'a:r:a'", to_given_order(&last));
  good = before;
  {
    FUNCTION(set_rows, COLLECTIVE, NULL);
    good.node_type = "b";
    WRONG_HANDLE(graph, sar_graph, comm);
    WRONG(graph, good.building);
    WRONG(node_type, NULL);
    WRONG(node_type, "c");
    DIFFERENT(node_type, "a", "different node type");
    WRONG(x, NULL);
    WRONG(x, &short_x);
    DIFFERENT(x, &narrow_x, "different number of fields");
  }
  good = before;
}

static void tries_types(void) {
  const arguments before = good;
  good.graph = good.typed_graph;
  good.model = good.typed_model;
  good.optimizer = good.typed_optimizer;
  good.edges = NULL;
  good.node_type = "a";
  good.edge_type = "r";
  tries_parts();
  {
    FUNCTION(train_step, COLLECTIVE, NULL);
    WRONG_TYPED_PASS();
    WRONG_TYPED_MASK();
    WRONG_HANDLE(optimizer, sar_optimizer, model);
    WRONG(optimizer, before.optimizer);
    WRONG(number, 99);
    WRONG(target, NULL);
    WRONG(target, &short_target);
    WRONG(target, &nan_target);
    WRONG(x, &nan_x);
    DIFFERENT(number, SAR_LOSS_L1, "different calls");
    MAY_DIFFER(result, NULL);
  }
  {
    FUNCTION(train_step_labels, COLLECTIVE, NULL);
    WRONG_TYPED_PASS();
    WRONG_TYPED_MASK();
    WRONG(optimizer, before.optimizer);
    WRONG_LABELS();
  }
  {
    FUNCTION(evaluate, COLLECTIVE, NULL);
    WRONG_TYPED_PASS();
    WRONG_TYPED_MASK();
    WRONG(target, NULL);
    WRONG(result, NULL);
  }
  {
    FUNCTION(evaluate_labels, COLLECTIVE, NULL);
    WRONG_TYPED_PASS();
    WRONG_TYPED_MASK();
    WRONG_LABELS();
    WRONG(result, NULL);
  }
  {
    FUNCTION(predict, COLLECTIVE, NULL);
    WRONG_TYPED_PASS();
    WRONG(out, NULL);
    WRONG(out, &short_x);
  }
  {
    /* networks on graphs with the types of others */
    arguments a = good;
    a.graph = before.graph;
    a.node_type = NULL;
    check_on_all_ranks("train_step", "graph", "on a graph of the node types _N, expected a, b",
                       train_step(&a));
    a = before;
    a.graph = good.graph;
    a.node_type = "a";
    check_on_all_ranks("train_step", "model", "which reads no relations, on a graph of the edge types a:r:a",
                       train_step(&a));
    check_on_all_ranks("predictor_create", "model", "expected one edge type", predictor_create(&a));
    a.species = species;
    a.positions = &positions;
    a.out = &forces;
    check_on_all_ranks("potential_evaluate", "graph", "on a graph of the node types a, b",
                       potential_evaluate(&a));
    a.model = good.model;
    check_on_all_ranks("predictor_create", "model", "expected sar_predict()", predictor_create(&a));
    check_on_all_ranks("update_statistics", "model", "normalize", update_statistics(&a));
  }
  good = before;
}

static void tries_predictors(void) {
  {
    FUNCTION(predict, COLLECTIVE, NULL);
    WRONG_HANDLE(model, sar_model, graph);
    WRONG_HANDLE(graph, sar_graph, comm);
    WRONG(graph, good.building);
    WRONG(node_type, "b");
    WRONG(x, NULL);
    WRONG(x, &short_x);
    WRONG(edges, NULL);
    WRONG(edges, &short_edges);
    WRONG(out, NULL);
    WRONG(out, &short_x);
    DIFFERENT(model, wide_model, "different description");
    DIFFERENT(graph, other_graph, "");
  }
  {
    FUNCTION(predictor_create, COLLECTIVE, release_predictor);
    WRONG_HANDLE(model, sar_model, graph);
    WRONG_HANDLE(graph, sar_graph, comm);
    WRONG(graph, good.building);
    WRONG(graph, good.typed_graph);
    WRONG(model, good.typed_model);
    DIFFERENT(model, wide_model, "different description");
    DIFFERENT(graph, other_graph, "different number of edges");
    WRONG(result, NULL);
  }
  {
    FUNCTION(predictor_run, COLLECTIVE, NULL);
    WRONG_HANDLE(predictor, sar_predictor, model);
    WRONG(x, NULL);
    WRONG(x, &short_x);
    WRONG(edges, NULL);
    WRONG(edges, &short_edges);
    WRONG(out, NULL);
    WRONG(out, &short_x);
  }
}

static void tries_potentials(void) {
  const arguments before = good;
  {
    FUNCTION(potential_load, COLLECTIVE, release_potential);
    good.text = potential_path;
    WRONG_HANDLE(comm, sar_comm, graph);
    WRONG(text, NULL);
    WRONG(text, "");
    DIFFERENT(text, "elsewhere.safetensors", "different path");
    WRONG(result, NULL);
  }
  {
    FUNCTION(potential_species, LOCAL, NULL);
    WRONG_HANDLE(potential, sar_potential, model);
    WRONG(type, NULL);
    WRONG(type, "c");
    WRONG(result, NULL);
  }
  {
    FUNCTION(potential_cutoff, LOCAL, NULL);
    WRONG_HANDLE(potential, sar_potential, model);
    WRONG(result, NULL);
  }
  {
    FUNCTION(potential_evaluate, COLLECTIVE, NULL);
    good.species = species;
    good.positions = &positions;
    good.out = &forces;
    WRONG_HANDLE(potential, sar_potential, model);
    WRONG_HANDLE(graph, sar_graph, comm);
    WRONG(graph, good.building);
    WRONG(graph, good.typed_graph);
    DIFFERENT(graph, other_graph, "different number of edges");
    WRONG(num_nodes, NODES - 1);
    WRONG(num_nodes, -1);
    WRONG(species, NULL);
    WRONG(species, unknown_species);
    WRONG(positions, &short_positions);
    WRONG(positions, &nan_positions);
    DIFFERENT(positions, NULL, "");
    WRONG(vectors, &edges);
    WRONG(out, &x);
    MAY_DIFFER(out, NULL);
    MAY_DIFFER(result, NULL);
    good.positions = NULL;
    good.vectors = &vectors;
    WRONG(vectors, NULL);
    WRONG(vectors, &edges);
    DIFFERENT(positions, &positions, "different set of inputs");
  }
  good = before;
}

static void tries_learners(void) {
  const arguments before = good;
  static double sides[9] = {50, 0, 0, 0, 50, 0, 0, 0, 50};
  static sar_array cell, short_cell;
  cell = sar_array_double(sides, 3, 3);
  short_cell = sar_array_double(sides, 2, 3);
  snprintf(other_path, sizeof other_path, "%s/learner", folder);
  {
    FUNCTION(learner_create, COLLECTIVE, release_learner);
    good.index = 2;
    good.node_type = other_path;
    WRONG_HANDLE(potential, sar_potential, model);
    WRONG(index, 0);
    WRONG(lr, -1);
    DIFFERENT(index, 3, "different batch_size");
    DIFFERENT(lr, 0.5, "different lr");
    DIFFERENT(node_type, NULL, "different directory");
    WRONG(result, NULL);
  }
  good.node_type = before.node_type;
  good.species = species;
  good.positions = &positions;
  {
    FUNCTION(learner_add, COLLECTIVE, NULL);
    good.vectors = &forces;
    good.cell = &cell;
    good.stress = &cell;
    WRONG_HANDLE(learner, sar_learner, model);
    WRONG(num_nodes, NODES - 1);
    WRONG(num_nodes, -1);
    WRONG(species, NULL);
    WRONG(positions, NULL);
    WRONG(positions, &short_positions);
    WRONG(vectors, &x);
    WRONG(cell, &short_cell);
    WRONG(stress, &short_cell);
    if (size == 1) {
      WRONG(species, unknown_species);
      WRONG(positions, &nan_positions);
      WRONG(cell, NULL);
    }
    MAY_DIFFER(lr, 7);
    MAY_DIFFER(vectors, NULL);
  }
  {
    FUNCTION(learner_train, COLLECTIVE, NULL);
    good.index = 1;
    WRONG_HANDLE(learner, sar_learner, model);
    WRONG(index, -1);
    DIFFERENT(index, 2, "different steps");
    MAY_DIFFER(result, NULL);
  }
  {
    FUNCTION(learner_num_structures, LOCAL, NULL);
    WRONG_HANDLE(learner, sar_learner, model);
    WRONG(result, NULL);
  }
  good = before;
}

static void tries_files(void) {
  const arguments before = good;
  snprintf(other_path, sizeof other_path, "%s/more", folder);
  {
    FUNCTION(checkpoints_create, COLLECTIVE, release_checkpoints);
    good.text = other_path;
    good.number = 2;
    WRONG_HANDLE(comm, sar_comm, graph);
    WRONG(text, NULL);
    WRONG(number, 0);
    DIFFERENT(text, "elsewhere", "different directory");
    DIFFERENT(number, 3, "different keep_last");
    DIFFERENT(seed, 9, "different seed");
    WRONG(result, NULL);
  }
  {
    FUNCTION(checkpoints_save, COLLECTIVE, NULL);
    good.number = 4;
    WRONG_HANDLE(checkpoints, sar_checkpoints, model);
    WRONG_HANDLE(model, sar_model, graph);
    WRONG_HANDLE(optimizer, sar_optimizer, graph);
    WRONG(optimizer, wide_optimizer);
    WRONG(number, -1);
    DIFFERENT(number, 5, "different epoch");
  }
  {
    FUNCTION(checkpoints_load_latest, COLLECTIVE, NULL);
    WRONG_HANDLE(checkpoints, sar_checkpoints, model);
    WRONG_HANDLE(model, sar_model, graph);
    WRONG_HANDLE(optimizer, sar_optimizer, graph);
    WRONG(optimizer, wide_optimizer);
    WRONG(result, NULL);
  }
  snprintf(other_path, sizeof other_path, "%s/checkpoint-00000004.safetensors", path);
  {
    FUNCTION(checkpoints_load, COLLECTIVE, NULL);
    WRONG_HANDLE(checkpoints, sar_checkpoints, model);
    WRONG_HANDLE(model, sar_model, graph);
    WRONG_HANDLE(optimizer, sar_optimizer, graph);
    WRONG(text, NULL);
    WRONG(text, "");
    DIFFERENT(text, "elsewhere.safetensors", "different path");
    WRONG(result, NULL);
  }
  snprintf(other_path, sizeof other_path, "%s/trace.json", folder);
  {
    FUNCTION(trace_start, COLLECTIVE, release_trace);
    WRONG_HANDLE(comm, sar_comm, graph);
    WRONG(text, NULL);
    DIFFERENT(text, "elsewhere.json", "different path");
    WRONG(result, NULL);
  }
  {
    FUNCTION(memory_current, LOCAL, NULL);
    WRONG(result, NULL);
  }
  {
    FUNCTION(memory_peak, LOCAL, NULL);
    WRONG(result, NULL);
  }
  good = before;
}

/* A wrong handle frees nothing: the right one is freed after it. */
#define FREES(function_name, field, type, other)                         \
  do {                                                                   \
    arguments a = good;                                                  \
    type wrong[4];                                                       \
    int i;                                                               \
    wrong[0] = NULL;                                                     \
    wrong[1] = freed.field;                                              \
    wrong[2] = (type)(void*)good.other;                                  \
    wrong[3] = (type)(void*)&failures;                                   \
    for (i = 0; i < 4; ++i) {                                            \
      int status;                                                        \
      a.field = wrong[i];                                                \
      status = is_last ? function_name(&a) : SAR_OK;                     \
      if (is_last && status != SAR_ERROR_HANDLE)                         \
        fail(#function_name, #field, "a wrong handle is freed", status); \
    }                                                                    \
  } while (0)

static void tries_freeing(void) {
  FREES(comm_free, comm, sar_comm, graph);
  FREES(graph_free, graph, sar_graph, comm);
  FREES(model_free, model, sar_model, comm);
  FREES(optimizer_free, optimizer, sar_optimizer, comm);
  FREES(predictor_free, predictor, sar_predictor, comm);
  FREES(potential_free, potential, sar_potential, comm);
  FREES(learner_free, learner, sar_learner, comm);
  FREES(checkpoints_free, checkpoints, sar_checkpoints, comm);
  {
    arguments a;
    int i;
    MUST(sar_trace_start(good.comm, other_path, &good.trace));
    for (i = 0; i < 3; ++i) {
      a = good;
      if (is_last) a.trace = i == 0 ? NULL : i == 1 ? freed.trace : (sar_trace)(void*)good.model;
      check_on_all_ranks("trace_write", "trace", "handle", trace_write(&a));
    }
    MUST(trace_write(&good)); /* it was recording until here */
  }
}

/* What a binding refuses on one rank is refused on all, once. */
static void tries_refusals(void) {
  const char* const call = "sar_refuse_next";
  int status;
  double loss = -1;
  if (sar_refuse_next(NULL) != SAR_ERROR_INPUT) fail(call, "text", "null is not refused", 0);
  if (is_last) MUST(sar_refuse_next("three of them"));
  status = sar_evaluate(good.model, good.graph, NULL, good.x, good.edges, 0, good.target, 0, NULL, &loss);
  check_on_all_ranks(call, "text", "three of them", status);
  if (status != SAR_ERROR_SHAPE || loss != -1) fail(call, "text", "is not refused", status);
  MUST(sar_evaluate(good.model, good.graph, NULL, good.x, good.edges, 0, good.target, 0, NULL, &loss));
}

int main(int argc, char** argv) {
  int all = 0;
  double before = 0, after = 0;
  if (argc > 1) folder = argv[1];
  if (sar_init() != SAR_OK) return 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  is_last = my_rank == size - 1;
  make_arrays();
  make_good_arguments();
  MUST(evaluate(&good));
  memcpy(&before, results, sizeof before);
  tries_comms();
  tries_graphs();
  tries_edges();
  MUST(evaluate(&good));
  memcpy(&after, results, sizeof after);
  if (before != after) fail("evaluate", "model", "refused calls have changed it", 0);
  tries_models();
  tries_parameters();
  tries_optimizers();
  tries_training();
  tries_building();
  tries_types();
  tries_predictors();
  tries_potentials();
  tries_learners();
  tries_files();
  tries_refusals();
  tries_freeing();
  MUST(sar_optimizer_free(wide_optimizer));
  MUST(sar_model_free(wide_model));
  MUST(sar_graph_free(other_graph));
  free_objects(&good);
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (my_rank == 0) printf("%d calls, %d failures\n", num_calls, all);
  return sar_finalize() == SAR_OK && all == 0 ? 0 : 1;
}
