#include "control/verbs.h"

#include <unistd.h>

#include "control/version.h"

namespace control {
namespace {

using session::Session;

struct Context {
  Session* session;
  EngineFacts facts;
};

using Verb = sys::Result<void> (*)(Context&, const Request&, Answer*);

void AddPosition(Answer* answer, const record::Position& position) {
  answer->AddUnsigned("epoch", position.epoch);
  answer->AddUnsigned("seq", position.seq);
}

sys::Result<void> Hello(Context& context, const Request&, Answer* answer) {
  answer->Add("version", kVersion);
  answer->AddUnsigned("session", context.facts.session);
  answer->AddSigned("pid", getpid());
  answer->AddSigned("keeper", context.facts.keeper);
  AddPosition(answer, context.session->position());
  answer->AddUnsigned("object", context.session->next_object());
  answer->AddUnsigned("pack", context.session->next_pack());
  answer->Add("mountpoint", context.facts.mountpoint);
  return {};
}

sys::Result<void> FlushBegin(Context& context, const Request&, Answer*) {
  context.session->FlushBegin();
  return {};
}

sys::Result<void> FlushEnd(Context& context, const Request&, Answer* answer) {
  answer->AddUnsigned("again", context.session->FlushEnd() ? 1 : 0);
  return {};
}

sys::Result<journal::SpanKind> ParseKind(const Request& request) {
  auto kind = request.Text("kind");
  if (!kind.ok()) return kind.error();
  if (kind.value() == "turn") return journal::SpanKind::kTurn;
  if (kind.value() == "mark") return journal::SpanKind::kMark;
  if (kind.value() == "between") return journal::SpanKind::kBetween;
  if (kind.value() == "rewind") return journal::SpanKind::kRewind;
  if (kind.value() == "redo") return journal::SpanKind::kRedo;
  return sys::Error{EINVAL, "kind"};
}

sys::Result<void> Advance(Context& context, const Request& request, Answer* answer) {
  record::SpanStart next;
  auto kind = ParseKind(request);
  if (!kind.ok()) return kind.error();
  auto lane = request.Unsigned("lane", UINT32_MAX);
  if (!lane.ok()) return lane.error();
  auto owner = request.UnsignedOr("owner", 0, INT32_MAX);
  if (!owner.ok()) return owner.error();
  next.kind = kind.value();
  next.lane = static_cast<record::Lane>(lane.value());
  next.owner_pid = static_cast<uint32_t>(owner.value());
  if (const std::string* token = request.Find("token")) next.token = *token;
  if (const std::string* meta = request.Find("meta")) next.meta = *meta;
  auto position = context.session->Advance(next);
  if (!position.ok()) return position.error();
  AddPosition(answer, position.value());
  answer->AddSigned("time", position.value().time_ns);
  return {};
}

sys::Result<void> Seal(Context& context, const Request&, Answer* answer) {
  auto position = context.session->Seal();
  if (!position.ok()) return position.error();
  answer->AddUnsigned("seq", position.value().seq);
  return {};
}

sys::Result<void> Sync(Context& context, const Request&, Answer*) { return context.session->Sync(); }

sys::Result<void> Door(Context& context, const Request& request, Answer* answer) {
  auto open = request.Unsigned("open", 1);
  if (!open.ok()) return open.error();
  if (open.value() == 0) {
    context.session->CloseDoor();
    return {};
  }
  auto name = context.session->OpenDoor();
  if (!name.ok()) return name.error();
  answer->Add("name", name.value());
  return {};
}

sys::Result<void> Status(Context& context, const Request&, Answer* answer) {
  session::Status status = context.session->status();
  const record::Counters& counters = context.session->counters();
  answer->AddUnsigned("requests", status.requests);
  answer->AddUnsigned("inodes", status.inodes);
  answer->AddUnsigned("fds", status.fds);
  answer->AddUnsigned("touches", counters.touches.load());
  answer->AddUnsigned("captured", counters.captured_bytes.load());
  answer->AddUnsigned("preserved", counters.preserved.load());
  answer->AddUnsigned("skipped", counters.skipped.load());
  answer->AddUnsigned("failures", counters.failures.load());
  answer->Add("io", status.io);
  answer->AddUnsigned("connection", context.facts.connection);
  return {};
}

sys::Result<void> Timeouts(Context& context, const Request& request, Answer*) {
  auto is_short = request.Unsigned("short", 1);
  if (!is_short.ok()) return is_short.error();
  context.session->SetShortTimeouts(is_short.value() == 1);
  return {};
}

sys::Result<void> Trace(Context& context, const Request& request, Answer*) {
  auto on = request.Unsigned("on", 1);
  if (!on.ok()) return on.error();
  context.session->SetTrace(on.value() == 1);
  return {};
}

constexpr struct {
  std::string_view name;
  Verb verb;
} kVerbs[] = {
    {"hello", Hello},        {"flush-begin", FlushBegin},
    {"flush-end", FlushEnd}, {"advance", Advance},
    {"seal", Seal},          {"sync", Sync},
    {"door", Door},          {"status", Status},
    {"trace", Trace},        {"timeouts", Timeouts},
};

}  // namespace

Handler MakeHandler(Session* session, EngineFacts facts) {
  return [context = Context{session, std::move(facts)}](const Request& request, Answer* answer) mutable {
    for (const auto& row : kVerbs) {
      if (row.name == request.verb) return row.verb(context, request, answer);
    }
    return sys::Result<void>(sys::Error{ENOSYS, "verb"});
  };
}

}  // namespace control
