// Objects get their id when a record first names them: a Bind record says which inode the id means.
#include <algorithm>

#include "record/recorder_impl.h"

namespace record {
namespace {

// Renames behind our back can turn a chain of parents into a ring while it is walked.
constexpr size_t kMaxDepth = 2048;

// `chain` goes upwards and ends with the store folder: takes off what is the store's own (the folder, preserved/ or
// nameless/ with the shard, or staging/). What is left, if anything, is in a staged directory.
void CutStoreFolders(std::vector<Subject*>* chain) {
  chain->pop_back();
  if (chain->empty()) return;
  const std::string folder = chain->back()->name();
  chain->pop_back();
  if ((folder == "preserved" || folder == "nameless") && !chain->empty()) chain->pop_back();
}

}  // namespace

ObjectId RecorderImpl::AddBind(Subject& subject, ObjectId parent, std::string_view name, journal::Batch* batch) {
  const Identity identity = subject.identity();
  const bool root = IsRoot(identity);
  journal::BindRecord record;
  record.object = root ? journal::kRootObject : next_object_.fetch_add(1, std::memory_order_relaxed);
  record.born = subject.touch().ever_born;
  record.mode = identity.mode;
  record.dev = identity.dev;
  record.ino = identity.ino;
  record.birth_ns = identity.birth_ns;
  record.parent = root ? journal::kNoObject : parent;
  record.name = root ? std::string_view() : name;
  record.handle = identity.handle;
  batch->Add(record);
  return record.object;
}

sys::Result<ObjectId> RecorderImpl::BindParents(Subject& subject) {
  std::vector<Subject*> chain;  // unbound ancestors, nearest first
  ObjectId id = journal::kNoObject;
  Subject* at = subject.parent();
  for (; at != nullptr && chain.size() < kMaxDepth; at = at->parent()) {
    const Locked lock(*at);
    id = at->touch().object;
    if (id != journal::kNoObject) break;
    chain.push_back(at);
  }
  // The top was reached. Objects whose place is not known hang from nothing.
  if (id == journal::kNoObject && !chain.empty() && IsStore(chain.back()->identity())) CutStoreFolders(&chain);
  for (auto next = chain.rbegin(); next != chain.rend(); ++next) {
    Subject& ancestor = **next;
    const std::string name = ancestor.name();
    const Locked lock(ancestor);
    TouchState& state = ancestor.touch();
    if (state.object == journal::kNoObject) {
      journal::Batch batch;
      const ObjectId given = AddBind(ancestor, id, name, &batch);
      if (auto appended = journal_->Append(&batch); !appended.ok()) return appended.error();
      state.object = given;
    }
    id = state.object;
  }
  return id;
}

sys::Result<ObjectId> RecorderImpl::Bind(Subject& subject) {
  {
    const Locked lock(subject);
    if (subject.touch().object != journal::kNoObject) return subject.touch().object;
  }
  auto parent = BindParents(subject);
  if (!parent.ok()) return parent.error();
  const std::string name = subject.name();
  const Locked lock(subject);
  TouchState& state = subject.touch();
  if (state.object == journal::kNoObject) {
    journal::Batch batch;
    const ObjectId given = AddBind(subject, parent.value(), name, &batch);
    if (auto appended = journal_->Append(&batch); !appended.ok()) return appended.error();
    state.object = given;
  }
  return state.object;
}

std::string RecorderImpl::PathHint(Subject& subject) {
  std::vector<std::string> names;
  size_t bytes = 0;
  for (Subject* at = &subject; at != nullptr && bytes < 4096 && names.size() < 256; at = at->parent()) {
    std::string name = at->name();
    if (name.empty()) break;  // the project folder
    bytes += name.size() + 1;
    names.push_back(std::move(name));
  }
  std::string path;
  path.reserve(bytes);
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    if (!path.empty()) path += '/';
    path += *name;
  }
  return path;
}

}  // namespace record
