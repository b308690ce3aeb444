// For the test programs of this folder: a project and a store in a temporary folder, and a table over them.
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <string>

#include "control/check.h"
#include "inode/table.h"

namespace inode {

class TestFolder {
 public:
  explicit TestFolder(bool force_paths, size_t max_descriptors = 512) {
    const char* base = getenv("TMPDIR");
    std::string name = std::string(base != nullptr ? base : "/tmp") + "/turnfs-inode-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) Fail("mkdtemp");
    top = name;
    for (const char* folder : {"/project", "/store", "/store/preserved", "/store/nameless", "/store/staging"}) {
      if (mkdir((top + folder).c_str(), 0777) != 0) Fail(folder);
    }
    project.Reset(open((top + "/project").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    store.Reset(open((top + "/store").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    auto opened = Table::Open(Options{.project_fd = project.get(),
                                      .store_fd = store.get(),
                                      .max_descriptors = max_descriptors,
                                      .force_paths = force_paths});
    if (!opened.ok()) Fail(opened.error().where);
    table = std::move(opened.value());
  }
  ~TestFolder() {
    table.reset();
    std::error_code ignored;
    std::filesystem::remove_all(top, ignored);
  }

  std::string Path(const std::string& below_project) const { return top + "/project/" + below_project; }
  std::string StorePath(const std::string& below_store) const { return top + "/store/" + below_store; }

  static void Write(const std::string& path, const std::string& text) {
    sys::UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!fd.valid() || write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      Fail(path.c_str());
  }
  void WriteFile(const std::string& below_project, const std::string& text) { Write(Path(below_project), text); }
  void MakeDir(const std::string& below_project) {
    if (mkdir(Path(below_project).c_str(), 0777) != 0) Fail(below_project.c_str());
  }
  void Move(const std::string& from, const std::string& to) {
    if (rename(Path(from).c_str(), Path(to).c_str()) != 0) Fail(from.c_str());
  }

  // LookUp of each part of a path; empty when one fails.
  Ref Look(const std::string& below_project, struct statx* st = nullptr) {
    Ref at = table->root();
    struct statx unused;
    for (const auto& part : std::filesystem::path(below_project)) {
      auto found = table->LookUp(*at, part.c_str(), st != nullptr ? st : &unused);
      if (!found.ok()) return {};
      at = found.value();
    }
    return at;
  }
  // The errno of a LookUp in the project folder, 0 when it succeeds.
  int LookError(Inode& dir, const char* name) {
    struct statx st;
    auto found = table->LookUp(dir, name, &st);
    return found.ok() ? 0 : found.error().number;
  }
  // The file's bytes by its data descriptor; "!<errno>" when it can't be had.
  std::string Read(Inode& inode) {
    auto fd = table->DataFd(inode, false);
    if (!fd.ok()) return "!" + std::to_string(fd.error().number);
    char bytes[256];
    ssize_t count = pread(fd.value().get(), bytes, sizeof bytes, 0);
    return std::string(bytes, count > 0 ? static_cast<size_t>(count) : 0);
  }
  // Forgets cached descriptors, so that the next use must find the inode anew.
  std::string ReadAnew(Inode& inode) {
    table->DropDescriptors(inode);
    return Read(inode);
  }

  std::string top;
  sys::UniqueFd project, store;
  std::unique_ptr<Table> table;

 private:
  [[noreturn]] static void Fail(const char* what) {
    perror(what);
    exit(2);
  }
};

}  // namespace inode
