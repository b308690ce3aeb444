#include "inode/handle.h"

#include <fcntl.h>

#include <cstdlib>
#include <cstring>
#include <utility>

namespace inode {
namespace {

// struct file_handle ends in a flexible array; this is room for the longest.
struct alignas(file_handle) HandleRoom {
  char bytes[sizeof(file_handle) + MAX_HANDLE_SZ];
  file_handle* get() { return reinterpret_cast<file_handle*>(bytes); }
};

}  // namespace

FileHandle::FileHandle(FileHandle&& other) noexcept { *this = std::move(other); }

FileHandle& FileHandle::operator=(FileHandle&& other) noexcept {
  if (this == &other) return *this;
  Clear();
  type_ = other.type_;
  size_ = other.size_;
  memcpy(inline_, other.inline_, kInlineBytes);
  other.size_ = 0;  // long bytes are ours now
  return *this;
}

sys::Result<FileHandle> FileHandle::Take(int dir_fd, const char* name) {
  HandleRoom room;
  file_handle* handle = room.get();
  handle->handle_bytes = MAX_HANDLE_SZ;
  int mount_id = 0;
  if (name_to_handle_at(dir_fd, name, handle, &mount_id, *name == '\0' ? AT_EMPTY_PATH : 0) != 0) {
    return sys::LastError("name_to_handle_at");
  }
  FileHandle taken;
  if (handle->handle_bytes > kInlineBytes) {
    auto* copy = static_cast<unsigned char*>(malloc(handle->handle_bytes));
    if (copy == nullptr) return sys::Error{ENOMEM, "malloc"};
    memcpy(copy, handle->f_handle, handle->handle_bytes);
    memcpy(taken.inline_, &copy, sizeof copy);
  } else {
    memcpy(taken.inline_, handle->f_handle, handle->handle_bytes);
  }
  taken.type_ = handle->handle_type;
  taken.size_ = static_cast<uint8_t>(handle->handle_bytes);
  return taken;
}

sys::Result<sys::UniqueFd> FileHandle::Open(int mount_fd, int flags) const {
  HandleRoom room;
  file_handle* handle = room.get();
  handle->handle_type = type_;
  handle->handle_bytes = size_;
  memcpy(handle->f_handle, bytes(), size_);
  sys::UniqueFd fd(open_by_handle_at(mount_fd, handle, flags | O_CLOEXEC));
  if (!fd.valid()) return sys::LastError("open_by_handle_at");
  return fd;
}

std::string FileHandle::Encode() const {
  if (empty()) return "";
  std::string text(sizeof type_ + size_, '\0');
  memcpy(text.data(), &type_, sizeof type_);
  memcpy(text.data() + sizeof type_, bytes(), size_);
  return text;
}

const unsigned char* FileHandle::bytes() const {
  if (size_ <= kInlineBytes) return inline_;
  const unsigned char* far = nullptr;
  memcpy(&far, inline_, sizeof far);
  return far;
}

void FileHandle::Clear() {
  if (size_ > kInlineBytes) free(const_cast<unsigned char*>(bytes()));
  size_ = 0;
}

}  // namespace inode
