! SPDX-License-Identifier: MIT

!> The simulation: a tracer u that a steady flow v carries through a periodic unit square while it diffuses,
!>
!>     du/dt + div(v u) = D lap(u),
!>
!> by finite volumes on n x n cells, upwind, with explicit Euler steps. Each rank owns a block of cells with
!> one layer of ghosts. The module knows MPI, and nothing of neural networks.
module advection_diffusion
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use mpi_f08
  implicit none
  private
  public :: simulation

  real(real64), parameter :: pi = 3.14159265358979324_real64
  real(real64), parameter :: diffusivity = 1e-3_real64

  type :: simulation
    integer :: n                    !< cells in each direction
    integer :: first(2), extent(2)  !< the block: its first cell, counted from 0, and its numbers of cells
    real(real64) :: h, dt           !< width of a cell, time step
    real(real64), allocatable :: u(:, :)                     !< (0:extent(1)+1, 0:extent(2)+1), with ghosts
    real(real64), allocatable :: flow_x(:, :), flow_y(:, :)  !< through the west and the south face
    type(MPI_Comm) :: comm
    integer :: west, east, south, north  !< the ranks there
  contains
    procedure :: create, start, advance, num_cells, relative_error
  end type

contains

  !> A simulation of n x n cells on the ranks of `comm`, of which each has at least one cell. Collective.
  subroutine create(self, comm, n)
    class(simulation), intent(out) :: self
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in) :: n
    integer :: num_ranks, rank, blocks(2), place(2), i, j
    real(real64) :: x, y
    call MPI_Comm_size(comm, num_ranks)
    blocks = 0
    call MPI_Dims_create(num_ranks, 2, blocks)
    call MPI_Cart_create(comm, 2, blocks, [.true., .true.], .false., self%comm)
    call MPI_Comm_rank(self%comm, rank)
    call MPI_Cart_coords(self%comm, rank, 2, place)
    call MPI_Cart_shift(self%comm, 0, 1, self%west, self%east)
    call MPI_Cart_shift(self%comm, 1, 1, self%south, self%north)
    self%n = n
    self%first = place * n / blocks
    self%extent = (place + 1) * n / blocks - self%first
    self%h = 1.0_real64 / n
    self%dt = 0.2_real64 * self%h

    associate (nx => self%extent(1), ny => self%extent(2))
      allocate (self%u(0:nx + 1, 0:ny + 1), self%flow_x(nx + 1, ny), self%flow_y(nx, ny + 1))
      do j = 1, ny
        do i = 1, nx + 1
          x = (self%first(1) + i - 1) * self%h
          y = (self%first(2) + j - 0.5_real64) * self%h
          self%flow_x(i, j) = 0.5_real64 + sin(2 * pi * x) * cos(2 * pi * y)
        end do
      end do
      do j = 1, ny + 1
        do i = 1, nx
          x = (self%first(1) + i - 0.5_real64) * self%h
          y = (self%first(2) + j - 1) * self%h
          self%flow_y(i, j) = 0.25_real64 - cos(2 * pi * x) * sin(2 * pi * y)
        end do
      end do
    end associate
  end subroutine

  pure integer function num_cells(self)
    class(simulation), intent(in) :: self
    num_cells = product(self%extent)
  end function

  !> Starts anew from a few blobs of tracer; where they are depends on `seed` only.
  subroutine start(self, seed)
    class(simulation), intent(inout) :: self
    integer, intent(in) :: seed
    integer, parameter :: num_blobs = 3
    integer(int64) :: state
    integer :: blob, i, j
    real(real64) :: center(2), distance(2)
    state = seed
    self%u = 0
    do blob = 1, num_blobs
      call draw(state, center(1))
      call draw(state, center(2))
      do j = 1, self%extent(2)
        do i = 1, self%extent(1)
          distance = abs((self%first + [i, j] - 0.5_real64) * self%h - center)
          distance = min(distance, 1 - distance)
          self%u(i, j) = self%u(i, j) + exp(-sum(distance**2) / 0.01_real64)
        end do
      end do
    end do
  end subroutine

  !> A number in [0, 1) from a linear congruential generator.
  subroutine draw(state, number)
    integer(int64), intent(inout) :: state
    real(real64), intent(out) :: number
    integer :: i
    do i = 1, 3
      state = modulo(1103515245_int64 * state + 12345_int64, 2147483648_int64)
    end do
    number = real(state, real64) / 2147483648.0_real64
  end subroutine

  !> Advances by a number of time steps. Collective.
  subroutine advance(self, steps)
    class(simulation), intent(inout) :: self
    integer, intent(in) :: steps
    real(real64), allocatable :: flux_x(:, :), flux_y(:, :)
    integer :: step
    do step = 1, steps
      call update_ghosts(self)
      associate (u => self%u, nx => self%extent(1), ny => self%extent(2))
        flux_x = upwind(self%flow_x, u(0:nx, 1:ny), u(1:nx + 1, 1:ny), self%h)
        flux_y = upwind(self%flow_y, u(1:nx, 0:ny), u(1:nx, 1:ny + 1), self%h)
        u(1:nx, 1:ny) = u(1:nx, 1:ny) - self%dt / self%h * &
                        (flux_x(2:, :) - flux_x(:nx, :) + flux_y(:, 2:) - flux_y(:, :ny))
      end associate
    end do
  end subroutine

  !> What passes through a face between the cells `before` and `behind`.
  elemental real(real64) function upwind(flow, before, behind, h)
    real(real64), intent(in) :: flow, before, behind, h
    upwind = max(flow, 0.0_real64) * before + min(flow, &
      0.0_real64) * behind - diffusivity * (behind - before) / h
  end function

  subroutine update_ghosts(self)
    class(simulation), intent(inout) :: self
    real(real64), allocatable :: outgoing(:), incoming(:)
    integer, parameter :: tag = 1
    associate (u => self%u, nx => self%extent(1), ny => self%extent(2))
      allocate (outgoing(max(nx, ny)), incoming(max(nx, ny)))
      outgoing(:ny) = u(nx, 1:ny)
      call MPI_Sendrecv(outgoing, ny, MPI_DOUBLE_PRECISION, self%east, tag, incoming, ny, &
        MPI_DOUBLE_PRECISION, &
                        self%west, tag, self%comm, MPI_STATUS_IGNORE)
      u(0, 1:ny) = incoming(:ny)
      outgoing(:ny) = u(1, 1:ny)
      call MPI_Sendrecv(outgoing, ny, MPI_DOUBLE_PRECISION, self%west, tag, incoming, ny, &
        MPI_DOUBLE_PRECISION, &
                        self%east, tag, self%comm, MPI_STATUS_IGNORE)
      u(nx + 1, 1:ny) = incoming(:ny)
      outgoing(:nx) = u(1:nx, ny)
      call MPI_Sendrecv(outgoing, nx, MPI_DOUBLE_PRECISION, self%north, tag, incoming, nx, &
        MPI_DOUBLE_PRECISION, &
                        self%south, tag, self%comm, MPI_STATUS_IGNORE)
      u(1:nx, 0) = incoming(:nx)
      outgoing(:nx) = u(1:nx, 1)
      call MPI_Sendrecv(outgoing, nx, MPI_DOUBLE_PRECISION, self%south, tag, incoming, nx, &
        MPI_DOUBLE_PRECISION, &
                        self%north, tag, self%comm, MPI_STATUS_IGNORE)
      u(1:nx, ny + 1) = incoming(:nx)
    end associate
  end subroutine

  !> sqrt(sum (field - truth)^2 / sum truth^2) over the cells of all ranks. Collective.
  real(real64) function relative_error(self, field, truth)
    class(simulation), intent(in) :: self
    real(real64), intent(in) :: field(:, :), truth(:, :)
    real(real64) :: mine(2), sums(2)
    mine = [sum((field - truth)**2), sum(truth**2)]
    call MPI_Allreduce(mine, sums, 2, MPI_DOUBLE_PRECISION, MPI_SUM, self%comm)
    relative_error = sqrt(sums(1) / sums(2))
  end function
end module
