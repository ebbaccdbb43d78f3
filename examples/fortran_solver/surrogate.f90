! SPDX-License-Identifier: MIT

!> How the simulation looks to the network: cells are nodes, faces are edges.
module surrogate
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use sar
  use advection_diffusion, only: simulation
  implicit none
  private
  public :: make_graph, features, change_scale, solver_steps, description

  integer, parameter :: solver_steps = 4              !< of the solver in a step of the surrogate
  real(real64), parameter :: change_scale = 0.1_real64  !< the network says the change of u in this unit
  character(len=*), parameter :: description = &
    '{"sar_model": 1, "type": "sage", "in_feats": 4, "hidden": 32, "out_feats": 1, "layers": 3, &
    &"activation": "silu"}'

contains

  !> Edges lead into each cell from the cells around it. Their weights say how much comes from there: what
  !> flows in, and what diffuses. Collective.
  subroutine make_graph(comm, sim, graph)
    type(sar_comm), intent(in) :: comm
    type(simulation), intent(in) :: sim
    type(sar_graph), intent(inout) :: graph
    integer(int64), allocatable :: cells(:), from(:), to(:)
    real(real64), allocatable :: weight(:)
    integer :: i, j, k
    allocate (cells(sim%num_cells()), from(4 * sim%num_cells()), to(4 * sim%num_cells()), &
      weight(4 * sim%num_cells()))
    k = 0
    do j = 1, sim%extent(2)
      do i = 1, sim%extent(1)
        k = k + 1
        cells(k) = id(sim, i, j)
        to(4 * k - 3:4 * k) = cells(k)
        from(4 * k - 3:4 * k) = [id(sim, i - 1, j), id(sim, i + 1, j), id(sim, i, j - 1), id(sim, i, j + 1)]
        weight(4 * k - 3:4 * k) = 0.25_real64 + &
          max(0.0_real64, [sim%flow_x(i, j), -sim%flow_x(i + 1, j), sim%flow_y(i, j), -sim%flow_y(i, j + 1)])
      end do
    end do
    call graph%from_global(comm, cells, from, to, edge_weight=weight)
  end subroutine

  !> The global number of a cell of the block or beside it.
  pure integer(int64) function id(sim, i, j)
    type(simulation), intent(in) :: sim
    integer, intent(in) :: i, j
    id = modulo(sim%first(1) + i - 1, sim%n) + int(sim%n, int64) * modulo(sim%first(2) + j - 1, sim%n)
  end function

  !> What the network reads of each cell: the tracer, the flow, and how much flows out; (4, cells).
  function features(sim, u) result(x)
    type(simulation), intent(in) :: sim
    real(real64), intent(in) :: u(:, :)
    real(real64), allocatable :: x(:, :)
    integer :: nx, ny
    nx = sim%extent(1)
    ny = sim%extent(2)
    allocate (x(4, sim%num_cells()))
    x(1, :) = pack(u, .true.)
    x(2, :) = pack(sim%flow_x(:nx, :) + sim%flow_x(2:, :), .true.) / 2
    x(3, :) = pack(sim%flow_y(:, :ny) + sim%flow_y(:, 2:), .true.) / 2
    x(4, :) = pack(max(sim%flow_x(2:, :), 0.0_real64) - min(sim%flow_x(:nx, :), 0.0_real64) + &
                   max(sim%flow_y(:, 2:), 0.0_real64) - min(sim%flow_y(:, :ny), 0.0_real64), .true.)
  end function
end module
