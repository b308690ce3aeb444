#include "control/server.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>

namespace control {
namespace {

constexpr size_t kMaxClients = 64;
constexpr size_t kReadBytes = 64u << 10;
constexpr size_t kMaxUnsentBytes = 1u << 20;

// sun_path holds 108 bytes; a longer path is reached through the descriptor of its folder.
sys::Result<sockaddr_un> MakeAddress(const std::string& path, int folder, const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::string text =
      path.size() < sizeof address.sun_path ? path : "/proc/self/fd/" + std::to_string(folder) + "/" + name;
  if (text.size() >= sizeof address.sun_path) return sys::Error{ENAMETOOLONG, "bind"};
  memcpy(address.sun_path, text.c_str(), text.size() + 1);
  return address;
}

sys::Result<sys::UniqueFd> MakeSocket(int extra_flags) {
  sys::UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | extra_flags, 0));
  if (!fd.valid()) return sys::LastError("socket");
  return fd;
}

// Removes a socket file that an engine left behind when it was killed; leaves anything else alone.
sys::Result<void> RemoveStale(int folder, const std::string& name, const sockaddr_un& address) {
  struct stat st;
  if (fstatat(folder, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return {};
    return sys::LastError("fstatat");
  }
  if (!S_ISSOCK(st.st_mode)) return sys::Error{EEXIST, "control-socket"};
  auto probe = MakeSocket(SOCK_NONBLOCK);
  if (!probe.ok()) return probe.error();
  // EAGAIN: its backlog is full, so somebody is there.
  if (connect(probe.value().get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
      errno == EAGAIN) {
    return sys::Error{EADDRINUSE, "control-socket"};
  }
  if (unlinkat(folder, name.c_str(), 0) != 0 && errno != ENOENT) return sys::LastError("unlinkat");
  return {};
}

sys::Result<sys::UniqueFd> OpenFolder(const std::string& path) {
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  sys::UniqueFd fd(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return sys::LastError("open");
  struct stat st;
  if (fstat(fd.get(), &st) != 0) return sys::LastError("fstat");
  // Who can rename in this folder could put another socket in our place.
  if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0) return sys::Error{EPERM, "control-folder"};
  return fd;
}

bool MayTalk(int fd) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
  // Inside an ordinary user's engine root has no id (its user namespace maps only the user) and is refused.
  return peer.uid == geteuid() || peer.uid == 0;
}

}  // namespace

struct Server::Client {
  sys::UniqueFd fd;
  LineReader reader;
  std::string unsent;
  bool more_lines = false;  // finished lines wait in `reader` until answers were sent
  bool ended = false;       // the client has shut down its side: answer what it asked, then close
};

sys::Result<std::unique_ptr<Server>> Server::Start(const std::string& path, Handler handler) {
  auto folder = OpenFolder(path);
  if (!folder.ok()) return folder.error();
  int folder_fd = folder.value().get();
  std::string name = path.substr(path.rfind('/') + 1);
  auto address = MakeAddress(path, folder_fd, name);
  if (!address.ok()) return address.error();
  auto removed = RemoveStale(folder_fd, name, address.value());
  if (!removed.ok()) return removed.error();
  auto listener = MakeSocket(SOCK_NONBLOCK);
  if (!listener.ok()) return listener.error();
  int fd = listener.value().get();
  // Before bind: the socket file is made with the socket's own mode, so it is never open to others, not even for a
  // moment.
  if (fchmod(fd, 0600) != 0) return sys::LastError("fchmod");
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address.value()), sizeof(sockaddr_un)) != 0) {
    return sys::LastError("bind");
  }
  sys::UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid() || listen(fd, 16) != 0) {
    sys::Error error = sys::LastError(wake.valid() ? "listen" : "eventfd");
    unlinkat(folder_fd, name.c_str(), 0);
    return error;
  }
  std::unique_ptr<Server> server(
      new Server(path, std::move(handler), std::move(folder.value()), std::move(listener.value()), std::move(wake)));
  server->thread_ = std::thread([raw = server.get()] { raw->Loop(); });
  return server;
}

Server::Server(std::string path, Handler handler, sys::UniqueFd folder, sys::UniqueFd listener, sys::UniqueFd wake)
    : path_(std::move(path)),
      handler_(std::move(handler)),
      folder_(std::move(folder)),
      listener_(std::move(listener)),
      wake_(std::move(wake)) {
  struct stat st;
  if (fstatat(folder_.get(), path_.substr(path_.rfind('/') + 1).c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0) {
    socket_inode_ = st.st_ino;
  }
}

Server::~Server() {
  uint64_t one = 1;
  // Can't fail: the counter starts at 0 and is written once.
  [[maybe_unused]] ssize_t written = write(wake_.get(), &one, sizeof one);
  thread_.join();
  // Not a successor's socket that took the name meanwhile.
  std::string name = path_.substr(path_.rfind('/') + 1);
  struct stat st;
  if (fstatat(folder_.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == socket_inode_) {
    unlinkat(folder_.get(), name.c_str(), 0);
  }
}

void Server::Loop() {
  pthread_setname_np(pthread_self(), "turnfs-control");
  std::vector<pollfd> polled;
  for (;;) {
    polled.clear();
    polled.push_back({wake_.get(), POLLIN, 0});
    polled.push_back({listener_.get(), static_cast<short>(clients_.size() < kMaxClients ? POLLIN : 0), 0});
    for (const auto& client : clients_) {
      bool may_read = !client->ended && !client->more_lines && client->unsent.size() < kMaxUnsentBytes;
      short events = static_cast<short>((may_read ? POLLIN : 0) | (client->unsent.empty() ? 0 : POLLOUT));
      polled.push_back({client->fd.get(), events, 0});
    }
    if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return;
    if (polled[0].revents != 0) return;
    for (size_t i = clients_.size(); i-- > 0;) {
      short events = polled[i + 2].revents;
      if (events != 0 && !Serve(clients_[i].get(), events))
        clients_.erase(clients_.begin() + static_cast<ptrdiff_t>(i));
    }
    if (polled[1].revents != 0) Accept();
  }
}

void Server::Accept() {
  sys::UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid() || !MayTalk(fd.get())) return;
  auto client = std::make_unique<Client>();
  client->fd = std::move(fd);
  clients_.push_back(std::move(client));
}

bool Server::Serve(Client* client, short events) {
  if (events & (POLLERR | POLLNVAL)) return false;
  // POLLHUP alone: both sides are shut down, nobody will read an answer.
  if ((events & POLLHUP) && !(events & POLLIN)) return false;
  if (events & POLLIN) {
    char bytes[kReadBytes];
    ssize_t got = recv(client->fd.get(), bytes, sizeof bytes, 0);
    if (got < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (got == 0) client->ended = true;
    if (got > 0) client->reader.Append(std::string_view(bytes, static_cast<size_t>(got)));
  }
  do {
    client->more_lines = AnswerLines(&client->reader, handler_, &client->unsent, kMaxUnsentBytes);
    while (!client->unsent.empty()) {
      ssize_t sent = send(client->fd.get(), client->unsent.data(), client->unsent.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && errno == EAGAIN) return true;
      if (sent < 0) return false;
      client->unsent.erase(0, static_cast<size_t>(sent));
    }
  } while (client->more_lines);
  return !client->ended;
}

}  // namespace control
