// Opening a store for recording, and spans.
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "record/clock.h"
#include "record/recorder_impl.h"

namespace record {
namespace {

sys::Result<sys::UniqueFd> OpenFolder(int store_fd, const char* name) {
  if (mkdirat(store_fd, name, 0700) != 0 && errno != EEXIST) return sys::LastError("mkdirat(store)");
  sys::UniqueFd fd(openat(store_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return sys::LastError("openat(store)");
  return fd;
}

}  // namespace

sys::Result<std::unique_ptr<Recorder>> Recorder::Open(const Options& options, const SpanStart& first) {
  auto recorder = std::make_unique<RecorderImpl>(options);
  if (auto started = recorder->Start(first); !started.ok()) return started.error();
  return std::unique_ptr<Recorder>(std::move(recorder));
}

RecorderImpl::RecorderImpl(const Options& options)
    : options_(options),
      epoch_(options.epoch),
      next_object_(options.next_object),
      place_number_(options.next_seq),
      numbers_(options.next_pack) {}

RecorderImpl::~RecorderImpl() {
  if (processes_ != nullptr) processes_->Close();
}

sys::Result<void> RecorderImpl::Start(const SpanStart& first) {
  struct stat st;
  if (fstat(options_.project_fd, &st) != 0) return sys::LastError("fstat(project)");
  project_dev_ = st.st_dev;
  root_ino_ = st.st_ino;
  if (fstat(options_.store_fd, &st) != 0) return sys::LastError("fstat(store)");
  store_dev_ = st.st_dev == project_dev_ ? 0 : st.st_dev;
  store_ino_ = st.st_ino;
  struct statfs fs;
  if (fstatfs(options_.store_fd, &fs) != 0) return sys::LastError("fstatfs(store)");
  inodes_stay_ = static_cast<uint32_t>(fs.f_type) != OVERLAYFS_SUPER_MAGIC;

  struct Folder {
    const char* name;
    sys::UniqueFd* fd;
  };
  for (const Folder& folder : {Folder{"journal", &journal_fd_}, {"packs", &packs_fd_}, {"blobs", &blobs_fd_}}) {
    auto opened = OpenFolder(options_.store_fd, folder.name);
    if (!opened.ok()) return opened.error();
    *folder.fd = std::move(opened.value());
  }
  if (auto prepared = StoredLinks::Prepare(options_.store_fd); !prepared.ok()) return prepared;
  if (auto opened = heartbeat_.Open(options_.store_fd); !opened.ok()) return opened;

  // 0: nobody chose one (unit tests).
  uint64_t session = options_.session;
  if (session == 0 && getrandom(&session, sizeof session, 0) != sizeof session) return sys::LastError("getrandom");
  links_ = std::make_unique<StoredLinks>(options_.store_fd, project_dev_);
  packs_ = std::make_unique<pack::Writer>(packs_fd_.get(), session, &numbers_);
  blobs_ = std::make_unique<pack::Blobs>(blobs_fd_.get(), &numbers_);
  preimage_ = std::make_unique<Preimage>(packs_.get(), blobs_.get());
  journal::Writer::Options journal_options;
  journal_options.journal_fd = journal_fd_.get();
  journal_options.next_seq = options_.next_seq;
  journal_options.session = session;
  auto journal = journal::Writer::Open(journal_options);
  if (!journal.ok()) return journal.error();
  journal_ = std::move(journal.value());

  auto side = SideThreads::Start();
  if (!side.ok()) return side.error();
  side_ = std::move(side.value());
  auto processes = ProcessTable::Open(side_.get(), [this](const journal::ProcessRecord& record) {
    journal::Batch batch;
    batch.Add(record);
    AppendOrWait(&batch);
  });
  if (!processes.ok()) return processes.error();
  processes_ = std::move(processes.value());

  const int64_t now = NowNs();
  journal::Batch batch;
  batch.Add(journal::SpanRecord{epoch(), first.kind, first.lane, now, first.meta});
  if (auto appended = journal_->Append(&batch); !appended.ok()) return appended.error();
  span_time_ns_ = now;
  if (first.owner_pid != 0 || !first.token.empty()) processes_->AddOwner(first.lane, first.owner_pid, first.token);
  processes_->BeginSpan(first.lane);
  heartbeat_.BeatAt(now);
  return {};
}

RecorderImpl::Hand RecorderImpl::MakeHand(Toucher by) {
  Hand hand;
  hand.who = processes_->Identify(by);
  hand.stamp = MakeStamp(epoch(), hand.who.lane);
  hand.touch = journal::Touch{epoch(), hand.who.lane, hand.who.proc, NowNs()};
  return hand;
}

sys::Error RecorderImpl::Failed(sys::Error error) {
  counters_.failures.fetch_add(1, std::memory_order_relaxed);
  return error;
}

void RecorderImpl::AppendOrWait(journal::Batch* batch) {
  if (!journal_->AppendOrWait(batch)) counters_.failures.fetch_add(1, std::memory_order_relaxed);
}

sys::Result<Position> RecorderImpl::Advance(const SpanStart& next) {
  const int64_t now = NowNs();
  journal::Batch batch;
  batch.Add(journal::SpanRecord{epoch() + 1, next.kind, next.lane, now, next.meta});
  auto seq = journal_->Append(&batch);
  if (!seq.ok()) return Failed(seq.error());
  epoch_.fetch_add(1, std::memory_order_relaxed);
  span_time_ns_.store(now, std::memory_order_relaxed);
  if (next.owner_pid != 0 || !next.token.empty()) processes_->AddOwner(next.lane, next.owner_pid, next.token);
  processes_->BeginSpan(next.lane);
  // Stamps of the old epoch match nothing any more, so the tables could stay; they are only memory.
  auto entries = std::make_shared<std::vector<EntrySet::Stamps>>(entries_.Clear());
  auto chunks = std::make_shared<ChunkTable::Rows>(chunks_.Clear());
  side_->Post([entries = std::move(entries), chunks = std::move(chunks)] {});
  heartbeat_.BeatAt(now);
  return Position{epoch(), seq.value(), now};
}

sys::Result<Position> RecorderImpl::Seal() {
  auto seq = journal_->Seal();
  if (!seq.ok()) return Failed(seq.error());
  return Position{epoch(), seq.value(), span_time_ns_.load(std::memory_order_relaxed)};
}

sys::Result<void> RecorderImpl::Sync() {
  if (journal_->synced_seq() >= journal_->last_seq()) return {};
  // Bytes first: a record on stable storage must not name bytes that aren't.
  if (auto synced = packs_->Sync(); !synced.ok()) return Failed(synced.error());
  if (auto synced = blobs_->Sync(); !synced.ok()) return Failed(synced.error());
  if (auto synced = journal_->Sync(); !synced.ok()) return Failed(synced.error());
  return {};
}

void RecorderImpl::Unmounted() {
  processes_->Close();
  journal::Batch batch;
  batch.Add(journal::UnmountRecord{NowNs()});
  AppendOrWait(&batch);
  if (!journal_->Close().ok()) counters_.failures.fetch_add(1, std::memory_order_relaxed);
  // Nothing can hold a nameless inode of this mount any more.
  if (!StoredLinks::Prepare(options_.store_fd).ok()) counters_.failures.fetch_add(1, std::memory_order_relaxed);
  heartbeat_.Beat();
}

Position RecorderImpl::position() const {
  return Position{epoch(), journal_->last_seq(), span_time_ns_.load(std::memory_order_relaxed)};
}

void RecorderImpl::AddLaneOwner(Lane lane, uint32_t pid, const std::string& token) {
  processes_->AddOwner(lane, pid, token);
}

}  // namespace record
