// What the recorder's tests stand on: a project folder and a store folder on temporary file systems, and Subjects over
// paths in it. Only for *_test.cc.
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "control/check.h"
#include "journal/dump.h"
#include "journal/reader.h"
#include "journal/records.h"
#include "record/recorder.h"

namespace test {

using record::Recorder;
using record::Toucher;

// A new folder below `under`, removed with all in it (and unmounted first) at the end.
class TempFolder {
 public:
  explicit TempFolder(const char* under = "/tmp") {
    std::string path = std::string(under) + "/turnfs-test-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) {
      perror("mkdtemp");
      exit(1);
    }
    path_ = path;
  }
  ~TempFolder() {
    for (auto at = mounted_.rbegin(); at != mounted_.rend(); ++at) umount2(at->c_str(), MNT_DETACH);
    const std::string command = "rm -rf --one-file-system '" + path_ + "'";
    if (system(command.c_str()) != 0) check::failures++;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  // A tmpfs of `size` ("1m") at `name`. False (and a failed check): no privileges.
  bool MountTmpfs(const std::string& name, const char* size) {
    const std::string at = *this / name;
    mkdir(at.c_str(), 0700);
    const bool mounted = mount("none", at.c_str(), "tmpfs", 0, (std::string("mode=700,size=") + size).c_str()) == 0;
    if (!mounted) fprintf(stderr, "a tmpfs can't be mounted (%s): this test needs root\n", strerror(errno));
    CHECK(mounted);
    if (mounted) mounted_.push_back(at);
    return mounted;
  }
  // A file system with reflinks at `name`, on an image in memory.
  bool MountReflinks(const std::string& name) {
    const std::string at = *this / name;
    mkdir(at.c_str(), 0700);
    if (!MountTmpfs("image-of-" + name, "1g")) return false;
    const std::string image = *this / ("image-of-" + name) + "/disk";
    const std::string command =
        "truncate -s 512M " + image + " && mkfs.xfs -q -m reflink=1 " + image + " && mount -o loop " + image + " " + at;
    const bool mounted = system(command.c_str()) == 0;
    if (!mounted) fprintf(stderr, "no xfs image: this test needs root, xfsprogs and loop devices\n");
    CHECK(mounted);
    if (mounted) mounted_.push_back(at);
    return mounted;
  }

 private:
  std::string path_;
  std::vector<std::string> mounted_;
};

inline void WriteFile(const std::string& path, const std::string& bytes, uint64_t offset = 0) {
  const sys::UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  size_t done = 0;
  while (fd.valid() && done < bytes.size()) {
    const ssize_t n = pwrite(fd.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  CHECK(fd.valid() && done == bytes.size());
}

inline std::string ReadBytes(const std::string& path, uint64_t offset = 0, uint64_t length = UINT64_MAX) {
  const sys::UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string bytes;
  char buffer[65536];
  while (fd.valid() && bytes.size() < length) {
    const ssize_t n = pread(fd.get(), buffer, std::min<uint64_t>(sizeof buffer, length - bytes.size()),
                            static_cast<off_t>(offset + bytes.size()));
    if (n <= 0) break;
    bytes.append(buffer, static_cast<size_t>(n));
  }
  return bytes;
}

// Bytes that look like nothing else: `seed` makes contents different.
inline std::string Noise(size_t size, uint64_t seed) {
  std::string bytes(size, '\0');
  uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;
  for (char& byte : bytes) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    byte = static_cast<char>(state >> 32);
  }
  return bytes;
}

inline bool Exists(const std::string& path) {
  struct stat st;
  return lstat(path.c_str(), &st) == 0;
}

inline uint64_t InodeOf(const std::string& path) {
  struct stat st;
  return lstat(path.c_str(), &st) == 0 ? st.st_ino : 0;
}

class World;

// One inode, found by the path it was first seen at.
class FakeSubject final : public record::Subject {
 public:
  FakeSubject(World* world, FakeSubject* parent, std::string name, record::Identity identity, sys::UniqueFd pin)
      : world_(world), parent_(parent), name_(std::move(name)), identity_(std::move(identity)), pin_(std::move(pin)) {}

  record::TouchState& touch() override { return state_; }
  void Lock() override { mutex_.lock(); }
  void Unlock() override { mutex_.unlock(); }
  record::Identity identity() override { return identity_; }
  sys::Result<sys::UniqueFd> OpenPath() override {
    if (path_error != 0) return sys::Error{path_error, "OpenPath"};
    return Reopen(O_PATH);
  }
  sys::Result<sys::UniqueFd> OpenRead() override {
    if (read_error != 0) return sys::Error{read_error, "OpenRead"};
    return Reopen(O_RDONLY | O_NOATIME);
  }
  record::Subject* parent() override { return parent_; }
  std::string name() override { return name_; }

  int read_error = 0, path_error = 0;  // what the opens fail with

 private:
  sys::Result<sys::UniqueFd> Reopen(int flags) {
    // A symlink's O_PATH descriptor can't be opened again by way of /proc; a copy of it serves.
    sys::UniqueFd fd(flags == O_PATH
                         ? fcntl(pin_.get(), F_DUPFD_CLOEXEC, 0)
                         : open(("/proc/self/fd/" + std::to_string(pin_.get())).c_str(), flags | O_CLOEXEC));
    if (!fd.valid()) return sys::LastError("open");
    return fd;
  }

  World* const world_;
  FakeSubject* const parent_;
  const std::string name_;
  const record::Identity identity_;
  const sys::UniqueFd pin_;
  record::TouchState state_;
  std::mutex mutex_;
};

// A journal's records, decoded.
struct Journal {
  std::vector<std::unique_ptr<journal::Contents>> files;
  std::vector<journal::Frame> frames;

  template <typename Record>
  std::vector<Record> All() const {
    std::vector<Record> records;
    for (const journal::Frame& frame : frames) {
      if (frame.type != Record::kType) continue;
      Record record;
      CHECK(journal::Decode(frame.payload, &record));
      records.push_back(std::move(record));
    }
    return records;
  }
  // How many records of a type stand before the first that `is` accepts.
  size_t Count(journal::RecordType type) const {
    size_t count = 0;
    for (const journal::Frame& frame : frames) count += frame.type == type;
    return count;
  }
  void Print() const {
    for (const journal::Frame& frame : frames) printf("%s\n", journal::Describe(frame).c_str());
  }
};

inline Journal ReadJournal(const std::string& store) {
  Journal journal;
  // In order of seq: names are numbers of a fixed length.
  FILE* list = popen(("ls '" + store + "/journal'").c_str(), "r");
  char name[256];
  uint64_t seq = 0;
  while (list != nullptr && fgets(name, sizeof name, list) != nullptr) {
    name[strcspn(name, "\n")] = '\0';
    if (strstr(name, ".log") == nullptr) continue;
    auto contents = journal::ReadFile(AT_FDCWD, (store + "/journal/" + name).c_str());
    CHECK(contents.ok());
    if (!contents.ok()) continue;
    auto& file = journal.files.emplace_back(std::make_unique<journal::Contents>(std::move(contents.value())));
    journal::Parse(file.get());
    CHECK(file->dropped_bytes == 0);
    for (const journal::Frame& frame : file->frames) {
      CHECK(seq == 0 || frame.seq == seq + 1);
      seq = frame.seq;
      journal.frames.push_back(frame);
    }
  }
  if (list != nullptr) pclose(list);
  return journal;
}

class World {
 public:
  World(const std::string& project, const std::string& store) : project_(project), store_(store) {
    mkdir(project.c_str(), 0755);
    mkdir(store.c_str(), 0700);
    options.project_fd = project_fd_.get() >= 0 ? project_fd_.get() : -1;
    project_fd_.Reset(open(project.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    store_fd_.Reset(open(store.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    CHECK(project_fd_.valid() && store_fd_.valid());
    options.project_fd = project_fd_.get();
    options.store_fd = store_fd_.get();
    struct stat st;
    CHECK(fstat(project_fd_.get(), &st) == 0);
    project_dev_ = st.st_dev;
  }
  explicit World(const TempFolder& folder) : World(folder / "project", folder / "store") {}
  ~World() {
    if (recorder != nullptr) recorder->Unmounted();
  }

  bool Open(record::SpanStart first = TurnSpan(1)) {
    auto opened = Recorder::Open(options, first);
    if (!opened.ok()) fprintf(stderr, "Open: %s: %s\n", opened.error().where, strerror(opened.error().number));
    CHECK(opened.ok());
    if (opened.ok()) recorder = std::move(opened.value());
    return recorder != nullptr;
  }
  // Ends the session (in order, or as a kill would) and begins another with the numbers where they were.
  bool Reopen(bool killed = false) {
    options.next_object = recorder->next_object();
    options.next_seq = recorder->position().seq + 1 + (killed ? 0 : 2);  // Unmount and Seal
    options.next_pack = recorder->next_pack();
    options.epoch = recorder->position().epoch + 1;
    if (!killed) recorder->Unmounted();
    recorder.reset();
    project_paths_.clear();
    store_paths_.clear();
    subjects_.clear();
    return Open();
  }

  static record::SpanStart TurnSpan(record::Lane lane) {
    record::SpanStart span;
    span.kind = lane == 0 ? journal::SpanKind::kBetween : journal::SpanKind::kTurn;
    span.lane = lane;
    return span;
  }
  void Advance(record::Lane lane) {
    auto advanced = recorder->Advance(TurnSpan(lane));
    CHECK(advanced.ok());
  }

  // The subject of a path below the project ("" is the project).
  FakeSubject& At(const std::string& path) { return Find(project_fd_.get(), path, &ByPath(false)); }
  FakeSubject& InStore(const std::string& path) { return Find(store_fd_.get(), path, &ByPath(true)); }
  // Paths may mean other inodes now.
  void ForgetPath(const std::string& path) { ByPath(false).erase(path); }

  std::string Path(const std::string& path) const { return project_ + "/" + path; }
  std::string StorePath(const std::string& path) const { return store_ + "/" + path; }
  int project_fd() const { return project_fd_.get(); }
  int store_fd() const { return store_fd_.get(); }
  Journal Records() const { return ReadJournal(store_); }

  // The bytes of an extent, read from the store.
  std::string Stored(const journal::Extent& extent) const {
    char name[64];
    if (extent.kind == journal::ExtentKind::kHole) return std::string(extent.length, '\0');
    if (extent.kind == journal::ExtentKind::kPack) {
      snprintf(name, sizeof name, "packs/%08llx.pack", static_cast<unsigned long long>(extent.file));
    } else {
      snprintf(name, sizeof name, "blobs/%016llx", static_cast<unsigned long long>(extent.file));
    }
    return ReadBytes(StorePath(name), extent.file_offset, extent.length);
  }
  std::string StoredWhole(const journal::DataRecord& record) const {
    std::string bytes;
    for (const journal::Extent& extent : record.extents) {
      CHECK(extent.offset == bytes.size());
      bytes += Stored(extent);
    }
    return bytes;
  }

  record::Options options;
  std::unique_ptr<Recorder> recorder;
  Toucher me{static_cast<uint32_t>(gettid())};

 private:
  using Paths = std::map<std::string, FakeSubject*>;
  Paths& ByPath(bool store) { return store ? store_paths_ : project_paths_; }

  FakeSubject& Find(int root, const std::string& path, Paths* paths) {
    if (auto known = paths->find(path); known != paths->end()) return *known->second;
    FakeSubject* parent = nullptr;
    std::string name;
    if (!path.empty()) {
      const size_t slash = path.rfind('/');
      parent = &Find(root, slash == std::string::npos ? "" : path.substr(0, slash), paths);
      name = slash == std::string::npos ? path : path.substr(slash + 1);
    }
    sys::UniqueFd pin(openat(root, path.empty() ? "." : path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct statx st {};
    CHECK(pin.valid());
    CHECK(statx(pin.get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &st) == 0);
    struct stat plain;
    CHECK(fstat(pin.get(), &plain) == 0);
    record::Identity identity;
    identity.dev = plain.st_dev == project_dev_ ? 0 : plain.st_dev;
    identity.ino = plain.st_ino;
    identity.birth_ns = st.stx_btime.tv_sec * 1000000000 + st.stx_btime.tv_nsec;
    identity.mode = plain.st_mode;
    identity.handle = "handle";
    // One subject per inode, wherever it is seen.
    for (const auto& known : subjects_) {
      const record::Identity other = known->identity();
      if (other.ino == identity.ino && other.dev == identity.dev && other.birth_ns == identity.birth_ns) {
        return *paths->emplace(path, known.get()).first->second;
      }
    }
    subjects_.push_back(std::make_unique<FakeSubject>(this, parent, name, std::move(identity), std::move(pin)));
    return *paths->emplace(path, subjects_.back().get()).first->second;
  }

  std::string project_, store_;
  sys::UniqueFd project_fd_, store_fd_;
  uint64_t project_dev_ = 0;
  std::vector<std::unique_ptr<FakeSubject>> subjects_;
  Paths project_paths_, store_paths_;
};

}  // namespace test
