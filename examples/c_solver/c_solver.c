// SPDX-License-Identifier: MIT

/* A simulation in C that trains its own surrogate while it runs:   mpirun -n 2 c_solver [FILE]
 *
 * A tracer u is carried along a periodic line and diffuses,
 *
 *     du/dt + v du/dx = D d2u/dx2,
 *
 * by finite differences, upwind, with explicit Euler steps. Each rank owns a piece of the line with a ghost
 * at each end. When the simulation is over, the network goes on alone from a new state, the simulation beside
 * it. */
#include <mpi.h>
#include <sar.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { num_cells = 128, solver_steps = 4, runs = 30, run_steps = 10, rollout_steps = 10 };

static const double width = 1.0 / num_cells, velocity = 1, diffusivity = 1e-3, change_scale = 0.1;

/* The cells first .. first + n - 1 of the line; u[1] .. u[n] are theirs, u[0] and u[n + 1] are ghosts. */
typedef struct {
  MPI_Comm comm;
  int rank, left, right;
  int64_t first, n;
  double *u, *next;
} simulation;

static void* allocate(int64_t count, size_t size) {
  void* memory = calloc((size_t)count, size);
  if (memory == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  return memory;
}

static simulation simulation_create(MPI_Comm comm) {
  simulation s = {.comm = comm};
  int size;
  MPI_Comm_rank(comm, &s.rank);
  MPI_Comm_size(comm, &size);
  s.left = (s.rank + size - 1) % size;
  s.right = (s.rank + 1) % size;
  s.first = (int64_t)num_cells * s.rank / size;
  s.n = (int64_t)num_cells * (s.rank + 1) / size - s.first;
  s.u = allocate(s.n + 2, sizeof(double));
  s.next = allocate(s.n + 2, sizeof(double));
  return s;
}

/* Starts anew from two waves, other ones for each run. */
static void simulation_start(simulation* s, int run) {
  const double turn = 6.283185307179586;
  for (int64_t i = 1; i <= s->n; ++i) {
    const double x = (double)(s->first + i - 1) * width;
    s->u[i] =
        sin(turn * (x * (1 + run % 3) + 0.37 * run)) + 0.5 * cos(turn * (x * (1 + run % 4) + 0.61 * run));
  }
}

static void simulation_advance(simulation* s, int steps) {
  const double dt = 0.4 * width / velocity;
  double* u = s->u;
  for (int step = 0; step < steps; ++step) {
    MPI_Sendrecv(&u[s->n], 1, MPI_DOUBLE, s->right, 0, &u[0], 1, MPI_DOUBLE, s->left, 0, s->comm,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(&u[1], 1, MPI_DOUBLE, s->left, 1, &u[s->n + 1], 1, MPI_DOUBLE, s->right, 1, s->comm,
                 MPI_STATUS_IGNORE);
    for (int64_t i = 1; i <= s->n; ++i)
      s->next[i] = u[i] - dt * (velocity * (u[i] - u[i - 1]) / width -
                                diffusivity * (u[i + 1] - 2 * u[i] + u[i - 1]) / (width * width));
    for (int64_t i = 1; i <= s->n; ++i) u[i] = s->next[i];
  }
}

/* What sar returns is the same on all ranks. */
static void check(int status) {
  if (status == SAR_OK) return;
  fprintf(stderr, "c_solver: %s\n", sar_last_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Each cell reads the two cells upstream. */
static sar_graph make_graph(sar_comm comm, const simulation* s) {
  int64_t* cells = allocate(s->n, sizeof(int64_t));
  int64_t* from = allocate(2 * s->n, sizeof(int64_t));
  int64_t* to = allocate(2 * s->n, sizeof(int64_t));
  for (int64_t i = 0; i < s->n; ++i) {
    cells[i] = to[2 * i] = to[2 * i + 1] = s->first + i;
    from[2 * i] = (s->first + i + num_cells - 1) % num_cells;
    from[2 * i + 1] = (s->first + i + num_cells - 2) % num_cells;
  }
  sar_graph graph;
  check(sar_graph_from_global(comm, s->n, cells, 2 * s->n, from, to, NULL, NULL, NULL, &graph));
  free(cells);
  free(from);
  free(to);
  return graph;
}

static void train(simulation* s, sar_graph graph, sar_model model) {
  double* before = allocate(s->n, sizeof(double));
  double* change = allocate(s->n, sizeof(double));
  sar_optimizer optimizer;
  check(sar_optimizer_create(model, "{\"optimizer\": \"adam\", \"lr\": 0.005}", &optimizer));
  const sar_array x = sar_array_double(before, s->n, 1), target = sar_array_double(change, s->n, 1);
  for (int run = 0; run < runs; ++run) {
    double loss = 0;
    simulation_start(s, run);
    for (int step = 0; step < run_steps; ++step) {
      for (int64_t i = 0; i < s->n; ++i) before[i] = s->u[i + 1];
      simulation_advance(s, solver_steps);
      for (int64_t i = 0; i < s->n; ++i) change[i] = (s->u[i + 1] - before[i]) / change_scale;
      check(sar_train_step(model, optimizer, graph, NULL, &x, NULL, SAR_LOSS_MSE, &target, 0, NULL, &loss));
    }
    if (s->rank == 0) printf("run %3d  loss %.14e\n", run + 1, loss);
  }
  check(sar_optimizer_free(optimizer));
  free(before);
  free(change);
}

/* sqrt(sum (u - truth)^2 / sum truth^2) over all ranks. */
static double relative_error(const simulation* s, const double* u) {
  double sums[2] = {0, 0};
  for (int64_t i = 0; i < s->n; ++i) {
    sums[0] += (u[i] - s->u[i + 1]) * (u[i] - s->u[i + 1]);
    sums[1] += s->u[i + 1] * s->u[i + 1];
  }
  MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, s->comm);
  return sqrt(sums[0] / sums[1]);
}

static void roll_out(simulation* s, sar_graph graph, sar_model model) {
  double* u = allocate(s->n, sizeof(double));
  double* change = allocate(s->n, sizeof(double));
  double* start = allocate(s->n, sizeof(double));
  simulation_start(s, runs + 5);
  for (int64_t i = 0; i < s->n; ++i) u[i] = start[i] = s->u[i + 1];
  sar_predictor predictor;
  check(sar_predictor_create(model, graph, &predictor));
  const sar_array x = sar_array_double(u, s->n, 1);
  sar_array out = sar_array_double(change, s->n, 1);
  for (int step = 1; step <= rollout_steps; ++step) {
    check(sar_predictor_run(predictor, &x, NULL, &out));
    for (int64_t i = 0; i < s->n; ++i) u[i] += change_scale * change[i];
    simulation_advance(s, solver_steps);
    const double error = relative_error(s, u), unchanged = relative_error(s, start);
    if (s->rank == 0) printf("rollout %3d  %.12f  %.12f\n", step, error, unchanged);
  }
  check(sar_predictor_free(predictor));
  free(u);
  free(change);
  free(start);
}

int main(int argc, char** argv) {
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level); /* the library's threads never call MPI */
  simulation s = simulation_create(MPI_COMM_WORLD);
  int32_t threads;
  sar_comm comm;
  sar_model model;
  check(sar_comm_create(s.comm, &comm));
  check(sar_comm_default_num_threads(comm, &threads));
  check(sar_set_num_threads(threads));
  sar_graph graph = make_graph(comm, &s);
  check(sar_model_create(
      comm,
      "{\"sar_model\": 1, \"type\": \"sage\", \"in_feats\": 1, \"hidden\": 16, \"out_feats\": 1, "
      "\"layers\": 3, \"activation\": \"silu\"}",
      1, &model));
  train(&s, graph, model);
  roll_out(&s, graph, model);
  if (argc > 1) check(sar_model_save(model, argv[1]));

  check(sar_graph_free(graph));
  check(sar_model_free(model));
  check(sar_comm_free(comm));
  free(s.u);
  free(s.next);
  MPI_Finalize();
  return 0;
}
