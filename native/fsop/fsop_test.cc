// Every verb of `fsop` that needs no mount, on a temporary folder, and what must not leave its root.
#include "fsop/fsop.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "control/check.h"

namespace {

// Calls verbs as lines, through the whole codec.
class Tester {
 public:
  explicit Tester(const std::string& folder) : folder_(folder) { CHECK(Call("root id=r path=" + folder) == ""); }

  // "" for ok, else the errno's name. The fields of the answer stay in `fields`.
  std::string Call(const std::string& request) {
    reader_.Append("7 " + request + "\n");
    std::string out;
    CHECK(!control::AnswerLines(&reader_, handler_, &out, SIZE_MAX));
    fields.clear();
    control::Request answer;
    CHECK(out.ends_with('\n') && out.starts_with("7 "));
    CHECK(control::ParseRequest(std::string_view(out).substr(0, out.size() - 1), &answer).ok());
    for (const control::Field& field : answer.fields) fields.emplace(field.key, field.value);
    return answer.verb == "ok" ? "" : fields.find("name")->second;
  }
  std::string Field(const char* key) const {
    auto found = fields.find(key);
    return found == fields.end() ? "(none)" : found->second;
  }
  struct stat Look(const std::string& path) const {
    struct stat st {};
    CHECK(lstat((folder_ + "/" + path).c_str(), &st) == 0);
    return st;
  }
  std::string At(const std::string& path) const { return folder_ + "/" + path; }

  std::multimap<std::string, std::string> fields;

 private:
  std::string folder_;
  fsop::Roots roots_;
  control::Handler handler_ = fsop::MakeHandler(&roots_);
  control::LineReader reader_;
};

void Write(const std::string& path, const std::string& bytes) {
  sys::UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  CHECK(write(fd.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
}

void MakesEveryKind(Tester* t) {
  CHECK(t->Call("mkdir root=r path=d mode=493") == "");
  CHECK(t->Call("create root=r path=d/f mode=2541") == "");  // 04755
  CHECK((t->Look("d/f").st_mode & 07777) == 04755);
  CHECK(t->Call("create root=r path=d/f mode=420") == "EEXIST");
  CHECK(t->Call("symlink root=r path=d/s target=../x%20y") == "");
  CHECK(t->Call("mknod root=r path=d/fifo mode=4516") == "" && S_ISFIFO(t->Look("d/fifo").st_mode));
  CHECK(t->Call("mknod root=r path=d/sock mode=49536") == "" && S_ISSOCK(t->Look("d/sock").st_mode));
  if (geteuid() == 0) {
    CHECK(t->Call("mknod root=r path=d/null mode=8630 rdev=" + std::to_string(makedev(1, 3))) == "");
    CHECK(t->Call("stat root=r path=d/null") == "" && t->Field("rdev") == std::to_string(makedev(1, 3)));
    CHECK(t->Call("unlink root=r path=d/null") == "");
  }
  CHECK(t->Call("link root=r path=d/f to_root=r to=g") == "" && t->Look("g").st_nlink == 2);
  CHECK(t->Call("link root=r path=d/s to_root=r to=s2") == "" && S_ISLNK(t->Look("s2").st_mode));
  CHECK(t->Call("rename root=r path=g to_root=r to=d/s") == "EEXIST");
  CHECK(t->Call("rename root=r path=g to_root=r to=h") == "");
  CHECK(t->Call("rmdir root=r path=d") == "ENOTEMPTY");
  CHECK(t->Call("unlink root=r path=d") == "EISDIR");
  CHECK(t->Call("list root=r path=d") == "" && t->fields.count("n") == 4);
  CHECK(t->Call("list root=r path=") == "" && t->fields.count("n") == 3);
  CHECK(t->Call("list root=r path=d/f") == "ENOTDIR" && t->Call("list root=r path=d/fifo") == "ENOTDIR");
  for (const char* path : {"d/f", "d/s", "d/fifo", "d/sock", "h", "s2"}) {
    CHECK(t->Call(std::string("unlink root=r path=") + path) == "");
  }
  CHECK(t->Call("rmdir root=r path=d") == "");
}

void StaysBelowItsRoot(Tester* t) {
  CHECK(symlink("/etc", t->At("out").c_str()) == 0);
  CHECK(mkdir(t->At("in").c_str(), 0755) == 0);
  CHECK(t->Call("stat root=r path=out/passwd") == "ELOOP");
  CHECK(t->Call("create root=r path=out/x mode=420") == "ENOTDIR");
  CHECK(t->Call("stat root=r path=../x") == "EXDEV");
  CHECK(t->Call("stat root=r path=in/../../etc") == "EXDEV");
  CHECK(t->Call("stat root=r path=/etc/passwd") == "EXDEV");
  CHECK(t->Call("unlink root=r path=in/..") == "EINVAL" && t->Call("rmdir root=r path=.") == "EINVAL");
  CHECK(t->Call("rmdir root=r path=in/") == "EINVAL" && t->Call("rmdir root=r path=") == "EINVAL");
  CHECK(t->Call("stat root=r path=a%00b") == "EINVAL");
  CHECK(t->Call("stat root=r path=out xattrs=1") == "" && t->Field("target") == "/etc");
  CHECK(t->Call("read root=r path=out offset=0 length=1") == "ELOOP");
  CHECK(t->Call("stat root=nowhere path=x") == "EBADF" && t->Call("close id=nowhere") == "EBADF");
  CHECK(t->Call("unlink root=r path=out") == "" && t->Call("rmdir root=r path=in") == "");
}

// Folders in one another whose path is longer than the kernel takes at once.
void GoesDeeperThanOnePath(Tester* t) {
  std::vector<std::string> folders;
  for (int depth = 0; depth < 30; depth++) {
    folders.push_back((depth == 0 ? "" : folders.back() + "/") + std::string(200, 'd'));
    CHECK(t->Call("mkdir root=r path=" + folders.back() + " mode=448") == "");
  }
  std::string file = folders.back() + "/f";
  CHECK(t->Call("create root=r path=" + file + " mode=384") == "");
  CHECK(t->Call("truncate root=r path=" + file + " size=5") == "" && t->Call("stat root=r path=" + file) == "");
  CHECK(t->Field("size") == "5");
  CHECK(t->Call("stat root=r path=" + folders.back() + "/" + std::string(5000, 'x')) == "ENAMETOOLONG");
  CHECK(t->Call("unlink root=r path=" + file) == "");
  for (; !folders.empty(); folders.pop_back()) CHECK(t->Call("rmdir root=r path=" + folders.back()) == "");
}

void SetsAttributesExactly(Tester* t) {
  CHECK(t->Call("create root=r path=a mode=420") == "");
  // chown clears set-uid bits, so the mode must come after it; root can show that.
  std::string owner = geteuid() == 0 ? " uid=12 gid=34" : "";
  CHECK(t->Call("attrs root=r path=a mode=2541 mtime=-1" + owner + " x.757365722e6e=v%20w") == "");
  struct stat st = t->Look("a");
  CHECK((st.st_mode & 07777) == 04755);
  CHECK(st.st_mtim.tv_sec == -1 && st.st_mtim.tv_nsec == 999999999);
  CHECK(t->Call("stat root=r path=a xattrs=1") == "" && t->Field("x.757365722e6e") == "v w" &&
        t->Field("mtime") == "-1");
  CHECK(t->Field("dev") == "0" && t->Field("nlink") == "1");
  if (geteuid() == 0) {
    CHECK(st.st_uid == 12 && st.st_gid == 34);
    CHECK(t->Call("attrs root=r path=a uid=13") == "" && (t->Look("a").st_mode & 07777) == 04755);
    CHECK(t->Look("a").st_gid == 34);
  }
  CHECK(t->Call("attrs root=r path=a mtime=1700000000123456789 rx=user.n rx=user.none") == "");
  CHECK(t->Call("stat root=r path=a xattrs=1") == "" && t->Field("x.757365722e6e") == "(none)");
  CHECK(t->Field("mtime") == "1700000000123456789");
  // Nothing was changed by a request that is wrong in its last word.
  CHECK(t->Call("attrs root=r path=a mode=420 x.7=1") == "EINVAL" && (t->Look("a").st_mode & 07777) == 04755);
  CHECK(t->Call("attrs root=r path= mtime=5") == "" && t->Look("").st_mtim.tv_nsec == 5);
  CHECK(t->Call("symlink root=r path=s target=nowhere") == "");
  CHECK(t->Call("attrs root=r path=s mtime=77 mode=420" + owner) == "" && t->Look("s").st_mtim.tv_nsec == 77);
  if (geteuid() == 0) {
    // On the symlink itself, not on what it points to.
    CHECK(t->Call("attrs root=r path=s x.747275737465642e6e=1") == "");
    char value[8];
    CHECK(lgetxattr(t->At("s").c_str(), "trusted.n", value, sizeof value) == 1);
    CHECK(t->Look("s").st_uid == 12);
  }
  CHECK(t->Call("unlink root=r path=s") == "" && t->Call("unlink root=r path=a") == "");
}

void MovesBytes(Tester* t) {
  std::string bytes;
  for (int i = 0; i < 3 << 20; i++) bytes.push_back(static_cast<char>(i * 7 + (i >> 11)));
  Write(t->At("big"), bytes);
  CHECK(t->Call("create root=r path=copy mode=420") == "");
  CHECK(t->Call("copy root=r path=copy offset=100 length=3000000 from_root=r from=big from_offset=5") == "");
  CHECK(t->Look("copy").st_size == 3000100);
  CHECK(t->Call("equal root=r path=copy offset=100 to_root=r to=big to_offset=5 length=3000000") == "");
  CHECK(t->Field("equal") == "1");
  CHECK(t->Call("equal root=r path=copy offset=100 to_root=r to=big to_offset=6 length=3000000") == "");
  CHECK(t->Field("equal") == "0");
  CHECK(t->Call("equal root=r path=copy offset=100 to_root=r to=big to_offset=5 length=3000001") == "");
  CHECK(t->Field("equal") == "0");
  CHECK(t->Call("copy root=r path=copy offset=0 length=10 from_root=r from=big from_offset=3145720") == "EIO");
  CHECK(t->Call("read root=r path=big offset=3145720 length=1048576") == "" &&
        t->Field("bytes") == bytes.substr(3145720));
  CHECK(t->Call("read root=r path=big offset=0 length=1048577") == "EINVAL");
  // The published test vector of the empty input, and one of many pieces against itself.
  CHECK(t->Call("hash root=r path=big offset=0 length=0") == "" && t->Field("xxh64") == "ef46db3751d8e999");
  CHECK(t->Call("hash root=r path=copy offset=100 length=9000000") == "" && t->Field("read") == "3000000");
  std::string digest = t->Field("xxh64");
  CHECK(t->Call("hash root=r path=big offset=5 length=3000000") == "" && t->Field("xxh64") == digest &&
        digest.size() == 16);

  CHECK(t->Call("punch root=r path=big offset=1048576 length=1048576") == "" && t->Look("big").st_size == 3 << 20);
  CHECK(t->Call("extents root=r path=big") == "");
  uint64_t data = 0;
  for (auto [at, end] = t->fields.equal_range("data"); at != end; ++at) {
    data += strtoull(at->second.substr(at->second.find(',') + 1).c_str(), nullptr, 10);
  }
  CHECK(data == 2 << 20 || data == 3 << 20);  // a filesystem may know no holes
  CHECK(t->Call("read root=r path=big offset=1048576 length=4") == "" && t->Field("bytes") == std::string(4, '\0'));
  CHECK(t->Call("truncate root=r path=big size=20000000000") == "" && t->Look("big").st_size == 20000000000);
  CHECK(t->Call("truncate root=r path=big size=0") == "" && t->Call("extents root=r path=big") == "");
  CHECK(t->fields.empty());
  CHECK(t->Call("fsync root=r path=big") == "" && t->Call("fsync root=r path=") == "" &&
        t->Call("syncfs root=r") == "");
  CHECK(t->Call("read root=r path=big offset=9223372036854775807 length=1") == "EINVAL");
  CHECK(t->Call("unlink root=r path=big") == "" && t->Call("unlink root=r path=copy") == "");
}

void NeverOpensWhatWaits(Tester* t) {
  CHECK(t->Call("mknod root=r path=fifo mode=4516") == "");
  CHECK(t->Call("read root=r path=fifo offset=0 length=1") == "EINVAL");
  CHECK(t->Call("truncate root=r path=fifo size=0") == "EINVAL");
  CHECK(t->Call("unlink root=r path=fifo") == "");
}

void FlushesAMarker(Tester* t) {
  Write(t->At("marker"), std::string(4096, '\0'));
  std::string request = "flush mount=" + t->At("") + " marker=marker";
  CHECK(t->Call(request) == "" && t->Call(request) == "");
  CHECK(t->Call("read root=r path=marker offset=0 length=1") == "" && t->Field("bytes") == "\x02");
  Write(t->At("marker"), "");
  CHECK(t->Call(request) == "EINVAL");  // a store beyond the end would be a SIGBUS
  CHECK(t->Call("unlink root=r path=marker") == "");
}

void FindsObjectsByHandle(Tester* t) {
  CHECK(t->Call("mkdir root=r path=deep mode=493") == "" && t->Call("create root=r path=deep/f mode=420") == "");
  struct {
    file_handle head;
    unsigned char bytes[MAX_HANDLE_SZ];
  } handle{};
  handle.head.handle_bytes = MAX_HANDLE_SZ;
  int mount_id = 0;
  if (name_to_handle_at(AT_FDCWD, t->At("deep/f").c_str(), &handle.head, &mount_id, 0) == 0 && geteuid() == 0) {
    std::string bytes(reinterpret_cast<const char*>(&handle.head.handle_type), 4);
    bytes.append(reinterpret_cast<const char*>(handle.head.f_handle), handle.head.handle_bytes);
    std::string request = "open-handle root=r handle=";
    control::AppendEncoded(&request, bytes);
    CHECK(t->Call(request) == "" && t->Field("path") == "deep/f");
    CHECK(t->Call("rename root=r path=deep/f to_root=r to=f%20%28deleted%29") == "");
    CHECK(t->Call(request) == "" && t->Field("path") == "f (deleted)");
    CHECK(t->Call("unlink root=r path=f%20%28deleted%29") == "" && t->Call(request) == "ESTALE");
  } else {
    CHECK(t->Call("unlink root=r path=deep/f") == "");
  }
  CHECK(t->Call("open-handle root=r handle=abc") == "EINVAL");
  CHECK(t->Call("rmdir root=r path=deep") == "");
}

void NamesWhoStandsThere(Tester* t) {
  pid_t child = fork();
  if (child == 0) {
    if (chdir(t->At("").c_str()) != 0) _exit(1);
    pause();
    _exit(0);
  }
  std::string here = t->At("");
  here.pop_back();
  bool seen = false;
  for (int tries = 0; tries < 200 && !seen; tries++) {
    CHECK(t->Call("procs path=" + here + " under=" + here) == "");
    for (auto [at, end] = t->fields.equal_range("p"); at != end; ++at) {
      seen = seen || at->second.starts_with(std::to_string(child) + ",");
    }
    if (!seen) usleep(10000);
  }
  CHECK(seen && t->fields.size() == 1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

// 20,000 requests in one go: in order, and none lost.
void ServesPipelines(const std::string& folder) {
  int in[2];
  int out[2];
  CHECK(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
  std::thread server([&] {
    CHECK(fsop::Serve(in[0], out[1]) == 0);
    close(out[1]);
  });
  std::thread client([&] {
    std::string text = "1 root id=r path=" + folder + "\n";
    for (int i = 2; i <= 20000; i++)
      text += std::to_string(i) + (i % 3 == 0 ? " stat root=r path=none\n" : " stat root=r path=\n");
    for (size_t at = 0; at < text.size();) {
      ssize_t put = write(in[1], text.data() + at, text.size() - at);
      if (put <= 0) break;
      at += static_cast<size_t>(put);
    }
    close(in[1]);
  });
  control::LineReader reader;
  char bytes[65536];
  uint64_t expected = 1;
  for (ssize_t got; (got = read(out[0], bytes, sizeof bytes)) > 0;) {
    reader.Append(std::string_view(bytes, static_cast<size_t>(got)));
    std::string_view line;
    control::Request answer;
    while (reader.Take(&line) == control::LineReader::Next::kLine) {
      CHECK(control::ParseRequest(line, &answer).ok() && answer.id == expected);
      CHECK(answer.verb == (expected > 1 && expected % 3 == 0 ? "err" : "ok"));
      expected++;
    }
  }
  CHECK(expected == 20001);
  server.join();
  client.join();
  close(in[0]);
  close(out[0]);
}

}  // namespace

// An argument is the folder to work in, for instance one inside a mount.
int main(int argc, char** argv) {
  umask(0);
  std::string folder = std::string(argc > 1 ? argv[1] : "/tmp") + "/turnfs-fsop-test-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    perror(folder.c_str());
    return 1;
  }
  {
    Tester tester(folder);
    MakesEveryKind(&tester);
    StaysBelowItsRoot(&tester);
    GoesDeeperThanOnePath(&tester);
    SetsAttributesExactly(&tester);
    MovesBytes(&tester);
    NeverOpensWhatWaits(&tester);
    FlushesAMarker(&tester);
    FindsObjectsByHandle(&tester);
    NamesWhoStandsThere(&tester);
    CHECK(tester.Call("nonsense a=b") == "ENOSYS");
  }
  ServesPipelines(folder);
  CHECK(rmdir(folder.c_str()) == 0);
  return check::Finish("fsop/fsop_test");
}
