#include "keeper/umount_role.h"

#include <getopt.h>
#include <stdio.h>

#include "control/errno_name.h"
#include "keeper/mount.h"

namespace keeper {

int UmountMain(int argc, char** argv) {
  constexpr option kOptions[] = {{"lazy", no_argument, nullptr, 'l'}, {nullptr, 0, nullptr, 0}};
  bool lazy = false;
  opterr = 0;
  optind = 1;
  for (int name; (name = getopt_long(argc, argv, "l", kOptions, nullptr)) != -1;) {
    if (name != 'l') {
      fprintf(stderr, "turnfs-engine: umount has no option %s.\n", argv[optind - 1]);
      return 2;
    }
    lazy = true;
  }
  if (optind + 1 != argc || argv[optind][0] != '/') {
    fprintf(stderr, "turnfs-engine: umount takes one absolute path.\n");
    return 2;
  }
  const char* path = argv[optind];
  auto entry = FindMount(path);
  Failure failure;
  if (!entry.has_value() || entry->type != kMountType) {
    failure = {EINVAL, "mount-table", std::string(path) + " has no turnfs mounted on it"};
  } else {
    failure = Unmount(path, lazy);
  }
  if (!failure.failed()) return 0;
  fprintf(stderr, "turnfs-engine: %s (%s).\n", failure.message.c_str(), control::ErrnoName(failure.number));
  return 1;
}

}  // namespace keeper
