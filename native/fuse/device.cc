#include "fuse/device.h"

#include <signal.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "fuse/init.h"
#include "ops/optable.h"
#include "sys/credentials.h"

namespace fuse {
namespace {

// The kernel wants room for the largest WRITE with its headers, else it cuts writes or refuses to hand out anything.
constexpr size_t kMessageBytes = kMaxWrite + 65536;
constexpr size_t kReplyBytes = kMaxWrite + 65536;
constexpr int kWakeSignal = SIGUSR1;

void InstallWakeSignal() {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  action.sa_flags = 0;  // no SA_RESTART: read(2) must come back
  sigaction(kWakeSignal, &action, nullptr);
}

struct FreeDeleter {
  void operator()(std::byte* bytes) const { std::free(bytes); }
};
using Buffer = std::unique_ptr<std::byte, FreeDeleter>;

Buffer MakeBuffer(size_t bytes) { return Buffer(static_cast<std::byte*>(std::aligned_alloc(4096, bytes))); }

uint64_t MicrosecondsSince(std::chrono::steady_clock::time_point start) {
  auto passed = std::chrono::steady_clock::now() - start;
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(passed).count());
}

}  // namespace

int Workers::Run(unsigned threads) {
  InstallWakeSignal();
  for (unsigned i = 0; i < threads; ++i) workers_.push_back(std::make_unique<Worker>());
  for (auto& worker : workers_) worker->thread = std::thread([this, &worker] { Serve(*worker); });
  for (auto& worker : workers_) worker->thread.join();
  return end_error_.load();
}

void Workers::Serve(Worker& worker) {
  Buffer in = MakeBuffer(kMessageBytes), out = MakeBuffer(kReplyBytes);
  if (!in || !out || !sys::PrepareWorkerThread()) {
    EndWith(errno != 0 ? errno : ENOMEM);
  } else {
    bool more = true;
    while (more && !ended_.load(std::memory_order_relaxed)) {
      more = ServeOne(in.get(), out.get());
      // It has nothing in hand now, so whatever it had when that drain began is answered.
      worker.came_round.store(drain_.load(std::memory_order_acquire), std::memory_order_release);
    }
  }
  worker.ended.store(true, std::memory_order_release);
}

void Workers::Drain() {
  uint64_t mine = drain_.fetch_add(1, std::memory_order_acq_rel) + 1;
  for (auto& worker : workers_) {
    // The signal can fall just before the worker's read: send it again until the worker has come
    // round.
    while (worker->came_round.load(std::memory_order_acquire) < mine &&
           !worker->ended.load(std::memory_order_acquire)) {
      pthread_kill(worker->thread.native_handle(), kWakeSignal);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

bool Workers::ServeOne(std::byte* in, std::byte* out) {
  ssize_t n = read(fuse_fd_, in, kMessageBytes);
  if (n < 0) {
    // ENOENT: the request was given up before it was read.
    if (errno == EINTR || errno == EAGAIN || errno == ENOENT) return true;
    EndWith(errno == ENODEV ? 0 : errno);
    return false;
  }
  std::span<const std::byte> message(in, static_cast<size_t>(n));
  if (message.size() < sizeof(fuse_in_header)) {
    EndWith(EIO);
    return false;
  }
  fuse_in_header header;
  std::memcpy(&header, message.data(), sizeof(header));
  requests_.fetch_add(1, std::memory_order_relaxed);
  Handle(header, message, out);
  return true;
}

void Workers::Handle(const fuse_in_header& header, std::span<const std::byte> message, std::byte* out) {
  Reply reply(out, kReplyBytes);
  // Operations are short and never wait for another message, so there is nothing to interrupt.
  if (header.opcode == FUSE_INTERRUPT) return;
  if (header.opcode == FUSE_INIT) return Answer(header.unique, HandleInit(message, reply), reply);
  if (header.opcode == FUSE_DESTROY) return Answer(header.unique, 0, reply);
  const ops::Row* row = ops::FindRow(header.opcode);
  if (row == nullptr) {
    static std::atomic<uint64_t> told[2];
    uint64_t bit = uint64_t{1} << (header.opcode & 63);
    if ((told[(header.opcode >> 6) & 1].fetch_or(bit) & bit) == 0)
      fprintf(stderr, "refused: opcode %u has no handler\n", header.opcode);
    return Answer(header.unique, ENOSYS, reply);
  }
  Request request;
  if (!request.Parse(message, row->arg_bytes, row->names, row->free_names)) {
    fprintf(stderr, "refused: a malformed %s message of %zu bytes\n", row->name, message.size());
    bool answered = header.opcode != FUSE_FORGET && header.opcode != FUSE_BATCH_FORGET;
    if (answered) Answer(header.unique, EIO, reply);
    return;
  }
  bool traced = trace_.on();
  auto start = traced ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
  int error = row->handler(context_, request, reply);
  if (error < 0 || error >= 4096) {
    fprintf(stderr, "bug: %s gave the errno %d\n", row->name, error);
    error = EIO;
  }
  if (traced) trace_.Line(row->name, request, reply, error, MicrosecondsSince(start));
  if (!reply.silent()) Answer(header.unique, error, reply);
}

int Workers::HandleInit(std::span<const std::byte> message, Reply& reply) {
  fuse_init_in in{};
  size_t bytes = message.size() - sizeof(fuse_in_header);
  std::memcpy(&in, message.data() + sizeof(fuse_in_header), bytes < sizeof(in) ? bytes : sizeof(in));
  fuse_init_out out;
  if (const char* why = Negotiate(in, &out)) {
    fprintf(stderr, "%s\n", why);
    return EPROTO;
  }
  reply.Send(out);
  initialised_.store(true, std::memory_order_release);
  return 0;
}

void Workers::Answer(uint64_t unique, int error, const Reply& reply) {
  size_t bytes = error == 0 ? reply.bytes() : 0;
  fuse_out_header header{};
  header.len = static_cast<uint32_t>(sizeof(header) + bytes);
  header.error = -error;
  header.unique = unique;
  iovec parts[2] = {{&header, sizeof(header)}, {const_cast<Reply&>(reply).buffer(), bytes}};
  ssize_t n;
  do {
    n = writev(fuse_fd_, parts, bytes > 0 ? 2 : 1);
  } while (n < 0 && errno == EINTR);
  if (n >= 0) return;
  // ENOENT: the caller was killed meanwhile, and the kernel has not taken the nodeid that the answer gave.
  if (errno == ENOENT) {
    if (reply.given_lookup() != 0 && error == 0) context_.inodes.Forget(reply.given_lookup(), 1);
    return;
  }
  if (errno != ENODEV) fprintf(stderr, "an answer of %u bytes was refused: errno %d\n", header.len, errno);
}

void Workers::EndWith(int error) {
  if (!ended_.exchange(true)) end_error_.store(error);
}

}  // namespace fuse
