// Packs: many writers at once, none of whom sees another's bytes, and a new file when one is full.
#include <thread>

#include "pack/blobs.h"
#include "pack/writer.h"
#include "record/test_world.h"

namespace {

using test::TempFolder;

std::string PackPath(const TempFolder& folder, uint64_t number) {
  char name[32];
  snprintf(name, sizeof name, "%08llx.pack", static_cast<unsigned long long>(number));
  return folder / name;
}

void BytesAreWhereTheyWereSaidToBe() {
  TempFolder folder;
  const sys::UniqueFd dir(open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  test::WriteFile(PackPath(folder, 6), "left by a killed engine");
  pack::Numbers numbers(5);
  pack::Writer packs(dir.get(), 0x1122334455667788, &numbers, 100000);
  struct Written {
    uint64_t number, offset;
    std::string bytes;
  };
  std::mutex mutex;
  std::vector<Written> all;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; i++) {
        const std::string bytes =
            test::Noise(static_cast<size_t>(1 + (t * 100 + i) * 37 % 5000), static_cast<uint64_t>(t * 1000 + i));
        auto place = packs.Reserve(bytes.size());
        CHECK(place.ok());
        const size_t half = bytes.size() / 2;
        CHECK(packs.Write(place.value(), half, bytes.data() + half, bytes.size() - half).ok());
        CHECK(packs.Write(place.value(), 0, bytes.data(), half).ok());
        if (i % 50 == 0) CHECK(packs.Sync().ok());
        const std::lock_guard lock(mutex);
        all.push_back({place.value().file->number, place.value().offset, bytes});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  uint64_t last = 0;
  for (const Written& written : all) {
    CHECK(written.number != 6 && written.offset >= journal::kPackHeaderBytes);
    CHECK(test::ReadBytes(PackPath(folder, written.number), written.offset, written.bytes.size()) == written.bytes);
    last = std::max(last, written.number);
  }
  CHECK(last > 8 && numbers.next() == last + 1);
  CHECK(test::ReadBytes(PackPath(folder, 6)) == "left by a killed engine");
  const std::string header = test::ReadBytes(PackPath(folder, 5), 0, 16);
  CHECK(header == std::string("TFPK\x01\0\0\0\x88\x77\x66\x55\x44\x33\x22\x11", 16));
  struct stat st;
  CHECK(stat(PackPath(folder, 5).c_str(), &st) == 0 && st.st_size <= 100000 && (st.st_mode & 07777) == 0600);
  CHECK(packs.Sync().ok() && packs.Sync().ok());
}

void WhatIsGivenBackIsUsedAgain() {
  TempFolder folder;
  const sys::UniqueFd dir(open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  pack::Numbers numbers(1);
  pack::Writer packs(dir.get(), 1, &numbers, 1000);
  auto first = packs.Reserve(100);
  packs.GiveBack(first.value(), 40);
  auto second = packs.Reserve(100);
  CHECK(second.value().offset == 16 + 40);
  packs.GiveBack(first.value(), 0);  // no longer the last: stays
  CHECK(packs.Reserve(10).value().offset == 16 + 140);
  // One larger than a pack gets a pack of its own.
  CHECK(packs.Reserve(5000).value().file->number == 2 && packs.Reserve(1).value().file->number == 3);
}

}  // namespace

int main() {
  BytesAreWhereTheyWereSaidToBe();
  WhatIsGivenBackIsUsedAgain();
  return check::Finish("pack/pack_test");
}
