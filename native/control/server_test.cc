// The control socket: private, replaced when stale, several clients, none of whom can hold up or crash the server.
#include "control/server.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>

#include "control/check.h"

namespace {

sys::UniqueFd Connect(const std::string& path) {
  sys::UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fd.Reset();
  return fd;
}

bool Send(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t sent = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

// Reads `lines` lines, or what comes until the end.
std::string Receive(int fd, size_t lines) {
  std::string text;
  char bytes[65536];
  size_t seen = 0;
  while (seen < lines) {
    ssize_t got = recv(fd, bytes, sizeof bytes, 0);
    if (got <= 0) break;
    for (ssize_t i = 0; i < got; i++) seen += bytes[i] == '\n' ? 1 : 0;
    text.append(bytes, static_cast<size_t>(got));
  }
  return text;
}

sys::Result<void> Handle(const control::Request& request, control::Answer* answer) {
  if (request.verb == "fail") return sys::Error{EIO, "fail"};
  if (request.verb == "big") answer->Add("bytes", std::string(1 << 20, 'x'));
  return {};
}

void TalksToSeveralClients(const std::string& path) {
  auto server = control::Server::Start(path, Handle);
  CHECK(server.ok());
  if (!server.ok()) return;
  struct stat st;
  CHECK(stat(path.c_str(), &st) == 0 && S_ISSOCK(st.st_mode) && (st.st_mode & 07777) == 0600);
  sys::UniqueFd one = Connect(path);
  sys::UniqueFd two = Connect(path);
  CHECK(Send(one.get(), "1 hello\n2 fail\nnonsense\n"));
  CHECK(Send(two.get(), "5 hel"));
  CHECK(Receive(one.get(), 3) == "1 ok\n2 err errno=5 name=EIO where=fail\n0 err errno=22 name=EINVAL where=id\n");
  CHECK(Send(two.get(), "lo\n"));
  CHECK(Receive(two.get(), 1) == "5 ok\n");
  // A client that shuts down its side still gets its answers.
  sys::UniqueFd three = Connect(path);
  CHECK(Send(three.get(), "1 a\n2 b\n"));
  shutdown(three.get(), SHUT_WR);
  CHECK(Receive(three.get(), 99) == "1 ok\n2 ok\n");
  // A second server does not take a living one's place.
  auto second = control::Server::Start(path, Handle);
  CHECK(!second.ok() && second.error().number == EADDRINUSE);
  server.value().reset();
  CHECK(access(path.c_str(), F_OK) != 0);
}

// A client that never reads fills its own buffer only.
void OneThatDoesNotReadHoldsUpNobody(const std::string& path) {
  auto server = control::Server::Start(path, Handle);
  CHECK(server.ok());
  if (!server.ok()) return;
  sys::UniqueFd lazy = Connect(path);
  std::string many;
  for (int i = 0; i < 50; i++) many += std::to_string(i) + " big\n";
  CHECK(Send(lazy.get(), many));
  sys::UniqueFd other = Connect(path);
  CHECK(Send(other.get(), "1 hello\n"));
  CHECK(Receive(other.get(), 1) == "1 ok\n");
  std::string all = Receive(lazy.get(), 50);
  CHECK(all.size() > 50u << 20);
  // One that disappears in the middle.
  CHECK(Send(other.get(), many));
  other.Reset();
  sys::UniqueFd last = Connect(path);
  CHECK(Send(last.get(), "2 hello\n") && Receive(last.get(), 1) == "2 ok\n");
}

void ReplacesOnlyAStaleSocket(const std::string& path) {
  {
    sys::UniqueFd stale(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, path.c_str(), path.size() + 1);
    CHECK(bind(stale.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  CHECK(access(path.c_str(), F_OK) == 0);
  CHECK(control::Server::Start(path, Handle).ok());
  sys::UniqueFd file(open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  auto server = control::Server::Start(path, Handle);
  CHECK(!server.ok() && server.error().number == EEXIST);
  CHECK(unlink(path.c_str()) == 0);
}

void WantsAPrivateFolder(const std::string& folder) {
  std::string shared = folder + "/shared";
  CHECK(mkdir(shared.c_str(), 0700) == 0 && chmod(shared.c_str(), 0770) == 0);
  auto server = control::Server::Start(shared + "/s", Handle);
  CHECK(!server.ok() && server.error().number == EPERM);
  CHECK(rmdir(shared.c_str()) == 0);
}

void TakesPathsThatAreTooLongForAnAddress(const std::string& folder) {
  std::string deep = folder + "/" + std::string(120, 'd');
  CHECK(mkdir(deep.c_str(), 0700) == 0);
  auto server = control::Server::Start(deep + "/s", Handle);
  CHECK(server.ok() && access((deep + "/s").c_str(), F_OK) == 0);
  if (server.ok()) server.value().reset();
  CHECK(rmdir(deep.c_str()) == 0);
}

}  // namespace

int main() {
  char folder[] = "/tmp/turnfs-server-test-XXXXXX";
  CHECK(mkdtemp(folder) != nullptr);
  std::string path = std::string(folder) + "/s";
  TalksToSeveralClients(path);
  OneThatDoesNotReadHoldsUpNobody(path);
  ReplacesOnlyAStaleSocket(path);
  WantsAPrivateFolder(folder);
  TakesPathsThatAreTooLongForAnAddress(folder);
  CHECK(rmdir(folder) == 0);
  return check::Finish("control/server_test");
}
