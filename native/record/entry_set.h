// Which entries were touched in this span, and by which lane last: (directory object, name) → stamp.
#pragma once

#include <array>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hash/xxh64.h"
#include "record/subject.h"
#include "sys/result.h"

namespace record {

class EntrySet {
 public:
  bool Touched(ObjectId dir, std::string_view name, Stamp stamp) {
    const Key key{dir, name};
    Shard& shard = ShardOf(key);
    const std::lock_guard lock(shard.mutex);
    const auto at = shard.stamps.find(key);
    return at != shard.stamps.end() && at->second == stamp;
  }

  // Calls `capture` unless the entry has this stamp, and gives it the stamp when that went well. Of several at once for
  // one entry one captures and the others wait for it.
  template <typename Capture>
  sys::Result<void> Once(ObjectId dir, std::string_view name, Stamp stamp, Capture capture) {
    const Key key{dir, name};
    Shard& shard = ShardOf(key);
    const std::lock_guard lock(shard.mutex);
    const auto at = shard.stamps.find(key);
    if (at != shard.stamps.end() && at->second == stamp) return {};
    if (sys::Result<void> done = capture(); !done.ok()) return done;
    if (at != shard.stamps.end()) {
      at->second = stamp;
    } else {
      shard.stamps.emplace(OwnedKey{dir, std::string(name)}, stamp);
    }
    return {};
  }

 private:
  struct Key {
    ObjectId dir;
    std::string_view name;
  };
  struct OwnedKey {
    ObjectId dir;
    std::string name;
    operator Key() const { return {dir, name}; }  // NOLINT: implicit by intent
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(const Key& key) const { return hash::XxHash64(key.name.data(), key.name.size(), key.dir); }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const Key& a, const Key& b) const { return a.dir == b.dir && a.name == b.name; }
  };

 public:
  using Stamps = std::unordered_map<OwnedKey, Stamp, Hash, Equal>;

  // Empties the set; the caller frees what it gets, off the way of requests.
  std::vector<Stamps> Clear() {
    std::vector<Stamps> old;
    for (Shard& shard : shards_) {
      const std::lock_guard lock(shard.mutex);
      old.push_back(std::exchange(shard.stamps, Stamps()));
    }
    return old;
  }

 private:
  struct Shard {
    std::mutex mutex;  // held while an entry's record is appended
    Stamps stamps;
  };

  Shard& ShardOf(const Key& key) { return shards_[(Hash()(key) >> 57) % shards_.size()]; }

  std::array<Shard, 16> shards_;
};

}  // namespace record
