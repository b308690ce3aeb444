// Identity, places and ways of the inode table, by handles and by paths.
#include "inode/table.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "inode/test_folder.h"

namespace {

using inode::Inode;
using inode::Realm;
using inode::Ref;
using inode::TestFolder;

ino_t InoOf(int fd) {
  struct stat st;
  return fstat(fd, &st) == 0 ? st.st_ino : 0;
}

void OneSlotForOneInode(bool paths) {
  TestFolder t(paths);
  t.MakeDir("d");
  t.WriteFile("d/a", "bytes");
  if (link(t.Path("d/a").c_str(), t.Path("b").c_str()) != 0) abort();
  CHECK(t.table->root()->nodeid() == 1 && t.table->root()->is_directory());
  struct statx st;
  Ref a = t.Look("d/a", &st);
  CHECK(a && st.stx_nlink == 2 && a->ino() == st.stx_ino && a->dev() == 0 && S_ISREG(a->type()));
  CHECK(a->name() == "a" && a->parent() == t.Look("d").get());
  Ref b = t.Look("b");
  CHECK(b.get() == a.get());
  CHECK(a->name() == "b" && a->parent() == t.table->root().get());
  CHECK(t.table->Find(a->nodeid()).get() == a.get());
  CHECK(!t.table->Find(99));
  CHECK(t.Look("d")->nodeid() != a->nodeid() && a->nodeid() > 2);
  CHECK(t.LookError(*t.table->root(), "none") == ENOENT);
  for (const char* bad : {"", ".", "..", "d/a"}) CHECK(t.LookError(*t.table->root(), bad) == EINVAL);
  CHECK(t.LookError(*a, "x") == ENOTDIR);
  record::Identity identity = a->identity();
  CHECK(identity.ino == st.stx_ino && identity.birth_ns != 0 && S_ISREG(identity.mode));
  CHECK(identity.handle.empty() == !t.table->has_handles());
  CHECK(t.table->has_handles() == !paths || getuid() != 0);
}

void DescriptorsLeadToTheInode(bool paths) {
  TestFolder t(paths);
  t.MakeDir("d");
  t.WriteFile("d/a", "bytes");
  Ref a = t.Look("d/a"), d = t.Look("d");
  CHECK(InoOf(t.table->PathFd(*a).value().get()) == a->ino());
  CHECK(InoOf(t.table->DirectoryFd(*d).value().get()) == d->ino());
  CHECK(t.table->DirectoryFd(*a).error().number == ENOTDIR);
  CHECK(t.table->DataFd(*d, false).error().number == EISDIR);
  auto writable = t.table->DataFd(*a, true);
  CHECK(writable.ok() && pwrite(writable.value().get(), "B", 1, 0) == 1);
  CHECK(t.Read(*a) == "Bytes");
  CHECK(t.table->DataFd(*a, false).value().get() == writable.value().get());
  auto own = a->OpenRead();
  CHECK(own.ok() && (fcntl(own.value().get(), F_GETFL) & O_NOATIME) != 0);
  CHECK((fcntl(own.value().get(), F_GETFD) & FD_CLOEXEC) != 0);
  auto path = a->OpenPath();
  CHECK(path.ok() && (fcntl(path.value().get(), F_GETFL) & O_PATH) != 0 && InoOf(path.value().get()) == a->ino());
  CHECK(a->OpenRead().value().get() != own.value().get());
  CHECK(InoOf(t.table->root()->OpenPath().value().get()) == t.table->root()->ino());
  size_t before = t.table->descriptors();
  t.table->DropDescriptors(*a);
  CHECK(t.table->descriptors() < before && t.Read(*a) == "Bytes");
}

void SpecialFilesAreNeverOpened(bool paths) {
  TestFolder t(paths);
  if (mkfifo(t.Path("fifo").c_str(), 0666) != 0) abort();
  if (symlink("nowhere", t.Path("link").c_str()) != 0) abort();
  sys::UniqueFd bound(socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = ""};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", t.Path("socket").c_str());
  CHECK(bind(bound.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  for (const char* name : {"fifo", "link", "socket"}) {
    Ref special = t.Look(name);
    CHECK(special && special->OpenRead().error().number == (S_ISLNK(special->type()) ? ELOOP : ENXIO));
    auto fd = t.table->PathFd(*special);
    CHECK(fd.ok() && InoOf(fd.value().get()) == special->ino());
  }
  char target[16];
  CHECK(readlinkat(t.table->PathFd(*t.Look("link")).value().get(), "", target, sizeof target) == 7);
}

void RenamedFilesAreFound(bool paths) {
  TestFolder t(paths);
  t.MakeDir("d");
  t.MakeDir("d/e");
  t.WriteFile("d/e/a", "bytes");
  Ref d = t.Look("d"), e = t.Look("d/e"), a = t.Look("d/e/a");
  t.Move("d/e/a", "d/b");
  t.table->Place(*a, *d, "b");
  CHECK(a->name() == "b" && a->parent() == d.get() && t.ReadAnew(*a) == "bytes");
  t.Move("d", "moved");
  t.table->Place(*d, *t.table->root(), "moved");
  t.table->DropDescriptors(*d);
  t.table->DropDescriptors(*e);
  CHECK(t.ReadAnew(*a) == "bytes" && InoOf(t.table->DirectoryFd(*e).value().get()) == e->ino());
  // The rename left no other place behind.
  t.table->Displace(*a, *d, "b", "", false);
  CHECK(a->parent() == nullptr && a->name().empty());
  CHECK(t.ReadAnew(*a) == (t.table->has_handles() ? "bytes" : "!" + std::to_string(ESTALE)));
  CHECK(t.Look("moved/b").get() == a.get() && t.ReadAnew(*a) == "bytes" && a->name() == "b");
}

void AnotherFileAtThePlaceIsNotTaken(bool paths) {
  TestFolder t(paths);
  t.WriteFile("a", "old");
  Ref a = t.Look("a");
  sys::UniqueFd in_use(open(t.Path("a").c_str(), O_RDONLY | O_CLOEXEC));  // or its number is given to the new one
  t.WriteFile("new", "new");
  t.Move("new", "a");
  CHECK(t.ReadAnew(*a) != "new");
  Ref now = t.Look("a");
  CHECK(now && now->nodeid() != a->nodeid() && t.Read(*now) == "new");
}

void HardLinksHaveOtherPlaces(bool paths) {
  TestFolder t(paths);
  t.MakeDir("d");
  t.WriteFile("a", "bytes");
  Ref a = t.Look("a"), d = t.Look("d");
  if (link(t.Path("a").c_str(), t.Path("d/b").c_str()) != 0) abort();
  t.table->Place(*a, *d, "b");
  CHECK(a->name() == "b");
  if (unlink(t.Path("d/b").c_str()) != 0) abort();
  CHECK(t.ReadAnew(*a) == "bytes");  // by the other one
  t.table->Displace(*a, *d, "b", "", false);
  CHECK(a->name() == "a" && a->parent() == t.table->root().get());
  // A lookup of a second name keeps the first one.
  if (link(t.Path("a").c_str(), t.Path("c").c_str()) != 0) abort();
  CHECK(t.Look("c").get() == a.get() && a->name() == "c");
  t.table->Displace(*a, *t.table->root(), "a", "", false);
  CHECK(a->name() == "c");
  t.table->Displace(*a, *t.table->root(), "c", "", false);
  CHECK(a->parent() == nullptr);
}

void StoredFilesAreFound(bool paths) {
  TestFolder t(paths);
  t.WriteFile("a", "bytes");
  Ref a = t.Look("a");
  t.table->AddLookup(*a);
  if (mkdir(t.StorePath("preserved/0a").c_str(), 0700) != 0) abort();
  if (rename(t.Path("a").c_str(), t.StorePath("preserved/0a/x").c_str()) != 0) abort();
  t.table->Displace(*a, *t.table->root(), "a", "preserved/0a/x", false);
  CHECK(a->parent() == nullptr && t.ReadAnew(*a) == "bytes");
  auto writable = t.table->DataFd(*a, true);
  CHECK(writable.ok() && pwrite(writable.value().get(), "B", 1, 0) == 1 && t.ReadAnew(*a) == "Bytes");
}

void RealmsBelowTheStore(bool paths) {
  TestFolder t(paths);
  if (mkdir(t.StorePath("preserved/0a").c_str(), 0700) != 0) abort();
  if (mkdir(t.StorePath("staging/dir").c_str(), 0700) != 0) abort();
  if (mkdir(t.StorePath("packs").c_str(), 0700) != 0) abort();
  t.Write(t.StorePath("preserved/0a/x"), "bytes");
  t.Write(t.StorePath("staging/dir/y"), "bytes");
  t.Write(t.StorePath("packs/1"), "bytes");
  struct statx st;
  Ref store = t.table->StoreRoot(&st).value();
  CHECK(store->realm() == Realm::kStore && store->parent() == nullptr && store->ino() == st.stx_ino);
  auto look = [&](std::initializer_list<const char*> names) {
    Ref at = store;
    for (const char* name : names) at = t.table->LookUp(*at, name, &st).value();
    return at;
  };
  CHECK(look({"preserved"})->realm() == Realm::kStore && look({"preserved", "0a"})->realm() == Realm::kStore);
  CHECK(look({"staging"})->realm() == Realm::kStore && look({"nameless"})->realm() == Realm::kStore);
  CHECK(look({"packs", "1"})->realm() == Realm::kStore);
  Ref x = look({"preserved", "0a", "x"}), y = look({"staging", "dir", "y"});
  CHECK(x->realm() == Realm::kProject && y->realm() == Realm::kProject);
  CHECK(look({"staging", "dir"})->realm() == Realm::kProject);
  CHECK(x->name() == "x" && t.ReadAnew(*x) == "bytes" && t.ReadAnew(*y) == "bytes");
  // A staged directory goes home.
  Ref dir = look({"staging", "dir"});
  if (rename(t.StorePath("staging/dir").c_str(), t.Path("dir").c_str()) != 0) abort();
  t.table->Place(*dir, *t.table->root(), "dir");
  t.table->DropDescriptors(*dir);
  CHECK(t.ReadAnew(*y) == "bytes" && t.Look("dir").get() == dir.get());
}

void DeadDirectories(bool paths) {
  TestFolder t(paths);
  t.MakeDir("d");
  Ref d = t.Look("d");
  uint64_t ino = d->ino();
  t.table->AddLookup(*d);
  sys::UniqueFd fd = std::move(d->OpenPath().value());
  if (rmdir(t.Path("d").c_str()) != 0) abort();
  t.table->PinDirectory(*d, std::move(fd));
  t.table->MarkDead(*d);
  t.table->Displace(*d, *t.table->root(), "d", "", false);
  t.table->DropDescriptors(*d);
  CHECK(d->dead() && InoOf(t.table->PathFd(*d).value().get()) == ino && t.LookError(*d, "x") == ENOENT);
  t.MakeDir("d");
  Ref again = t.Look("d");
  CHECK(again->nodeid() != d->nodeid() && !again->dead());
  size_t open = t.table->descriptors();
  t.table->Unpin(*d);
  CHECK(t.table->descriptors() == open - 1);
  CHECK(t.table->PathFd(*d).error().number == ESTALE);
  CHECK(t.table->Find(d->nodeid()).get() == d.get());
}

void PinsAreBounded(bool paths) {
  TestFolder t(paths, 16);
  std::vector<Ref> dead;
  for (int i = 0; i < 20; i++) {
    std::string name = "d" + std::to_string(i);
    t.MakeDir(name);
    dead.push_back(t.Look(name));
    sys::UniqueFd fd = std::move(dead.back()->OpenPath().value());
    rmdir(t.Path(name).c_str());
    t.table->PinDirectory(*dead.back(), std::move(fd));
    t.table->MarkDead(*dead.back());
    t.table->DropDescriptors(*dead.back());
  }
  CHECK(t.table->descriptors() == 8);
  CHECK(t.table->PathFd(*dead[0]).ok() && t.table->PathFd(*dead[19]).error().number == ESTALE);
  dead.clear();
  CHECK(t.table->descriptors() == 0 && t.table->size() == 2);
}

void RemadeInodesAreOthers(bool paths) {
  TestFolder t(paths);
  // ext4 gives a number again at once; in the same tick even the birth time is the same.
  for (int i = 0; i < 50; i++) {
    t.WriteFile("a", "one");
    Ref a = t.Look("a");
    CHECK(t.ReadAnew(*a) == "one");
    t.table->DropDescriptors(*a);
    unlink(t.Path("a").c_str());
    if (t.table->has_handles()) CHECK(t.Read(*a) == "!" + std::to_string(ESTALE));
    t.WriteFile("a", "two");
    Ref b = t.Look("a");
    if (t.table->has_handles()) CHECK(b->nodeid() != a->nodeid());
    CHECK(t.Read(*b) == "two");
    unlink(t.Path("a").c_str());
  }
}

}  // namespace

int main() {
  for (bool paths : {false, true}) {
    OneSlotForOneInode(paths);
    DescriptorsLeadToTheInode(paths);
    SpecialFilesAreNeverOpened(paths);
    RenamedFilesAreFound(paths);
    AnotherFileAtThePlaceIsNotTaken(paths);
    HardLinksHaveOtherPlaces(paths);
    StoredFilesAreFound(paths);
    RealmsBelowTheStore(paths);
    DeadDirectories(paths);
    PinsAreBounded(paths);
    RemadeInodesAreOthers(paths);
  }
  return check::Finish("inode table");
}
