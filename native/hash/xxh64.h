// XXH64, seed 0 by default: with the length it is the content address of captured bytes (FORMAT.md). Not
// collision-proof; whoever takes two contents for equal compares their bytes. After the public specification of the
// algorithm.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hash {

class Xxh64 {
 public:
  explicit Xxh64(uint64_t seed = 0);
  void Update(const void* data, size_t size);
  uint64_t Digest() const;

 private:
  static constexpr size_t kStripeBytes = 32;

  uint64_t lanes_[4];
  uint64_t seed_;
  uint64_t total_ = 0;
  uint8_t pending_[kStripeBytes];  // the beginning of a stripe that is not complete yet
  size_t pending_bytes_ = 0;
};

uint64_t XxHash64(const void* data, size_t size, uint64_t seed = 0);

}  // namespace hash
