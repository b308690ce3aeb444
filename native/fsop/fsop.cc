#include "fsop/fsop.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <memory>

#include "fsop/verbs.h"

namespace fsop {
namespace {

constexpr size_t kReadBytes = 256u << 10;
// Answers are written when no request is waiting, or when they are this many bytes.
constexpr size_t kWriteBytes = 256u << 10;

constexpr struct {
  std::string_view name;
  Verb verb;
} kVerbs[] = {
    {"root", OpenRoot},   {"close", CloseRoot}, {"stat", Stat},         {"list", List},
    {"extents", Extents}, {"read", Read},       {"hash", Hash},         {"equal", Equal},
    {"mkdir", Mkdir},     {"mknod", Mknod},     {"create", Create},     {"symlink", Symlink},
    {"link", Link},       {"rename", Rename},   {"unlink", Unlink},     {"rmdir", Rmdir},
    {"copy", Copy},       {"punch", Punch},     {"truncate", Truncate}, {"attrs", Attrs},
    {"fsync", Fsync},     {"syncfs", Syncfs},   {"flush", Flush},       {"open-handle", OpenHandle},
    {"procs", Procs},
};

bool WriteAll(int fd, std::string* bytes) {
  for (size_t done = 0; done < bytes->size();) {
    ssize_t put = write(fd, bytes->data() + done, bytes->size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    done += static_cast<size_t>(put);
  }
  bytes->clear();
  return true;
}

bool InputWaits(int fd) {
  pollfd polled{fd, POLLIN, 0};
  return poll(&polled, 1, 0) > 0;
}

}  // namespace

control::Handler MakeHandler(Roots* roots) {
  return [roots](const control::Request& request, control::Answer* answer) {
    for (const auto& row : kVerbs) {
      if (row.name == request.verb) return row.verb(*roots, request, answer);
    }
    return sys::Result<void>(sys::Error{ENOSYS, "verb"});
  };
}

int Serve(int in, int out) {
  Roots roots;
  control::Handler handler = MakeHandler(&roots);
  control::LineReader reader;
  std::string answers;
  auto bytes = std::make_unique<char[]>(kReadBytes);
  for (;;) {
    while (control::AnswerLines(&reader, handler, &answers, kWriteBytes)) {
      if (!WriteAll(out, &answers)) return 1;
    }
    if (!answers.empty() && !InputWaits(in) && !WriteAll(out, &answers)) return 1;
    ssize_t got = read(in, bytes.get(), kReadBytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return 1;
    if (got == 0) return WriteAll(out, &answers) ? 0 : 1;
    reader.Append(std::string_view(bytes.get(), static_cast<size_t>(got)));
  }
}

int Main() {
  prctl(PR_SET_NAME, "turnfs-fsop");
  // A daemon that has gone is an error of write, not a signal. Modes are what requests say.
  signal(SIGPIPE, SIG_IGN);
  umask(0);
  return Serve(STDIN_FILENO, STDOUT_FILENO);
}

}  // namespace fsop
