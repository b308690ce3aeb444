// Which inodes have links in the store: `preserved/<ino & 0xff>/<ino>.<object>.<number>` and the same below
// `nameless/`, all numbers in hex. A shard of preserved/ is read when something in it is first asked for, so that links
// made by earlier engines are known and a mount reads nothing. nameless/ is empty when an engine starts.
#pragma once

#include <array>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "sys/result.h"

namespace record {

class StoredLinks {
 public:
  // `project_dev` is what device 0 means in identities.
  StoredLinks(int store_fd, uint64_t project_dev) : store_fd_(store_fd), project_dev_(project_dev) {}

  // Makes the two folders, and all shards of preserved/ (later there may be no space for them); empties nameless/.
  static sys::Result<void> Prepare(int store_fd);
  static std::string PlaceFor(bool nameless, uint64_t ino, uint64_t object, uint64_t number);

  void Add(uint64_t dev, uint64_t ino, const std::string& place);
  void Remove(const std::string& place);
  uint32_t Count(uint64_t dev, uint64_t ino);
  std::string Place(uint64_t dev, uint64_t ino);

 private:
  struct Link {
    std::string place;
    uint64_t dev = 0;
    bool dev_known = false;  // false: read from the folder, nobody has looked at it yet
  };
  struct Shard {
    std::mutex mutex;
    bool loaded = false;
    std::unordered_map<uint64_t, std::vector<Link>> links;  // by inode number
  };

  // Shard's mutex held.
  void Load(size_t number, Shard* shard);
  // Whether the link is one of the inode on `dev`; drops links whose file has gone.
  bool Matches(Link* link, uint64_t dev, uint64_t ino, bool* gone) const;

  const int store_fd_;
  const uint64_t project_dev_;
  std::array<Shard, 256> shards_;
};

}  // namespace record
