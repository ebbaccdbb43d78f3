/// Readers of files that zlib has packed. They read from front to back, are local, and throw InputError.
#pragma once

#include <sar/config.hpp>
#include <sar/core/files/file.hpp>

#include <memory>
#include <string>
#include <vector>

namespace sar::formats {

/// No file that zlib has packed grows by more than this when it is unpacked.
inline constexpr Index max_inflation = 1032;

/// Unpacks a section of a file.
class Inflater : NonCopyable {
 public:
  enum class Format { gzip, raw };  ///< gzip: one or several members; raw: one stream without a frame, of zip

  /// `what` names the section in messages. The file outlives the Inflater.
  Inflater(const InputFile& file, std::string what, Index begin, Index bytes, Format format);
  ~Inflater();

  /// Reads up to `bytes` more bytes; fewer only at the end. At the end of raw data the whole section has been
  /// used.
  Index read(char* out, Index bytes);

 private:
  struct Stream;
  void refill();
  void start_next_member();

  const InputFile& file_;
  std::string what_;
  Index next_;  // offset in the file of what has not been read
  Index end_;
  Format format_;
  bool finished_ = false;
  std::vector<unsigned char> input_;
  std::unique_ptr<Stream> stream_;
};

/// A text file, plain or packed by gzip, read from front to back. Its first two bytes tell which it is. A
/// byte order mark is no part of the text.
class TextFile {
 public:
  /// Throws when the file cannot be opened, or is called .gz and is not. Throws for a text that is not UTF-8
  /// by its mark, here or, if it is packed, in read().
  explicit TextFile(const std::string& path);
  [[nodiscard]] bool packed() const noexcept { return inflater_ != nullptr; }
  [[nodiscard]] const InputFile& file() const noexcept { return file_; }
  /// Where the text of a plain file begins in it.
  [[nodiscard]] Index begin() const noexcept { return begin_; }
  /// The most bytes that the text can have.
  [[nodiscard]] Index max_text_bytes() const noexcept;

  /// Reads up to `bytes` more bytes; fewer only at the end.
  Index read(char* out, Index bytes);

 private:
  void read_beginning();

  InputFile file_;
  Index begin_ = 0, next_ = 0;  // in a plain file
  std::unique_ptr<Inflater> inflater_;
  std::string beginning_;  // of a packed text, looked at for a mark and not read yet
  bool is_new_ = true;
};

/// The first `bytes` bytes of the text; fewer when there are not so many.
std::string read_beginning(const std::string& path, Index bytes);

}  // namespace sar::formats
