// Where inodes were last seen: parent and name, the other names of a file with several links, links below the store.
#include <algorithm>

#include "inode/table.h"

namespace inode {
namespace {

// Other names that are remembered of one file. They are only used when the newest name fails, and checked then.
constexpr size_t kMaxOthers = 4;

}  // namespace

void Table::Place(Inode& inode, Inode& dir, std::string_view name) {
  // A link leaves the place until now as good as it was, a rename doesn't: looking is cheap, its directory was just
  // used.
  bool keep_other = false;
  if (!inode.is_directory()) {
    Step until_now = NewestPlace(inode);
    const bool same = until_now.dir.get() == &dir && until_now.name == name;
    keep_other = until_now.dir && !same && IsAt(until_now, inode);
  }
  Leftovers leftovers;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    SetPlace(inode, dir, name, keep_other, &leftovers);
  }
  Settle(std::move(leftovers));
}

void Table::Displace(Inode& inode, Inode& dir, std::string_view name, const std::string& store_place, bool nameless) {
  Leftovers leftovers;
  bool look_elsewhere = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!store_place.empty()) {
      Extras& extras = ExtrasOf(inode);
      extras.store_place = store_place;
      auto known = std::find(extras.nameless.begin(), extras.nameless.end(), store_place);
      if (nameless && known == extras.nameless.end()) extras.nameless.push_back(store_place);
    }
    if (inode.parent_ == &dir && inode.name_view() == name) {
      inode.SetName("");
      Unhold(std::exchange(inode.parent_, nullptr), &leftovers);
      look_elsewhere = inode.has_extras_ && !extras_[inode.nodeid_].others.empty();
    } else {
      DropOther(inode, dir, name, &leftovers);
    }
  }
  Settle(std::move(leftovers));
  if (!look_elsewhere) return;
  // A file with several links: the newest of the others that is still good is its place now.
  for (Step& other : PlacesOf(inode)) {
    if (!other.dir) continue;
    if (IsAt(other, inode)) {
      Place(inode, *other.dir, other.name);
      return;
    }
    Leftovers stale;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      DropOther(inode, *other.dir, other.name, &stale);
    }
    Settle(std::move(stale));
  }
}

void Table::SetPlace(Inode& inode, Inode& dir, std::string_view name, bool keep_other, Leftovers* leftovers) {
  if (inode.HasFlag(Inode::kPermanent) || &inode == &dir) return;
  if (inode.parent_ == &dir && inode.name_view() == name) return;
  if (inode.is_directory() && inode.holds_ > 0) CutCycle(inode, dir, leftovers);
  DropOther(inode, dir, name, leftovers);
  Inode* parent = std::exchange(inode.parent_, nullptr);
  if (parent != nullptr && keep_other) AddOther(inode, *parent, inode.name_view(), leftovers);
  dir.holds_++;
  inode.parent_ = &dir;
  inode.SetName(name);
  Unhold(parent, leftovers);
}

// Remembers dir/name after the others; of files only.
void Table::AddOther(Inode& inode, Inode& dir, std::string_view name, Leftovers* leftovers) {
  if (inode.is_directory() || (inode.parent_ == &dir && inode.name_view() == name)) return;
  dir.holds_++;
  DropOther(inode, dir, name, leftovers);
  auto& others = ExtrasOf(inode).others;
  others.push_back(Entry{&dir, std::string(name)});
  if (others.size() <= kMaxOthers) return;
  Inode* oldest = others.front().dir;
  others.erase(others.begin());
  Unhold(oldest, leftovers);
}

// Somebody behind the mount may have moved a directory into what we still believe to be below it. Parents must stay a
// tree, so the stale link is cut: that directory's place is unknown until it is looked up again.
void Table::CutCycle(const Inode& inode, Inode& dir, Leftovers* leftovers) {
  Inode* at = &dir;
  while (at->parent_ != nullptr && at->parent_ != &inode) at = at->parent_;
  if (at->parent_ == nullptr) return;
  Inode* parent = std::exchange(at->parent_, nullptr);
  at->SetName("");
  Unhold(parent, leftovers);
}

void Table::DropOther(Inode& inode, const Inode& dir, std::string_view name, Leftovers* leftovers) {
  if (!inode.has_extras_) return;
  auto& others = extras_[inode.nodeid_].others;
  auto found = std::find_if(others.begin(), others.end(),
                            [&](const Entry& other) { return other.dir == &dir && other.name == name; });
  if (found == others.end()) return;
  Inode* held = found->dir;
  others.erase(found);
  TrimExtras(inode);
  Unhold(held, leftovers);
}

// Takes back what a place held; the directory may go by that. Not for a place of the inode that is itself about to go.
void Table::Unhold(Inode* dir, Leftovers* leftovers) {
  if (dir == nullptr) return;
  dir->holds_--;
  Reap({dir}, leftovers);
}

Table::Extras& Table::ExtrasOf(Inode& inode) {
  inode.has_extras_ = true;
  return extras_[inode.nodeid_];
}

void Table::TrimExtras(Inode& inode) {
  if (!inode.has_extras_) return;
  const Extras& extras = extras_[inode.nodeid_];
  if (!extras.others.empty() || !extras.store_place.empty() || !extras.lent.empty() || extras.pin) return;
  extras_.erase(inode.nodeid_);  // `nameless` is never without `store_place`
  inode.has_extras_ = false;
}

record::Subject* Table::LendParent(Inode& inode) {
  std::lock_guard<std::mutex> lock(mutex_);
  Inode* parent = inode.parent_;
  if (parent == nullptr || parent == inode.lent_) return parent;
  if (inode.lent_ == nullptr) {
    inode.lent_ = parent;
  } else {
    auto& lent = ExtrasOf(inode).lent;
    if (std::find(lent.begin(), lent.end(), parent) != lent.end()) return parent;
    lent.push_back(parent);
  }
  parent->refs_.fetch_add(1, std::memory_order_relaxed);
  return parent;
}

std::string Table::NameOf(Inode& inode) {
  std::lock_guard<std::mutex> lock(mutex_);
  return std::string(inode.name_view());
}

Table::Step Table::NewestPlace(Inode& inode) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (inode.parent_ == nullptr) return {};
  return {Ref(*inode.parent_), std::string(inode.name_view())};
}

std::vector<Table::Step> Table::PlacesOf(Inode& inode) {
  std::vector<Step> places;
  std::lock_guard<std::mutex> lock(mutex_);
  if (inode.parent_ != nullptr) places.push_back({Ref(*inode.parent_), std::string(inode.name_view())});
  if (!inode.has_extras_) return places;
  const Extras& extras = extras_[inode.nodeid_];
  for (auto other = extras.others.rbegin(); other != extras.others.rend(); ++other) {
    places.push_back({Ref(*other->dir), other->name});
  }
  if (!extras.store_place.empty()) places.push_back({Ref(), extras.store_place});
  for (auto place = extras.nameless.rbegin(); place != extras.nameless.rend(); ++place) {
    if (*place != extras.store_place) places.push_back({Ref(), *place});
  }
  return places;
}

// --- descriptors that are kept for good ---

void Table::Pin(Inode& inode, sys::UniqueFd path_fd) {
  auto pin =
      std::make_shared<sys::UniqueFd>(std::move(path_fd));  // closed here, without the mutex, where it isn't kept
  std::lock_guard<std::mutex> lock(mutex_);
  if (inode.HasFlag(Inode::kPinned) || pins_ >= max_pins_ || !pin->valid()) return;
  ExtrasOf(inode).pin = std::move(pin);
  pins_++;
  inode.SetFlag(Inode::kPinned);
}

void Table::Unpin(Inode& inode) {
  std::shared_ptr<sys::UniqueFd> pin;
  std::lock_guard<std::mutex> lock(mutex_);
  if (!inode.HasFlag(Inode::kPinned)) return;
  pin = std::move(extras_[inode.nodeid_].pin);
  pins_--;
  inode.ClearFlag(Inode::kPinned);
  TrimExtras(inode);
}

}  // namespace inode
