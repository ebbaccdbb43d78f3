// SPDX-License-Identifier: MIT

// Blocks are dealt to the ranks in turn; a block has the lines that begin in it, so that each byte is read
// once (and up to a line more) and parsed on one rank. After each round, an all_gather of 24 bytes numbers
// the rows of all ranks. A packed file goes through rank 0, which sends each block once. Parquet files say
// how many rows a group has, so each rank reads groups of its own.

#include "line_blocks.hpp"

#include "formats/packed/parquet_table.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <array>
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

/// Hands every rank its block of each round.
class Blocks : NonCopyable {
 public:
  virtual ~Blocks() = default;
  /// Collective. False on all ranks when there is no block left for any of them.
  virtual bool next(std::string_view& block) = 0;
  /// Local. The first row of the block in the whole table, where blocks of higher ranks may stand before it;
  /// nothing: blocks stand in the order of the rounds, and of the ranks in a round.
  [[nodiscard]] virtual std::optional<Index> first_row() const { return std::nullopt; }
};

/// Blocks of a plain file: the lines that begin in so many bytes. Line ends are looked for on both sides.
class PlainBlocks final : public Blocks {
 public:
  PlainBlocks(const Communicator& comm, std::unique_ptr<TextFile> text, Index begin, Index block_bytes)
      : comm_(comm), text_(std::move(text)), file_(text_->file()), begin_(text_->begin() + begin) {
    comm.agree([&] {
      require<InputError>(begin_ <= file_.size(), file_.path(),
                          ": the file has become shorter while it was read");
    });
    block_ = std::clamp<Index>((file_.size() - begin_) / comm.size() + 1, 1, block_bytes);
  }

  bool next(std::string_view& block) override {
    const Index num_blocks = (file_.size() - begin_ + block_ - 1) / block_;
    const Index first = round_++ * comm_.size();
    if (first >= num_blocks) return false;
    block = {};
    comm_.agree([&] {
      if (first + comm_.rank() < num_blocks) block = read(first + comm_.rank());
    });
    return true;
  }

 private:
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

  void append(Index from, Index to) {
    const std::size_t old_size = buffer_.size();
    buffer_.resize(old_size + static_cast<std::size_t>(to - from));
    file_.read(from, buffer_.data() + old_size, to - from);
  }

  const Communicator& comm_;
  std::unique_ptr<TextFile> text_;
  const InputFile& file_;
  Index begin_;
  Index block_ = 1;  // bytes
  Index round_ = 0;
  std::string buffer_;
};

/// Blocks of a packed file, which rank 0 unpacks and deals out.
class PackedBlocks final : public Blocks {
 public:
  PackedBlocks(const Communicator& comm, std::unique_ptr<TextFile> file, Index begin, Index block_bytes)
      : comm_(comm),
        file_(std::move(file)),
        most_dealt_(dealt_blocks * block_bytes),
        block_(std::clamp<Index>(most_dealt_ / comm.size(), 1, block_bytes)) {
    comm.agree([&] {
      if (comm.rank() == 0) file_->skip(begin);
    });
  }

  bool next(std::string_view& block) override {
    std::array<Index, 1> more{0};
    std::vector<Index> counts(static_cast<std::size_t>(comm_.size()), 0);
    comm_.agree([&] {
      if (comm_.rank() != 0) return;
      dealt_.clear();
      more[0] = finished_ && carried_.empty() ? 0 : 1;
      for (Index& count : counts)
        if (std::ssize(dealt_) < most_dealt_) count = read();
    });
    comm_.broadcast(std::span<Index>(more), 0);
    if (more[0] == 0) return false;
    mine_ = comm_.all_to_all_v(std::span<const char>(dealt_.data(), dealt_.size()), counts).values;
    block = {mine_.data(), mine_.size()};
    return true;
  }

 private:
  /// Appends the next block of whole lines to what is dealt, nothing at the end. Returns its size.
  Index read() {
    const std::size_t begin = dealt_.size();
    dealt_ += carried_;
    carried_.clear();
    while (!finished_) {
      const std::size_t old_size = dealt_.size();
      require_line_length(file_->path(), static_cast<Index>(old_size - begin));
      dealt_.resize(old_size + static_cast<std::size_t>(block_));
      const Index got = file_->read(dealt_.data() + old_size, block_);
      dealt_.resize(old_size + static_cast<std::size_t>(got));
      finished_ = got < block_;
      if (finished_) break;
      const std::size_t line_end = dealt_.rfind('\n');
      if (line_end == std::string::npos || line_end < old_size) continue;
      carried_ = dealt_.substr(line_end + 1);
      dealt_.resize(line_end + 1);
      break;
    }
    return static_cast<Index>(dealt_.size() - begin);
  }

  const Communicator& comm_;
  std::unique_ptr<TextFile> file_;
  Index most_dealt_;  // bytes in a round, and a line more
  Index block_;
  std::string dealt_;    // of all ranks in a round
  std::string carried_;  // the beginning of a line
  bool finished_ = false;
  std::vector<char> mine_;
};

/// Blocks of the rows of Parquet files. The groups are dealt to the ranks in turn, and a rank reads its own
/// in parts of about `block_bytes`, so that each group is decoded once.
class ParquetBlocks final : public Blocks {
 public:
  ParquetBlocks(const Communicator& comm, std::unique_ptr<ParquetTable> table, Index begin, Index block_bytes)
      : comm_(comm), table_(std::move(table)), skips_header_(begin > 0) {
    constexpr Index number_bytes = 12;
    most_rows_ = std::max<Index>(1, block_bytes / (number_bytes * std::max<Index>(1, table_->num_columns())));
    std::vector<Index> blocks(static_cast<std::size_t>(comm.size()), 0);
    for (std::size_t group = 0; group < table_->groups().size(); ++group)
      blocks[group % blocks.size()] += (table_->groups()[group].num_rows + most_rows_ - 1) / most_rows_;
    rounds_ = *std::ranges::max_element(blocks) + 1;  // the first one has the header
    group_ = comm.rank();
  }

  bool next(std::string_view& block) override {
    if (rounds_-- == 0) return false;
    block = {};
    comm_.agree([&] { block = read(); });
    return true;
  }
  [[nodiscard]] std::optional<Index> first_row() const override { return first_row_; }

 private:
  std::string_view read() {
    if (std::exchange(is_header_, false)) {
      if (comm_.rank() == 0 && !skips_header_) return table_->header();
      return {};
    }
    for (; group_ < std::ssize(table_->groups()); group_ += comm_.size(), row_ = 0) {
      const ParquetTable::Group& group = table_->groups()[group_];
      if (row_ == group.num_rows) continue;
      const Index begin = row_;
      row_ = std::min(group.num_rows, begin + most_rows_);
      first_row_ = group.first_row + begin + (skips_header_ ? 0 : 1);
      return table_->read(group_, begin, row_);
    }
    return {};
  }

  const Communicator& comm_;
  std::unique_ptr<ParquetTable> table_;
  bool skips_header_, is_header_ = true;
  Index most_rows_ = 1, rounds_ = 0;
  Index group_ = 0, row_ = 0;  // of the next block
  Index first_row_ = 0;        // of the last one
};

/// Opens a text on all ranks. Collective.
std::unique_ptr<Blocks> open_blocks(const Communicator& comm, const std::string& path, Index begin,
                                    Index block_bytes) {
  std::unique_ptr<TextFile> file;
  std::unique_ptr<ParquetTable> table;
  std::array<Index, 2> mine{};
  comm.agree([&] {
    if (is_parquet(path)) {
      table = ParquetTable::open(path);
      mine = {table->num_rows(), 2};
    } else {
      file = std::make_unique<TextFile>(path);
      mine = {file->file().size(), file->packed() ? 1 : 0};
    }
  });
  std::array<Index, 2> seen = mine;
  comm.broadcast(std::span<Index>(seen), 0);
  comm.agree([&] {
    require<InputError>(seen == mine, path, ": rank ", comm.rank(), " finds ", mine[0],
                        mine[1] == 2 ? " rows" : " bytes", ", expected ", seen[0],
                        seen[1] == 2 ? " rows" : " bytes", " as on rank 0");
  });
  if (table != nullptr) return std::make_unique<ParquetBlocks>(comm, std::move(table), begin, block_bytes);
  if (file->packed()) return std::make_unique<PackedBlocks>(comm, std::move(file), begin, block_bytes);
  return std::make_unique<PlainBlocks>(comm, std::move(file), begin, block_bytes);
}

/// What a rank says of its block.
struct Report {
  Index lines = 0, rows = 0;
  Index wrong = 0;  // 1: the line `lines` is wrong; 2: NotAnInteger
};

}  // namespace

TextCounts read_lines(const Communicator& comm, const std::string& path, const TextPosition& begin,
                      Index block_bytes, FunctionRef<TextCounts(std::string_view text)> parse,
                      FunctionRef<void(const BlockPlace&)> placed) {
  const std::unique_ptr<Blocks> blocks = open_blocks(comm, path, begin.byte, block_bytes);
  TextCounts total{begin.line, 0};
  std::string_view text;
  while (blocks->next(text)) {
    Report mine;
    std::string message;
    comm.agree([&] {
      try {
        const TextCounts counts = parse(text);
        mine = {counts.lines, counts.rows};
      } catch (const LineError& error) {
        mine = {error.line(), 0, dynamic_cast<const NotAnInteger*>(&error) != nullptr ? 2 : 1};
        message = error.what();
      }
    });
    const std::optional<Index> known = blocks->first_row();  // then each line is a row
    BlockPlace place;
    int rank = 0;
    for (const Report& report : comm.all_gather(mine)) {
      const bool is_mine = rank == comm.rank();
      if (is_mine) place = {known ? begin.line + *known : total.lines, known ? *known : total.rows};
      if (report.wrong != 0) {
        comm.broadcast(std::span<Index>(&place.first_line, 1), rank);
        const Index line = place.first_line + report.lines;
        const std::string whole = concat(path, ": line ", line + 1, ": ", comm.broadcast(message, rank));
        if (report.wrong == 2) throw NotAnInteger(line, whole);
        throw LineError(line, whole);
      }
      total.lines += report.lines;
      total.rows += report.rows;
      ++rank;
    }
    place.rows_so_far = total.rows;
    placed(place);
  }
  return total;
}

}  // namespace sar::formats
