#include <cerrno>

#include "ops/directory_streams.h"
#include "ops/entry.h"
#include "ops/handlers.h"

namespace ops {
namespace {

constexpr size_t Align8(size_t n) { return (n + 7) & ~size_t{7}; }

bool IsDots(const char* name) { return name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0)); }

fuse_dirent MakeDirent(const DirectoryEntry& entry, size_t name_bytes) {
  fuse_dirent dirent{};
  dirent.ino = entry.ino;
  dirent.off = entry.next;
  dirent.namelen = static_cast<uint32_t>(name_bytes);
  dirent.type = entry.type;
  return dirent;
}

// Name and padding after a dirent.
void AppendName(const DirectoryEntry& entry, size_t name_bytes, size_t record_bytes, size_t used, fuse::Reply& reply) {
  reply.Append(entry.name, name_bytes);
  constexpr char kZeros[8] = {};
  reply.Append(kZeros, record_bytes - used - name_bytes);
}

// With its attributes, so that a walk needs no LOOKUP per entry. An entry that has just gone is left with nodeid 0: the
// kernel will ask by itself.
fuse_entry_out EntryOf(Context& context, inode::Inode& dir, const DirectoryEntry& entry) {
  fuse_entry_out out{};
  out.attr.ino = entry.ino;
  if (IsDots(entry.name)) return out;
  struct statx st {};
  auto found = context.inodes.LookUp(dir, entry.name, &st);
  if (!found.ok()) return out;
  out = MakeEntry(context, *found.value(), st, gate::Gate::Uncached(dir));
  context.inodes.AddLookup(*found.value());
  return out;
}

int Fill(Context& context, inode::Inode& dir, DirectoryStream& stream, uint64_t offset, size_t room, bool plus,
         fuse::Reply& reply) {
  std::lock_guard lock(stream.mutex);
  auto sought = stream.Seek(offset);
  if (!sought.ok()) return sought.error().number;
  for (;;) {
    DirectoryEntry entry{};
    auto more = stream.Next(&entry);
    if (!more.ok()) return reply.bytes() > 0 ? 0 : more.error().number;
    if (!more.value()) return 0;
    if (context.gate.CheckVisible(dir, entry.name) != 0) continue;
    size_t name_bytes = strlen(entry.name);
    size_t used = (plus ? sizeof(fuse_direntplus) : sizeof(fuse_dirent));
    size_t record_bytes = Align8(used + name_bytes);
    if (reply.bytes() + record_bytes > room) {
      stream.Back();
      return 0;
    }
    if (plus) reply.Send(EntryOf(context, dir, entry));
    reply.Send(MakeDirent(entry, name_bytes));
    AppendName(entry, name_bytes, record_bytes, used, reply);
  }
}

int ReadEntries(Context& context, const fuse::Request& request, fuse::Reply& reply, bool plus) {
  inode::Ref dir = context.inodes.Find(request.nodeid());
  if (!dir) return ESTALE;
  auto in = request.arg<fuse_read_in>();
  size_t room = in.size < reply.capacity() ? in.size : reply.capacity();
  if (!context.stateless_readdir) {
    auto stream = context.streams.Find(in.fh);
    if (!stream) return EBADF;
    return Fill(context, *dir, *stream, in.offset, room, plus, reply);
  }
  auto stream = context.streams.Take(*dir, in.offset);
  if (!stream.ok()) return stream.error().number;
  int error = Fill(context, *dir, *stream.value(), in.offset, room, plus, reply);
  if (error == 0 && reply.bytes() > 0) context.streams.Keep(request.nodeid(), std::move(stream.value()));
  return error;
}

}  // namespace

int OpenDir(Context& context, const fuse::Request& request, fuse::Reply& reply) {
  if (context.stateless_readdir) return ENOSYS;
  inode::Ref dir = context.inodes.Find(request.nodeid());
  if (!dir) return ESTALE;
  auto handle = context.streams.Open(*dir);
  if (!handle.ok()) return handle.error().number;
  fuse_open_out out{};
  out.fh = handle.value();
  reply.Send(out);
  return 0;
}

int ReleaseDir(Context& context, const fuse::Request& request, fuse::Reply&) {
  context.streams.Close(request.arg<fuse_release_in>().fh);
  return 0;
}

int ReadDir(Context& context, const fuse::Request& request, fuse::Reply& reply) {
  return ReadEntries(context, request, reply, false);
}

int ReadDirPlus(Context& context, const fuse::Request& request, fuse::Reply& reply) {
  return ReadEntries(context, request, reply, true);
}

}  // namespace ops
