// What is mounted below the project, and a project on overlayfs. Mounts in a namespace of its own; needs root.
#include <sched.h>
#include <sys/mount.h>

#include "inode/test_folder.h"

namespace {

using inode::Ref;
using inode::Table;
using inode::TestFolder;

bool Mount(const char* source, const std::string& at, const char* type, unsigned long flags, const char* options) {
  if (mount(source, at.c_str(), type, flags, options) == 0) return true;
  perror(at.c_str());
  return false;
}

// Another filesystem below the project: reached by path, with its own device number.
void SubMount(bool paths) {
  TestFolder t(paths);
  t.MakeDir("sub");
  CHECK(Mount("tmpfs", t.Path("sub"), "tmpfs", 0, nullptr));
  t.MakeDir("sub/d");
  t.WriteFile("sub/d/a", "bytes");
  t.WriteFile("b", "here");
  Ref sub = t.Look("sub"), a = t.Look("sub/d/a"), b = t.Look("b");
  CHECK(sub && a && sub->dev() != 0 && a->dev() == sub->dev() && b->dev() == 0);
  CHECK(a->identity().handle.empty());
  for (const char* path : {"sub", "sub/d"}) t.table->DropDescriptors(*t.Look(path));
  CHECK(t.ReadAnew(*a) == "bytes" && t.ReadAnew(*b) == "here");
  auto inside = t.table->DirectoryFd(*sub);
  struct stat st;
  CHECK(inside.ok() && fstat(inside.value().get(), &st) == 0 && st.st_dev == sub->dev());
  inside = inode::FdRef();
  a = sub = b = Ref();
  t.table.reset();
  CHECK(umount2(t.Path("sub").c_str(), MNT_DETACH) == 0);
}

// The same filesystem mounted again, but read-only: what is seen through it can't be written through a handle either.
void ReadOnlyBindMount(bool paths) {
  TestFolder t(paths);
  t.MakeDir("bound");
  CHECK(mkdir((t.top + "/elsewhere").c_str(), 0777) == 0);
  TestFolder::Write(t.top + "/elsewhere/a", "bytes");
  CHECK(Mount((t.top + "/elsewhere").c_str(), t.Path("bound"), nullptr, MS_BIND, nullptr));
  CHECK(Mount(nullptr, t.Path("bound"), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr));
  Ref a = t.Look("bound/a");
  CHECK(a && a->dev() == 0 && t.ReadAnew(*a) == "bytes");
  CHECK(t.table->DataFd(*a, true).error().number == EROFS);
  a = Ref();
  t.table.reset();
  CHECK(umount2(t.Path("bound").c_str(), MNT_DETACH) == 0);
}

// A file of the lower layer gets another birth time when it is first written: still the same file.
void Overlay() {
  TestFolder t(false);
  for (const char* dir : {"lower", "upper", "work"}) CHECK(mkdir((t.top + "/" + dir).c_str(), 0777) == 0);
  CHECK(mkdir((t.top + "/lower/d").c_str(), 0777) == 0);
  TestFolder::Write(t.top + "/lower/d/a", "lower");
  std::string options = "lowerdir=" + t.top + "/lower,upperdir=" + t.top + "/upper,workdir=" + t.top + "/work";
  t.table.reset();
  CHECK(Mount("overlay", t.Path(""), "overlay", 0, options.c_str()));
  sys::UniqueFd project(open(t.Path("").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  t.table = std::move(Table::Open({.project_fd = project.get(), .store_fd = t.store.get()}).value());
  Ref a = t.Look("d/a");
  CHECK(t.Read(*a) == "lower");
  auto fd = t.table->DataFd(*a, true);
  CHECK(fd.ok() && pwrite(fd.value().get(), "U", 1, 0) == 1);
  fd = inode::FdRef();
  for (const char* path : {"d", "d/a"}) t.table->DropDescriptors(*t.Look(path));
  CHECK(t.ReadAnew(*a) == "Uower" && t.Look("d/a").get() == a.get());
  t.WriteFile("new", "new");
  Ref fresh = t.Look("new");
  CHECK(t.ReadAnew(*fresh) == "new" && fresh->nodeid() != a->nodeid());
  a = fresh = Ref();
  t.table.reset();
  project.Reset();
  CHECK(umount2(t.Path("").c_str(), MNT_DETACH) == 0);
}

}  // namespace

int main() {
  if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    perror("mount namespace");
    return 2;
  }
  for (bool paths : {false, true}) {
    SubMount(paths);
    ReadOnlyBindMount(paths);
  }
  Overlay();
  return check::Finish("inodes below mounts");
}
