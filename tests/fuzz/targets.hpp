// What is fuzzed: one target for each kind of file that the library reads.
// Read next: targets.cpp (what each does), fuzz_files.cpp (the program), repair.cpp, seeds.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rosin::fuzz {

using FileBytes = std::vector<unsigned char>;

struct Target {
  const char* name;
  const char* extension;  // of its files
  void (*read)(const std::string& path);
  void (*repair)(FileBytes& file);                 // sets checksums right; null where the format has none
  void (*write_seeds)(const std::string& folder);  // files that rosin's writers make
  /// Memory that a reader may hold at a time: `fixed` bytes and `share` for each byte of the file.
  uint64_t fixed;
  uint64_t share;
};

std::span<const Target> targets();

/// Checksums of zip entries that are stored.
void repair_zip(FileBytes& file);
/// Checksums of HDF5's superblock and object headers.
void repair_hdf5(FileBytes& file);

/// Files `1.EXTENSION`, `2.EXTENSION`, ... that save, save_npy or a text make.
void write_models(const std::string& folder, const char* extension);
void write_checkpoint_seeds(const std::string& folder);
void write_npy_seeds(const std::string& folder);
void write_torch_seeds(const std::string& folder);
void write_onnx_seeds(const std::string& folder);
void write_toml_seeds(const std::string& folder);
void write_idx_seeds(const std::string& folder);
void write_image_seeds(const std::string& folder);
/// Checksums of the chunks of a PNG file.
void repair_png(FileBytes& file);

}  // namespace rosin::fuzz
