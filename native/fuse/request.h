// One FUSE request as handlers see it, and the reply that they fill. Lengths were checked against the op table's row
// before a handler runs, so arg(), name() and data() can't reach outside the message.
#pragma once

#include <linux/fuse.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace fuse {

// From this protocol the system's header may be older than the kernel.
#ifndef FUSE_SETXATTR_ACL_KILL_SGID
#define FUSE_SETXATTR_ACL_KILL_SGID (1 << 0)
#endif

class Request {
 public:
  // Parses `bytes`: checks the header's length, that the fixed argument (arg_bytes) is there, then `names` strings,
  // each ended by NUL, not empty, without '/' (symlink targets excepted: `free_names`). False: malformed, answer
  // EINVAL/EIO.
  bool Parse(std::span<const std::byte> bytes, size_t arg_bytes, unsigned names, bool free_names);

  const fuse_in_header& header() const { return header_; }
  uint64_t nodeid() const { return header_.nodeid; }
  uint32_t uid() const { return header_.uid; }
  uint32_t gid() const { return header_.gid; }
  uint32_t tid() const { return header_.pid; }  // a thread id, in the pid namespace of the mounter

  template <typename T>
  T arg() const {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    std::memcpy(&value, arg_.data(), sizeof(T) < arg_.size() ? sizeof(T) : arg_.size());
    return value;
  }
  const char* name(unsigned i) const { return names_[i]; }
  std::span<const std::byte> data() const { return data_; }  // what follows argument and names

 private:
  fuse_in_header header_{};
  std::span<const std::byte> arg_;
  const char* names_[2] = {nullptr, nullptr};
  std::span<const std::byte> data_;
};

// A handler writes its payload into the worker's buffer (1 MiB and a page) and says how long it is.
class Reply {
 public:
  Reply(std::byte* buffer, size_t capacity) : buffer_(buffer), capacity_(capacity) {}
  std::byte* buffer() { return buffer_; }
  size_t capacity() const { return capacity_; }
  size_t bytes() const { return bytes_; }
  void SetBytes(size_t bytes) { bytes_ = bytes; }
  template <typename T>
  void Send(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    Append(&value, sizeof(T));
  }
  void Append(const void* from, size_t bytes) {
    std::memcpy(buffer_ + bytes_, from, bytes);
    bytes_ += bytes;
  }
  // The request is never answered (FORGET, BATCH_FORGET).
  void Silent() { silent_ = true; }
  bool silent() const { return silent_; }
  // This reply hands the kernel a nodeid (one lookup). If the kernel does not take the reply (ENOENT: the caller was
  // killed), the loop takes the lookup back.
  void GivesLookup(uint64_t nodeid) { lookup_ = nodeid; }
  uint64_t given_lookup() const { return lookup_; }
  // For the trace: what capture this request caused.
  void NoteTouch(const char* touch) { touch_ = touch; }
  const char* touch() const { return touch_; }

 private:
  std::byte* buffer_;
  size_t capacity_;
  size_t bytes_ = 0;
  bool silent_ = false;
  uint64_t lookup_ = 0;
  const char* touch_ = "-";
};

}  // namespace fuse
