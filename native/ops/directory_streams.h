// Open directories that are being read. With OPENDIR (file systems whose cookies hold only while the directory is open)
// a stream lives from OPENDIR to RELEASEDIR. Without (ext4, xfs, btrfs) READDIR comes with nodeid and offset alone:
// streams are then a small cache, and the one that stands at that offset goes on without a seek.
#pragma once

#include <dirent.h>

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "inode/table.h"
#include "sys/fd.h"
#include "sys/result.h"

namespace ops {

// As getdents64 fills it.
struct DirectoryEntry {
  uint64_t ino;
  uint64_t next;  // cookie of the entry after it
  unsigned char type;
  const char* name;
};

class DirectoryStream {
 public:
  explicit DirectoryStream(sys::UniqueFd fd) : fd_(std::move(fd)) {}
  // Held by whoever reads: two READDIRs of one stream take turns.
  std::mutex mutex;
  // Goes to `offset`; free when the stream already stands there.
  sys::Result<void> Seek(uint64_t offset);
  // The next entry, or false at the end. `entry.name` holds until the next call.
  sys::Result<bool> Next(DirectoryEntry* entry);
  // Gives the last entry back: it did not fit into the reply.
  void Back();
  uint64_t offset() const { return offset_; }

 private:
  sys::UniqueFd fd_;
  uint64_t offset_ = 0;  // cookie of the next entry that Next gives
  uint64_t previous_offset_ = 0;
  size_t at_ = 0, previous_at_ = 0, filled_ = 0;
  alignas(8) char buffer_[32768];
};

// A descriptor that lists (and syncs) the folder that `dirfd` (O_PATH) is.
sys::Result<sys::UniqueFd> OpenForListing(int dirfd);

class DirectoryStreams {
 public:
  explicit DirectoryStreams(inode::Table& inodes) : inodes_(inodes) {}

  sys::Result<uint64_t> Open(inode::Inode& dir);  // the handle
  void Close(uint64_t handle);
  std::shared_ptr<DirectoryStream> Find(uint64_t handle);

  // Takes a stream of this directory out of the cache, one at `offset` if there is, else opens one. Give it back with
  // Keep.
  sys::Result<std::shared_ptr<DirectoryStream>> Take(inode::Inode& dir, uint64_t offset);
  void Keep(uint64_t nodeid, std::shared_ptr<DirectoryStream> stream);

 private:
  struct Cached {
    uint64_t nodeid;
    std::shared_ptr<DirectoryStream> stream;
  };
  sys::Result<std::shared_ptr<DirectoryStream>> OpenStream(inode::Inode& dir);

  static constexpr size_t kMostCached = 32;
  inode::Table& inodes_;
  std::mutex mutex_;  // guards everything below; never held over I/O
  uint64_t next_handle_ = 1;
  std::unordered_map<uint64_t, std::shared_ptr<DirectoryStream>> open_;
  std::list<Cached> cached_;  // newest first
};

}  // namespace ops
