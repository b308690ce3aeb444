#include "session/session.h"

#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/vfs.h>

#include <algorithm>

#include "fuse/device.h"
#include "gate/gate.h"
#include "inode/table.h"
#include "ops/context.h"
#include "ops/directory_streams.h"
#include "session/truncate_watch.h"

namespace session {
namespace {

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

// Directory cookies that hold across opens: hashes (ext4) or positions in a tree (xfs, btrfs).
bool HasStableCookies(int project_fd) {
  struct statfs st {};
  if (fstatfs(project_fd, &st) != 0) return false;
  return st.f_type == EXT4_SUPER_MAGIC || st.f_type == XFS_SUPER_MAGIC || st.f_type == BTRFS_SUPER_MAGIC;
}

// Half of what the process may open is for the caches; streams, packs and sockets want some too.
size_t CacheDescriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 256;
  return std::clamp<size_t>(limit.rlim_cur / 2, 64, 16384);
}

class SessionImpl final : public Session {
 public:
  SessionImpl(const Options& options, std::unique_ptr<record::Recorder> recorder, std::unique_ptr<inode::Table> inodes)
      : threads_(options.threads),
        recorder_(std::move(recorder)),
        inodes_(std::move(inodes)),
        gate_(*inodes_, *recorder_),
        streams_(*inodes_),
        context_{*inodes_, gate_, streams_, truncates_},
        workers_(options.fuse_fd, context_) {
    context_.stateless_readdir = HasStableCookies(options.project_fd);
    workers_.trace().Set(options.trace);
    inodes_->SetOnGone(
        [this](const std::string& place, record::ObjectId object) { recorder_->ForgetNameless(place, object); });
  }

  int Run() override {
    int error = workers_.Run(threads_);
    recorder_->Unmounted();
    return error;
  }

  void FlushBegin() override { truncates_.FlushBegin(); }
  bool FlushEnd() override { return truncates_.FlushEnd(); }

  sys::Result<record::Position> Advance(const record::SpanStart& next) override {
    workers_.Drain();
    gate::ExclusiveBarrier alone(gate_.barrier());
    return recorder_->Advance(next);
  }

  sys::Result<record::Position> Seal() override { return recorder_->Seal(); }
  sys::Result<void> Sync() override { return recorder_->Sync(); }
  sys::Result<std::string> OpenDoor() override { return gate_.OpenDoor(); }
  void CloseDoor() override { gate_.CloseDoor(); }

  Status status() override {
    Status status;
    status.requests = workers_.requests();
    status.inodes = inodes_->size();
    status.fds = inodes_->descriptors();
    return status;
  }

  const record::Counters& counters() override { return recorder_->counters(); }
  record::Position position() override { return recorder_->position(); }
  uint64_t next_object() override { return recorder_->next_object(); }
  uint64_t next_pack() override { return recorder_->next_pack(); }
  void SetShortTimeouts(bool on) override { context_.short_timeouts.store(on); }
  void SetTrace(bool on) override { workers_.trace().Set(on); }

 private:
  unsigned threads_;
  std::unique_ptr<record::Recorder> recorder_;
  std::unique_ptr<inode::Table> inodes_;
  gate::Gate gate_;
  ops::DirectoryStreams streams_;
  TruncateWatch truncates_;
  ops::Context context_;
  fuse::Workers workers_;
};

}  // namespace

sys::Result<std::unique_ptr<Session>> Session::Start(Options options) {
  auto recorder = record::Recorder::Open(options.recorder, options.first_span);
  if (!recorder.ok()) return recorder.error();
  for (const LaneOwner& owner : options.lane_owners) recorder.value()->AddLaneOwner(owner.lane, owner.pid, owner.token);
  inode::Options table;
  table.project_fd = options.project_fd;
  table.store_fd = options.store_fd;
  table.opener = options.opener;
  table.max_descriptors = CacheDescriptors();
  auto inodes = inode::Table::Open(table);
  if (!inodes.ok()) return inodes.error();
  return std::unique_ptr<Session>(
      std::make_unique<SessionImpl>(options, std::move(recorder.value()), std::move(inodes.value())));
}

}  // namespace session
