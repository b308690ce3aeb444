// Lookups, forgets, renames and readers at the same time: for the thread and address sanitizers, and for what must hold
// anyway.
#include <atomic>
#include <thread>
#include <vector>

#include "inode/test_folder.h"

namespace {

using inode::Inode;
using inode::Ref;
using inode::Table;
using inode::TestFolder;

constexpr int kRounds = 3000;
constexpr size_t kRoots = 2;

void Run(std::vector<std::thread> threads) {
  for (std::thread& thread : threads) thread.join();
}

// As the kernel does: each lookup is forgotten some time later, by any thread.
void LookupsAndForgets(bool paths) {
  TestFolder t(paths, 32);
  for (int i = 0; i < 8; i++) {
    t.MakeDir("d" + std::to_string(i));
    t.WriteFile("d" + std::to_string(i) + "/f", std::to_string(i));
  }
  std::atomic<int> wrong{0};
  auto work = [&](unsigned seed) {
    for (int round = 0; round < kRounds; round++) {
      std::string number = std::to_string(rand_r(&seed) % 8);
      Ref file = t.Look("d" + number + "/f");
      if (!file || t.Read(*file) != number) wrong++;
      if (!file) continue;
      t.table->AddLookup(*file);
      uint64_t nodeid = file->nodeid();
      {
        file->Lock();
        file->touch().object++;
        file->Unlock();
      }
      if (round % 3 == 0) t.table->DropDescriptors(*file);
      file = Ref();
      Ref again = t.table->Find(nodeid);
      if (!again) wrong++;
      record::Subject* parent = again->parent();
      if (parent == nullptr || parent->name() != "d" + number || again->name() != "f") wrong++;
      if (round % 2 == 0) again = Ref();
      t.table->Forget(nodeid, 1);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 4; seed++) threads.emplace_back(work, seed);
  Run(std::move(threads));
  CHECK(wrong == 0);
  CHECK(t.table->size() == kRoots && t.table->descriptors() == 0);
}

// One thread moves a file and the folder it is in to and fro, as rename handlers do; others use them.
void RenamesAndReaders(bool paths) {
  TestFolder t(paths, 32);
  t.MakeDir("a");
  t.WriteFile("a/f", "bytes");
  t.MakeDir("other");
  Ref dir = t.Look("a"), file = t.Look("a/f"), other = t.Look("other");
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  auto move = [&] {
    Ref root = t.table->root();
    for (int round = 0; round < kRounds / 2; round++) {
      auto go = [&](Inode& what, const std::string& from, Inode& to_dir, const std::string& to, const char* name) {
        Table::Moving moving(*t.table);
        t.Move(from, to);
        if (round % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        t.table->Place(what, to_dir, name);
      };
      go(*dir, "a", *root, "b", "b");
      go(*file, "b/f", *other, "other/g", "g");
      go(*dir, "b", *root, "a", "a");
      go(*file, "other/g", *dir, "a/f", "f");
    }
    done = true;
  };
  auto use = [&] {
    while (!done) {
      if (t.ReadAnew(*file) != "bytes") wrong++;
      t.table->DropDescriptors(*dir);
      if (!t.table->DirectoryFd(*dir).ok()) wrong++;
      for (record::Subject* at = file.get(); at != nullptr; at = at->parent()) {
        if (at->name().size() > 5) wrong++;
      }
      // A slot that comes and goes, with the folder it needs.
      struct statx st;
      auto found = t.table->LookUp(*dir, "f", &st);
      if (found.ok() && found.value().get() != file.get()) wrong++;
    }
  };
  std::vector<std::thread> threads;
  threads.emplace_back(move);
  for (int i = 0; i < 3; i++) threads.emplace_back(use);
  Run(std::move(threads));
  CHECK(wrong == 0);
  t.table->Place(*file, *dir, "f");
  dir = other = file = Ref();
  CHECK(t.table->size() == kRoots);
}

// Parents that nobody else needs are given back while others still look at them.
void ParentsGoWhileRead() {
  TestFolder t(false, 32);
  t.WriteFile("f", "bytes");
  Ref file = t.Look("f");
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  auto place = [&] {
    for (int round = 0; round < kRounds; round++) {
      std::string name = "d" + std::to_string(round % 50);
      if (round < 50) t.MakeDir(name);
      // Nothing but the file's place keeps this slot.
      t.table->Place(*file, *t.Look(name), "f");
    }
    done = true;
  };
  auto read = [&] {
    while (!done) {
      Ref mine = file;
      record::Subject* parent = mine->parent();
      std::string name = parent->name();
      if (parent->identity().ino == 0 || (!name.empty() && name[0] != 'd')) wrong++;
      if (parent->parent() != nullptr && parent->parent() != t.table->root().get()) wrong++;
    }
  };
  std::vector<std::thread> threads;
  threads.emplace_back(place);
  for (int i = 0; i < 3; i++) threads.emplace_back(read);
  Run(std::move(threads));
  CHECK(wrong == 0);
  file = Ref();
  CHECK(t.table->size() == kRoots);
}

// Nameless files: each place is told once, whichever thread gives up the last hold.
void NamelessOnce() {
  TestFolder t(false, 32);
  std::atomic<int> told{0};
  t.table->SetOnGone([&](const std::string&, record::ObjectId) { told++; });
  auto work = [&](int thread) {
    for (int round = 0; round < kRounds / 10; round++) {
      std::string name = std::to_string(thread) + "-" + std::to_string(round);
      t.WriteFile(name, "bytes");
      Ref file = t.Look(name);
      t.table->AddLookup(*file);
      uint64_t nodeid = file->nodeid();
      t.table->Displace(*file, *t.table->root(), name, "nameless/" + name, true);
      std::thread forget([&] { t.table->Forget(nodeid, 1); });
      file = Ref();
      forget.join();
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; i++) threads.emplace_back(work, i);
  Run(std::move(threads));
  CHECK(told == 3 * (kRounds / 10) && t.table->size() == kRoots);
}

}  // namespace

int main() {
  for (bool paths : {false, true}) {
    LookupsAndForgets(paths);
    RenamesAndReaders(paths);
  }
  ParentsGoWhileRead();
  NamelessOnce();
  return check::Finish("inode races");
}
