#include "record/stored_links.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>

#include "sys/fd.h"

namespace record {
namespace {

struct CloseDir {
  void operator()(DIR* dir) const { closedir(dir); }
};
using DirPtr = std::unique_ptr<DIR, CloseDir>;

sys::Result<DirPtr> OpenDir(int dirfd, const char* path) {
  sys::UniqueFd fd(openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return sys::LastError("openat(store)");
  DirPtr dir(fdopendir(fd.get()));
  if (dir == nullptr) return sys::LastError("fdopendir");
  fd.Release();
  return dir;
}

bool IsDot(const char* name) { return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0')); }

// What an earlier engine could not clear away. Nobody can have it open any more.
sys::Result<void> EmptyNameless(int store_fd) {
  auto shards = OpenDir(store_fd, "nameless");
  if (!shards.ok()) return shards.error();
  while (const dirent* shard = readdir(shards.value().get())) {
    if (IsDot(shard->d_name)) continue;
    auto files = OpenDir(dirfd(shards.value().get()), shard->d_name);
    if (!files.ok()) return files.error();
    while (const dirent* file = readdir(files.value().get())) {
      if (IsDot(file->d_name)) continue;
      if (unlinkat(dirfd(files.value().get()), file->d_name, 0) != 0) return sys::LastError("unlinkat(nameless)");
    }
  }
  return {};
}

// The inode number that a place's last name begins with.
std::optional<uint64_t> InodeOf(std::string_view place) {
  if (!place.starts_with("preserved/") && !place.starts_with("nameless/")) return std::nullopt;
  const std::string name(place.substr(place.rfind('/') + 1));
  char* end = nullptr;
  const uint64_t ino = strtoull(name.c_str(), &end, 16);
  if (end == name.c_str() || *end != '.') return std::nullopt;
  return ino;
}

}  // namespace

sys::Result<void> StoredLinks::Prepare(int store_fd) {
  for (const char* folder : {"preserved", "nameless"}) {
    if (mkdirat(store_fd, folder, 0700) != 0 && errno != EEXIST) return sys::LastError("mkdirat(store)");
  }
  // Made in order, so the last one says that all are there.
  struct stat st;
  for (unsigned shard = 0; shard < 256 && fstatat(store_fd, "preserved/ff", &st, AT_SYMLINK_NOFOLLOW) != 0; shard++) {
    char path[32];
    snprintf(path, sizeof path, "preserved/%02x", shard);
    if (mkdirat(store_fd, path, 0700) != 0 && errno != EEXIST) return sys::LastError("mkdirat(store)");
  }
  return EmptyNameless(store_fd);
}

std::string StoredLinks::PlaceFor(bool nameless, uint64_t ino, uint64_t object, uint64_t number) {
  char place[96];
  snprintf(place, sizeof place, "%s/%02x/%" PRIx64 ".%" PRIx64 ".%" PRIx64, nameless ? "nameless" : "preserved",
           static_cast<unsigned>(ino & 0xff), ino, object, number);
  return place;
}

void StoredLinks::Load(size_t number, Shard* shard) {
  if (shard->loaded) return;
  shard->loaded = true;
  char path[32];
  snprintf(path, sizeof path, "preserved/%02zx", number);
  auto dir = OpenDir(store_fd_, path);
  if (!dir.ok()) return;  // not there: nothing in it
  while (const dirent* entry = readdir(dir.value().get())) {
    if (IsDot(entry->d_name)) continue;
    Link link;
    link.place = std::string(path) + "/" + entry->d_name;
    if (const auto ino = InodeOf(link.place)) shard->links[*ino].push_back(std::move(link));
  }
}

bool StoredLinks::Matches(Link* link, uint64_t dev, uint64_t ino, bool* gone) const {
  *gone = false;
  if (!link->dev_known) {
    struct stat st;
    if (fstatat(store_fd_, link->place.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0 || st.st_ino != ino) {
      *gone = true;
      return false;
    }
    link->dev = st.st_dev == project_dev_ ? 0 : st.st_dev;
    link->dev_known = true;
  }
  return link->dev == dev;
}

void StoredLinks::Add(uint64_t dev, uint64_t ino, const std::string& place) {
  const auto named = InodeOf(place);
  if (!named) return;  // elsewhere in the store: a staging folder hides no links
  Shard& shard = shards_[*named & 0xff];
  const std::lock_guard lock(shard.mutex);
  Load(*named & 0xff, &shard);
  std::vector<Link>& links = shard.links[*named];
  std::erase_if(links, [&](const Link& link) { return link.place == place; });
  if (*named == ino) links.push_back(Link{place, dev, true});
}

void StoredLinks::Remove(const std::string& place) {
  const auto named = InodeOf(place);
  if (!named) return;
  Shard& shard = shards_[*named & 0xff];
  const std::lock_guard lock(shard.mutex);
  Load(*named & 0xff, &shard);
  const auto at = shard.links.find(*named);
  if (at == shard.links.end()) return;
  std::erase_if(at->second, [&](const Link& link) { return link.place == place; });
  if (at->second.empty()) shard.links.erase(at);
}

uint32_t StoredLinks::Count(uint64_t dev, uint64_t ino) {
  Shard& shard = shards_[ino & 0xff];
  const std::lock_guard lock(shard.mutex);
  Load(ino & 0xff, &shard);
  const auto at = shard.links.find(ino);
  if (at == shard.links.end()) return 0;
  uint32_t count = 0;
  std::erase_if(at->second, [&](Link& link) {
    bool gone;
    if (Matches(&link, dev, ino, &gone)) count++;
    return gone;
  });
  return count;
}

std::string StoredLinks::Place(uint64_t dev, uint64_t ino) {
  Shard& shard = shards_[ino & 0xff];
  const std::lock_guard lock(shard.mutex);
  Load(ino & 0xff, &shard);
  const auto at = shard.links.find(ino);
  if (at == shard.links.end()) return "";
  for (Link& link : at->second) {
    bool gone;
    if (Matches(&link, dev, ino, &gone)) return link.place;
  }
  return "";
}

}  // namespace record
