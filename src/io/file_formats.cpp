// The table of extensions.
#include "io/file_formats.hpp"

#include <rosin/error.hpp>

namespace rosin {
namespace {

struct FormatRow {
  const char* extension;
  FileFormat format;
  bool writes;
};

constexpr FormatRow rows[] = {
    {".safetensors", FileFormat::safetensors, true},
    {".safetensors.index.json", FileFormat::safetensors_shards, true},
    {".bson", FileFormat::bson, true},
    {".jld2", FileFormat::jld2, true},
    {".npz", FileFormat::npz, true},
    {".npy", FileFormat::npy, true},
    {".pt", FileFormat::pytorch, false},
    {".pth", FileFormat::pytorch, false},
};

}  // namespace

FileFormat format_of(const char* op, const std::string& path, bool writes) {
  std::string supported;
  for (const FormatRow& row : rows) {
    const bool does = row.writes || !writes;
    if (does && path.ends_with(row.extension)) return row.format;
    if (does) supported += (supported.empty() ? "" : " ") + std::string(row.extension);
  }
  throw Error(ErrorKind::argument, std::string(op) + ": the extension of the file must name a supported format; got '" +
                                       path + "'; supported: " + supported);
}

}  // namespace rosin
