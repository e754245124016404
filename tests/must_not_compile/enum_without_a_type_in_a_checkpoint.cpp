// says: an enum in a checkpoint needs an integer type: enum Phase : uint8_t
#include <rosin/checkpoint.hpp>

enum Phase { warm, full };
struct Settings {
  Phase phase = warm;
};
Settings settings;
rosin::CheckpointEntry entry("settings", settings);
