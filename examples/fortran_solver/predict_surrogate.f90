! SPDX-License-Identifier: MIT

!> A surrogate goes on alone, the simulation beside it:   mpirun -n 2 predict_surrogate FILE [STEPS [CELLS]]
program predict_surrogate
  use, intrinsic :: iso_fortran_env, only: real64
  use mpi_f08
  use sar
  use advection_diffusion, only: simulation
  use arguments
  use surrogate
  implicit none
  type(simulation) :: sim
  type(sar_comm) :: comm
  type(sar_graph) :: graph
  type(sar_model) :: model
  type(sar_predictor) :: predictor
  real(real64), allocatable :: x(:, :), change(:, :), u(:, :), start(:, :)
  real(real64) :: error, unchanged
  character(len=500) :: errmsg
  integer :: rank, level, stat, step

  call MPI_Init_thread(MPI_THREAD_FUNNELED, level)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call sim%create(MPI_COMM_WORLD, number(3, 32))
  call sim%start(seed=4711)                          ! blobs that the network has not seen

  call comm%create(sim%comm%MPI_VAL)
  call sar_set_num_threads(comm%default_num_threads())
  call model%load(comm, argument(1), stat, errmsg)   ! the same status on all ranks
  if (stat /= sar_ok) then
    if (rank == 0) print '(2a)', 'predict_surrogate: ', trim(errmsg)
    call MPI_Finalize()
    error stop 1
  end if
  call make_graph(comm, sim, graph)
  call predictor%create(model, graph)                ! once; then it runs many times

  allocate (change(1, sim%num_cells()))
  associate (nx => sim%extent(1), ny => sim%extent(2))
    start = sim%u(1:nx, 1:ny)
    u = start
    x = features(sim, u)
    if (rank == 0) print '(a)', 'step  error of the surrogate  error of no change'
    do step = 1, number(2, 10)
      call predictor%run(x, change)
      u = u + change_scale * reshape(change, shape(u))
      x(1, :) = pack(u, .true.)
      call sim%advance(solver_steps)
      error = sim%relative_error(u, sim%u(1:nx, 1:ny))
      unchanged = sim%relative_error(start, sim%u(1:nx, 1:ny))
      if (rank == 0) print '(i4, 2f20.12)', step, error, unchanged
    end do
  end associate

  call predictor%free()
  call graph%free()
  call model%free()
  call comm%free()
  call MPI_Finalize()
end program
