{
  # Every native/**/*.cc is part of the one executable; the list is the folder itself.
  "targets": [
    {
      "target_name": "turnfs-engine",
      "type": "executable",
      "sources": ["<!@(node scripts/native-sources.mjs)"],
      "include_dirs": ["native"],
      "cflags!": ["-fno-exceptions", "-fno-rtti"],
      "cflags_cc!": ["-fno-exceptions", "-fno-rtti", "-std=gnu++17", "-std=gnu++20"],
      "cflags_cc": ["-std=c++20", "-O2", "-g", "-Wall", "-Wextra", "-Wshadow", "-Wvla", "-fno-exceptions"],
      "defines": ["_GNU_SOURCE", "_FILE_OFFSET_BITS=64"],
      "libraries": ["-lpthread"]
    }
  ]
}
