// SPDX-License-Identifier: MIT

/* Every function of sar.h with handles that are null, freed, unknown or of another kind, with null pointers,
 * with lengths, precisions and orders that are wrong, and with handles of two communicators: status and text,
 * on every rank the same. Then a training, whose loss must fall. The argument is a folder for files. */
#include <sar.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;
static int my_rank = 0;

/* Counts a call that returned another status than expected, or an error without the text. */
static void expect(int found, int expected, const char* text, const char* call, int line) {
  if (found == expected && (expected == SAR_OK || strstr(sar_last_error(), text) != NULL)) return;
  ++failures;
  fprintf(stderr,
          "rank %d, line %d: %s returned %d, expected %d; the last error is '%s', expected '%s' in it\n",
          my_rank, line, call, found, expected, sar_last_error(), text);
}
static void holds(int condition, const char* text, int line) {
  if (condition) return;
  ++failures;
  fprintf(stderr, "rank %d, line %d: this does not hold: %s\n", my_rank, line, text);
}
#define HOLDS(condition) holds((condition), #condition, __LINE__)
#define OK(call) expect((call), SAR_OK, "", #call, __LINE__)
#define REFUSES(call, status, text) expect((call), (status), (text), #call, __LINE__)
/* A function of one handle, and those that stand for others. */
#define REFUSES_HANDLES(function, type, freed, ...)                                     \
  REFUSES(function((type)0, __VA_ARGS__), SAR_ERROR_HANDLE, "is null");                 \
  REFUSES(function((freed), __VA_ARGS__), SAR_ERROR_HANDLE, "freed or was never made"); \
  REFUSES(function((type)(void*)&failures, __VA_ARGS__), SAR_ERROR_HANDLE, "never made")
#define REFUSES_ONLY_HANDLE(function, type, freed)                         \
  REFUSES(function((type)0), SAR_ERROR_HANDLE, "is null");                 \
  REFUSES(function((freed)), SAR_ERROR_HANDLE, "freed or was never made"); \
  REFUSES(function((type)(void*)&failures), SAR_ERROR_HANDLE, "never made")

#define NODES 6 /* of each rank: a part of a ring */
static const char sage[] =
    "{\"sar_model\": 1, \"type\": \"sage\", \"in_feats\": 2, \"hidden\": 8, \"out_feats\": 3, \"layers\": 2}";
static const char adam[] = "{\"optimizer\": \"adam\", \"lr\": 0.02}";

typedef struct setting {
  sar_comm comm, other_comm, freed_comm;
  sar_graph graph, other_graph, freed_graph;
  sar_model model, other_model, freed_model;
  sar_optimizer optimizer, freed_optimizer;
  sar_predictor predictor, freed_predictor;
  sar_checkpoints checkpoints, freed_checkpoints;
  int64_t ids[NODES], src[NODES], dst[NODES];
  double x[NODES][2], y[NODES][3];
  uint8_t mask[NODES];
  int64_t labels[NODES];
  char path[1024];
} setting;

static int ring_graph(const setting* s, sar_comm comm, sar_graph* graph) {
  return sar_graph_from_global(comm, NODES, s->ids, NODES, s->src, s->dst, NULL, NULL,
                               "{\"add_reverse_edges\": true}", graph);
}

static void make_setting(setting* s, const char* folder) {
  int32_t size = 0, i;
  OK(sar_comm_create(MPI_COMM_WORLD, &s->comm));
  OK(sar_comm_world(&s->other_comm));
  OK(sar_comm_create_f((int32_t)MPI_Comm_c2f(MPI_COMM_WORLD), &s->freed_comm));
  OK(sar_comm_size(s->comm, &size));
  for (i = 0; i < NODES; ++i) {
    const int64_t node = (int64_t)my_rank * NODES + i;
    s->ids[i] = 100 + node;
    s->src[i] = s->ids[i];
    s->dst[i] = 100 + (node + 1) % ((int64_t)size * NODES);
    s->x[i][0] = sin((double)node);
    s->x[i][1] = cos((double)node);
    s->y[i][0] = s->x[i][0] * s->x[i][1];
    s->y[i][1] = s->x[i][0] - s->x[i][1];
    s->y[i][2] = 0.5;
    s->mask[i] = i % 2 == 0;
    s->labels[i] = i % 3;
  }
  OK(ring_graph(s, s->comm, &s->graph));
  OK(ring_graph(s, s->other_comm, &s->other_graph));
  OK(ring_graph(s, s->comm, &s->freed_graph));
  OK(sar_model_create(s->comm, sage, 1, &s->model));
  OK(sar_model_create(s->other_comm, sage, 1, &s->other_model));
  OK(sar_model_create(s->comm, sage, 1, &s->freed_model));
  OK(sar_optimizer_create(s->model, adam, &s->optimizer));
  OK(sar_optimizer_create(s->model, adam, &s->freed_optimizer));
  OK(sar_predictor_create(s->model, s->graph, &s->predictor));
  OK(sar_predictor_create(s->model, s->graph, &s->freed_predictor));
  snprintf(s->path, sizeof s->path, "%s/checkpoint-00000004.safetensors", folder);
  if (my_rank == 0) remove(s->path); /* of an earlier run */
  snprintf(s->path, sizeof s->path, "%s_freed", folder);
  OK(sar_checkpoints_create(s->comm, s->path, 2, 7, &s->freed_checkpoints));
  snprintf(s->path, sizeof s->path, "%s", folder);
  OK(sar_checkpoints_create(s->comm, s->path, 2, 7, &s->checkpoints));
  OK(sar_checkpoints_free(s->freed_checkpoints));
  OK(sar_predictor_free(s->freed_predictor));
  OK(sar_optimizer_free(s->freed_optimizer));
  OK(sar_model_free(s->freed_model));
  OK(sar_graph_free(s->freed_graph));
  OK(sar_comm_free(s->freed_comm));
}

static void refuses_comms(const setting* s) {
  int32_t number = 0;
  sar_comm comm = NULL;
  sar_comm model_as_comm = (sar_comm)(void*)s->model;
  REFUSES(sar_comm_create(MPI_COMM_NULL, &comm), SAR_ERROR_COMMUNICATION, "MPI_COMM_NULL");
  REFUSES(sar_comm_create(MPI_COMM_WORLD, NULL), SAR_ERROR_INPUT, "'comm' is null");
  REFUSES(sar_comm_create_f((int32_t)MPI_Comm_c2f(MPI_COMM_NULL), &comm), SAR_ERROR_COMMUNICATION,
          "MPI_COMM_NULL");
  REFUSES(sar_comm_create_f((int32_t)MPI_Comm_c2f(MPI_COMM_WORLD), NULL), SAR_ERROR_INPUT, "'comm' is null");
  REFUSES(sar_comm_world(NULL), SAR_ERROR_INPUT, "'comm' is null");
  REFUSES_HANDLES(sar_comm_rank, sar_comm, s->freed_comm, &number);
  REFUSES_HANDLES(sar_comm_size, sar_comm, s->freed_comm, &number);
  REFUSES_HANDLES(sar_comm_default_num_threads, sar_comm, s->freed_comm, &number);
  REFUSES_ONLY_HANDLE(sar_comm_free, sar_comm, s->freed_comm);
  REFUSES(sar_comm_rank(model_as_comm, &number), SAR_ERROR_HANDLE, "is a sar_model, expected a sar_comm");
  REFUSES(sar_comm_default_num_threads(model_as_comm, &number), SAR_ERROR_HANDLE, "is a sar_model");
  REFUSES(sar_comm_free(model_as_comm), SAR_ERROR_HANDLE, "is a sar_model");
  REFUSES(sar_comm_rank(s->comm, NULL), SAR_ERROR_INPUT, "'rank' is null");
  REFUSES(sar_comm_size(s->comm, NULL), SAR_ERROR_INPUT, "'size' is null");
  REFUSES(sar_comm_default_num_threads(s->comm, NULL), SAR_ERROR_INPUT, "'threads' is null");
  OK(sar_comm_default_num_threads(s->comm, &number));
  REFUSES(sar_set_num_threads(-1), SAR_ERROR_INPUT, "is -1, expected 0 or more");
  OK(sar_set_num_threads(1));
  OK(sar_set_num_threads(0));
}

/* The graph is as it was after each of these. */
static void refuses_rebuilding(const setting* s) {
  double rows[NODES] = {0};
  int64_t same_ids[NODES] = {0};
  const int32_t near[1] = {0}, far[1] = {NODES};
  const sar_array weight = sar_array_double(rows, NODES, 1),
                  short_weight = sar_array_double(rows, NODES - 1, 1);
  int64_t nodes = 0, edges = 0, given_edges = 0;
#define REBUILD(graph, n, ids, m, src, dst, weights) \
  sar_graph_rebuild_from_global(graph, n, ids, m, src, dst, NULL, weights)
#define REBUILD_LOCAL(graph, owned, n, ids, m, src, dst, weights) \
  sar_graph_rebuild_from_local(graph, owned, n, ids, m, src, dst, NULL, weights)
  REFUSES_HANDLES(sar_graph_rebuild_from_global, sar_graph, s->freed_graph, NODES, s->ids, NODES, s->src,
                  s->dst, NULL, NULL);
  REFUSES(REBUILD((sar_graph)(void*)s->comm, NODES, s->ids, NODES, s->src, s->dst, NULL), SAR_ERROR_HANDLE,
          "is a sar_comm, expected a sar_graph");
  REFUSES(REBUILD((sar_graph)(void*)s->predictor, NODES, s->ids, NODES, s->src, s->dst, NULL),
          SAR_ERROR_HANDLE, "is a sar_predictor, expected a sar_graph");
  REFUSES(REBUILD(s->graph, -1, s->ids, NODES, s->src, s->dst, NULL), SAR_ERROR_INPUT,
          "the length of 'node_ids' is -1");
  REFUSES(REBUILD(s->graph, NODES, NULL, NODES, s->src, s->dst, NULL), SAR_ERROR_INPUT,
          "'node_ids' is null, expected 6 numbers");
  REFUSES(REBUILD(s->graph, NODES, s->ids, -2, s->src, s->dst, NULL), SAR_ERROR_INPUT, "is -2");
  REFUSES(REBUILD(s->graph, NODES, s->ids, NODES, NULL, s->dst, NULL), SAR_ERROR_INPUT, "'src' is null");
  REFUSES(REBUILD(s->graph, NODES, s->ids, NODES, s->src, NULL, NULL), SAR_ERROR_INPUT, "'dst' is null");
  REFUSES(REBUILD(s->graph, 0, NULL, 0, NULL, NULL, NULL), SAR_ERROR_INPUT, "expected one at least");
  REFUSES(REBUILD(s->graph, NODES, s->ids, NODES, s->src, s->dst, &short_weight), SAR_ERROR_SHAPE,
          "'edge_weight' has 5 rows, expected 6");
  REFUSES(sar_graph_rebuild_from_global(s->graph, NODES, s->ids, NODES, s->src, s->dst, same_ids, NULL),
          SAR_ERROR_INPUT, "");
  REFUSES(REBUILD(s->graph, NODES, same_ids, NODES, same_ids, same_ids, NULL), SAR_ERROR_INPUT, "0");

  REFUSES_HANDLES(sar_graph_rebuild_from_local, sar_graph, s->freed_graph, NODES, NODES, s->ids, 1, near,
                  near, NULL, NULL);
  REFUSES(REBUILD_LOCAL((sar_graph)(void*)s->model, NODES, NODES, s->ids, 1, near, near, NULL),
          SAR_ERROR_HANDLE, "is a sar_model, expected a sar_graph");
  REFUSES(REBUILD_LOCAL(s->graph, NODES + 1, NODES, s->ids, 1, near, near, NULL), SAR_ERROR_INPUT,
          "owns 7 of 6 nodes");
  REFUSES(REBUILD_LOCAL(s->graph, NODES, NODES, NULL, 1, near, near, NULL), SAR_ERROR_INPUT,
          "'global_ids' is null");
  REFUSES(REBUILD_LOCAL(s->graph, NODES, NODES, s->ids, 1, near, NULL, NULL), SAR_ERROR_INPUT,
          "'dst' is null");
  REFUSES(REBUILD_LOCAL(s->graph, NODES, NODES, s->ids, 1, far, near, NULL), SAR_ERROR_INPUT, "6");
  REFUSES(REBUILD_LOCAL(s->graph, NODES, NODES, s->ids, 1, near, near, &weight), SAR_ERROR_SHAPE,
          "'edge_weight' has 6 rows, expected 1");
  OK(sar_graph_num_nodes(s->graph, NULL, &nodes, NULL));
  OK(sar_graph_num_edges(s->graph, NULL, &edges, NULL, &given_edges));
  HOLDS(nodes == NODES && given_edges == NODES && edges == 2 * NODES);
}

static void refuses_graphs(const setting* s) {
  sar_graph graph = NULL;
  int64_t nodes = 0, edges = 0, given_edges = 0;
  int64_t edge_ids[64];
  double rows[64] = {0};
  sar_array given, ordered, wrong;
  const int32_t near[1] = {0}, far[1] = {NODES};
  const sar_graph comm_as_graph = (sar_graph)(void*)s->comm;
  const sar_array weight = sar_array_double(rows, NODES, 1),
                  short_weight = sar_array_double(rows, NODES - 1, 1);
#define FROM_GLOBAL(comm, n, ids, m, src, dst, weights, options, out) \
  sar_graph_from_global(comm, n, ids, m, src, dst, NULL, weights, options, out)
  REFUSES_HANDLES(sar_graph_from_global, sar_comm, s->freed_comm, NODES, s->ids, NODES, s->src, s->dst, NULL,
                  NULL, NULL, &graph);
  REFUSES(FROM_GLOBAL((sar_comm)(void*)s->model, NODES, s->ids, NODES, s->src, s->dst, NULL, NULL, &graph),
          SAR_ERROR_HANDLE, "is a sar_model, expected a sar_comm");
  REFUSES(FROM_GLOBAL(s->comm, NODES, s->ids, NODES, s->src, s->dst, NULL, NULL, NULL), SAR_ERROR_INPUT,
          "is null");
  REFUSES(FROM_GLOBAL(s->comm, -1, s->ids, NODES, s->src, s->dst, NULL, NULL, &graph), SAR_ERROR_INPUT,
          "the length of 'node_ids' is -1");
  REFUSES(FROM_GLOBAL(s->comm, NODES, NULL, NODES, s->src, s->dst, NULL, NULL, &graph), SAR_ERROR_INPUT,
          "'node_ids' is null, expected 6 numbers");
  REFUSES(FROM_GLOBAL(s->comm, NODES, s->ids, -2, s->src, s->dst, NULL, NULL, &graph), SAR_ERROR_INPUT,
          "is -2");
  REFUSES(FROM_GLOBAL(s->comm, NODES, s->ids, NODES, NULL, s->dst, NULL, NULL, &graph), SAR_ERROR_INPUT,
          "'src'");
  REFUSES(FROM_GLOBAL(s->comm, NODES, s->ids, NODES, s->src, NULL, NULL, NULL, &graph), SAR_ERROR_INPUT,
          "'dst'");
  REFUSES(FROM_GLOBAL(s->comm, NODES, s->ids, NODES, s->src, s->dst, &short_weight, NULL, &graph),
          SAR_ERROR_SHAPE, "'edge_weight' has 5 rows, expected 6");
  REFUSES(FROM_GLOBAL(s->comm, NODES, s->ids, NODES, s->src, s->dst, NULL, "{\"modes\": 1}", &graph),
          SAR_ERROR_INPUT, "has the key 'modes', expected one of add_reverse_edges, mode");
  REFUSES(FROM_GLOBAL(s->comm, NODES, s->ids, NODES, s->src, s->dst, NULL, "{\"mode\": \"fast\"}", &graph),
          SAR_ERROR_INPUT, "is 'fast', expected one of rematerialize, sequential, one_shot");
  REFUSES(FROM_GLOBAL(s->comm, NODES, s->ids, NODES, s->src, s->dst, NULL, "{\"mode\":", &graph),
          SAR_ERROR_INPUT, "");
  REFUSES(FROM_GLOBAL(s->comm, NODES, s->src, NODES, s->src, s->src, NULL, "[]", &graph), SAR_ERROR_INPUT,
          "object");
  OK(FROM_GLOBAL(s->comm, NODES, s->ids, NODES, s->src, s->dst, &weight,
                 "{\"mode\": \"sequential\", \"pipeline_depth\": 2, \"max_halo_bytes\": 4096, "
                 "\"halo_format\": \"bf16\"}",
                 &graph));
  OK(sar_graph_free(graph));

  REFUSES_HANDLES(sar_graph_from_local, sar_comm, s->freed_comm, NODES, NODES, s->ids, 1, near, near, NULL,
                  NULL, NULL, &graph);
  REFUSES(sar_graph_from_local(s->comm, NODES, NODES, s->ids, 1, near, near, NULL, NULL, NULL, NULL),
          SAR_ERROR_INPUT, "is null");
  REFUSES(sar_graph_from_local(s->comm, NODES + 1, NODES, s->ids, 1, near, near, NULL, NULL, NULL, &graph),
          SAR_ERROR_INPUT, "owns 7 of 6 nodes");
  REFUSES(sar_graph_from_local(s->comm, NODES, NODES, NULL, 1, near, near, NULL, NULL, NULL, &graph),
          SAR_ERROR_INPUT, "'global_ids' is null");
  REFUSES(sar_graph_from_local(s->comm, NODES, NODES, s->ids, 1, NULL, near, NULL, NULL, NULL, &graph),
          SAR_ERROR_INPUT, "'src' is null");
  REFUSES(sar_graph_from_local(s->comm, NODES, NODES, s->ids, 1, far, near, NULL, NULL, NULL, &graph),
          SAR_ERROR_INPUT, "6");

  refuses_rebuilding(s);

  REFUSES_HANDLES(sar_graph_num_nodes, sar_graph, s->freed_graph, NULL, &nodes, NULL);
  REFUSES(sar_graph_num_nodes(comm_as_graph, NULL, &nodes, NULL), SAR_ERROR_HANDLE,
          "is a sar_comm, expected a sar_graph");
  REFUSES_HANDLES(sar_graph_num_edges, sar_graph, s->freed_graph, NULL, &edges, NULL, &given_edges);
  REFUSES(sar_graph_num_edges(comm_as_graph, NULL, NULL, &edges, NULL), SAR_ERROR_HANDLE,
          "is a sar_comm, expected a sar_graph");
  REFUSES(sar_graph_num_nodes(s->graph, "b", &nodes, NULL), SAR_ERROR_INPUT, "there is no node type 'b'");
  REFUSES(sar_graph_num_edges(s->graph, "r", &edges, NULL, NULL), SAR_ERROR_INPUT, "'r'");
  HOLDS(nodes == 0 && edges == 0);
  OK(sar_graph_num_nodes(s->graph, NULL, NULL, NULL));
  OK(sar_graph_num_edges(s->graph, NULL, NULL, NULL, NULL));
  OK(sar_graph_num_nodes(s->graph, NULL, &nodes, NULL));
  OK(sar_graph_num_edges(s->graph, NULL, &edges, NULL, &given_edges));
  HOLDS(nodes == NODES && given_edges == NODES && edges == 2 * NODES);

  REFUSES_HANDLES(sar_graph_edge_ids, sar_graph, s->freed_graph, NULL, edges, edge_ids);
  REFUSES(sar_graph_edge_ids(s->graph, NULL, edges, NULL), SAR_ERROR_INPUT, "'edge_ids' is null");
  REFUSES(sar_graph_edge_ids(s->graph, NULL, 3, edge_ids), SAR_ERROR_SHAPE,
          "room for 3 numbers, expected that for 12");
  OK(sar_graph_edge_ids(s->graph, NULL, edges, edge_ids));

  given = sar_array_double(rows, NODES, 1);
  ordered = sar_array_double(rows + 16, 2 * NODES, 1);
  wrong = sar_array_double(rows, NODES + 1, 1);
  REFUSES_HANDLES(sar_graph_edges_to_graph_order, sar_graph, s->freed_graph, NULL, &given, NULL, &ordered);
  REFUSES(sar_graph_edges_to_graph_order(comm_as_graph, NULL, &given, NULL, &ordered), SAR_ERROR_HANDLE,
          "is a sar_comm");
  REFUSES(sar_graph_edges_to_graph_order(s->graph, NULL, NULL, NULL, &ordered), SAR_ERROR_INPUT,
          "'rows' is null");
  REFUSES(sar_graph_edges_to_graph_order(s->graph, NULL, &given, NULL, NULL), SAR_ERROR_INPUT,
          "'out' is null");
  REFUSES(sar_graph_edges_to_graph_order(s->graph, NULL, &wrong, NULL, &ordered), SAR_ERROR_SHAPE,
          "7 rows, expected 6");
  REFUSES(sar_graph_edges_to_graph_order(s->graph, NULL, &given, &wrong, &ordered), SAR_ERROR_SHAPE,
          "'reverse_rows' has 7");
  REFUSES(sar_graph_edges_to_graph_order(s->graph, NULL, &given, NULL, &wrong), SAR_ERROR_SHAPE,
          "'out' has 7 rows");
  REFUSES_HANDLES(sar_graph_edges_to_given_order, sar_graph, s->freed_graph, NULL, &ordered, 0, &given);
  REFUSES(sar_graph_edges_to_given_order(s->graph, NULL, NULL, 0, &given), SAR_ERROR_INPUT, "'rows' is null");
  REFUSES(sar_graph_edges_to_given_order(s->graph, NULL, &ordered, 0, NULL), SAR_ERROR_INPUT,
          "'out' is null");
  REFUSES(sar_graph_edges_to_given_order(s->graph, NULL, &wrong, 0, &given), SAR_ERROR_SHAPE,
          "7 rows, expected 12");
  REFUSES_ONLY_HANDLE(sar_graph_free, sar_graph, s->freed_graph);
  REFUSES(sar_graph_free(comm_as_graph), SAR_ERROR_HANDLE, "is a sar_comm");
}

/* Graphs with types: what is called before the graph is built, and what must name one of several types. */
static void refuses_types(const setting* s) {
  sar_graph graph = NULL, couplings = NULL;
  int64_t nodes = 0, edges = 0, edge_ids[NODES];
  double rows[3 * NODES] = {0}, loss = 0;
  sar_predictor predictor = NULL;
  const sar_graph comm_as_graph = (sar_graph)(void*)s->comm;
  const sar_array given = sar_array_double(rows, NODES, 1), x = sar_array_double(&s->x[0][0], NODES, 2);
  sar_array out = sar_array_double(rows, NODES, 1), y = sar_array_double(rows, NODES, 3);
  const char both_nodes[] = "'type' is null for a graph of the node types a, b, expected one of them",
             both_edges[] = "'edge_type' is null for a graph of the edge types a:r:a, b:s:a";
  REFUSES_HANDLES(sar_graph_create, sar_comm, s->freed_comm, NULL, &graph);
  REFUSES(sar_graph_create((sar_comm)(void*)s->model, NULL, &graph), SAR_ERROR_HANDLE, "is a sar_model");
  REFUSES(sar_graph_create(s->comm, NULL, NULL), SAR_ERROR_INPUT, "is null");
  REFUSES(sar_graph_create(s->comm, "{\"add_reverse_edges\": true}", &graph), SAR_ERROR_INPUT,
          "expected it as an argument of sar_graph_add_edges()");
  OK(sar_graph_create(s->comm, NULL, &graph));
  REFUSES(sar_graph_build(graph), SAR_ERROR_INPUT,
          "expected sar_graph_add_nodes() and sar_graph_add_edges()");
#define NO_EDGE_TYPE "; the edge types are 'a:r:a'"
#define NOT_BUILT "the graph has no nodes, expected a call of sar_graph_build() before"
  REFUSES(sar_graph_num_nodes(graph, NULL, &nodes, NULL), SAR_ERROR_INPUT, NOT_BUILT);
  REFUSES(sar_graph_num_edges(graph, NULL, &edges, NULL, NULL), SAR_ERROR_INPUT, NOT_BUILT);
  REFUSES(sar_graph_edge_ids(graph, NULL, NODES, edge_ids), SAR_ERROR_INPUT, NOT_BUILT);
  REFUSES(sar_graph_edges_to_graph_order(graph, NULL, &given, NULL, &out), SAR_ERROR_INPUT, NOT_BUILT);
  REFUSES(sar_graph_edges_to_given_order(graph, NULL, &given, 0, &out), SAR_ERROR_INPUT, NOT_BUILT);
  REFUSES(sar_graph_set_rows(graph, "a", &given), SAR_ERROR_INPUT, NOT_BUILT);
  REFUSES(sar_evaluate_labels(s->model, graph, NULL, &x, NULL, NODES, s->labels, 0, NULL, &loss),
          SAR_ERROR_INPUT, NOT_BUILT);
  REFUSES(
      sar_train_step_labels(s->model, s->optimizer, graph, NULL, &x, NULL, NODES, s->labels, 0, NULL, &loss),
      SAR_ERROR_INPUT, NOT_BUILT);
  REFUSES(sar_predict(s->model, graph, NULL, &x, NULL, &y), SAR_ERROR_INPUT, NOT_BUILT);
  REFUSES(sar_predictor_create(s->model, graph, &predictor), SAR_ERROR_INPUT, NOT_BUILT);
  REFUSES_HANDLES(sar_graph_add_nodes, sar_graph, s->freed_graph, "a", NODES, s->ids);
  REFUSES(sar_graph_add_nodes(comm_as_graph, "a", NODES, s->ids), SAR_ERROR_HANDLE, "is a sar_comm");
  REFUSES(sar_graph_add_nodes(graph, NULL, NODES, s->ids), SAR_ERROR_INPUT, "'type' is null");
  REFUSES_HANDLES(sar_graph_add_edges, sar_graph, s->freed_graph, "a", "r", "a", NODES, s->src, s->dst, NULL,
                  NULL, 0);
  REFUSES(sar_graph_add_edges(graph, "a", NULL, "a", NODES, s->src, s->dst, NULL, NULL, 0), SAR_ERROR_INPUT,
          "'relation' is null");
  OK(sar_graph_add_nodes(graph, "a", NODES, s->ids));
  OK(sar_graph_add_nodes(graph, "b", NODES, s->ids));
  OK(sar_graph_add_edges(graph, "a", "r", "a", NODES, s->src, s->dst, NULL, NULL, 0));
  OK(sar_graph_add_edges(graph, "b", "s", "a", NODES - 1, s->src, s->dst, NULL, NULL, 0));
  REFUSES_ONLY_HANDLE(sar_graph_build, sar_graph, s->freed_graph);
  REFUSES(sar_graph_set_rows(graph, "a", &given), SAR_ERROR_INPUT, NOT_BUILT);
  OK(sar_graph_build(graph));

  OK(sar_graph_num_nodes(graph, NULL, &nodes, NULL));
  OK(sar_graph_num_edges(graph, NULL, NULL, NULL, &edges));
  HOLDS(nodes == 2 * NODES && edges == 2 * NODES - 1);
  OK(sar_graph_num_nodes(graph, "b", &nodes, NULL));
  OK(sar_graph_num_edges(graph, "b:s:a", NULL, NULL, &edges));
  HOLDS(nodes == NODES && edges == NODES - 1);
  REFUSES(sar_graph_num_nodes(graph, "c", &nodes, NULL), SAR_ERROR_INPUT,
          "there is no node type 'c', expected a, b");
  REFUSES(sar_graph_num_edges(graph, "a:s:b", &edges, NULL, NULL), SAR_ERROR_INPUT, NO_EDGE_TYPE);
  REFUSES(sar_graph_edge_ids(graph, NULL, NODES, edge_ids), SAR_ERROR_INPUT, both_edges);
  REFUSES(sar_graph_edge_ids(graph, "t", NODES, edge_ids), SAR_ERROR_INPUT, NO_EDGE_TYPE);
  REFUSES(sar_graph_edges_to_graph_order(graph, NULL, &given, NULL, &out), SAR_ERROR_INPUT, both_edges);
  REFUSES(sar_graph_edges_to_given_order(graph, NULL, &given, 0, &out), SAR_ERROR_INPUT, both_edges);
  REFUSES(sar_graph_edges_to_given_order(graph, "t", &given, 0, &out), SAR_ERROR_INPUT, NO_EDGE_TYPE);
  REFUSES(sar_graph_edges_to_graph_order(graph, "s", &given, NULL, &out), SAR_ERROR_SHAPE,
          "6 rows, expected 5");
  REFUSES_HANDLES(sar_graph_set_rows, sar_graph, s->freed_graph, "a", &given);
  REFUSES(sar_graph_set_rows(graph, NULL, &given), SAR_ERROR_INPUT, both_nodes);
  REFUSES(sar_graph_set_rows(graph, "c", &given), SAR_ERROR_INPUT, "expected a, b");
  OK(sar_graph_set_rows(graph, "b", &given));
  REFUSES(sar_evaluate_labels(s->model, graph, "a", &x, NULL, NODES, s->labels, 0, NULL, &loss),
          SAR_ERROR_INPUT, "on a graph of the edge types a:r:a, b:s:a, expected one edge type");

  /* one edge type between two node types */
  OK(sar_graph_create(s->comm, NULL, &couplings));
  OK(sar_graph_add_nodes(couplings, "a", NODES, s->ids));
  OK(sar_graph_add_nodes(couplings, "b", NODES, s->ids));
  OK(sar_graph_add_edges(couplings, "a", "r", "b", NODES, s->src, s->dst, NULL, NULL, 0));
  OK(sar_graph_build(couplings));
  OK(sar_graph_edges_to_graph_order(couplings, NULL, &given, NULL, &out));
  OK(sar_graph_num_nodes(couplings, NULL, &nodes, NULL));
  HOLDS(nodes == 2 * NODES);
  REFUSES(sar_predict(s->model, couplings, "a", &x, NULL, &y), SAR_ERROR_INPUT,
          "on a graph of the node types a, b, expected one node type");
  REFUSES(sar_predictor_create(s->model, couplings, &predictor), SAR_ERROR_INPUT, "expected one node type");
  OK(sar_graph_add_nodes(couplings, "a", NODES, s->ids));
  OK(sar_graph_add_nodes(couplings, "b", NODES, s->ids));
  OK(sar_graph_add_edges(couplings, "a", "r", "b", NODES, s->src, s->dst, NULL, NULL, 0));
  OK(sar_graph_add_edges(couplings, "b", "r", "a", NODES, s->src, s->dst, NULL, NULL, 0));
  OK(sar_graph_build(couplings));
  REFUSES(sar_graph_edge_ids(couplings, "r", NODES, edge_ids), SAR_ERROR_INPUT,
          "several edge types are called 'r'");
  OK(sar_graph_edge_ids(couplings, "b:r:a", NODES, edge_ids));
  OK(sar_graph_free(couplings));

  /* a graph of one type is one that a predictor follows; of several, the next run says so */
  OK(sar_graph_rebuild_from_global(graph, NODES, s->ids, NODES, s->src, s->dst, NULL, NULL));
  OK(sar_predictor_create(s->model, graph, &predictor));
  OK(sar_predictor_run(predictor, &x, NULL, &y));
  OK(sar_graph_add_nodes(graph, "a", NODES, s->ids));
  OK(sar_graph_add_edges(graph, "a", "r", "a", NODES, s->src, s->dst, NULL, NULL, 0));
  OK(sar_graph_build(graph));
  OK(sar_predictor_run(predictor, &x, NULL, &y));
  OK(sar_graph_add_nodes(graph, "a", NODES, s->ids));
  OK(sar_graph_add_edges(graph, "a", "r", "a", NODES, s->src, s->dst, NULL, NULL, 0));
  OK(sar_graph_add_edges(graph, "a", "s", "a", NODES, s->src, s->dst, NULL, NULL, 0));
  OK(sar_graph_build(graph));
  REFUSES(sar_predictor_run(predictor, &x, NULL, &y), SAR_ERROR_INPUT, "expected one edge type");
  OK(sar_predictor_free(predictor));
  OK(sar_graph_free(graph));
}

static void refuses_models(const setting* s) {
  sar_model model = NULL;
  sar_optimizer optimizer = NULL;
  const char* text = NULL;
  int64_t count = 0, rows = 0, fields = 0;
  double lr = 0, values[64];
  sar_array out;
  const sar_model graph_as_model = (sar_model)(void*)s->graph;
  REFUSES_HANDLES(sar_model_create, sar_comm, s->freed_comm, sage, 1, &model);
  REFUSES(sar_model_create((sar_comm)(void*)s->graph, sage, 1, &model), SAR_ERROR_HANDLE, "is a sar_graph");
  REFUSES(sar_model_create(s->comm, NULL, 1, &model), SAR_ERROR_INPUT, "'description' is null");
  REFUSES(sar_model_create(s->comm, sage, 1, NULL), SAR_ERROR_INPUT, "is null");
  REFUSES(sar_model_create(s->comm, "{\"sar_model\": 99}", 1, &model), SAR_ERROR_INPUT, "is 99, expected 1");
  REFUSES(sar_model_create(s->comm,
                           "{\"sar_model\": 1, \"type\": \"gcn\", \"in_feats\": 2, \"out_feats\": 3, "
                           "\"residual\": \"identity\"}",
                           1, &model),
          SAR_ERROR_INPUT, "residual is 'identity', but layer 1 makes rows of 64 values from rows of 2");
  REFUSES(sar_model_create(s->comm, "{\"sar_model\": 1, \"type\": \"x\"}", 1, &model), SAR_ERROR_INPUT,
          "'x'");
  REFUSES_HANDLES(sar_model_load, sar_comm, s->freed_comm, "x", &model);
  REFUSES(sar_model_load(s->comm, NULL, &model), SAR_ERROR_INPUT, "'path' is null");
  REFUSES(sar_model_load(s->comm, "/nowhere/x.safetensors", &model), SAR_ERROR_INPUT,
          "/nowhere/x.safetensors");
  REFUSES(sar_model_load(s->comm, "x", NULL), SAR_ERROR_INPUT, "is null");
  REFUSES_HANDLES(sar_model_save, sar_model, s->freed_model, "x");
  REFUSES(sar_model_save(s->model, NULL), SAR_ERROR_INPUT, "'path' is null");
  REFUSES(sar_model_save(s->model, "/nowhere/x.safetensors"), SAR_ERROR_INPUT, "/nowhere");
  REFUSES_HANDLES(sar_model_description, sar_model, s->freed_model, &text);
  REFUSES(sar_model_description(s->model, NULL), SAR_ERROR_INPUT, "'description' is null");
  OK(sar_model_description(s->model, &text));
  HOLDS(text != NULL && strstr(text, "sage") != NULL);
  REFUSES_HANDLES(sar_model_feats, sar_model, s->freed_model, &count, &rows, &fields);
  REFUSES(sar_model_feats(s->model, NULL, &rows, &fields), SAR_ERROR_INPUT, "'in_feats' is null");
  REFUSES(sar_model_feats(s->model, &count, NULL, &fields), SAR_ERROR_INPUT, "'out_feats' is null");
  REFUSES(sar_model_feats(s->model, &count, &rows, NULL), SAR_ERROR_INPUT, "'edge_feats' is null");
  OK(sar_model_feats(s->model, &count, &rows, &fields));
  HOLDS(count == 2 && rows == 3 && fields == 0);

  REFUSES_HANDLES(sar_model_num_parameters, sar_model, s->freed_model, &count);
  REFUSES(sar_model_num_parameters(s->model, NULL), SAR_ERROR_INPUT, "'count' is null");
  OK(sar_model_num_parameters(s->model, &count));
  REFUSES_HANDLES(sar_model_parameter, sar_model, s->freed_model, 0, &text, &rows, &fields);
  REFUSES(sar_model_parameter(s->model, count, &text, &rows, &fields), SAR_ERROR_INPUT,
          "is asked for, expected 0 to");
  REFUSES(sar_model_parameter(s->model, -1, &text, &rows, &fields), SAR_ERROR_INPUT, "-1 is asked for");
  OK(sar_model_parameter(s->model, 0, &text, &rows, &fields));
  out = sar_array_double(values, rows, fields);
  if (rows * fields > 64) abort();
  OK(sar_model_get_parameter(s->model, 0, &out));
  OK(sar_model_set_parameter(s->model, 0, &out));
  REFUSES_HANDLES(sar_model_get_parameter, sar_model, s->freed_model, 0, &out);
  REFUSES_HANDLES(sar_model_set_parameter, sar_model, s->freed_model, 0, &out);
  REFUSES(sar_model_get_parameter(s->model, 99, &out), SAR_ERROR_INPUT, "99 is asked for");
  REFUSES(sar_model_set_parameter(s->model, 99, &out), SAR_ERROR_INPUT, "99 is asked for");
  REFUSES(sar_model_get_parameter(s->model, 0, NULL), SAR_ERROR_INPUT, "'values' is null");
  REFUSES(sar_model_set_parameter(s->model, 0, NULL), SAR_ERROR_INPUT, "'values' is null");
  out.rows += 1;
  REFUSES(sar_model_get_parameter(s->model, 0, &out), SAR_ERROR_SHAPE, "rows, expected");
  REFUSES(sar_model_set_parameter(s->model, 0, &out), SAR_ERROR_SHAPE, "rows, expected");
  REFUSES_ONLY_HANDLE(sar_model_free, sar_model, s->freed_model);
  REFUSES(sar_model_free(graph_as_model), SAR_ERROR_HANDLE, "is a sar_graph, expected a sar_model");

  REFUSES_HANDLES(sar_optimizer_create, sar_model, s->freed_model, adam, &optimizer);
  REFUSES(sar_optimizer_create(graph_as_model, adam, &optimizer), SAR_ERROR_HANDLE, "is a sar_graph");
  REFUSES(sar_optimizer_create(s->model, NULL, &optimizer), SAR_ERROR_INPUT, "'description' is null");
  REFUSES(sar_optimizer_create(s->model, adam, NULL), SAR_ERROR_INPUT, "is null");
  REFUSES(sar_optimizer_create(s->model, "{\"optimizer\": \"lbfgs\"}", &optimizer), SAR_ERROR_INPUT,
          "is 'lbfgs', expected one of sgd, adam, adamw");
  REFUSES(sar_optimizer_create(s->model, "{\"optimizer\": \"adam\", \"momentum\": 1}", &optimizer),
          SAR_ERROR_INPUT, "has the key 'momentum'");
  REFUSES(sar_optimizer_create(s->model, "{\"optimizer\": \"sgd\", \"lr\": -1}", &optimizer), SAR_ERROR_INPUT,
          "-1");
  REFUSES_HANDLES(sar_optimizer_get_lr, sar_optimizer, s->freed_optimizer, &lr);
  REFUSES(sar_optimizer_get_lr(s->optimizer, NULL), SAR_ERROR_INPUT, "'lr' is null");
  REFUSES_HANDLES(sar_optimizer_set_lr, sar_optimizer, s->freed_optimizer, 0.1);
  REFUSES(sar_optimizer_set_lr(s->optimizer, -0.5), SAR_ERROR_INPUT, "-0.5, expected a number from 0 on");
  REFUSES(sar_optimizer_set_lr(s->optimizer, NAN), SAR_ERROR_INPUT, "expected a number from 0 on");
  OK(sar_optimizer_set_lr(s->optimizer, 0.03));
  OK(sar_optimizer_get_lr(s->optimizer, &lr));
  HOLDS(lr == 0.03);
  REFUSES_ONLY_HANDLE(sar_optimizer_free, sar_optimizer, s->freed_optimizer);
  REFUSES(sar_optimizer_free((sar_optimizer)(void*)s->graph), SAR_ERROR_HANDLE, "is a sar_graph");
}

/* What every function refuses that takes an array. */
static void refuses_arrays(const setting* s, sar_array* y) {
  double loss = 0;
  const sar_array good = sar_array_double(&s->x[0][0], NODES, 2);
  sar_array x = good;
#define STEP(array) sar_evaluate(s->model, s->graph, NULL, array, NULL, SAR_LOSS_MSE, y, 0, NULL, &loss)
  REFUSES(STEP(NULL), SAR_ERROR_INPUT, "the array 'x' is null");
  x.precision = 7;
  REFUSES(STEP(&x), SAR_ERROR_INPUT, "the precision of the array 'x' is 7");
  x = good;
  x.order = -1;
  REFUSES(STEP(&x), SAR_ERROR_INPUT, "the order of the array 'x' is -1");
  x = good;
  x.rows = -6;
  REFUSES(STEP(&x), SAR_ERROR_INPUT, "has -6 rows");
  x = good;
  x.rows = NODES - 1;
  REFUSES(STEP(&x), SAR_ERROR_SHAPE, "'x' has 5 rows, expected 6");
  x = good;
  x.fields = 1;
  REFUSES(STEP(&x), SAR_ERROR_SHAPE, "'x' has 1 fields, expected 2");
  x = good;
  x.leading = 1;
  REFUSES(STEP(&x), SAR_ERROR_INPUT, "leading dimension of the array 'x' is 1, expected 2");
  x = good;
  x.reserved[1] = 3;
  REFUSES(STEP(&x), SAR_ERROR_INPUT, "the reserved fields of the array 'x' are 0 and 3, expected 0");
  x = good;
  x.data = NULL;
  REFUSES(STEP(&x), SAR_ERROR_INPUT, "the data of the array 'x' are null");
  REFUSES(sar_evaluate(s->model, s->graph, NULL, &good, &good, SAR_LOSS_MSE, y, 0, NULL, &loss),
          SAR_ERROR_INPUT, "takes no rows of edges");
}

static void refuses_training(const setting* s) {
  double loss = 0;
  sar_predictor predictor = NULL;
  const sar_array x = sar_array_double(&s->x[0][0], NODES, 2);
  sar_array y = sar_array_double(&s->y[0][0], NODES, 3), narrow = sar_array_double(&s->y[0][0], NODES, 1);
  const uint8_t nobody[NODES] = {0};
  refuses_arrays(s, &y);
#define TRAIN(model, optimizer, graph, kind, target, length, mask) \
  sar_train_step(model, optimizer, graph, NULL, &x, NULL, kind, target, length, mask, &loss)
#define LABELS(model, optimizer, graph, count, labels, length, mask) \
  sar_train_step_labels(model, optimizer, graph, NULL, &x, NULL, count, labels, length, mask, &loss)
  REFUSES(TRAIN(NULL, s->optimizer, s->graph, 0, &y, 0, NULL), SAR_ERROR_HANDLE, "'model' is null");
  REFUSES(TRAIN(s->freed_model, s->optimizer, s->graph, 0, &y, 0, NULL), SAR_ERROR_HANDLE,
          "'model' is freed");
  REFUSES(TRAIN(s->model, NULL, s->graph, 0, &y, 0, NULL), SAR_ERROR_HANDLE, "'optimizer' is null");
  REFUSES(TRAIN(s->model, s->freed_optimizer, s->graph, 0, &y, 0, NULL), SAR_ERROR_HANDLE,
          "'optimizer' is freed");
  REFUSES(TRAIN(s->model, s->optimizer, NULL, 0, &y, 0, NULL), SAR_ERROR_HANDLE, "'graph' is null");
  REFUSES(TRAIN(s->model, s->optimizer, s->freed_graph, 0, &y, 0, NULL), SAR_ERROR_HANDLE,
          "'graph' is freed");
  REFUSES(TRAIN(s->model, s->optimizer, (sar_graph)(void*)s->model, 0, &y, 0, NULL), SAR_ERROR_HANDLE,
          "is a sar_model");
  REFUSES(TRAIN(NULL, NULL, NULL, 0, &y, 0, NULL), SAR_ERROR_HANDLE, "'model' is null");
  REFUSES(TRAIN(s->model, s->optimizer, s->other_graph, 0, &y, 0, NULL), SAR_ERROR_INPUT, "another sar_comm");
  REFUSES(TRAIN(s->other_model, s->optimizer, s->other_graph, 0, &y, 0, NULL), SAR_ERROR_INPUT,
          "another sar_comm");
  REFUSES(TRAIN(s->model, s->optimizer, s->graph, 4, &y, 0, NULL), SAR_ERROR_INPUT, "kind of the loss is 4");
  REFUSES(TRAIN(s->model, s->optimizer, s->graph, 0, NULL, 0, NULL), SAR_ERROR_INPUT, "'target' is null");
  REFUSES(TRAIN(s->model, s->optimizer, s->graph, 0, &narrow, 0, NULL), SAR_ERROR_SHAPE,
          "1 fields, expected 3");
  REFUSES(TRAIN(s->model, s->optimizer, s->graph, 0, &y, 3, s->mask), SAR_ERROR_SHAPE,
          "'mask' has 3 numbers");
  REFUSES(TRAIN(s->model, s->optimizer, s->graph, 0, &y, 3, NULL), SAR_ERROR_INPUT, "'mask' is null");
  REFUSES(TRAIN(s->model, s->optimizer, s->graph, 0, &y, NODES, nobody), SAR_ERROR_INPUT, "");

  REFUSES(LABELS(s->freed_model, s->optimizer, s->graph, NODES, s->labels, 0, NULL), SAR_ERROR_HANDLE,
          "freed");
  REFUSES(LABELS(s->model, NULL, s->graph, NODES, s->labels, 0, NULL), SAR_ERROR_HANDLE,
          "'optimizer' is null");
  REFUSES(LABELS(s->model, s->optimizer, s->freed_graph, NODES, s->labels, 0, NULL), SAR_ERROR_HANDLE,
          "freed");
  REFUSES(LABELS(s->model, s->optimizer, s->other_graph, NODES, s->labels, 0, NULL), SAR_ERROR_INPUT,
          "another sar_comm");
  REFUSES(LABELS(s->model, s->optimizer, s->graph, 2, s->labels, 0, NULL), SAR_ERROR_SHAPE,
          "'labels' has 2 numbers");
  REFUSES(LABELS(s->model, s->optimizer, s->graph, -2, s->labels, 0, NULL), SAR_ERROR_INPUT, "is -2");
  REFUSES(LABELS(s->model, s->optimizer, s->graph, NODES, NULL, 0, NULL), SAR_ERROR_INPUT,
          "'labels' is null");
  REFUSES(LABELS(s->model, s->optimizer, s->graph, NODES, s->ids, 0, NULL), SAR_ERROR_INPUT, "100");
  REFUSES(LABELS(s->model, s->optimizer, s->graph, NODES, s->labels, 2, s->mask), SAR_ERROR_SHAPE,
          "'mask' has 2");

  REFUSES_HANDLES(sar_evaluate, sar_model, s->freed_model, s->graph, NULL, &x, NULL, 0, &y, 0, NULL, &loss);
  REFUSES(sar_evaluate(s->model, s->freed_graph, NULL, &x, NULL, 0, &y, 0, NULL, &loss), SAR_ERROR_HANDLE,
          "freed");
  REFUSES(sar_evaluate(s->model, s->other_graph, NULL, &x, NULL, 0, &y, 0, NULL, &loss), SAR_ERROR_INPUT,
          "another sar_comm");
  REFUSES(sar_evaluate(s->model, s->graph, NULL, &x, NULL, 0, &y, 0, NULL, NULL), SAR_ERROR_INPUT,
          "'loss' is null");
  REFUSES_HANDLES(sar_evaluate_labels, sar_model, s->freed_model, s->graph, NULL, &x, NULL, NODES, s->labels,
                  0, NULL, &loss);
  REFUSES(sar_evaluate_labels(s->model, s->other_graph, NULL, &x, NULL, NODES, s->labels, 0, NULL, &loss),
          SAR_ERROR_INPUT, "another sar_comm");
  REFUSES(sar_evaluate_labels(s->model, s->graph, NULL, &x, NULL, NODES - 1, s->labels, 0, NULL, &loss),
          SAR_ERROR_SHAPE, "'labels' has 5 numbers");
  REFUSES(sar_evaluate_labels(s->model, s->graph, NULL, &x, NULL, NODES, s->labels, 0, NULL, NULL),
          SAR_ERROR_INPUT, "is null");

  REFUSES_HANDLES(sar_predict, sar_model, s->freed_model, s->graph, NULL, &x, NULL, &y);
  REFUSES(sar_predict(s->model, s->freed_graph, NULL, &x, NULL, &y), SAR_ERROR_HANDLE, "freed");
  REFUSES(sar_predict(s->model, s->other_graph, NULL, &x, NULL, &y), SAR_ERROR_INPUT, "another sar_comm");
  REFUSES(sar_predict(s->model, s->graph, "b", &x, NULL, &y), SAR_ERROR_INPUT, "there is no node type 'b'");
  REFUSES(sar_predict(s->model, s->graph, NULL, NULL, NULL, &y), SAR_ERROR_INPUT, "'x' is null");
  REFUSES(sar_predict(s->model, s->graph, NULL, &x, NULL, NULL), SAR_ERROR_INPUT, "'out' is null");
  REFUSES(sar_predict(s->model, s->graph, NULL, &x, NULL, &narrow), SAR_ERROR_SHAPE,
          "'out' has 1 fields, expected 3");
  REFUSES(sar_predict(s->model, s->graph, NULL, &x, &x, &y), SAR_ERROR_INPUT, "takes no rows of edges");

  REFUSES_HANDLES(sar_predictor_create, sar_model, s->freed_model, s->graph, &predictor);
  REFUSES(sar_predictor_create(s->model, s->freed_graph, &predictor), SAR_ERROR_HANDLE, "freed");
  REFUSES(sar_predictor_create(s->model, NULL, &predictor), SAR_ERROR_HANDLE, "'graph' is null");
  REFUSES(sar_predictor_create(s->model, s->other_graph, &predictor), SAR_ERROR_INPUT, "another sar_comm");
  REFUSES(sar_predictor_create(s->model, s->graph, NULL), SAR_ERROR_INPUT, "is null");
  REFUSES_HANDLES(sar_predictor_run, sar_predictor, s->freed_predictor, &x, NULL, &y);
  REFUSES(sar_predictor_run((sar_predictor)(void*)s->model, &x, NULL, &y), SAR_ERROR_HANDLE,
          "is a sar_model");
  REFUSES(sar_predictor_run(s->predictor, NULL, NULL, &y), SAR_ERROR_INPUT, "'x' is null");
  REFUSES(sar_predictor_run(s->predictor, &x, NULL, NULL), SAR_ERROR_INPUT, "'out' is null");
  REFUSES(sar_predictor_run(s->predictor, &x, NULL, &narrow), SAR_ERROR_SHAPE,
          "'out' has 1 fields, expected 3");
  REFUSES(sar_predictor_run(s->predictor, &x, &x, &y), SAR_ERROR_INPUT, "takes no rows of edges");
  REFUSES_ONLY_HANDLE(sar_predictor_free, sar_predictor, s->freed_predictor);
}

static void refuses_the_rest(const setting* s) {
  sar_checkpoints checkpoints = NULL;
  sar_trace trace = NULL, freed_trace = NULL;
  sar_optimizer other = NULL;
  int32_t epoch = 0;
  int64_t bytes = 0;
  char file[1100];
  REFUSES_HANDLES(sar_checkpoints_create, sar_comm, s->freed_comm, "x", 1, 0, &checkpoints);
  REFUSES(sar_checkpoints_create(s->comm, NULL, 1, 0, &checkpoints), SAR_ERROR_INPUT, "'directory' is null");
  REFUSES(sar_checkpoints_create(s->comm, s->path, 0, 0, &checkpoints), SAR_ERROR_INPUT, "0");
  REFUSES(sar_checkpoints_create(s->comm, s->path, 1, 0, NULL), SAR_ERROR_INPUT, "is null");
  REFUSES_HANDLES(sar_checkpoints_save, sar_checkpoints, s->freed_checkpoints, 1, s->model, s->optimizer);
  REFUSES(sar_checkpoints_save(s->checkpoints, 1, s->freed_model, s->optimizer), SAR_ERROR_HANDLE, "freed");
  REFUSES(sar_checkpoints_save(s->checkpoints, 1, s->model, s->freed_optimizer), SAR_ERROR_HANDLE, "freed");
  REFUSES(sar_checkpoints_save(s->checkpoints, -1, s->model, s->optimizer), SAR_ERROR_INPUT,
          "the epoch is -1");
  REFUSES(sar_checkpoints_save(s->checkpoints, 1, s->other_model, s->optimizer), SAR_ERROR_INPUT,
          "another sar_comm");
  REFUSES_HANDLES(sar_checkpoints_load_latest, sar_checkpoints, s->freed_checkpoints, s->model, s->optimizer,
                  &epoch);
  REFUSES(sar_checkpoints_load_latest(s->checkpoints, s->model, s->optimizer, NULL), SAR_ERROR_INPUT,
          "'epoch' is null");
  REFUSES(sar_checkpoints_load_latest(s->checkpoints, s->model, NULL, &epoch), SAR_ERROR_HANDLE,
          "'optimizer' is null");
  REFUSES_HANDLES(sar_checkpoints_load, sar_checkpoints, s->freed_checkpoints, "x", s->model, s->optimizer,
                  &epoch);
  REFUSES(sar_checkpoints_load(s->checkpoints, NULL, s->model, s->optimizer, &epoch), SAR_ERROR_INPUT,
          "'path' is null");
  REFUSES(sar_checkpoints_load(s->checkpoints, "/nowhere/c", s->model, s->optimizer, &epoch), SAR_ERROR_INPUT,
          "/nowhere");
  OK(sar_checkpoints_load_latest(s->checkpoints, s->model, s->optimizer, &epoch));
  HOLDS(epoch == -1);
  OK(sar_checkpoints_save(s->checkpoints, 4, s->model, s->optimizer));
  OK(sar_checkpoints_load_latest(s->checkpoints, s->model, s->optimizer, &epoch));
  HOLDS(epoch == 4);
  REFUSES_ONLY_HANDLE(sar_checkpoints_free, sar_checkpoints, s->freed_checkpoints);

  OK(sar_optimizer_create(s->other_model, adam, &other));
  REFUSES(sar_train_step(s->model, other, s->graph, NULL, NULL, NULL, 0, NULL, 0, NULL, NULL),
          SAR_ERROR_INPUT, "another sar_comm");
  OK(sar_optimizer_free(other));

  snprintf(file, sizeof file, "%s/trace.json", s->path);
  REFUSES_HANDLES(sar_trace_start, sar_comm, s->freed_comm, file, &trace);
  REFUSES(sar_trace_start(s->comm, NULL, &trace), SAR_ERROR_INPUT, "'path' is null");
  REFUSES(sar_trace_start(s->comm, file, NULL), SAR_ERROR_INPUT, "is null");
  REFUSES(sar_trace_start(s->comm, "/nowhere/t.json", &trace), SAR_ERROR_INPUT, "/nowhere");
  OK(sar_trace_start(s->comm, file, &trace));
  REFUSES(sar_trace_start(s->comm, file, &freed_trace), SAR_ERROR_INPUT, "");
  REFUSES(sar_trace_write((sar_trace)(void*)s->model), SAR_ERROR_HANDLE,
          "is a sar_model, expected a sar_trace");
  OK(sar_trace_write(trace));
  REFUSES_ONLY_HANDLE(sar_trace_write, sar_trace, trace);

  REFUSES(sar_memory_current(NULL), SAR_ERROR_INPUT, "'bytes' is null");
  REFUSES(sar_memory_peak(NULL), SAR_ERROR_INPUT, "'bytes' is null");
  OK(sar_memory_current(&bytes));
  HOLDS(bytes > 0);
  OK(sar_memory_reset_peak());
  OK(sar_memory_peak(&bytes));
  OK(sar_memory_release());
}

static void trains(const setting* s) {
  const sar_array x = sar_array_double(&s->x[0][0], NODES, 2), y = sar_array_double(&s->y[0][0], NODES, 3);
  double first = 0, loss = 0;
  int step;
  for (step = 0; step < 60; ++step) {
    OK(sar_train_step(s->model, s->optimizer, s->graph, NULL, &x, NULL, SAR_LOSS_MSE, &y, 0, NULL, &loss));
    if (step == 0) first = loss;
  }
  if (!(loss < first / 4)) {
    ++failures;
    fprintf(stderr, "the loss goes from %g to %g\n", first, loss);
  }
}

static void free_setting(const setting* s) {
  OK(sar_comm_free(s->comm)); /* what others need lives on */
  OK(sar_graph_free(s->graph));
  OK(sar_model_free(s->model));
  OK(sar_optimizer_free(s->optimizer));
  OK(sar_predictor_free(s->predictor));
  OK(sar_checkpoints_free(s->checkpoints));
  OK(sar_model_free(s->other_model));
  OK(sar_graph_free(s->other_graph));
  OK(sar_comm_free(s->other_comm));
}

int main(int argc, char** argv) {
  setting s;
  int all = 0;
  sar_comm none = NULL;
  int64_t bytes = 0;
  HOLDS(strcmp(sar_last_error(), "") == 0);
  REFUSES(sar_comm_create(MPI_COMM_WORLD, &none), SAR_ERROR_COMMUNICATION, "MPI, which is not initialized");
  REFUSES(sar_comm_world(&none), SAR_ERROR_COMMUNICATION, "MPI, which is not initialized");
  REFUSES(sar_comm_create_f(0, &none), SAR_ERROR_COMMUNICATION, "MPI, which is not initialized");
  OK(sar_init());
  OK(sar_init());
  MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
  HOLDS(strchr(sar_version(), '.') != NULL);
  HOLDS(sar_precision() == SAR_FLOAT32 || sar_precision() == SAR_FLOAT64);
  memset(&s, 0, sizeof s);
  make_setting(&s, argc > 1 ? argv[1] : "refusals");
  refuses_comms(&s);
  refuses_graphs(&s);
  refuses_types(&s);
  refuses_models(&s);
  refuses_training(&s);
  refuses_the_rest(&s);
  trains(&s);
  free_setting(&s);
  OK(sar_memory_current(&bytes));
  HOLDS(bytes == 0);
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (my_rank == 0) printf("%d failures\n", all);
  OK(sar_finalize());
  OK(sar_finalize());
  REFUSES(sar_init(), SAR_ERROR_COMMUNICATION, "finalized already");
  return all == 0 && failures == 0 ? 0 : 1;
}
