// Blocks are dealt to the ranks in turn; a block has the lines that begin in it, so that each byte is read
// once (and up to a line more) and parsed on one rank. After each round, an all_gather of 24 bytes numbers
// the rows of all ranks. A packed file goes through rank 0, which sends each block once.

#include "line_blocks.hpp"

#include "text.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <array>
#include <exception>
#include <optional>
#include <vector>

namespace sar::formats {
namespace {

constexpr Index max_line_bytes = Index{1} << 28;
constexpr Index dealt_blocks = 4;  // of a packed file, that rank 0 holds at a time

void require_line_length(const std::string& path, Index bytes) {
  require<InputError>(bytes <= max_line_bytes, path, ": a line has more than ", max_line_bytes,
                      " bytes, expected lines of text");
}

/// The blocks of a plain file: the lines that begin in so many bytes. Line ends are looked for on both sides.
/// Local.
class PlainBlocks {
 public:
  PlainBlocks(const InputFile& file, Index begin, Index block_bytes)
      : file_(file), begin_(begin), block_(block_bytes) {}

  [[nodiscard]] Index num_blocks() const { return (file_.size() - begin_ + block_ - 1) / block_; }

  std::string_view read(Index block) {
    const Index from = begin_ + block * block_;
    const Index before = block == 0 ? 0 : 1;  // the byte in front: is it the end of a line?
    Index end = std::min(file_.size(), from + block_);
    buffer_.clear();
    append(from - before, end);
    const std::size_t first = before == 0 ? 0 : buffer_.find('\n') + 1;  // 0: there is none
    if ((before == 1 && first == 0) || first == buffer_.size()) return {};

    std::size_t last = buffer_.find('\n', buffer_.size() - 1);
    while (last == std::string::npos && end < file_.size()) {
      const std::size_t searched = buffer_.size();
      require_line_length(file_.path(), static_cast<Index>(searched - first));
      const Index more = std::min(file_.size(), end + (Index{1} << 14));
      append(end, more);
      end = more;
      last = buffer_.find('\n', searched);
    }
    if (last == std::string::npos) last = buffer_.size() - 1;
    return std::string_view(buffer_).substr(first, last + 1 - first);
  }

 private:
  void append(Index from, Index to) {
    const std::size_t old_size = buffer_.size();
    buffer_.resize(old_size + static_cast<std::size_t>(to - from));
    file_.read(from, buffer_.data() + old_size, to - from);
  }

  const InputFile& file_;
  Index begin_;
  Index block_;
  std::string buffer_;
};

/// Blocks of whole lines of a packed file, one after the other. Local.
class PackedBlocks {
 public:
  PackedBlocks(TextFile& file, Index begin, Index block_bytes) : file_(file), block_(block_bytes) {
    std::string skipped(static_cast<std::size_t>(std::min(begin, Index{1} << 20)), ' ');
    for (Index left = begin; left > 0;) {
      const Index got = file_.read(skipped.data(), std::min(left, static_cast<Index>(skipped.size())));
      if (got == 0) break;
      left -= got;
    }
  }

  [[nodiscard]] bool finished() const { return finished_ && carried_.empty(); }

  /// Appends the next block to `text`, nothing at the end. Returns its size.
  Index read(std::string& text) {
    const std::size_t begin = text.size();
    text += carried_;
    carried_.clear();
    while (!finished_) {
      const std::size_t old_size = text.size();
      require_line_length(file_.path(), static_cast<Index>(old_size - begin));
      text.resize(old_size + static_cast<std::size_t>(block_));
      const Index got = file_.read(text.data() + old_size, block_);
      text.resize(old_size + static_cast<std::size_t>(got));
      finished_ = got < block_;
      if (finished_) break;
      const std::size_t line_end = text.rfind('\n');
      if (line_end == std::string::npos || line_end < old_size) continue;
      carried_ = text.substr(line_end + 1);
      text.resize(line_end + 1);
      break;
    }
    return static_cast<Index>(text.size() - begin);
  }

 private:
  TextFile& file_;
  Index block_;
  std::string carried_;  // the beginning of a line
  bool finished_ = false;
};

/// Hands every rank its block of each round.
class Blocks {
 public:
  Blocks(const Communicator& comm, const std::string& path, Index begin, Index block_bytes)
      : comm_(comm), most_dealt_(dealt_blocks * block_bytes) {
    comm.agree([&] {
      file_.emplace(path);
      const Index plain_begin = file_->begin() + begin;
      require<InputError>(file_->packed() || plain_begin <= file_->file().size(), path,
                          ": the file has become shorter while it was read");
      if (file_->packed()) {
        if (comm_.rank() == 0)
          packed_.emplace(*file_, begin, std::clamp<Index>(most_dealt_ / comm_.size(), 1, block_bytes));
        return;
      }
      const Index share = (file_->file().size() - plain_begin) / comm_.size() + 1;
      plain_.emplace(file_->file(), plain_begin, std::clamp<Index>(share, 1, block_bytes));
      num_blocks_ = plain_->num_blocks();
    });
    std::array<Index, 2> seen{file_->file().size(), file_->packed() ? 1 : 0};
    const std::array<Index, 2> mine = seen;
    comm.broadcast(std::span<Index>(seen), 0);
    comm.agree([&] {
      require<InputError>(seen == mine, path, ": rank ", comm_.rank(), " finds a file of ", mine[0],
                          " bytes, expected ", seen[0], " as on rank 0");
    });
  }

  /// False on all ranks when there is no block left for any of them.
  bool next(std::string_view& block) {
    block = {};
    if (!file_->packed()) {
      const Index mine = round_++ * comm_.size() + comm_.rank();
      if (mine - comm_.rank() >= num_blocks_) return false;
      comm_.agree([&] {
        if (mine < num_blocks_) block = plain_->read(mine);
      });
      return true;
    }
    std::array<Index, 1> more{0};
    std::vector<Index> counts(static_cast<std::size_t>(comm_.size()), 0);
    comm_.agree([&] {
      if (comm_.rank() != 0) return;
      dealt_.clear();
      more[0] = packed_->finished() ? 0 : 1;
      for (Index& count : counts)
        if (std::ssize(dealt_) < most_dealt_) count = packed_->read(dealt_);
    });
    comm_.broadcast(std::span<Index>(more), 0);
    if (more[0] == 0) return false;
    mine_ = comm_.all_to_all_v(std::span<const char>(dealt_.data(), dealt_.size()), counts).values;
    block = {mine_.data(), mine_.size()};
    return true;
  }

 private:
  const Communicator& comm_;
  std::optional<TextFile> file_;
  std::optional<PlainBlocks> plain_;
  std::optional<PackedBlocks> packed_;
  Index most_dealt_;  // bytes in a round, and a line more
  Index num_blocks_ = 0;
  Index round_ = 0;
  std::string dealt_;
  std::vector<char> mine_;
};

enum class Outcome : Index { understood, wrong_line, not_an_integer };

/// What a rank says of its block.
struct Report {
  Index lines = 0;
  Index rows = 0;
  Outcome outcome = Outcome::understood;
};

}  // namespace

TextCounts read_lines(const Communicator& comm, const std::string& path, const TextPosition& begin,
                      Index block_bytes, FunctionRef<TextCounts(std::string_view text)> parse,
                      FunctionRef<void(Index first_row, Index rows)> placed) {
  Blocks blocks(comm, path, begin.byte, block_bytes);
  TextCounts total{begin.line, 0};
  std::string_view text;
  while (blocks.next(text)) {
    Report mine;
    std::string message;
    comm.agree([&] {
      try {
        const TextCounts counts = parse(text);
        mine = {counts.lines, counts.rows};
      } catch (const NotAnInteger& error) {
        mine = {error.line(), 0, Outcome::not_an_integer};
        message = error.what();
      } catch (const LineError& error) {
        mine = {error.line(), 0, Outcome::wrong_line};
        message = error.what();
      }
    });
    Index first_row = 0;
    int rank = 0;
    for (const Report& report : comm.all_gather(mine)) {
      if (rank == comm.rank()) first_row = total.rows;
      if (report.outcome != Outcome::understood) {
        const Index line = total.lines + report.lines;
        const std::string whole = concat(path, ": line ", line + 1, ": ", comm.broadcast(message, rank));
        if (report.outcome == Outcome::not_an_integer) throw NotAnInteger(line, whole);
        throw LineError(line, whole);
      }
      total.lines += report.lines;
      total.rows += report.rows;
      ++rank;
    }
    placed(first_row, total.rows);
  }
  return total;
}

}  // namespace sar::formats
