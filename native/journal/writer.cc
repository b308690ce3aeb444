#include "journal/writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "journal/reader.h"

namespace journal {
namespace {

constexpr char kReserveName[] = "reserve";
constexpr uint64_t kSealBytes = kFrameHeaderBytes;
// A full disk is asked again for space after this many bytes: each refusal can cost the filesystem a commit.
constexpr uint64_t kAllocationRetryBytes = 64u << 10;
// Sealed files kept open until the next sync; one more and the oldest is synced at once.
constexpr size_t kMaxUnsynced = 16;

int64_t Now() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

// All bytes or an error; *written tells how many bytes may have changed.
sys::Result<void> WriteAll(int fd, std::string_view bytes, uint64_t offset, uint64_t* written) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset + *written));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys::LastError("pwrite(journal)");
    if (n == 0) return sys::Error{EIO, "pwrite(journal)"};
    *written += static_cast<uint64_t>(n);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

// What is allocated ahead must not be what fills a small disk: at most an eighth of what is free.
uint64_t FairShare(int fd, uint64_t want) {
  struct statvfs fs;
  if (fstatvfs(fd, &fs) != 0) return want;
  return std::min(want, uint64_t{fs.f_bavail} * fs.f_frsize / 8);
}

std::string FileName(uint64_t seq) {
  char name[32];
  snprintf(name, sizeof name, "%016" PRIx64 ".log", seq);
  return name;
}

}  // namespace

sys::Result<std::unique_ptr<Writer>> Writer::Open(const Options& options) {
  std::unique_ptr<Writer> writer(new Writer(options));
  writer->last_seq_ = options.next_seq - 1;
  writer->synced_seq_ = options.next_seq - 1;
  const std::lock_guard lock(writer->mutex_);
  // One left by a killed engine may hold a header already.
  if (unlinkat(options.journal_fd, kReserveName, 0) != 0 && errno != ENOENT) return sys::LastError("unlinkat(reserve)");
  auto file = std::make_shared<File>();
  writer->MakeReserve();
  if (auto begun = writer->Begin(options.next_seq, file.get()); !begun.ok()) return begun.error();
  writer->file_ = std::move(file);
  writer->MakeReserve();
  return writer;
}

// Creates a file with as much of *allocated as there is space for.
sys::Result<sys::UniqueFd> Writer::CreateEmpty(const char* name, uint64_t* allocated) {
  sys::UniqueFd fd(openat(options_.journal_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return sys::LastError("openat(journal)");
  for (uint64_t want = FairShare(fd.get(), *allocated); can_allocate_ && want >= 4096; want /= 4) {
    if (fallocate(fd.get(), 0, 0, static_cast<off_t>(want)) == 0) {
      *allocated = want;
      return fd;
    }
    if (errno != ENOSPC && errno != EDQUOT && errno != EFBIG) can_allocate_ = false;
    // A refusal may leave a part of it behind.
    if (ftruncate(fd.get(), 0) != 0) return sys::LastError("ftruncate(journal)");
  }
  *allocated = 0;
  return fd;
}

// Without space for one we go on without, and try again at the next rotation.
void Writer::MakeReserve() {
  if (reserve_.valid()) return;
  uint64_t allocated = options_.reserve_bytes;
  auto fd = CreateEmpty(kReserveName, &allocated);
  if (!fd.ok()) return;
  if (allocated == 0 && can_allocate_) {
    unlinkat(options_.journal_fd, kReserveName, 0);
    return;
  }
  reserve_ = std::move(fd.value());
  reserve_allocated_ = allocated;
}

// Makes the reserve the file that begins with `seq`. It gets its name when its header is in it, so that a file with a
// name is never empty.
sys::Result<void> Writer::Begin(uint64_t seq, File* file) {
  if (!reserve_.valid()) {
    uint64_t allocated = options_.step_bytes;
    auto fd = CreateEmpty(kReserveName, &allocated);
    if (!fd.ok()) return fd.error();
    reserve_ = std::move(fd.value());
    reserve_allocated_ = allocated;
  }
  Batch header;
  header.Add(FileHeader{options_.session, Now()});
  header.Finish(seq);
  uint64_t written = 0;
  if (auto done = WriteAll(reserve_.get(), header.bytes(), 0, &written); !done.ok()) return done;
  file->name = FileName(seq);
  const int dir = options_.journal_fd;
  if (renameat2(dir, kReserveName, dir, file->name.c_str(), RENAME_NOREPLACE) != 0) {
    if (errno != EEXIST) return sys::LastError("renameat2(journal)");
    // A file of that name can only be one whose records nobody has counted: one that was cut before its first record.
    auto old = ReadFile(dir, file->name.c_str());
    if (!old.ok()) return old.error();
    Parse(&old.value());
    if (!old.value().frames.empty()) return sys::Error{EEXIST, "a journal file of this number has records"};
    if (renameat(dir, kReserveName, dir, file->name.c_str()) != 0) return sys::LastError("renameat(journal)");
  }
  file->fd = std::move(reserve_);
  file->allocated = reserve_allocated_;
  file->end = header.bytes().size();
  reserve_allocated_ = 0;
  last_seq_.store(seq, std::memory_order_release);
  name_unsynced_ = true;
  return {};
}

// Overwrites with zeros what a failed write left. Those bytes were just written, so their space is there; where even
// that fails the file is cut, which costs only the space allocated ahead.
void Writer::Erase(uint64_t from, uint64_t size) {
  if (size == 0) return;
  const std::string zeros(size, '\0');
  uint64_t written = 0;
  if (WriteAll(file_->fd.get(), zeros, from, &written).ok()) return;
  if (ftruncate(file_->fd.get(), static_cast<off_t>(from)) != 0) {
    broken_ = errno;
    return;
  }
  file_->allocated = std::min(file_->allocated, from);
}

void Writer::AllocateAhead(uint64_t need) {
  const uint64_t want = file_->end + need + kSealBytes + options_.step_bytes / 2;
  if (want <= file_->allocated || !can_allocate_ || file_->end < retry_allocation_at_) return;
  const uint64_t from = std::max(file_->allocated, file_->end);
  const uint64_t needed = std::max(file_->end + need + kSealBytes, from + 1) - from;
  const uint64_t length = std::max(FairShare(file_->fd.get(), std::max(options_.step_bytes, want - from)), needed);
  if (fallocate(file_->fd.get(), 0, static_cast<off_t>(from), static_cast<off_t>(length)) == 0) {
    file_->allocated = from + length;
    if (length < options_.step_bytes) retry_allocation_at_ = file_->end + std::min(length / 2, kAllocationRetryBytes);
    return;
  }
  if (errno != ENOSPC && errno != EDQUOT && errno != EFBIG) can_allocate_ = false;
  retry_allocation_at_ = file_->end + kAllocationRetryBytes;
}

// Seals the current file and begins the next. When the next can't be begun the seal is taken back.
sys::Result<void> Writer::Rotate() {
  Batch seal;
  seal.Add(SealRecord{});
  const uint64_t seq = last_seq_.load(std::memory_order_relaxed) + 1;
  seal.Finish(seq);
  uint64_t written = 0;
  if (auto done = WriteAll(file_->fd.get(), seal.bytes(), file_->end, &written); !done.ok()) {
    Erase(file_->end, written);
    return done;
  }
  auto next = std::make_shared<File>();
  if (auto begun = Begin(seq + 1, next.get()); !begun.ok()) {
    Erase(file_->end, seal.bytes().size());
    return begun;
  }
  file_->end += seal.bytes().size();
  // The zeros behind the seal say nothing; that they keep their space is no failure.
  if (ftruncate(file_->fd.get(), static_cast<off_t>(file_->end)) == 0) file_->allocated = file_->end;
  unsynced_.push_back(std::move(file_));
  if (unsynced_.size() > kMaxUnsynced && fdatasync(unsynced_.front()->fd.get()) == 0) {
    unsynced_.erase(unsynced_.begin());
  }
  file_ = std::move(next);
  retry_allocation_at_ = 0;
  MakeReserve();
  return {};
}

sys::Result<void> Writer::Write(const Batch& batch) {
  const std::string_view bytes = batch.bytes();
  uint64_t written = 0;
  auto done = WriteAll(file_->fd.get(), bytes, file_->end, &written);
  if (!done.ok()) {
    Erase(file_->end, written);
    return done;
  }
  file_->end += bytes.size();
  file_->header_only = false;
  last_seq_.fetch_add(batch.count(), std::memory_order_release);
  return {};
}

sys::Result<uint64_t> Writer::Append(Batch* batch) {
  if (batch->oversize()) return sys::Error{EFBIG, "a journal record is too large"};
  const std::lock_guard lock(mutex_);
  if (broken_ != 0) return sys::Error{broken_, "the journal is damaged"};
  Batch* records = batch;
  if (!waiting_.empty()) {
    scratch_.Clear();
    scratch_.Add(waiting_);
    scratch_.Add(*batch);
    records = &scratch_;
  }
  if (records->empty()) return last_seq_.load(std::memory_order_relaxed);
  const uint64_t need = records->bytes().size();
  const bool full = file_->end + need + kSealBytes > options_.rotate_bytes && !file_->header_only;
  // A rotation that fails here is no harm: the file just grows longer than usual.
  if (full) static_cast<void>(Rotate().ok());
  AllocateAhead(need);
  if (can_allocate_ && file_->end + need + kSealBytes > file_->allocated && reserve_.valid() && !file_->header_only &&
      need + 512 < reserve_allocated_) {
    static_cast<void>(Rotate().ok());  // the disk is full: on to the reserve, while the seal still fits
  }
  if (broken_ != 0) return sys::Error{broken_, "the journal is damaged"};
  records->Finish(last_seq_.load(std::memory_order_relaxed) + 1);
  if (auto done = Write(*records); !done.ok()) return done.error();
  waiting_.Clear();
  batch->Clear();
  return last_seq_.load(std::memory_order_relaxed);
}

bool Writer::AppendOrWait(Batch* batch) {
  if (Append(batch).ok()) return true;
  const std::lock_guard lock(mutex_);
  waiting_.Add(*batch);
  batch->Clear();
  return false;
}

sys::Result<uint64_t> Writer::Seal() {
  {
    Batch none;
    // Records that wait belong into this file.
    if (auto appended = Append(&none); !appended.ok()) return appended.error();
  }
  const std::lock_guard lock(mutex_);
  if (!file_->header_only) {
    if (auto rotated = Rotate(); !rotated.ok()) return rotated.error();
  }
  return last_seq_.load(std::memory_order_relaxed);
}

sys::Result<void> Writer::Sync() {
  const std::lock_guard one(sync_mutex_);
  std::vector<std::shared_ptr<File>> files;
  uint64_t target;
  bool name;
  {
    const std::lock_guard lock(mutex_);
    target = last_seq_.load(std::memory_order_relaxed);
    if (target <= synced_seq_.load(std::memory_order_relaxed)) return {};
    files.swap(unsynced_);
    files.push_back(file_);
    name = std::exchange(name_unsynced_, false);
  }
  // Without the mutex: appends go on meanwhile.
  sys::Result<void> result;
  for (const auto& file : files) {
    if (fdatasync(file->fd.get()) != 0 && result.ok()) result = sys::LastError("fdatasync(journal)");
  }
  if (name && fsync(options_.journal_fd) != 0 && result.ok()) result = sys::LastError("fsync(journal)");
  if (result.ok()) {
    synced_seq_.store(target, std::memory_order_release);
    return {};
  }
  const std::lock_guard lock(mutex_);
  files.pop_back();
  unsynced_.insert(unsynced_.begin(), files.begin(), files.end());
  name_unsynced_ = name_unsynced_ || name;
  return result;
}

sys::Result<void> Writer::Close() {
  {
    Batch none;
    if (auto appended = Append(&none); !appended.ok()) return appended.error();
  }
  const std::lock_guard lock(mutex_);
  Batch seal;
  seal.Add(SealRecord{});
  seal.Finish(last_seq_.load(std::memory_order_relaxed) + 1);
  if (auto done = Write(seal); !done.ok()) return done;
  broken_ = EBADF;  // nothing may follow
  if (ftruncate(file_->fd.get(), static_cast<off_t>(file_->end)) != 0) return sys::LastError("ftruncate(journal)");
  reserve_.Reset();
  if (unlinkat(options_.journal_fd, kReserveName, 0) != 0 && errno != ENOENT)
    return sys::LastError("unlinkat(reserve)");
  return {};
}

}  // namespace journal
