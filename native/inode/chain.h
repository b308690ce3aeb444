// A hash table chained through its elements: an element costs its own link and its share of the buckets, nothing else.
// Not locked; does not own the elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace inode {

// `Traits` is a class with: static Element*& Next(Element&); static uint64_t Hash(const Element&) (well mixed in its
// low bits).
template <typename Element, typename Traits>
class Chain {
 public:
  void Insert(Element& element) {
    if (size_ >= buckets_.size()) Grow();
    Link(element);
    size_++;
  }

  // False when it was not in.
  bool Remove(Element& element) {
    Element** at = &BucketOf(Traits::Hash(element));
    while (*at != nullptr && *at != &element) at = &Traits::Next(**at);
    if (*at == nullptr) return false;
    *at = Traits::Next(element);
    Traits::Next(element) = nullptr;
    size_--;
    return true;
  }

  template <typename Matches>
  Element* Find(uint64_t hash, Matches matches) {
    Element* element = BucketOf(hash);
    while (element != nullptr && !matches(*element)) element = Traits::Next(*element);
    return element;
  }

  // `visit` may delete the element.
  template <typename Visit>
  void ForEach(Visit visit) {
    for (Element* element : buckets_) {
      while (element != nullptr) {
        Element* next = Traits::Next(*element);
        visit(*element);
        element = next;
      }
    }
  }

  size_t size() const { return size_; }

 private:
  static constexpr size_t kFirstBuckets = 1024;

  Element*& BucketOf(uint64_t hash) { return buckets_[hash & (buckets_.size() - 1)]; }

  void Link(Element& element) {
    Element*& bucket = BucketOf(Traits::Hash(element));
    Traits::Next(element) = bucket;
    bucket = &element;
  }

  void Grow() {
    std::vector<Element*> old(buckets_.size() * 2, nullptr);
    old.swap(buckets_);
    for (Element* element : old) {
      while (element != nullptr) {
        Element* next = Traits::Next(*element);
        Link(*element);
        element = next;
      }
    }
  }

  std::vector<Element*> buckets_ = std::vector<Element*>(kFirstBuckets, nullptr);
  size_t size_ = 0;
};

}  // namespace inode
