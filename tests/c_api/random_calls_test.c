// SPDX-License-Identifier: MIT

/* Functions of sar.h in random order, with handles that are live, null, freed, of another kind, of another
 * communicator or no handles at all; handles are made, freed and made again in between. Calls whose handles
 * are right succeed; all others return SAR_ERROR_HANDLE or SAR_ERROR_INPUT with a text, the same status on
 * every rank. Calls that come at the wrong time, such as a step on a graph that is not built, are refused as
 * well. In the end nothing is in memory. The argument is a folder for files. */
#include <sar.h>

#include <stdio.h>
#include <string.h>

enum {
  NUM_NODES = 4,
  NUM_CALLS = 6000,
  MAX_OBJECTS = 400,
  MAX_FREED = 20,
  MAX_HANDLES = 3,
  MAX_MESSAGES = 10
};

enum { COMM, GRAPH, MODEL, OPTIMIZER, PREDICTOR, POTENTIAL, LEARNER, CHECKPOINTS, TRACE, NUM_KINDS };

/* What has been done with an object, as bits. */
enum {
  NODES = 1, /* of a graph: nodes were added since the last build */
  EDGES = 2,
  BUILT = 4,
  SEVERAL = 8, /* types of nodes and of edges; also of a predictor whose graph has them now */
  ROWS = 16,   /* of the node type that steps do not give rows of */
  OF_GRAPH = NODES | EDGES | BUILT | SEVERAL | ROWS,
  TYPED = 32, /* of a model, and of what is made from it: it reads a graph of several types */
  MESH = 64,  /* it has statistics and reads edge features, which no call here has */
  OF_MODEL = TYPED | MESH,
  SAVED = 128,                           /* of checkpoints: there is one */
  NOT_SINGLE = TYPED | SEVERAL | MESH,   /* what steps on a graph of one type refuse */
  TYPES = TYPED | BUILT | SEVERAL | ROWS /* what steps on a graph of several types need */
};

/* What a handle referred to when it was made. */
typedef struct object {
  void* handle;
  int kind;
  int comm;    /* which of the communicators */
  void* model; /* of an optimizer */
  void* graph; /* of a predictor */
  int is_freed;
  int state;
  int folder; /* of checkpoints */
  int saved;  /* of checkpoints: the state of the model that was saved last */
} object;

enum { NOTHING = NUM_KINDS, FREED }; /* what a function makes of its handles, beside new ones */

typedef struct function {
  const char* name;
  int (*call)(void** h);
  int num_handles;
  int kinds[MAX_HANDLES];
  int makes;          /* the kind of its new handle, NOTHING, or FREED for its first handle */
  int needs, refuses; /* bits that its handles together must have, and must not have */
  int sets, clears;   /* bits of its new handle, or else of its first handle */
} function;

static object objects[MAX_OBJECTS];
static int num_objects = 0, num_comms = 0, num_folders = 0, is_recording = 0;
static int saved_state = 0; /* of the model in the model file */
static int failures = 0, my_rank = 0, num_ranks = 1;
static const char* folder = "random_calls";

static int64_t ids[NUM_NODES], src[NUM_NODES], dst[NUM_NODES], labels[NUM_NODES];
static int32_t local_ends[NUM_NODES];
static double values[NUM_NODES * 16];
static sar_array x, y;

/* The same numbers on every rank. */
static uint64_t random_state = 1;
static int draw(int below) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (int)((random_state >> 33) % (uint64_t)below);
}

static void fail(const char* call, const char* what, int status) {
  if (++failures > MAX_MESSAGES) return;
  fprintf(stderr, "rank %d: %s: %s; the status is %d, the last error '%s'\n", my_rank, call, what, status,
          sar_last_error());
}

/* Objects. */

static const object* find(const void* handle) {
  int i;
  for (i = 0; i < num_objects; ++i)
    if (objects[i].handle == handle) return &objects[i];
  return NULL;
}

/* One of the objects that are live or freed, of a kind or of any (NUM_KINDS); NULL without any. */
static const object* any_object(int kind, int is_freed) {
  const int start = num_objects == 0 ? 0 : draw(num_objects);
  int i;
  for (i = 0; i < num_objects; ++i) {
    const object* found = &objects[(start + i) % num_objects];
    if (found->is_freed == is_freed && (kind == NUM_KINDS || found->kind == kind)) return found;
  }
  return NULL;
}

/* Of the communicator of the first handle; an optimizer of a model among the handles; a model like the one
 * that checkpoints have. */
static int belongs_to(const object* given, void** h, int num_handles) {
  const object* first = num_handles > 0 ? find(h[0]) : NULL;
  int i, has_its_model = 0;
  if (first != NULL && first->comm != given->comm) return 0;
  if (first != NULL && (first->state & SAVED) != 0 && given->kind == MODEL && given->state != first->saved)
    return 0;
  for (i = 0; i < num_handles; ++i) has_its_model |= h[i] == given->model;
  return num_handles == 0 || given->kind != OPTIMIZER || has_its_model;
}

/* Whether the function can be called with the object as it is. */
static int fits(const function* f, const object* given) {
  const int kind = given->kind;
  const int bits = kind == GRAPH ? OF_GRAPH : kind == MODEL ? OF_MODEL : kind == CHECKPOINTS ? SAVED : 0;
  return (given->state & f->refuses) == 0 && (f->needs & bits & ~given->state) == 0;
}

/* The next handle for a function that has been given `num_handles` handles already. */
static void* random_handle(const function* f, void** h, int num_handles) {
  const int choice = draw(24), kind = f->kinds[num_handles];
  const object* found = NULL;
  int tries;
  if (choice == 0) return NULL;
  if (choice == 1) return &failures;
  if (choice == 2) return (void*)(uintptr_t)(2 * num_objects + 100001); /* as handles look */
  if (choice == 3) found = any_object(NUM_KINDS, 1);
  if (choice == 4) found = any_object(NUM_KINDS, 0);
  if (choice > 4) found = any_object(kind, 0);
  for (tries = 0; choice > 6 && found != NULL && tries < 40; ++tries) {
    if (belongs_to(found, h, num_handles) && fits(f, found)) break;
    found = any_object(kind, 0);
  }
  return found == NULL ? NULL : found->handle;
}

static void add_object(void* handle, int kind, int comm, void* model, int state) {
  const object made = {handle, kind, comm, model, NULL, 0, state, num_folders - 1, 0};
  objects[num_objects++] = made;
}

/* Functions: each takes handles h[0], h[1], ..., and good values for all else. */

static struct { int64_t nodes, edges, given_edges; } sizes;
static int64_t numbers[16];
static int32_t small;
static double number;
static const char* text;
/* The new handle of the last call that makes one, by its kind and by any. */
static union {
  void* any;
  sar_comm comm;
  sar_graph graph;
  sar_model model;
  sar_optimizer optimizer;
  sar_predictor predictor;
  sar_potential potential;
  sar_learner learner;
  sar_checkpoints checkpoints;
  sar_trace trace;
} made;
static char path[1200];

static int comm_create(void** h) {
  (void)h;
  return sar_comm_create(MPI_COMM_WORLD, &made.comm);
}
static int comm_create_f(void** h) {
  (void)h;
  return sar_comm_create_f((int32_t)MPI_Comm_c2f(MPI_COMM_WORLD), &made.comm);
}
static int comm_world(void** h) {
  (void)h;
  return sar_comm_world(&made.comm);
}
static int comm_rank(void** h) {
  return sar_comm_rank(h[0], &small);
}
static int comm_size(void** h) {
  return sar_comm_size(h[0], &small);
}
static int comm_threads(void** h) {
  return sar_comm_default_num_threads(h[0], &small);
}
static int comm_free(void** h) {
  return sar_comm_free(h[0]);
}
static int from_global(void** h) {
  return sar_graph_from_global(h[0], NUM_NODES, ids, NUM_NODES, src, dst, NULL, NULL, NULL, &made.graph);
}
static int from_local(void** h) {
  return sar_graph_from_local(h[0], NUM_NODES, NUM_NODES, ids, NUM_NODES, local_ends, local_ends, NULL, NULL,
                              NULL, &made.graph);
}
static int rebuild_from_global(void** h) {
  return sar_graph_rebuild_from_global(h[0], NUM_NODES, ids, NUM_NODES, dst, src, NULL, NULL);
}
static int rebuild_from_local(void** h) {
  return sar_graph_rebuild_from_local(h[0], NUM_NODES, NUM_NODES, ids, NUM_NODES - 1, local_ends, local_ends,
                                      NULL, NULL);
}
/* The types of a graph that may have several. */
static int has_several(void* graph) {
  const object* given = find(graph);
  return given != NULL && given->kind == GRAPH && (given->state & SEVERAL) != 0;
}
static const char* node_type_of(void* graph) {
  return has_several(graph) ? "a" : NULL;
}
static const char* edge_type_of(void* graph) {
  return has_several(graph) ? "s" : NULL;
}
static int num_nodes(void** h) {
  return sar_graph_num_nodes(h[0], node_type_of(h[0]), &sizes.nodes, &numbers[0]);
}
static int num_edges(void** h) {
  return sar_graph_num_edges(h[0], edge_type_of(h[0]), &sizes.edges, &numbers[0], &sizes.given_edges);
}
/* `numbers` has room for all edges. */
static int edge_ids(void** h) {
  const int status = num_edges(h);
  return status != SAR_OK ? status : sar_graph_edge_ids(h[0], edge_type_of(h[0]), sizes.edges, numbers);
}
static int to_graph_order(void** h) {
  sar_array in, out;
  const int status = num_edges(h);
  in = sar_array_double(values, status == SAR_OK ? sizes.given_edges : 0, 2);
  out = sar_array_double(values + 32, status == SAR_OK ? sizes.edges : 0, 2);
  return sar_graph_edges_to_graph_order(h[0], edge_type_of(h[0]), &in, NULL, &out);
}
static int to_given_order(void** h) {
  sar_array in, out;
  const int status = num_edges(h);
  in = sar_array_double(values, status == SAR_OK ? sizes.edges : 0, 2);
  out = sar_array_double(values + 32, status == SAR_OK ? sizes.given_edges : 0, 2);
  return sar_graph_edges_to_given_order(h[0], edge_type_of(h[0]), &in, 0, &out);
}
static int graph_free(void** h) {
  return sar_graph_free(h[0]);
}
static int graph_create(void** h) {
  return sar_graph_create(h[0], NULL, &made.graph);
}
static int add_type(void** h, const char* type) {
  return sar_graph_add_nodes(h[0], type, NUM_NODES, ids);
}
static int add_nodes(void** h) {
  const int status = add_type(h, "a");
  return status == SAR_OK ? add_type(h, "b") : status;
}
static int add_relation(void** h, const char* relation, const char* destination) {
  return sar_graph_add_edges(h[0], "a", relation, destination, NUM_NODES, src, dst, NULL, NULL, 0);
}
static int add_edges(void** h) {
  const int status = add_relation(h, "r", "b");
  return status == SAR_OK ? add_relation(h, "s", "a") : status;
}
static int build(void** h) {
  return sar_graph_build(h[0]);
}
static int set_rows(void** h) {
  return sar_graph_set_rows(h[0], has_several(h[0]) ? "b" : NULL, &x);
}
/* A graph of several types that a step can use. */
static int graph_create_built(void** h) {
  int status = graph_create(h);
  void* graph[1];
  graph[0] = made.graph;
  if (status == SAR_OK) status = add_nodes(graph);
  if (status == SAR_OK) status = add_edges(graph);
  if (status == SAR_OK) status = build(graph);
  return status == SAR_OK ? sar_graph_set_rows(made.graph, "b", &x) : status;
}
/* A graph of one type that is made as those of several are. */
static int graph_create_single(void** h) {
  int status = graph_create(h);
  void* graph[1];
  graph[0] = made.graph;
  if (status == SAR_OK) status = add_type(graph, "c");
  if (status == SAR_OK)
    status = sar_graph_add_edges(made.graph, "c", "s", "c", NUM_NODES, src, dst, NULL, NULL, 0);
  return status == SAR_OK ? build(graph) : status;
}
static int model_create(void** h) {
  return sar_model_create(
      h[0],
      "{\"sar_model\": 1, \"type\": \"sage\", \"in_feats\": 2, \"hidden\": 3, \"out_feats\": 2, "
      "\"layers\": 2}",
      1, &made.model);
}
static int model_create_typed(void** h) {
  return sar_model_create(
      h[0],
      "{\"sar_model\": 1, \"type\": \"hetero-sage\", \"in_feats\": 2, \"hidden\": 3, \"out_feats\": 2, "
      "\"layers\": 2, \"node_types\": [\"a\", \"b\"], \"edge_types\": [[\"a\", \"r\", \"b\"], [\"a\", \"s\", "
      "\"a\"]]}",
      1, &made.model);
}
static int update_statistics(void** h) {
  return sar_model_update_statistics(h[0], &x, &x, &y);
}
static int model_create_mesh(void** h) {
  int status =
      sar_model_create(h[0],
                       "{\"sar_model\": 1, \"type\": \"mesh_graph_net\", \"in_feats\": 2, \"edge_feats\": 2, "
                       "\"hidden\": 3, \"out_feats\": 2, \"layers\": 1, \"normalize\": true}",
                       1, &made.model);
  void* model[1];
  model[0] = made.model;
  return status == SAR_OK ? update_statistics(model) : status;
}
static int model_save(void** h) {
  snprintf(path, sizeof path, "%s/model.safetensors", folder);
  return sar_model_save(h[0], path);
}
/* The file is there from the beginning. */
static int model_load(void** h) {
  snprintf(path, sizeof path, "%s/model.safetensors", folder);
  return sar_model_load(h[0], path, &made.model);
}
static int model_description(void** h) {
  return sar_model_description(h[0], &text);
}
static int model_feats(void** h) {
  return sar_model_feats(h[0], numbers, numbers + 1, numbers + 2);
}
static int num_parameters(void** h) {
  return sar_model_num_parameters(h[0], numbers);
}
static int parameter(void** h) {
  return sar_model_parameter(h[0], 1, &text, numbers, numbers + 1);
}
static int parameter_values(void** h, int set) {
  sar_array all;
  const int status = sar_model_parameter(h[0], 0, NULL, numbers, numbers + 1);
  if (status != SAR_OK) return status;
  all = sar_array_double(values, numbers[0], numbers[1]);
  return set ? sar_model_set_parameter(h[0], 0, &all) : sar_model_get_parameter(h[0], 0, &all);
}
static int get_parameter(void** h) {
  return parameter_values(h, 0);
}
static int set_parameter(void** h) {
  return parameter_values(h, 1);
}
static int model_free(void** h) {
  return sar_model_free(h[0]);
}
static int optimizer_create(void** h) {
  return sar_optimizer_create(h[0], "{\"optimizer\": \"sgd\", \"lr\": 0.001}", &made.optimizer);
}
static int get_lr(void** h) {
  return sar_optimizer_get_lr(h[0], &number);
}
static int set_lr(void** h) {
  return sar_optimizer_set_lr(h[0], 0.001);
}
static int optimizer_free(void** h) {
  return sar_optimizer_free(h[0]);
}
static int train_step(void** h) {
  return sar_train_step(h[0], h[1], h[2], NULL, &x, NULL, SAR_LOSS_MSE, &y, 0, NULL, &number);
}
static int train_step_labels(void** h) {
  return sar_train_step_labels(h[0], h[1], h[2], NULL, &x, NULL, NUM_NODES, labels, 0, NULL, &number);
}
static int evaluate(void** h) {
  return sar_evaluate(h[0], h[1], NULL, &x, NULL, SAR_LOSS_L1, &y, 0, NULL, &number);
}
static int evaluate_labels(void** h) {
  return sar_evaluate_labels(h[0], h[1], NULL, &x, NULL, NUM_NODES, labels, 0, NULL, &number);
}
static int predict(void** h) {
  sar_array out = sar_array_double(values + 32, NUM_NODES, 2);
  return sar_predict(h[0], h[1], NULL, &x, NULL, &out);
}
/* The same on a graph of several types. */
static int typed_train_step(void** h) {
  return sar_train_step(h[0], h[1], h[2], "a", &x, NULL, SAR_LOSS_MSE, &y, 0, NULL, &number);
}
static int typed_train_step_labels(void** h) {
  return sar_train_step_labels(h[0], h[1], h[2], "a", &x, NULL, NUM_NODES, labels, 0, NULL, &number);
}
static int typed_evaluate(void** h) {
  return sar_evaluate(h[0], h[1], "a", &x, NULL, SAR_LOSS_L1, &y, 0, NULL, &number);
}
static int typed_evaluate_labels(void** h) {
  return sar_evaluate_labels(h[0], h[1], "a", &x, NULL, NUM_NODES, labels, 0, NULL, &number);
}
static int typed_predict(void** h) {
  sar_array out = sar_array_double(values + 32, NUM_NODES, 2);
  return sar_predict(h[0], h[1], "a", &x, NULL, &out);
}
static int predictor_create(void** h) {
  return sar_predictor_create(h[0], h[1], &made.predictor);
}
static int predictor_run(void** h) {
  sar_array out = sar_array_double(values + 32, NUM_NODES, 2);
  return sar_predictor_run(h[0], &x, NULL, &out);
}
static int predictor_free(void** h) {
  return sar_predictor_free(h[0]);
}
static int potential_load(void** h) {
  return sar_potential_load(h[0], SAR_TEST_DATA "/weights/potential.safetensors", &made.potential);
}
static int potential_species(void** h) {
  return sar_potential_species(h[0], "b", &small);
}
static int potential_cutoff(void** h) {
  return sar_potential_cutoff(h[0], &number);
}
static int potential_evaluate(void** h) {
  const int32_t species[NUM_NODES] = {0, 1, 1, 0};
  const sar_array positions = sar_array_double(values, NUM_NODES, 3);
  sar_array forces = sar_array_double(values + 32, NUM_NODES, 3);
  return sar_potential_evaluate(h[0], h[1], NUM_NODES, species, &positions, NULL, &number, NULL, NULL,
                                &forces, NULL, NULL, &number, NULL);
}
static int potential_free(void** h) {
  return sar_potential_free(h[0]);
}
static int learner_create(void** h) {
  return sar_learner_create(h[0], NULL, 1, 0.001, &made.learner);
}
static int learner_add(void** h) {
  const int32_t species[NUM_NODES] = {0, 1, 1, 0};
  static double places[3 * NUM_NODES] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1};
  const sar_array positions = sar_array_double(places, NUM_NODES, 3);
  return sar_learner_add(h[0], NUM_NODES, species, &positions, -1.5, NULL, NULL, NULL);
}
static int learner_train(void** h) {
  const int status = learner_add(h);
  return status != SAR_OK ? status : sar_learner_train(h[0], 1, &number, NULL, NULL);
}
static int learner_num_structures(void** h) {
  int64_t count = 0;
  return sar_learner_num_structures(h[0], &count);
}
static int learner_free(void** h) {
  return sar_learner_free(h[0]);
}
static int checkpoints_create(void** h) {
  snprintf(path, sizeof path, "%s/checkpoints_%d/checkpoint-00000003.safetensors", folder, num_folders);
  if (my_rank == 0) remove(path); /* of an earlier run */
  snprintf(path, sizeof path, "%s/checkpoints_%d", folder, num_folders++);
  return sar_checkpoints_create(h[0], path, 1, 7, &made.checkpoints);
}
static int checkpoints_save(void** h) {
  return sar_checkpoints_save(h[0], 3, h[1], h[2]);
}
static int checkpoints_load_latest(void** h) {
  return sar_checkpoints_load_latest(h[0], h[1], h[2], &small);
}
static int checkpoints_load(void** h) {
  const object* given = find(h[0]);
  snprintf(path, sizeof path, "%s/checkpoints_%d/checkpoint-00000003.safetensors", folder,
           given == NULL ? 0 : given->folder);
  return sar_checkpoints_load(h[0], path, h[1], h[2], &small);
}
static int checkpoints_free(void** h) {
  return sar_checkpoints_free(h[0]);
}
static int trace_start(void** h) {
  snprintf(path, sizeof path, "%s/trace.json", folder);
  return sar_trace_start(h[0], path, &made.trace);
}
static int trace_write(void** h) {
  return sar_trace_write(h[0]);
}

static const function functions[] = {
    {"sar_comm_create", comm_create, 0, {0}, COMM, 0, 0, 0, 0},
    {"sar_comm_create_f", comm_create_f, 0, {0}, COMM, 0, 0, 0, 0},
    {"sar_comm_world", comm_world, 0, {0}, COMM, 0, 0, 0, 0},
    {"sar_comm_rank", comm_rank, 1, {COMM}, NOTHING, 0, 0, 0, 0},
    {"sar_comm_size", comm_size, 1, {COMM}, NOTHING, 0, 0, 0, 0},
    {"sar_comm_default_num_threads", comm_threads, 1, {COMM}, NOTHING, 0, 0, 0, 0},
    {"sar_comm_free", comm_free, 1, {COMM}, FREED, 0, 0, 0, 0},
    {"sar_graph_from_global", from_global, 1, {COMM}, GRAPH, 0, 0, BUILT, 0},
    {"sar_graph_from_local", from_local, 1, {COMM}, GRAPH, 0, 0, BUILT, 0},
    {"sar_graph_rebuild_from_global", rebuild_from_global, 1, {GRAPH}, NOTHING, 0, 0, BUILT, OF_GRAPH},
    {"sar_graph_rebuild_from_local", rebuild_from_local, 1, {GRAPH}, NOTHING, 0, 0, BUILT, OF_GRAPH},
    {"sar_graph_num_nodes", num_nodes, 1, {GRAPH}, NOTHING, BUILT, 0, 0, 0},
    {"sar_graph_num_edges", num_edges, 1, {GRAPH}, NOTHING, BUILT, 0, 0, 0},
    {"sar_graph_edge_ids", edge_ids, 1, {GRAPH}, NOTHING, BUILT, 0, 0, 0},
    {"sar_graph_edges_to_graph_order", to_graph_order, 1, {GRAPH}, NOTHING, BUILT, 0, 0, 0},
    {"sar_graph_edges_to_given_order", to_given_order, 1, {GRAPH}, NOTHING, BUILT, 0, 0, 0},
    {"sar_graph_free", graph_free, 1, {GRAPH}, FREED, 0, 0, 0, 0},
    {"sar_graph_create", graph_create, 1, {COMM}, GRAPH, 0, 0, 0, 0},
    {"sar_graph_create", graph_create_built, 1, {COMM}, GRAPH, 0, 0, BUILT | SEVERAL | ROWS, 0},
    {"sar_graph_create", graph_create_single, 1, {COMM}, GRAPH, 0, 0, BUILT, 0},
    {"sar_graph_add_nodes", add_nodes, 1, {GRAPH}, NOTHING, 0, NODES, NODES, 0},
    {"sar_graph_add_edges", add_edges, 1, {GRAPH}, NOTHING, 0, EDGES, EDGES, 0},
    {"sar_graph_build", build, 1, {GRAPH}, NOTHING, NODES | EDGES, 0, BUILT | SEVERAL, NODES | EDGES | ROWS},
    {"sar_graph_set_rows", set_rows, 1, {GRAPH}, NOTHING, BUILT, 0, ROWS, 0},
    {"sar_model_create", model_create, 1, {COMM}, MODEL, 0, 0, 0, 0},
    {"sar_model_create", model_create_typed, 1, {COMM}, MODEL, 0, 0, TYPED, 0},
    {"sar_model_create", model_create_mesh, 1, {COMM}, MODEL, 0, 0, MESH, 0},
    {"sar_model_update_statistics", update_statistics, 1, {MODEL}, NOTHING, MESH, 0, 0, 0},
    {"sar_model_save", model_save, 1, {MODEL}, NOTHING, 0, 0, 0, 0},
    {"sar_model_load", model_load, 1, {COMM}, MODEL, 0, 0, 0, 0},
    {"sar_model_description", model_description, 1, {MODEL}, NOTHING, 0, 0, 0, 0},
    {"sar_model_feats", model_feats, 1, {MODEL}, NOTHING, 0, 0, 0, 0},
    {"sar_model_num_parameters", num_parameters, 1, {MODEL}, NOTHING, 0, 0, 0, 0},
    {"sar_model_parameter", parameter, 1, {MODEL}, NOTHING, 0, 0, 0, 0},
    {"sar_model_get_parameter", get_parameter, 1, {MODEL}, NOTHING, 0, 0, 0, 0},
    {"sar_model_set_parameter", set_parameter, 1, {MODEL}, NOTHING, 0, 0, 0, 0},
    {"sar_model_free", model_free, 1, {MODEL}, FREED, 0, 0, 0, 0},
    {"sar_optimizer_create", optimizer_create, 1, {MODEL}, OPTIMIZER, 0, 0, 0, 0},
    {"sar_optimizer_get_lr", get_lr, 1, {OPTIMIZER}, NOTHING, 0, 0, 0, 0},
    {"sar_optimizer_set_lr", set_lr, 1, {OPTIMIZER}, NOTHING, 0, 0, 0, 0},
    {"sar_optimizer_free", optimizer_free, 1, {OPTIMIZER}, FREED, 0, 0, 0, 0},
    {"sar_train_step", train_step, 3, {MODEL, OPTIMIZER, GRAPH}, NOTHING, BUILT, NOT_SINGLE, 0, 0},
    {"sar_train_step_labels",
     train_step_labels,
     3,
     {MODEL, OPTIMIZER, GRAPH},
     NOTHING,
     BUILT,
     NOT_SINGLE,
     0,
     0},
    {"sar_evaluate", evaluate, 2, {MODEL, GRAPH}, NOTHING, BUILT, NOT_SINGLE, 0, 0},
    {"sar_evaluate_labels", evaluate_labels, 2, {MODEL, GRAPH}, NOTHING, BUILT, NOT_SINGLE, 0, 0},
    {"sar_predict", predict, 2, {MODEL, GRAPH}, NOTHING, BUILT, NOT_SINGLE, 0, 0},
    {"sar_train_step", typed_train_step, 3, {MODEL, OPTIMIZER, GRAPH}, NOTHING, TYPES, 0, 0, 0},
    {"sar_train_step_labels", typed_train_step_labels, 3, {MODEL, OPTIMIZER, GRAPH}, NOTHING, TYPES, 0, 0, 0},
    {"sar_evaluate", typed_evaluate, 2, {MODEL, GRAPH}, NOTHING, TYPES, 0, 0, 0},
    {"sar_evaluate_labels", typed_evaluate_labels, 2, {MODEL, GRAPH}, NOTHING, TYPES, 0, 0, 0},
    {"sar_predict", typed_predict, 2, {MODEL, GRAPH}, NOTHING, TYPES, 0, 0, 0},
    {"sar_predictor_create", predictor_create, 2, {MODEL, GRAPH}, PREDICTOR, BUILT, TYPED | SEVERAL, 0, 0},
    {"sar_predictor_run", predictor_run, 1, {PREDICTOR}, NOTHING, 0, MESH | SEVERAL, 0, 0},
    {"sar_predictor_free", predictor_free, 1, {PREDICTOR}, FREED, 0, 0, 0, 0},
    {"sar_potential_load", potential_load, 1, {COMM}, POTENTIAL, 0, 0, 0, 0},
    {"sar_potential_species", potential_species, 1, {POTENTIAL}, NOTHING, 0, 0, 0, 0},
    {"sar_potential_cutoff", potential_cutoff, 1, {POTENTIAL}, NOTHING, 0, 0, 0, 0},
    {"sar_potential_evaluate", potential_evaluate, 2, {POTENTIAL, GRAPH}, NOTHING, BUILT, SEVERAL, 0, 0},
    {"sar_potential_free", potential_free, 1, {POTENTIAL}, FREED, 0, 0, 0, 0},
    {"sar_learner_create", learner_create, 1, {POTENTIAL}, LEARNER, 0, 0, 0, 0},
    {"sar_learner_add", learner_add, 1, {LEARNER}, NOTHING, 0, 0, 0, 0},
    {"sar_learner_train", learner_train, 1, {LEARNER}, NOTHING, 0, 0, 0, 0},
    {"sar_learner_num_structures", learner_num_structures, 1, {LEARNER}, NOTHING, 0, 0, 0, 0},
    {"sar_learner_free", learner_free, 1, {LEARNER}, FREED, 0, 0, 0, 0},
    {"sar_checkpoints_create", checkpoints_create, 1, {COMM}, CHECKPOINTS, 0, 0, 0, 0},
    {"sar_checkpoints_save", checkpoints_save, 3, {CHECKPOINTS, MODEL, OPTIMIZER}, NOTHING, 0, 0, SAVED, 0},
    {"sar_checkpoints_load_latest",
     checkpoints_load_latest,
     3,
     {CHECKPOINTS, MODEL, OPTIMIZER},
     NOTHING,
     0,
     0,
     0,
     0},
    {"sar_checkpoints_load", checkpoints_load, 3, {CHECKPOINTS, MODEL, OPTIMIZER}, NOTHING, SAVED, 0, 0, 0},
    {"sar_checkpoints_free", checkpoints_free, 1, {CHECKPOINTS}, FREED, 0, 0, 0, 0},
    {"sar_trace_start", trace_start, 1, {COMM}, TRACE, 0, 0, 0, 0},
    {"sar_trace_write", trace_write, 1, {TRACE}, FREED, 0, 0, 0, 0}};
enum { NUM_FUNCTIONS = sizeof functions / sizeof functions[0] };

/* How many calls of each function succeeded, and how many did not. */
static int num_good[NUM_FUNCTIONS], num_refused[NUM_FUNCTIONS];

/* Calls. */

/* BAD: a handle, or handles that do not belong together; UNFIT: good handles at the wrong time. */
enum { GOOD, BAD_HANDLE, BAD_INPUT, BAD, UNFIT };

/* What the function has to say to the handles. */
static int expected_of(const function* f, void** h) {
  const object* found[MAX_HANDLES] = {NULL, NULL, NULL};
  const object *model = NULL, *optimizer = NULL;
  int i, handles_are_good = 1, comms_differ = 0, state = 0, needs = f->needs, is_fit;
  for (i = 0; i < f->num_handles; ++i) {
    found[i] = find(h[i]);
    if (found[i] == NULL || found[i]->is_freed || found[i]->kind != f->kinds[i]) {
      handles_are_good = 0;
      if (f->kinds[i] == GRAPH) needs &= ~OF_GRAPH;
    }
    if (found[i] != NULL && found[0] != NULL && found[i]->comm != found[0]->comm) comms_differ = 1;
    if (found[i] != NULL) state |= found[i]->state;
    if (f->kinds[i] == MODEL) model = found[i];
    if (f->kinds[i] == OPTIMIZER && f->num_handles > 1) optimizer = found[i];
  }
  is_fit = (needs & ~state) == 0 && (f->refuses & state) == 0;
  if (!handles_are_good) return comms_differ || !is_fit ? BAD : BAD_HANDLE;
  if (comms_differ) return BAD_INPUT;
  if (optimizer != NULL && optimizer->model != model->handle) return is_fit ? BAD_INPUT : UNFIT;
  if ((f->call == checkpoints_load || f->call == checkpoints_load_latest) && (state & SAVED) != 0)
    is_fit = found[0]->saved == model->state;
  if (!is_fit) return UNFIT;
  return f->makes == TRACE && is_recording ? BAD_INPUT : GOOD;
}

static void check_status(const function* f, int expected, int status) {
  const int mine[2] = {status, -status};
  int most[2];
  if (expected == GOOD && status != SAR_OK) fail(f->name, "the handles are good", status);
  if (expected == BAD_HANDLE && status != SAR_ERROR_HANDLE) fail(f->name, "a handle is not good", status);
  if (expected == BAD_INPUT && status != SAR_ERROR_INPUT) fail(f->name, "handles of others", status);
  if (expected == UNFIT && status != SAR_ERROR_INPUT && status != SAR_ERROR_SHAPE)
    fail(f->name, "the call comes at the wrong time", status);
  if (expected == BAD && status != SAR_ERROR_INPUT && status != SAR_ERROR_HANDLE)
    fail(f->name, "a handle is not good, others are of others", status);
  if (status != SAR_OK && sar_last_error()[0] == '\0') fail(f->name, "there is no text", status);
  MPI_Allreduce((void*)mine, most, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (most[0] != -most[1]) fail(f->name, "the ranks have several statuses", status);
  ++(status == SAR_OK ? num_good : num_refused)[f - functions];
}

/* The object of a call that was good. */
static void note(const function* f, void** h) {
  const object* first = f->num_handles > 0 ? find(h[0]) : NULL;
  int i, state = f->sets;
  if (f->makes == NOTHING && first != NULL) {
    object* changed = &objects[first - objects];
    changed->state = (changed->state & ~f->clears) | f->sets;
    for (i = 0; first->kind == GRAPH && i < num_objects; ++i)
      if (objects[i].graph == h[0])
        objects[i].state = (objects[i].state & ~SEVERAL) | (first->state & SEVERAL);
    if (f->call == model_save) saved_state = first->state;
    if (f->call == checkpoints_save) changed->saved = find(h[1])->state;
  }
  if (f->makes == NOTHING) return;
  if (f->makes == FREED) {
    objects[first - objects].is_freed = 1;
    if (first->kind == TRACE) is_recording = 0;
    return;
  }
  if (f->makes == TRACE) is_recording = 1;
  if (f->call == model_load) state = saved_state;
  if (first != NULL && first->kind == MODEL) state |= first->state;
  add_object(made.any, f->makes, f->makes == COMM ? num_comms++ : first->comm,
             f->makes == OPTIMIZER ? h[0] : NULL, state);
  if (f->makes == PREDICTOR) objects[num_objects - 1].graph = h[1];
}

static void call_with(const function* f, void** h) {
  const int expected = expected_of(f, h);
  int status;
  made.any = NULL;
  status = f->call(h);
  check_status(f, expected, status);
  if (status == SAR_OK) note(f, h);
  if (status != SAR_OK && made.any != NULL) fail(f->name, "a new handle in spite of the error", status);
}

/* All handles are good, but for one on one rank: null, freed or of another kind. */
static void spoil_on_one_rank(const function* f, void** h) {
  const int rank = draw(num_ranks), which = draw(f->num_handles), how = draw(3);
  const int kept = (which + 1) % f->num_handles;
  const object* freed = any_object(NUM_KINDS, 1);
  void* bad = how == 0 ? NULL : how == 1 && freed != NULL ? freed->handle : h[kept];
  int status;
  void* own[MAX_HANDLES];
  memcpy(own, h, sizeof own);
  if (my_rank == rank) own[which] = bad;
  made.any = NULL;
  status = f->call(own);
  check_status(f, BAD_HANDLE, status);
  if (made.any != NULL) fail(f->name, "a new handle in spite of the error", status);
}

/* The first of the functions that frees objects of the kind. */
static const function* release_of(int kind) {
  int i = 0;
  while (functions[i].makes != FREED || functions[i].kinds[0] != kind) ++i;
  return &functions[i];
}

static void release(const object* given) {
  void* h[MAX_HANDLES] = {NULL, NULL, NULL};
  h[0] = given->handle;
  call_with(release_of(given->kind), h);
}

/* Frees half of the live objects, and forgets the oldest of those that are freed. */
static void free_half(void) {
  int i, num_freed = 0, kept = 0;
  for (i = 0; i < num_objects; ++i)
    if (!objects[i].is_freed && draw(2) == 0) release(&objects[i]);
  for (i = 0; i < num_objects; ++i) num_freed += objects[i].is_freed;
  for (i = 0; i < num_objects; ++i) {
    const int is_old = objects[i].is_freed && num_freed > MAX_FREED;
    if (is_old) --num_freed;
    if (!is_old) objects[kept++] = objects[i];
  }
  num_objects = kept;
}

static void call_at_random(void) {
  const function* f = &functions[draw(NUM_FUNCTIONS)];
  void* h[MAX_HANDLES] = {NULL, NULL, NULL};
  int i;
  if (f->makes == FREED && draw(4) != 0) return;
  if (f->makes == COMM && any_object(COMM, 0) != NULL && draw(12) != 0)
    return; /* three functions make some */
  for (i = 0; i < f->num_handles; ++i) h[i] = random_handle(f, h, i);
  if (f->num_handles > 1 && expected_of(f, h) == GOOD && draw(2) == 0) spoil_on_one_rank(f, h);
  call_with(f, h);
  /* three handles that go together are rarely drawn again before one of them is freed */
  for (i = 0; f->call == checkpoints_save && i < NUM_FUNCTIONS; ++i)
    if (functions[i].call == checkpoints_load) call_with(&functions[i], h);
}

static void make_arrays(void) {
  int i;
  for (i = 0; i < NUM_NODES; ++i) {
    const int64_t node = (int64_t)my_rank * NUM_NODES + i;
    ids[i] = node;
    src[i] = node;
    dst[i] = (node + 1) % ((int64_t)num_ranks * NUM_NODES);
    labels[i] = i % 2;
    local_ends[i] = (i + 1) % NUM_NODES;
  }
  for (i = 0; i < NUM_NODES * 16; ++i) values[i] = (double)(i * 7 % 11) / 10;
  x = sar_array_double(values, NUM_NODES, 2);
  y = sar_array_double(values + 8, NUM_NODES, 2);
}

/* A communicator, and a model whose file sar_model_load() finds. */
static void make_first_objects(void) {
  const char* first[] = {"sar_comm_create", "sar_model_create", "sar_graph_from_global",
                         "sar_checkpoints_create", "sar_model_save"};
  const int num_first = (int)(sizeof first / sizeof first[0]);
  int i, j;
  for (i = 0; i < num_first; ++i)
    for (j = 0; j < NUM_FUNCTIONS; ++j)
      if (strcmp(functions[j].name, first[i]) == 0) {
        void* h[MAX_HANDLES] = {NULL, NULL, NULL};
        if (functions[j].num_handles > 0) h[0] = objects[functions[j].kinds[0] == MODEL ? 1 : 0].handle;
        call_with(&functions[j], h);
      }
}

int main(int argc, char** argv) {
  int i, all = 0;
  int64_t bytes = 0;
  if (argc > 1) folder = argv[1];
  if (sar_init() != SAR_OK) return 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  make_arrays();
  make_first_objects();
  for (i = 0; i < NUM_CALLS; ++i) {
    call_at_random();
    if (i % 250 == 249) free_half();
  }
  for (i = 0; i < num_objects; ++i)
    if (!objects[i].is_freed) release(&objects[i]);
  for (i = 0; i < NUM_FUNCTIONS; ++i) {
    if (num_good[i] == 0) fail(functions[i].name, "no call has succeeded", SAR_OK);
    if (num_refused[i] == 0 && functions[i].num_handles > 0)
      fail(functions[i].name, "no call was refused", SAR_OK);
  }
  sar_memory_current(&bytes);
  if (bytes != 0) fail("sar_memory_current", "something is in memory without handles", (int)bytes);
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (my_rank == 0) printf("%d calls, %d failures\n", NUM_CALLS, all);
  return sar_finalize() == SAR_OK && all == 0 ? 0 : 1;
}
