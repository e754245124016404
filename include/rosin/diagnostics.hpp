// What rosin finds on this machine, and why: plug-ins file by file, devices, what chooses the back end, the
// environment. For the command `rosin` and for reports of faults; programs that use devices need device.hpp only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <rosin/device.hpp>
#include <rosin/export.hpp>

namespace rosin {

// --- Back ends.

/// A plug-in file that was looked for, and why it is not used; the reason is empty for the one that is.
struct TriedFile {
  std::string path;
  std::string reason;
};

/// One fact of a device: "multiprocessors", "132". Facts that are unknown, or none of its kind, are left out.
struct DeviceFact {
  std::string name;
  std::string value;
};

/// What a back end says of one of its devices. The texts are empty for the CPU.
struct DeviceReport {
  Device device;
  std::string driver;             // the driver and its version
  std::string capability;         // what compilers call the hardware: "sm_75", "gfx1030"
  std::string pci;                // "0000:65:00.0", or empty
  bool float64;                   // whether it computes in Float64
  std::vector<DeviceFact> facts;  // what else it says of itself; none of the CPU
};

/// A library of the vendor, or an ability, that a plug-in found or looked for: "MIOpen", "3.1.0".
struct Capability {
  std::string name;
  std::string version;  // may be empty
  std::string reason;   // why it cannot be used; empty when it can
};

struct BackendReport {
  std::string backend;                // "CUDA"
  std::string reason;                 // why it is not functional; empty when it is
  std::string version;                // of the plug-in
  std::vector<Capability> found;      // libraries of the vendor, and abilities
  std::vector<TriedFile> tried;       // in the order of the search, up to the file that is used; none for the CPU
  std::vector<DeviceReport> devices;  // all of them, in the order of their ids
};

/// Loads the plug-in of a back end, whatever the preferences say, and asks it what it has. Error (argument): no such
/// back end.
ROSIN_API BackendReport backend_report(std::string_view backend);

// --- Plug-ins that might crash. A probe belongs into a child process, its result into the record.

namespace detail {

/// The files in which the plug-in of a back end is looked for, in the order of the search, there or not. None for the
/// CPU. Error (argument): no such back end.
ROSIN_API std::vector<std::string> plugin_files(std::string_view backend);

/// What a plug-in did when everything was asked of it that rosin asks before it computes.
struct PluginProbe {
  bool loaded = false;  // it is a plug-in of this version
  std::string reason;   // why it was not loaded, or why it has no device that works; else empty
  std::string version;  // as BackendReport's
  int32_t devices = 0;  // how many were opened and closed again
};
/// Loads one file and opens each of its devices once, in this process. The file's name says which back end it is:
/// librosin_cuda.so.
ROSIN_API PluginProbe probe_plugin(const std::string& path);

/// Notes how a probe of a file ended, for this process and, in the cache folder, for those to come: a file that crashed
/// is not loaded until it changes or a later probe goes well. Where that folder cannot be written, later processes do
/// not know.
ROSIN_API void note_probe(const std::string& path, bool crashed);

}  // namespace detail

// --- Which back end is chosen.

/// What says which back end get_device() takes.
enum class DecidedBy : uint8_t { environment, file, nobody };

struct BackendDecision {
  DecidedBy by = DecidedBy::nobody;
  std::string backend;  // as it stands there, not always a name that exists; empty: the first functional one is taken
  std::string file;     // the preference file that decides,
  int line = 0;         // counted from 1,
  std::string table;    // and its table: "rosin", "Flux"
};
/// Errors (argument): the preference file is malformed; (io): it cannot be read.
ROSIN_API BackendDecision backend_decision();

// --- The library and its surroundings.

struct VariableReport {
  std::string name;        // "ROSIN_NUM_THREADS"
  std::string meaning;     // one line
  std::string when_unset;  // what holds then
  std::string value;       // empty: unset
};
/// All environment variables that rosin reads.
ROSIN_API std::vector<VariableReport> environment_report();

struct LibraryReport {
  std::string version;                      // of rosin
  std::string preference_file;              // the one that is read; empty: there is none
  std::string cache_folder;                 // it may not exist; empty: nothing is kept
  std::vector<std::string> plugin_folders;  // in the order of the search
};
ROSIN_API LibraryReport library_report();

}  // namespace rosin
