// How long slots live, what they cost, and that descriptors stay bounded.
#include <malloc.h>
#include <sys/resource.h>

#include <map>
#include <vector>

#include "inode/test_folder.h"

namespace {

using inode::FdRef;
using inode::Ref;
using inode::Table;
using inode::TestFolder;

// The two roots are always known.
constexpr size_t kRoots = 2;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

void SlotsGoWhenNothingNeedsThem() {
  TestFolder t(false);
  t.MakeDir("d");
  t.MakeDir("d/e");
  t.WriteFile("d/e/a", "bytes");
  Ref a = t.Look("d/e/a");
  uint64_t nodeid = a->nodeid();
  CHECK(t.table->size() == kRoots + 3);
  t.table->AddLookup(*a, 3);
  a = Ref();
  CHECK(t.table->size() == kRoots + 3);  // the kernel knows it, and its folders are its place
  t.table->Forget(nodeid, 2);
  CHECK(t.table->Find(nodeid));
  a = t.table->Find(nodeid);
  t.table->Forget(nodeid, 1);
  CHECK(t.table->Find(nodeid));  // a reference is left
  CHECK(t.Read(*a) == "bytes" && t.table->descriptors() > 0);
  Ref copy = a;
  a = Ref();
  CHECK(copy->name() == "a");
  copy = Ref();
  CHECK(!t.table->Find(nodeid) && t.table->size() == kRoots && t.table->descriptors() == 0);
  t.table->Forget(nodeid, 1);
  t.table->Forget(1, 100);
  CHECK(t.table->root() && t.table->size() == kRoots);
  Ref again = t.Look("d/e/a");
  CHECK(again->nodeid() != nodeid);
  // More than was counted is not an underflow.
  t.table->AddLookup(*again);
  nodeid = again->nodeid();
  again = Ref();
  t.table->Forget(nodeid, 5);
  CHECK(!t.table->Find(nodeid) && t.table->size() == kRoots);
}

void ParentsStayWhileTheyAreUsed() {
  TestFolder t(false);
  t.MakeDir("d");
  t.MakeDir("d/e");
  t.MakeDir("other");
  t.WriteFile("d/e/a", "bytes");
  Ref a = t.Look("d/e/a");
  record::Subject* e = a->parent();
  std::string from = "d/e";
  for (const char* to : {"other", "d", "other"}) {
    t.Move(from + "/a", std::string(to) + "/a");
    t.table->Place(*a, *t.Look(to), "a");
    CHECK(a->parent()->name() == to);
    from = to;
  }
  // Nothing but `a`, whose place was there once, keeps this slot and the one above it.
  CHECK(e->name() == "e" && e->parent()->name() == "d" && e->parent()->parent()->name().empty());
  CHECK(e->parent()->parent()->parent() == nullptr);
  a = Ref();
  CHECK(t.table->size() == kRoots);
}

void MovedBehindTheMountIsNoRing() {
  TestFolder t(true);
  t.MakeDir("x");
  t.MakeDir("x/y");
  Ref x = t.Look("x"), y = t.Look("x/y");
  t.table->AddLookup(*x);
  CHECK(t.table->DirectoryFd(*y).ok());  // somebody works in it
  t.Move("x/y", "y");
  t.Move("x", "y/x");
  // The table still has y in x when it hears that x is in y.
  struct statx st;
  Ref found = t.table->LookUp(*y, "x", &st).value();
  CHECK(found.get() == x.get() && x->parent() == y.get() && y->parent() == nullptr);
  CHECK(t.Look("y/x").get() == x.get() && y->parent() == t.table->root().get());
  uint64_t nodeid = x->nodeid();
  x = y = found = Ref();
  t.table->Forget(nodeid, 1);
  CHECK(t.table->size() == kRoots);
}

void NamelessPlacesAreTold(bool paths) {
  TestFolder t(paths);
  std::map<std::string, record::ObjectId> gone;
  t.table->SetOnGone([&](const std::string& place, record::ObjectId object) {
    gone[place] = object;
    t.table->size();  // no lock is held
    unlink(t.StorePath(place).c_str());
  });
  sys::UniqueFd fd(open(t.Path("").c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  CHECK(fd.valid());
  struct statx st;
  Ref file = t.table->Adopt(fd.get(), *t.table->root(), &st).value();
  CHECK(st.stx_nlink == 0 && file->parent() == nullptr && file->realm() == inode::Realm::kProject);
  file->touch().object = 7;
  std::string self = "/proc/self/fd/" + std::to_string(fd.get());
  CHECK(linkat(AT_FDCWD, self.c_str(), AT_FDCWD, t.StorePath("nameless/7").c_str(), AT_SYMLINK_FOLLOW) == 0);
  t.table->Displace(*file, *t.table->root(), "", "nameless/7", true);
  CHECK(write(fd.get(), "bytes", 5) == 5);
  fd.Reset();
  uint64_t nodeid = file->nodeid();
  t.table->AddLookup(*file);
  CHECK(t.ReadAnew(*file) == "bytes");
  file = Ref();
  CHECK(gone.empty());
  t.table->Forget(nodeid, 1);
  CHECK(gone.size() == 1 && gone["nameless/7"] == 7 && t.table->size() == kRoots && t.table->descriptors() == 0);
}

// A file without any link, kept by a descriptor.
void PinnedFiles(bool paths) {
  TestFolder t(paths);
  t.WriteFile("a", "bytes");
  Ref a = t.Look("a");
  t.table->Pin(*a, std::move(a->OpenPath().value()));
  unlink(t.Path("a").c_str());
  t.table->Displace(*a, *t.table->root(), "a", "", false);
  auto writable = t.table->DataFd(*a, true);
  CHECK(writable.ok() && pwrite(writable.value().get(), "B", 1, 0) == 1);
  writable = FdRef();
  CHECK(t.ReadAnew(*a) == "Bytes" && a->OpenRead().ok());
  a = Ref();
  CHECK(t.table->descriptors() == 0);
}

void DeepFolders(bool paths) {
  constexpr int kDepth = 3000;
  TestFolder t(paths, 64);
  std::vector<Ref> chain{t.table->root()};
  for (int depth = 0; depth < kDepth; depth++) {
    auto dir_fd = t.table->DirectoryFd(*chain.back());
    CHECK(dir_fd.ok() && mkdirat(dir_fd.value().get(), "d", 0777) == 0);
    struct statx st;
    chain.push_back(t.table->LookUp(*chain.back(), "d", &st).value());
  }
  CHECK(t.table->PathFd(*chain[kDepth / 2]).ok());
  Ref deepest = chain.back();
  chain.clear();
  t.table->DropDescriptors(*deepest);
  CHECK(t.table->DirectoryFd(*deepest).ok() && t.table->descriptors() <= 64);
  deepest = Ref();
  CHECK(t.table->size() == kRoots);
  // remove_all would need a descriptor for each level.
  CHECK(system(("rm -rf " + t.Path("d")).c_str()) == 0);
}

size_t OpenDescriptors() {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) count += entry.path().empty() ? 0 : 1;
  return count - 1;
}

// The walk of a large tree with few descriptors, and what a known inode costs.
void LargeTrees(bool paths) {
  const int kFolders = kSanitized ? 10 : 40, kFiles = 500;
  TestFolder t(paths);
  size_t before = mallinfo2().uordblks;
  size_t descriptors_before = OpenDescriptors();
  size_t names = 0;
  for (int folder = 0; folder < kFolders; folder++) {
    std::string folder_name = "folder" + std::to_string(folder);
    t.MakeDir(folder_name);
    Ref dir = t.Look(folder_name);
    t.table->AddLookup(*dir);
    for (int file = 0; file < kFiles; file++) {
      std::string name = "a-file-name-" + std::to_string(file);
      if (mknod(t.Path(folder_name + "/" + name).c_str(), S_IFREG | 0644, 0) != 0) abort();
      struct statx st;
      auto found = t.table->LookUp(*dir, name.c_str(), &st);
      CHECK(found.ok());
      if (!found.ok()) return;
      t.table->AddLookup(*found.value());
      if (!t.table->PathFd(*found.value()).ok() || !t.table->DataFd(*found.value(), file % 2 == 0).ok()) {
        CHECK(!"reached");
        return;
      }
      names++;
    }
  }
  CHECK(t.table->size() == kRoots + names + static_cast<size_t>(kFolders));
  CHECK(OpenDescriptors() <= descriptors_before + 512 && t.table->descriptors() <= 512);
  size_t each = (mallinfo2().uordblks - before) / t.table->size();
  if (!kSanitized) {
    printf("%zu inodes by %s: %zu bytes each\n", t.table->size(), paths ? "paths" : "handles", each);
    CHECK(each < 300);
  }
  for (uint64_t nodeid = 3; t.table->size() > kRoots; nodeid++) t.table->Forget(nodeid, 1);
  CHECK(t.table->descriptors() == 0);
}

// Others in the process use up the descriptors: the cache gives way.
void DescriptorsRunOut(bool paths) {
  TestFolder t(paths, 256);
  std::vector<Ref> files;
  for (int i = 0; i < 200; i++) {
    std::string name = std::to_string(i);
    t.WriteFile(name, name);
    files.push_back(t.Look(name));
    CHECK(t.Read(*files.back()) == name);
  }
  std::vector<sys::UniqueFd> others;
  for (;;) {
    sys::UniqueFd fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) break;
    others.push_back(std::move(fd));
  }
  CHECK(t.table->descriptors() == 200);
  CHECK(t.table->PathFd(*files[0]).ok());
  CHECK(t.table->descriptors() < 200 && t.Read(*files[0]) == "0");
  // A descriptor in use stays open, whatever the cache drops.
  FdRef used = t.table->DataFd(*files[1], false).value();
  for (Ref& file : files) CHECK(t.table->DataFd(*file, true).ok());
  char byte = 0;
  CHECK(pread(used.get(), &byte, 1, 0) == 1 && byte == '1');
}

}  // namespace

int main() {
  rlimit limit{1024, 1024};
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 2;
  SlotsGoWhenNothingNeedsThem();
  ParentsStayWhileTheyAreUsed();
  MovedBehindTheMountIsNoRing();
  for (bool paths : {false, true}) {
    NamelessPlacesAreTold(paths);
    PinnedFiles(paths);
    DeepFolders(paths);
    LargeTrees(paths);
    DescriptorsRunOut(paths);
  }
  return check::Finish("inode lives");
}
