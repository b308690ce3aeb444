// Large files on a file system with reflinks are cloned whole: no byte is read.
#include "record/test_world.h"

namespace {

using namespace journal;
using test::TempFolder;
using test::World;

void LargeFilesAreCloned() {
  TempFolder folder;
  if (!folder.MountReflinks("disk")) return;
  World world(folder / "disk/project", folder / "disk/store");
  const std::string bytes = test::Noise(3 << 20, 1);
  const std::string path = world.Path("f");
  test::WriteFile(path, bytes.substr(0, 1 << 20));
  test::WriteFile(path, bytes.substr(2 << 20), 2 << 20);  // a hole in the middle
  CHECK(truncate(path.c_str(), 5 << 20) == 0);            // and one at the end
  test::WriteFile(world.Path("small"), "small");
  if (!world.Open()) return;
  auto& recorder = *world.recorder;
  CHECK(recorder.TouchData(world.At("f"), 0, 1, world.me).ok());
  test::WriteFile(path, "changed", 10);
  CHECK(recorder.TouchData(world.At("f"), 0, UINT64_MAX, world.me).ok());
  CHECK(truncate(path.c_str(), 0) == 0);
  CHECK(recorder.TouchData(world.At("small"), 0, 1, world.me).ok());
  CHECK(recorder.Sync().ok());
  const auto data = world.Records().All<DataRecord>();
  CHECK(data.size() == 2 && data[0].whole && data[0].size == 5 << 20);
  CHECK(data[0].extents.size() == 4 && data[0].extents[1].kind == ExtentKind::kHole);
  CHECK(data[0].extents[0].kind == ExtentKind::kBlob && data[0].extents[0].xxh64 == 0);
  CHECK(data[0].extents[2].file_offset == 2 << 20);
  std::string expected = bytes;
  expected.replace(1 << 20, 1 << 20, 1 << 20, '\0');
  expected.append(2 << 20, '\0');
  CHECK(world.StoredWhole(data[0]) == expected);
  CHECK(data[1].extents[0].kind == ExtentKind::kPack && world.StoredWhole(data[1]) == "small");
  // The blob is as sparse as the file was.
  struct stat st;
  CHECK(stat((folder / "disk/store/blobs/0000000000000001").c_str(), &st) == 0);
  CHECK(st.st_size == 5 << 20 && st.st_blocks * 512 < 3 << 20);
  CHECK(recorder.counters().captured_bytes == 5);
  CHECK(recorder.next_pack() == 3);
}

// A store that can't have clones is asked once, and leaves no empty blobs.
void WithoutReflinksChunksAreTaken() {
  TempFolder folder;
  World world(folder);
  test::WriteFile(world.Path("f"), test::Noise(2 << 20, 1));
  test::WriteFile(world.Path("g"), test::Noise(2 << 20, 2));
  if (!world.Open()) return;
  CHECK(world.recorder->TouchData(world.At("f"), 70000, 1, world.me).ok());
  CHECK(world.recorder->TouchData(world.At("g"), 70000, 1, world.me).ok());
  const auto data = world.Records().All<DataRecord>();
  CHECK(data.size() == 2 && !data[0].whole && data[0].extents.size() == 1 && data[0].extents[0].offset == 65536);
  CHECK(data[0].extents[0].length == 65536);
  CHECK(rmdir(world.StorePath("blobs").c_str()) == 0);
  CHECK(world.recorder->next_pack() == 3);  // the attempt, the pack
}

}  // namespace

int main() {
  LargeFilesAreCloned();
  WithoutReflinksChunksAreTaken();
  return check::Finish("record/reflink_test");
}
