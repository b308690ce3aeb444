// Constants of the journal and of packs, shared by writer, reader and dump. The layout is described in FORMAT.md.
#pragma once

#include <cstddef>
#include <cstdint>

namespace journal {

constexpr uint32_t kFileMagic = 0x314a4654;  // "TFJ1"
constexpr uint16_t kVersion = 1;
constexpr size_t kFrameHeaderBytes = 20;
constexpr uint32_t kMaxPayloadBytes = 16u << 20;

constexpr char kPackMagic[4] = {'T', 'F', 'P', 'K'};
constexpr uint32_t kPackVersion = 1;
constexpr size_t kPackHeaderBytes = 16;
constexpr uint64_t kPackMaxBytes = 256ull << 20;

enum class RecordType : uint16_t {
  kFileHeader = 1,
  kSpan = 2,
  kProcess = 3,
  kBind = 4,
  kEntry = 5,
  kAttrs = 6,
  kData = 7,
  kPreserved = 8,
  kMoved = 9,
  kSkipped = 10,
  kUnmount = 11,
  kDropped = 12,
  kSeal = 13,
};

enum class SpanKind : uint8_t { kTurn = 1, kMark = 2, kBetween = 3, kRewind = 4, kRedo = 5 };
enum class ExtentKind : uint8_t { kHole = 0, kPack = 1, kBlob = 2 };
enum class PreservedHow : uint8_t { kRenamed = 1, kLinked = 2 };
enum class SkippedWhat : uint8_t { kEntry = 1, kAttrs = 2, kData = 3, kPreserve = 4 };

// Whose touch a record is.
using Lane = uint32_t;
constexpr Lane kUserLane = 0;
constexpr Lane kRewindLaneBit = 0x80000000u;

using ObjectId = uint64_t;
constexpr ObjectId kNoObject = 0;
constexpr ObjectId kRootObject = 1;

}  // namespace journal
