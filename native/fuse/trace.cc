#include "fuse/trace.h"

#include <stdio.h>

#include <string>

namespace fuse {
namespace {

// Control characters and bytes outside ASCII would break the line.
std::string Escaped(const char* name) {
  std::string text;
  for (; *name != 0; ++name) {
    auto c = static_cast<unsigned char>(*name);
    if (c > ' ' && c < 0x7f && c != '\\') {
      text += *name;
    } else {
      char hex[5];
      snprintf(hex, sizeof(hex), "\\x%02x", c);
      text += hex;
    }
  }
  return text;
}

std::string Arguments(const Request& request) {
  char text[160] = "";
  switch (request.header().opcode) {
    case FUSE_READ:
    case FUSE_READDIR:
    case FUSE_READDIRPLUS: {
      auto in = request.arg<fuse_read_in>();
      snprintf(text, sizeof(text), " off=%llu len=%u", static_cast<unsigned long long>(in.offset), in.size);
      break;
    }
    case FUSE_WRITE: {
      auto in = request.arg<fuse_write_in>();
      snprintf(text, sizeof(text), " off=%llu len=%u%s", static_cast<unsigned long long>(in.offset), in.size,
               in.write_flags & FUSE_WRITE_CACHE ? " writeback" : "");
      break;
    }
    case FUSE_SETATTR: {
      auto in = request.arg<fuse_setattr_in>();
      snprintf(text, sizeof(text), " valid=%#x size=%llu mode=%o", in.valid, static_cast<unsigned long long>(in.size),
               in.mode);
      break;
    }
    case FUSE_RENAME2: {
      auto in = request.arg<fuse_rename2_in>();
      snprintf(text, sizeof(text), " to=n%llu flags=%#x", static_cast<unsigned long long>(in.newdir), in.flags);
      break;
    }
    case FUSE_FALLOCATE: {
      auto in = request.arg<fuse_fallocate_in>();
      snprintf(text, sizeof(text), " off=%llu len=%llu mode=%#x", static_cast<unsigned long long>(in.offset),
               static_cast<unsigned long long>(in.length), in.mode);
      break;
    }
    default:
      break;
  }
  return text;
}

}  // namespace

void Trace::Line(const char* opcode, const Request& request, const Reply& reply, int error,
                 uint64_t microseconds) const {
  std::string names;
  for (unsigned i = 0; i < 2 && request.name(i) != nullptr; ++i) names += " " + Escaped(request.name(i));
  fprintf(stderr, "tx %llu %s n%llu%s%s pid=%u bytes=%zu → %d %lluµs\n",
          static_cast<unsigned long long>(request.header().unique), opcode,
          static_cast<unsigned long long>(request.nodeid()), names.c_str(), Arguments(request).c_str(), request.tid(),
          reply.bytes(), error, static_cast<unsigned long long>(microseconds));
}

}  // namespace fuse
