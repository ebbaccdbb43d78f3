! SPDX-License-Identifier: MIT

!> A simulation that trains its own surrogate while it runs:   mpirun -n 2 train_surrogate FILE [RUNS [CELLS]]
program train_surrogate
  use, intrinsic :: iso_fortran_env, only: real64
  use mpi_f08
  use sar
  use advection_diffusion, only: simulation
  use arguments
  use surrogate
  implicit none
  integer, parameter :: run_steps = 10, train_steps = 4
  type(simulation) :: sim
  type(sar_comm) :: comm
  type(sar_graph) :: graph
  type(sar_model) :: model
  type(sar_optimizer) :: optimizer
  real(real64), allocatable :: x(:, :, :), target(:, :, :)  ! of the steps that are kept: (field, cell, step)
  real(real64), allocatable :: before(:, :)
  real(real64) :: loss, progress
  integer :: rank, level, runs, run, step, kept, i

  call MPI_Init_thread(MPI_THREAD_FUNNELED, level)  ! the library's threads never call MPI
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  runs = number(2, 20)
  call sim%create(MPI_COMM_WORLD, number(3, 32))

  call comm%create(sim%comm%MPI_VAL)           ! a duplicate: its messages never mix with ours
  call sar_set_num_threads(comm%default_num_threads())
  call make_graph(comm, sim, graph)
  call model%create(comm, description, seed=1)
  call optimizer%create(model, '{"optimizer": "adam", "lr": 0.003}')

  allocate (x(4, sim%num_cells(), run_steps), target(1, sim%num_cells(), run_steps), before(sim%extent(1), &
    sim%extent(2)))
  kept = 0
  do run = 1, runs
    call sim%start(seed=run)
    progress = real(run - 1, real64) / runs
    call optimizer%set_lr(0.003_real64 * (1 - progress))
    do step = 1, run_steps
      associate (nx => sim%extent(1), ny => sim%extent(2))
        before = sim%u(1:nx, 1:ny)
        call sim%advance(solver_steps)
        x(:, :, step) = features(sim, before)
        target(1, :, step) = pack(sim%u(1:nx, 1:ny) - before, .true.) / change_scale
      end associate
      kept = max(kept, step)
      do i = 1, train_steps                         ! the new step, and some of those before
        associate (k => 1 + modulo(step - 1 - 3 * (i - 1), kept))
          call model%train_step(optimizer, graph, x(:, :, k), target(:, :, k), loss)
        end associate
      end do
    end do
    if (rank == 0) print '(a, i4, a, es22.14)', 'run ', run, '  loss ', loss
  end do

  call model%save(argument(1))
  if (rank == 0) print '(2a)', 'wrote ', argument(1)
  call optimizer%free()
  call model%free()
  call graph%free()
  call comm%free()
  call MPI_Finalize()
end program
