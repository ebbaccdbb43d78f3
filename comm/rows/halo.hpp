/// Halo exchange: rows of a distributed tensor travel between their owners and the ranks that read them.
///
/// Rounds in rotation order: in round r = 1 .. P-1 this rank sends to rank (p + r) mod P and receives from
/// (p - r) mod P, so that every link is used by one pair at a time. Forward, HaloFetch brings the rows that
/// this rank reads; backward, HaloPush takes gradients of those rows home, where they are added up in an
/// order that is always the same. Nothing blocks but the calls that say so; communication moves on whenever
/// this rank is inside MPI: call progress() from a PollScope while kernels run.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/memory.hpp>
#include <sar/core/tensor.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace sar {

/// Which rows change hands in one round of the rotation.
struct HaloRound {
  int reader = 0;                 ///< the rank that reads my rows `send_rows`: (p + r) mod P
  int owner = 0;                  ///< the rank whose rows I read: (p - r) mod P
  Array<std::int32_t> send_rows;  ///< my local rows that `reader` reads, ascending, each once
  Index recv_rows = 0;            ///< how many rows of `owner` I read
};

/// How rows are cut on their way. The same on every rank.
struct HaloOptions {
  Index piece_rows = 0;  ///< a piece is at most so many rows of one round; 0: the whole round
  int depth = 1;         ///< pieces that are in flight besides the one in use; at least 1
  bool merge =
      false;  ///< all rounds at once: one piece with the rows of all owners, in round order (fetch only)
  bool wait_for_start = false;  ///< nothing is posted before start()
};

class HaloPush;

/// One pass of rows from their owners to their readers (SAR's fetch). Construction is collective in the sense
/// that all ranks make the matching object; it takes the memory that must not be missing later, calls start()
/// unless told not to, and returns. In the body of Communicator::agree a rank may fail anywhere: either no
/// rank starts, or those that wait for it throw.
///
/// One that was started in the body is finished before its next collective call, the start of another one
/// say, which throws CommunicationError otherwise: a rank that fails completes its exchanges before it meets
/// others.
class HaloFetch {
 public:
  /// Rows [begin, end) of what round `round` (index into the rounds) brings; for a merged fetch, round is 0
  /// and the rows are those of all rounds.
  struct Piece {
    std::size_t round = 0;
    Index begin = 0;
    Index end = 0;
    Tensor rows;  ///< [end - begin, ...] as the rows of `owned`
  };

  /// `owned` [local rows, ...] is read until finish(). `rounds` outlives this object.
  HaloFetch(const Communicator& comm, const Tensor& owned, const std::vector<HaloRound>& rounds,
            const HaloOptions& options);
  /// Completes all requests. Unless finished, it gives up all exchanges of the communicator that are under
  /// way: the peers' calls throw CommunicationError.
  ~HaloFetch();
  /// Meets the other ranks (Communicator::meet) and posts the first receives and sends, those of `push` as
  /// well.
  void start(HaloPush* push = nullptr);
  HaloFetch(const HaloFetch&) = delete;
  HaloFetch& operator=(const HaloFetch&) = delete;

  /// Waits for the next piece, in round order and by rows, and starts a later one; empty after the last.
  /// Rounds that bring no rows have no piece. Drop a piece before asking for the next: at most depth + 1 are
  /// held then.
  std::optional<Piece> next();
  /// Moves messages on and packs further rows; never waits. Cheap enough to be called every few microseconds.
  void progress();
  /// Waits until all rows of this rank have left.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// One pass of gradients from the readers of rows back to their owners, where they are added to `sum`.
///
/// Outgoing pieces are given in round order and, within a round, by rows. Incoming pieces are added in the
/// same order: the last `depth` pieces of the last round in finish(), all others before, whenever this rank
/// waits for an exchange of this communicator. A caller may therefore add its own rows to `sum` between
/// receive_all_but_last() and finish(), and the order of all additions is fixed.
class HaloPush {
 public:
  /// `sum` [local rows, ...] is added to while this rank waits (see above), never here nor in progress().
  /// `rounds` outlives this object. `options.merge` is ignored. Buffers: at most options.depth outgoing and
  /// options.depth incoming pieces are held, besides the one that the caller is filling.
  HaloPush(const Communicator& comm, Tensor& sum, const std::vector<HaloRound>& rounds,
           const HaloOptions& options);
  ~HaloPush();   ///< as that of HaloFetch
  void start();  ///< as HaloFetch::start()
  HaloPush(const HaloPush&) = delete;
  HaloPush& operator=(const HaloPush&) = delete;

  /// True when rows are added to `sum` before finish(); otherwise `sum` may be left unset until then.
  [[nodiscard]] bool adds_before_finish() const noexcept;
  /// Starts sending the next piece: rows [begin, end) of round `round`; keeps the tensor until it has left.
  /// First waits while `depth` pieces are in flight, so that the memory of an older one can be used for the
  /// one filled next. Throws CommunicationError when the piece is not the next one.
  void send(std::size_t round, Index begin, Index end, Tensor rows);
  /// Waits until all incoming rows are added that are not left to finish().
  void receive_all_but_last();
  /// Moves messages on; never waits, never touches `sum`.
  void progress();
  /// Waits for everything: adds the rows of the last round, completes all sends. Throws CommunicationError
  /// when pieces are left to be sent.
  void finish();

 private:
  friend class HaloFetch;
  void begin() noexcept;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The pieces of one round of `rows` rows: their boundaries 0 = b_0 < b_1 < ... < b_k = rows; a single 0 when
/// empty.
std::vector<Index> piece_bounds(Index rows, Index piece_rows);

}  // namespace sar
