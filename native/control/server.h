// The control socket: a Unix stream socket on which the daemon gives orders to the engine. One thread polls the
// listener and all clients and calls the handler for each line, so the handler runs on one thread only and needs no
// lock of its own. A client that does not read its answers is not read from either.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "control/dispatch.h"
#include "sys/fd.h"
#include "sys/result.h"

namespace control {

class Server {
 public:
  // Listens at `path` (mode 0600), whose folder must be ours and writable for nobody else. A socket file that nobody
  // listens on is replaced; EADDRINUSE when somebody does. The thread starts at once.
  static sys::Result<std::unique_ptr<Server>> Start(const std::string& path, Handler handler);
  // Ends the thread (after the request it is in), closes the clients, removes the socket file.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  struct Client;
  Server(std::string path, Handler handler, sys::UniqueFd folder, sys::UniqueFd listener, sys::UniqueFd wake);
  void Loop();
  void Accept();
  // False: the client has gone or broke the rules.
  bool Serve(Client* client, short events);

  std::string path_;
  Handler handler_;
  sys::UniqueFd folder_;
  sys::UniqueFd listener_;
  sys::UniqueFd wake_;  // eventfd: the destructor writes it
  ino_t socket_inode_ = 0;
  std::vector<std::unique_ptr<Client>> clients_;
  std::thread thread_;
};

}  // namespace control
