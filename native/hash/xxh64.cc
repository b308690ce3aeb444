#include "hash/xxh64.h"

#include <bit>
#include <cstring>

namespace hash {
namespace {

constexpr uint64_t kPrime1 = 0x9e3779b185ebca87;
constexpr uint64_t kPrime2 = 0xc2b2ae3d27d4eb4f;
constexpr uint64_t kPrime3 = 0x165667b19e3779f9;
constexpr uint64_t kPrime4 = 0x85ebca77c2b2ae63;
constexpr uint64_t kPrime5 = 0x27d4eb2f165667c5;

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

uint64_t Read64(const uint8_t* from) {
  uint64_t value;
  memcpy(&value, from, sizeof value);
  return value;
}

uint32_t Read32(const uint8_t* from) {
  uint32_t value;
  memcpy(&value, from, sizeof value);
  return value;
}

uint64_t Round(uint64_t lane, uint64_t input) { return std::rotl(lane + input * kPrime2, 31) * kPrime1; }

void Stripe(uint64_t lanes[4], const uint8_t* from) {
  for (int i = 0; i < 4; i++) lanes[i] = Round(lanes[i], Read64(from + 8 * i));
}

}  // namespace

Xxh64::Xxh64(uint64_t seed) : lanes_{seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1}, seed_(seed) {}

void Xxh64::Update(const void* data, size_t size) {
  if (size == 0) return;
  const auto* bytes = static_cast<const uint8_t*>(data);
  total_ += size;
  if (pending_bytes_ > 0) {
    const size_t missing = kStripeBytes - pending_bytes_;
    if (size < missing) {
      memcpy(pending_ + pending_bytes_, bytes, size);
      pending_bytes_ += size;
      return;
    }
    memcpy(pending_ + pending_bytes_, bytes, missing);
    Stripe(lanes_, pending_);
    bytes += missing;
    size -= missing;
    pending_bytes_ = 0;
  }
  while (size >= kStripeBytes) {
    Stripe(lanes_, bytes);
    bytes += kStripeBytes;
    size -= kStripeBytes;
  }
  memcpy(pending_, bytes, size);
  pending_bytes_ = size;
}

uint64_t Xxh64::Digest() const {
  uint64_t h;
  if (total_ >= kStripeBytes) {
    h = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) + std::rotl(lanes_[3], 18);
    for (uint64_t lane : lanes_) h = (h ^ Round(0, lane)) * kPrime1 + kPrime4;
  } else {
    h = seed_ + kPrime5;
  }
  h += total_;
  const uint8_t* at = pending_;
  size_t left = pending_bytes_;
  for (; left >= 8; at += 8, left -= 8) h = std::rotl(h ^ Round(0, Read64(at)), 27) * kPrime1 + kPrime4;
  if (left >= 4) {
    h = std::rotl(h ^ (Read32(at) * kPrime1), 23) * kPrime2 + kPrime3;
    at += 4;
    left -= 4;
  }
  for (; left > 0; at++, left--) h = std::rotl(h ^ (*at * kPrime5), 11) * kPrime1;
  h = (h ^ (h >> 33)) * kPrime2;
  h = (h ^ (h >> 29)) * kPrime3;
  return h ^ (h >> 32);
}

uint64_t XxHash64(const void* data, size_t size, uint64_t seed) {
  Xxh64 state(seed);
  state.Update(data, size);
  return state.Digest();
}

}  // namespace hash
