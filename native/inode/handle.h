// A kernel file handle (name_to_handle_at), kept small: short ones (ext4 8 bytes, tmpfs 12, btrfs 20) lie inside the
// inode.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "sys/fd.h"
#include "sys/result.h"

namespace inode {

class FileHandle {
 public:
  static constexpr size_t kInlineBytes = 20;

  FileHandle() = default;
  FileHandle(FileHandle&& other) noexcept;
  FileHandle& operator=(FileHandle&& other) noexcept;
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;
  ~FileHandle() { Clear(); }

  // Of dir_fd/name, or of `dir_fd` itself when `name` is "". A symlink's own handle.
  static sys::Result<FileHandle> Take(int dir_fd, const char* name);
  // Needs CAP_DAC_READ_SEARCH in the first user namespace. `mount_fd` must not be O_PATH. O_CLOEXEC is added.
  sys::Result<sys::UniqueFd> Open(int mount_fd, int flags) const;

  bool empty() const { return size_ == 0; }
  // As in Bind records: i32 handle type, then the bytes; "" when there is none.
  std::string Encode() const;

 private:
  const unsigned char* bytes() const;
  void Clear();

  int32_t type_ = 0;
  uint8_t size_ = 0;  // MAX_HANDLE_SZ is 128
  // The bytes, or (longer ones) a pointer to malloc'ed bytes.
  unsigned char inline_[kInlineBytes] = {};
};

}  // namespace inode
