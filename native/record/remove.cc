// Files that lose a name move into the store. Names there say what they are: see stored_links.h.
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "record/recorder_impl.h"

namespace record {
namespace {

// These are about the name itself, so unlink would say the same: no other way is tried. (EROFS and EBUSY as well.)
bool IsAboutName(int error) {
  return error == ENOENT || error == ENOTDIR || error == EROFS || error == EBUSY || error == EISDIR ||
         error == ENAMETOOLONG || error == ELOOP || error == ESTALE;
}

int Errno(int result) { return result == 0 ? 0 : errno; }

}  // namespace

std::string RecorderImpl::NewPlace(bool nameless, const Identity& identity, ObjectId object) {
  const uint64_t number = place_number_.fetch_add(1, std::memory_order_relaxed);
  return StoredLinks::PlaceFor(nameless, identity.ino, object, number);
}

// Shards are made when the store is; one that is missing is made again.
template <typename Call>
int RecorderImpl::IntoShard(const std::string& place, Call call) {
  int error = call();
  if (error != ENOENT) return error;
  const std::string shard = place.substr(0, place.rfind('/'));
  if (mkdirat(options_.store_fd, shard.c_str(), 0700) != 0) return error;
  return call();
}

int RecorderImpl::RenameIntoStore(int dirfd, const char* name, const std::string& place) {
  return IntoShard(place, [&] {
    const int error = Errno(renameat2(dirfd, name, options_.store_fd, place.c_str(), RENAME_NOREPLACE));
    // Some filesystems know no flags; the place is new anyhow.
    return error == EINVAL ? Errno(renameat(dirfd, name, options_.store_fd, place.c_str())) : error;
  });
}

int RecorderImpl::LinkIntoStore(int dirfd, const char* name, int flags, const std::string& place) {
  return IntoShard(place, [&] { return Errno(linkat(dirfd, name, options_.store_fd, place.c_str(), flags)); });
}

// Somebody behind the mount may have put another file in the victim's place. On overlayfs nothing can be said: a rename
// copies a lower file up, and that can change its inode number.
bool RecorderImpl::Holds(const std::string& place, const Identity& identity) {
  if (!inodes_stay_) return true;
  struct stat st;
  return fstatat(options_.store_fd, place.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == identity.ino;
}

sys::Result<void> RecorderImpl::AppendPreserved(ObjectId object, const std::string& place, journal::PreservedHow how) {
  journal::Batch batch;
  batch.Add(journal::PreservedRecord{object, place, how});
  if (auto appended = journal_->Append(&batch); !appended.ok()) return Failed(appended.error());
  return {};
}

void RecorderImpl::AppendDropped(ObjectId object, const std::string& place) {
  journal::Batch batch;
  batch.Add(journal::DroppedRecord{object, place});
  AppendOrWait(&batch);
}

Removed RecorderImpl::Stored(bool nameless, const Identity& identity, std::string place) {
  links_->Add(identity.dev, identity.ino, place);
  if (!nameless) counters_.preserved.fetch_add(1, std::memory_order_relaxed);
  heartbeat_.Beat();
  Removed removed;
  removed.nameless = nameless;
  removed.place = std::move(place);
  return removed;
}

template <typename Remove>
sys::Result<Removed> RecorderImpl::WithVictim(Subject& victim, const Hand& hand, Remove remove) {
  while (true) {
    {
      const Locked lock(victim);
      const TouchState& state = victim.touch();
      const bool born = state.born == hand.stamp && !state.shared;
      if (born || state.object != journal::kNoObject) return remove(born);
    }
    if (auto bound = Bind(victim); !bound.ok()) return Failed(bound.error());
  }
}

sys::Result<Removed> RecorderImpl::CopyVictim(Subject& victim, const Hand& hand) {
  Wanted wanted;
  wanted.attrs = true;
  wanted.data = S_ISREG(victim.identity().mode);
  wanted.end = UINT64_MAX;
  const std::string path = PathHint(victim);
  if (auto touched = TouchLocked(victim, journal::kNoObject, path, wanted, hand); !touched.ok()) return touched.error();
  Removed removed;
  if (auto pin = victim.OpenPath(); pin.ok()) removed.pin = std::move(pin.value());
  return removed;
}

sys::Result<Removed> RecorderImpl::RemoveFile(int dirfd, const char* name, Subject& victim, Toucher by) {
  const Hand hand = MakeHand(by);
  return WithVictim(victim, hand, [&](bool born) {
    return born ? RemoveBorn(dirfd, name, victim) : RemovePreserving(dirfd, name, victim, hand);
  });
}

sys::Result<Removed> RecorderImpl::RemoveBorn(int dirfd, const char* name, Subject& victim) {
  const Identity identity = victim.identity();
  std::string place = NewPlace(true, identity, victim.touch().object);
  if (RenameIntoStore(dirfd, name, place) == 0) return Stored(true, identity, std::move(place));
  Removed removed;
  if (auto pin = victim.OpenPath(); pin.ok()) removed.pin = std::move(pin.value());
  if (unlinkat(dirfd, name, 0) != 0) return sys::LastError("unlinkat");
  heartbeat_.Beat();
  return removed;
}

sys::Result<Removed> RecorderImpl::RemovePreserving(int dirfd, const char* name, Subject& victim, const Hand& hand) {
  const Identity identity = victim.identity();
  const ObjectId object = victim.touch().object;
  const std::string place = NewPlace(false, identity, object);
  if (auto told = AppendPreserved(object, place, journal::PreservedHow::kRenamed); !told.ok()) return told.error();
  int error = RenameIntoStore(dirfd, name, place);
  if (error == 0) {
    if (Holds(place, identity)) return Stored(false, identity, place);
    // Not the victim: give it its name back, and let the caller look again.
    if (renameat2(options_.store_fd, place.c_str(), dirfd, name, RENAME_NOREPLACE) == 0) AppendDropped(object, place);
    return Failed(sys::Error{ESTALE, "another file has this name"});
  }
  if (!IsAboutName(error)) error = LinkIntoStore(dirfd, name, 0, place);
  if (error == 0) {
    if (unlinkat(dirfd, name, 0) == 0) return Stored(false, identity, place);
    error = errno;
    unlinkat(options_.store_fd, place.c_str(), 0);
    AppendDropped(object, place);
    return sys::Error{error, "unlinkat"};
  }
  AppendDropped(object, place);
  if (IsAboutName(error)) return sys::Error{error, "renameat2"};
  auto copied = CopyVictim(victim, hand);
  if (!copied.ok()) return copied;
  if (unlinkat(dirfd, name, 0) != 0) return sys::LastError("unlinkat");
  heartbeat_.Beat();
  return copied;
}

sys::Result<Removed> RecorderImpl::SaveReplaced(int dirfd, const char* name, Subject& victim, Toucher by) {
  const Hand hand = MakeHand(by);
  return WithVictim(victim, hand, [&](bool born) -> sys::Result<Removed> {
    const Identity identity = victim.identity();
    const ObjectId object = victim.touch().object;
    std::string place = NewPlace(born, identity, object);
    if (!born) {
      if (auto told = AppendPreserved(object, place, journal::PreservedHow::kLinked); !told.ok()) return told.error();
    }
    const int error = LinkIntoStore(dirfd, name, 0, place);
    if (error == 0 && Holds(place, identity)) return Stored(born, identity, std::move(place));
    if (error == 0) unlinkat(options_.store_fd, place.c_str(), 0);
    if (!born) AppendDropped(object, place);
    if (error == 0) return Failed(sys::Error{ESTALE, "another file has this name"});
    if (IsAboutName(error)) return sys::Error{error, "linkat"};
    if (!born) return CopyVictim(victim, hand);
    Removed removed;
    if (auto pin = victim.OpenPath(); pin.ok()) removed.pin = std::move(pin.value());
    return removed;
  });
}

void RecorderImpl::UnsaveReplaced(const Removed& removed, Subject& victim) {
  if (removed.place.empty()) return;
  unlinkat(options_.store_fd, removed.place.c_str(), 0);
  links_->Remove(removed.place);
  if (removed.nameless) return;
  ObjectId object;
  {
    const Locked lock(victim);
    object = victim.touch().object;
  }
  counters_.preserved.fetch_sub(1, std::memory_order_relaxed);
  AppendDropped(object, removed.place);
}

sys::Result<Removed> RecorderImpl::KeepNameless(int fd, Subject& object) {
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  ObjectId id;
  {
    const Locked lock(object);
    id = object.touch().object;
  }
  const Identity identity = object.identity();
  std::string place = NewPlace(true, identity, id);
  if (LinkIntoStore(AT_FDCWD, path, AT_SYMLINK_FOLLOW, place) == 0) return Stored(true, identity, std::move(place));
  // Another filesystem, or a file that may not get a name any more: only the descriptor leads to it.
  Removed removed;
  removed.pin.Reset(open(path, O_PATH | O_CLOEXEC));
  if (!removed.pin.valid()) return Failed(sys::LastError("open(pin)"));
  return removed;
}

void RecorderImpl::ForgetNameless(const std::string& place, ObjectId object) {
  // One that was given a name again by way of a rename has gone from there already.
  unlinkat(options_.store_fd, place.c_str(), 0);
  links_->Remove(place);
  if (object != journal::kNoObject) AppendDropped(object, place);
}

void RecorderImpl::StoredAt(Subject& object, const std::string& place) {
  auto id = Bind(object);
  if (!id.ok()) {
    Failed(id.error());
    return;
  }
  journal::Batch batch;
  batch.Add(journal::PreservedRecord{id.value(), place, journal::PreservedHow::kRenamed});
  AppendOrWait(&batch);
  const Identity identity = object.identity();
  links_->Add(identity.dev, identity.ino, place);
  heartbeat_.Beat();
}

void RecorderImpl::TakenFrom(Subject& object, const std::string& place) {
  links_->Remove(place);
  auto id = Bind(object);
  if (!id.ok()) {
    Failed(id.error());
    return;
  }
  AppendDropped(id.value(), place);
  heartbeat_.Beat();
}

}  // namespace record
