// turnfs-engine: one executable in several roles, chosen by the first argument. The daemon starts `keeper`, `fsop` and
// `umount`; the keeper starts `engine`; people may want `dump` and `version`.
#include <stdio.h>

#include <string_view>

#include "control/version.h"
#include "fsop/fsop.h"
#include "journal/dump.h"
#include "keeper/engine.h"
#include "keeper/keeper.h"
#include "keeper/umount_role.h"

namespace {

constexpr char kUsage[] =
    "usage: turnfs-engine ROLE …\n"
    "  keeper --project-fd N --store-fd N --at DIR --control SOCKET [options]   mounts and stays\n"
    "  fsop                 requests on standard input, answers on standard output\n"
    "  umount DIR [--lazy]  unmounts\n"
    "  dump FILE            prints a journal file\n"
    "  version              prints the version\n";

int UsageError(const char* complaint) {
  fprintf(stderr, "turnfs-engine: %s\n%s", complaint, kUsage);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return UsageError("A role is missing.");
  std::string_view role = argv[1];
  // Each role sees itself as argv[0].
  int count = argc - 1;
  char** arguments = argv + 1;
  if (role == "keeper") return keeper::KeeperMain(count, arguments);
  if (role == "engine") return keeper::EngineMain(count, arguments);
  if (role == "umount") return keeper::UmountMain(count, arguments);
  if (role == "fsop") return count == 1 ? fsop::Main() : UsageError("fsop takes no arguments.");
  if (role == "dump") return count == 2 ? journal::DumpMain(arguments[1]) : UsageError("dump takes one file.");
  if (role == "version") {
    printf("%s\n", control::kVersion);
    return 0;
  }
  if (role == "--help" || role == "-h" || role == "help") {
    fputs(kUsage, stdout);
    return 0;
  }
  return UsageError("There is no such role.");
}
