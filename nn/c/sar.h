/* sar.h: training and prediction with graph neural networks under MPI, for programs in C (C99 or later) and
 * for every language that calls C.
 *
 *     sar_comm comm;
 *     sar_graph graph;
 *     sar_model model;
 *     sar_optimizer optimizer;
 *     const char* description =
 *         "{\"sar_model\": 1, \"type\": \"sage\", \"in_feats\": 3, \"out_feats\": 3}";
 *     if (sar_comm_create(MPI_COMM_WORLD, &comm) != SAR_OK ||
 *         sar_graph_from_global(comm, n, ids, m, src, dst, NULL, NULL, NULL, &graph) != SAR_OK ||
 *         sar_model_create(comm, description, 1, &model) != SAR_OK ||
 *         sar_optimizer_create(model, "{\"optimizer\": \"adam\", \"lr\": 0.01}", &optimizer) != SAR_OK)
 *       fprintf(stderr, "%s\n", sar_last_error());
 *     sar_array x = sar_array_double(state, n, 3), y = sar_array_double(next, n, 3);
 *     sar_train_step(model, optimizer, graph, &x, NULL, SAR_LOSS_MSE, &y, 0, NULL, &loss);
 *
 * Every function returns a status, SAR_OK or one of SAR_ERROR_..., except those whose comment says what they
 * return instead. sar_last_error() is the text of the last error. No function ends the program, none throws.
 * What a function writes to, through pointers, is as it was where it fails, unless its comment says
 * otherwise.
 *
 * Handles (sar_comm, sar_graph, ...) are made by the library and given back by the function that ends with
 * _free. A value is never used again for another handle: a null, a freed or an unknown handle, or one of
 * another kind, is SAR_ERROR_HANDLE. What a handle refers to lives as long as something needs it: handles may
 * be freed in any order, which is the same on all ranks.
 *
 * "Collective": all ranks of the communicator call the function, in the same order. An error of one rank is
 * then the same status with the same text on all ranks ("rank 2: ..."), and all of them can go on. This also
 * holds for null pointers, wrong lengths and handles that are not live, as long as one of the handles that
 * the rank gives is live; a rank that gives none has no communicator, and fails alone. Objects of one call
 * must belong to one sar_comm. Functions whose comment does not say "Collective" do not communicate, except
 * that the last handle of a communicator frees its duplicate.
 *
 * Texts (descriptions, names of files) end with a null character and are UTF-8. Descriptions are JSON
 * objects; an unknown key is an error that names the keys that are known. A file that cannot be read or
 * written is SAR_ERROR_INPUT.
 *
 * MPI is initialized with MPI_THREAD_FUNNELED at least. At MPI_THREAD_SERIALIZED and MPI_THREAD_MULTIPLE any
 * thread may call, one at a time for each communicator. A library of both precisions has this interface in
 * single precision. */
#ifndef SAR_H
#define SAR_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SAR_API __attribute__((visibility("default")))
#else
#define SAR_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Status. */

enum {
  SAR_OK = 0,
  SAR_ERROR_INPUT = 1, /* an argument, a description, a file or a graph that cannot be used as given */
  SAR_ERROR_SHAPE = 2, /* arrays that do not fit together, or not to the graph or the model */
  SAR_ERROR_COMMUNICATION = 3, /* MPI failed or is not initialized; the ranks make different calls */
  SAR_ERROR_MEMORY = 4,        /* memory could not be had; the text says how much */
  SAR_ERROR_HANDLE = 5,        /* a handle that is null, freed, unknown or of another kind */
  SAR_ERROR_INTERNAL = 6       /* anything else */
};

/* Returns the text of the last error that a function returned on this thread, "" without one. It stays until
 * the next error on this thread. */
SAR_API const char* sar_last_error(void);

/* Environment. */

/* Returns the version of the library, "1.2.0". */
SAR_API const char* sar_version(void);

/* The precision of numbers in arrays. */
enum { SAR_FLOAT32 = 0, SAR_FLOAT64 = 1 };

/* Returns the precision that the library computes in, SAR_FLOAT32 or SAR_FLOAT64. */
SAR_API int32_t sar_precision(void);

/* For programs that leave MPI to the library: initializes MPI with MPI_THREAD_FUNNELED unless the program has
 * done so. Programs that call MPI_Init_thread themselves do not need it. SAR_ERROR_COMMUNICATION when MPI is
 * finalized or offers less than MPI_THREAD_FUNNELED. */
SAR_API int sar_init(void);

/* Finalizes MPI if sar_init() has initialized it; otherwise it does nothing. Free all handles first. */
SAR_API int sar_finalize(void);

/* Loops of the library use `threads` threads from here on, 0: all processors that the process is bound to.
 * SAR_ERROR_INPUT when it is negative. */
SAR_API int sar_set_num_threads(int32_t threads);

/* Communicators. */

typedef struct sar_comm_s* sar_comm;

/* Duplicates `mpi_comm`, an intra-communicator, which stays the caller's. SAR_ERROR_COMMUNICATION when MPI is
 * not initialized, and for MPI_COMM_NULL. Collective. */
SAR_API int sar_comm_create(MPI_Comm mpi_comm, sar_comm* comm);

/* The same for a communicator of Fortran (MPI_Comm_f2c); of the module mpi_f08, comm%MPI_VAL. Collective. */
SAR_API int sar_comm_create_f(int32_t fortran_comm, sar_comm* comm);

/* The same for MPI_COMM_WORLD. Collective. */
SAR_API int sar_comm_world(sar_comm* comm);

/* The rank of the caller, from 0, and the number of ranks. */
SAR_API int sar_comm_rank(sar_comm comm, int32_t* rank);
SAR_API int sar_comm_size(sar_comm comm, int32_t* size);

/* How many threads the rank should use so that the ranks of a node share its cores: the processors that it is
 * bound to, divided by the ranks of the node that are bound to the same ones. Collective. */
SAR_API int sar_comm_default_num_threads(sar_comm comm, int32_t* threads);

/* The duplicate is freed with the last handle that uses it; all ranks free their handles in the same order,
 * before MPI_Finalize. Collective. */
SAR_API int sar_comm_free(sar_comm comm);

/* Arrays. */

/* How the numbers of an array lie in memory; `leading` numbers lie between the beginnings of two rows, or two
 * fields:
 *
 *     SAR_NODE_FIELD  data[row * leading + field]   C: data[rows][fields], Fortran: data(fields, rows)
 *     SAR_FIELD_NODE  data[field * leading + row]   C: data[fields][rows], Fortran: data(rows, fields)
 */
enum { SAR_NODE_FIELD = 0, SAR_FIELD_NODE = 1 };

/* An array of the caller: a row for each node, or for each edge. An array of the library's precision in the
 * order SAR_NODE_FIELD without gaps is used as it lies. Every other one is converted, with one pass over its
 * numbers, when a function reads or writes it. `data` may be null where rows or fields are 0. */
typedef struct sar_array {
  void* data;        /* not written to where a function takes a const sar_array */
  int32_t precision; /* SAR_FLOAT32 or SAR_FLOAT64 */
  int32_t order;     /* SAR_NODE_FIELD or SAR_FIELD_NODE */
  int64_t rows;
  int64_t fields;
  int64_t leading; /* 0: no gaps, which is fields for SAR_NODE_FIELD and rows for SAR_FIELD_NODE */
} sar_array;

/* Return the array [rows][fields] without gaps. */
SAR_API sar_array sar_array_float(const float* data, int64_t rows, int64_t fields);
SAR_API sar_array sar_array_double(const double* data, int64_t rows, int64_t fields);

/* Graphs. */

typedef struct sar_graph_s* sar_graph;

/* A graph that is spread over the ranks, of the nodes and edges that each rank has.
 *
 * node_ids: num_nodes ids of the nodes that this rank owns, any numbers in any order; node i is row i of
 * every array of nodes. src, dst: edge k goes from node src[k] to node dst[k], ids of nodes of any rank; each
 * directed edge is given once, by one rank. edge_ids: ids from 0 to 2^61 - 1, each once on all ranks
 * together, which key random draws; NULL: 0, 1, ... by rank and position. edge_weight: [num_edges, 1], or
 * NULL on all ranks. options: NULL, or a JSON object of
 *
 *     "add_reverse_edges"  true: each edge (u, v) also becomes an edge (v, u), with its weight; default false
 *     "mode"               "rematerialize" (default), "sequential" or "one_shot": what is kept of the halo
 *     "pipeline_depth"     stages of halo rows that are under way while one is used; default 1
 *     "max_halo_bytes"     bytes of the rows of one stage; default 0: a quarter of the rows of a rank
 *     "halo_format"        "exact" (default), "bf16" or "int8" (single precision): how rows travel
 *
 * The arrays are not needed after the call. SAR_ERROR_INPUT for a node that is given twice, an edge with an
 * end that no rank gives, ids of edges that are not unique, options that differ between ranks. Collective. */
SAR_API int sar_graph_from_global(sar_comm comm, int64_t num_nodes, const int64_t* node_ids,
                                  int64_t num_edges, const int64_t* src, const int64_t* dst,
                                  const int64_t* edge_ids, const sar_array* edge_weight, const char* options,
                                  sar_graph* graph);

/* The same for a program with a numbering of its own on each rank: its nodes are 0 .. num_owned - 1, its
 * ghosts num_owned .. num_local - 1. global_ids: num_local ids, of the nodes and then of the ghosts. src,
 * dst: numbers of this numbering. Also SAR_ERROR_INPUT for a number that is neither a node nor a ghost, and
 * for a ghost that no rank owns. Collective. */
SAR_API int sar_graph_from_local(sar_comm comm, int64_t num_owned, int64_t num_local,
                                 const int64_t* global_ids, int64_t num_edges, const int32_t* src,
                                 const int32_t* dst, const int64_t* edge_ids, const sar_array* edge_weight,
                                 const char* options, sar_graph* graph);

/* When the mesh changes: the graph becomes that of other nodes and edges, in any number, as if
 * sar_graph_from_global() had made it with the options that the graph has. The handle stays the same. Models
 * and optimizers hold nothing of a graph and go on as they are. Predictors that were made for the graph
 * follow it: each makes its buffers anew in its next run, takes arrays of the new sizes from there on, and
 * gives back what it holds of the old graph. Rows of edges have new numbers and a new order
 * (sar_graph_get_sizes(), sar_graph_edge_ids(), sar_graph_edges_to_graph_order()).
 *
 * On an error the graph is as it was. The old graph and the new one are therefore in memory at the same time;
 * where there is not enough for both, free the predictors and the graph, and make others. Errors are those of
 * sar_graph_from_global(). Collective. */
SAR_API int sar_graph_rebuild_from_global(sar_graph graph, int64_t num_nodes, const int64_t* node_ids,
                                          int64_t num_edges, const int64_t* src, const int64_t* dst,
                                          const int64_t* edge_ids, const sar_array* edge_weight);

/* The same in a numbering of the rank's own, as sar_graph_from_local() takes it. A graph can be made by one
 * of the two ways and rebuilt by the other. Collective. */
SAR_API int sar_graph_rebuild_from_local(sar_graph graph, int64_t num_owned, int64_t num_local,
                                         const int64_t* global_ids, int64_t num_edges, const int32_t* src,
                                         const int32_t* dst, const int64_t* edge_ids,
                                         const sar_array* edge_weight);

typedef struct sar_graph_sizes {
  int64_t nodes;        /* of this rank: rows of arrays of nodes */
  int64_t edges;        /* in-edges of the nodes of this rank: rows of arrays of edges in the graph's order */
  int64_t given_edges;  /* edges that this rank gave: rows of arrays of edges in the program's order */
  int64_t global_nodes; /* of all ranks */
  int64_t global_edges; /* of all ranks, with the reverse edges */
} sar_graph_sizes;

/* Numbers of nodes and edges of a graph. */
SAR_API int sar_graph_get_sizes(sar_graph graph, sar_graph_sizes* sizes);

/* The ids of the edges in the graph's order, `length` numbers: sizes.edges of them. */
SAR_API int sar_graph_edge_ids(sar_graph graph, int64_t length, int64_t* edge_ids);

/* From a row for each edge that this rank gave, [given_edges, fields], to a row for each edge in the graph's
 * order, [edges, fields], as models take them. With "add_reverse_edges", a reverse edge has the row of the
 * edge that it reverses, or this edge's row of `reverse_rows` [given_edges, fields], NULL on all ranks or on
 * none. Collective. */
SAR_API int sar_graph_edges_to_graph_order(sar_graph graph, const sar_array* rows,
                                           const sar_array* reverse_rows, sar_array* out);

/* The inverse: from [edges, fields] to [given_edges, fields]; with reverse != 0, the rows of the reverse
 * edges. Collective. */
SAR_API int sar_graph_edges_to_given_order(sar_graph graph, const sar_array* rows, int32_t reverse,
                                           sar_array* out);

SAR_API int sar_graph_free(sar_graph graph);

/* Models. */

typedef struct sar_model_s* sar_model;

/* A network that a JSON text describes, with weights that are drawn from `seed`: the same on every rank,
 * which gives the same description and the same seed. Collective. */
SAR_API int sar_model_create(sar_comm comm, const char* description, uint64_t seed, sar_model* model);

/* The network of a .safetensors file that has its description and its weights. Rank 0 reads the file.
 * Collective. */
SAR_API int sar_model_load(sar_comm comm, const char* path, sar_model* model);

/* Writes the description and the weights. Rank 0 writes the file. Collective. */
SAR_API int sar_model_save(sar_model model, const char* path);

/* The description, complete, as JSON. The text is the model's: it ends with the handle. */
SAR_API int sar_model_description(sar_model model, const char** description);

/* Columns that the model takes and gives: features of nodes, of results, and of edges (0: it takes no rows of
 * edges). */
SAR_API int sar_model_feats(sar_model model, int64_t* in_feats, int64_t* out_feats, int64_t* edge_feats);

/* The number of parameters: tensors, each with a name. They are numbered from 0. */
SAR_API int sar_model_num_parameters(sar_model model, int64_t* count);

/* Name and shape, [rows, fields], of parameter `index`; a vector is [rows, 1], of a tensor with more
 * dimensions the last ones are one. The name is the model's: it ends with the handle. Any pointer may be
 * null. */
SAR_API int sar_model_parameter(sar_model model, int64_t index, const char** name, int64_t* rows,
                                int64_t* fields);

/* Copy the values of parameter `index`, [rows, fields], out of the model and into it. Set the same values on
 * all ranks. */
SAR_API int sar_model_get_parameter(sar_model model, int64_t index, sar_array* values);
SAR_API int sar_model_set_parameter(sar_model model, int64_t index, const sar_array* values);

SAR_API int sar_model_free(sar_model model);

/* Training. */

typedef struct sar_optimizer_s* sar_optimizer;

/* An optimizer of all parameters of a model. description: a JSON object of
 *
 *     "optimizer"     "sgd", "adam" or "adamw"
 *     "lr"            learning rate, default 0.001
 *     "weight_decay"  default 0
 *     "momentum"      of "sgd", default 0
 *     "beta1", "beta2", "eps"  of "adam" and "adamw", defaults 0.9, 0.999, 1e-8
 *
 * Give the same on all ranks. Collective. */
SAR_API int sar_optimizer_create(sar_model model, const char* description, sar_optimizer* optimizer);

/* The learning rate, and a new one from the next step on. Set the same on all ranks; SAR_ERROR_INPUT when it
 * is negative or not finite. */
SAR_API int sar_optimizer_get_lr(sar_optimizer optimizer, double* lr);
SAR_API int sar_optimizer_set_lr(sar_optimizer optimizer, double lr);
SAR_API int sar_optimizer_free(sar_optimizer optimizer);

/* Losses: means over all elements of the rows of all ranks, of the difference d = prediction - target. */
enum {
  SAR_LOSS_MSE = 0,   /* d^2 */
  SAR_LOSS_L1 = 1,    /* |d| */
  SAR_LOSS_HUBER = 2, /* |d| <= 1 ? d^2 / 2 : |d| - 1/2 */
  SAR_LOSS_BCE =
      3 /* -t log sigmoid(y) - (1 - t) log(1 - sigmoid(y)) of the prediction y and the target t in [0, 1] */
};

/* One step of training: forward pass, loss, backward pass, sums of the gradients over all ranks, step of the
 * optimizer.
 *
 * x: [nodes, in_feats]. edges: [edges, edge_feats] in the graph's order, NULL for a model that takes none.
 * target: [nodes, out_feats]. mask: mask_length = nodes numbers; rows where it is 0 are left out of the loss;
 * NULL with the length 0: all rows count. loss: the value before the step, the same on every rank; NULL where
 * it is not wanted. SAR_ERROR_SHAPE for arrays of other sizes; SAR_ERROR_INPUT when no row counts on any
 * rank. On an error that is found before the step of the optimizer, the weights are as they were. Collective.
 */
SAR_API int sar_train_step(sar_model model, sar_optimizer optimizer, sar_graph graph, const sar_array* x,
                           const sar_array* edges, int32_t loss_kind, const sar_array* target,
                           int64_t mask_length, const uint8_t* mask, double* loss);

/* The same with the cross entropy of classes, over the rows where the mask is not 0:
 *
 *     -1/M sum_i log softmax(y_i)[labels_i]
 *
 * labels: num_labels = nodes numbers from 0 to out_feats - 1; where the mask is 0 they may be anything.
 * Collective. */
SAR_API int sar_train_step_labels(sar_model model, sar_optimizer optimizer, sar_graph graph,
                                  const sar_array* x, const sar_array* edges, int64_t num_labels,
                                  const int64_t* labels, int64_t mask_length, const uint8_t* mask,
                                  double* loss);

/* The losses without a step: in evaluation mode, no gradients. Collective. */
SAR_API int sar_evaluate(sar_model model, sar_graph graph, const sar_array* x, const sar_array* edges,
                         int32_t loss_kind, const sar_array* target, int64_t mask_length, const uint8_t* mask,
                         double* loss);
SAR_API int sar_evaluate_labels(sar_model model, sar_graph graph, const sar_array* x, const sar_array* edges,
                                int64_t num_labels, const int64_t* labels, int64_t mask_length,
                                const uint8_t* mask, double* loss);

/* Prediction. */

typedef struct sar_predictor_s* sar_predictor;

/* A model with the buffers that it needs for a graph: made once, run many times. It reads the weights at each
 * run, so that training may go on. When the graph is rebuilt, the predictor is one of the new graph.
 * Collective. */
SAR_API int sar_predictor_create(sar_model model, sar_graph graph, sar_predictor* predictor);

/* Computes out [nodes, out_feats] from x [nodes, in_feats] and edges [edges, edge_feats] (NULL for a model
 * that takes none), in evaluation mode. After the first run (of a graph that was rebuilt: after the first one
 * since) nothing is allocated where the arrays need no conversion. `out` must not overlap x or edges; on an
 * error it may be partly written. Collective. */
SAR_API int sar_predictor_run(sar_predictor predictor, const sar_array* x, const sar_array* edges,
                              sar_array* out);

SAR_API int sar_predictor_free(sar_predictor predictor);

/* Checkpoints. */

typedef struct sar_checkpoints_s* sar_checkpoints;

/* The checkpoints of one run in a directory, which is made if need be. The last `keep_last` are kept. `seed`
 * is that of the run: a checkpoint of another seed is not loaded. Rank 0 alone touches the directory; other
 * runs cannot save in it as long as the handle lives. Collective. */
SAR_API int sar_checkpoints_create(sar_comm comm, const char* directory, int32_t keep_last, uint64_t seed,
                                   sar_checkpoints* checkpoints);

/* Writes the state of the training, checkpoint-<epoch>.safetensors. Collective. */
SAR_API int sar_checkpoints_save(sar_checkpoints checkpoints, int32_t epoch, sar_model model,
                                 sar_optimizer optimizer);

/* Puts model and optimizer into the state of the latest checkpoint, and tells its epoch; without any, the
 * epoch is -1 and the state as it was. Collective. */
SAR_API int sar_checkpoints_load_latest(sar_checkpoints checkpoints, sar_model model, sar_optimizer optimizer,
                                        int32_t* epoch);

/* The same from the file `path`. Collective. */
SAR_API int sar_checkpoints_load(sar_checkpoints checkpoints, const char* path, sar_model model,
                                 sar_optimizer optimizer, int32_t* epoch);

SAR_API int sar_checkpoints_free(sar_checkpoints checkpoints);

/* Timelines. */

typedef struct sar_trace_s* sar_trace;

/* Records what each rank computes, sends and waits for, until sar_trace_write(). One at a time. Collective.
 */
SAR_API int sar_trace_start(sar_comm comm, const char* path, sar_trace* trace);

/* Ends the recording, writes it for Perfetto, and frees the handle, also when writing fails. Collective. */
SAR_API int sar_trace_write(sar_trace trace);

/* Memory. */

/* Bytes that the library holds in this process, now and at the peak since the start or
 * sar_memory_reset_peak(). Arrays of the caller are not counted. */
SAR_API int sar_memory_current(int64_t* bytes);
SAR_API int sar_memory_peak(int64_t* bytes);
SAR_API int sar_memory_reset_peak(void);

/* Gives the pages that are not in use back to the system. */
SAR_API int sar_memory_release(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SAR_H */
