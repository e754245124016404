// What all tests of the seeds share: the situation that they run in, what is said, and short comparisons.
// A process has one situation (which plug-ins, how many devices, which preference). The table of situations, with what
// each of them must give, is situations.py; seeds_test.py runs this program once for each.
// Read next: CASES.md (which test stands for which case).
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <rosin/rosin.hpp>

#include "../error_testing.hpp"

namespace rosin::seeds {

/// A back end as the situation states it.
struct BackendFacts {
  enum class State { functional, broken, missing, unloaded };

  std::string name;
  State state = State::missing;
  int devices = 0;  // of an unloaded one: those that it has once it is loaded
  std::string why;  // it is not functional

  bool functional() const { return state == State::functional; }
  bool loaded() const { return state == State::functional || state == State::broken; }
  /// What get_device says where a preference names it; empty when it can be used.
  std::string refusal() const;
};

/// What a choice by preference gives.
struct Choice {
  std::string device;             // "CUDA:0"
  std::vector<std::string> said;  // in this order
};

struct Situation {
  std::vector<BackendFacts> backends;  // CUDA, AMDGPU, Metal, OpenCL
  std::string preference;              // empty: none
  Choice stated;                       // by the table, for get_device({.verbose = true})
  bool float64 = true;                 // whether the devices have it

  BackendFacts& at(std::string_view name);
  /// The device that is chosen where no preference says otherwise.
  std::string automatic() const;
  Choice choice(const std::string& preference, bool verbose) const;
};

/// Directs preferences to a file of its own while it lives, with this text; loading by itself stays on or off.
class OwnPreferences {
 public:
  explicit OwnPreferences(const std::string& text = {});
  ~OwnPreferences();
  OwnPreferences(const OwnPreferences&) = delete;
  OwnPreferences& operator=(const OwnPreferences&) = delete;

  /// What the file holds now.
  std::string text() const;

 private:
  std::string folder_, file_, backend_before_, file_before_, autoload_before_;
};

/// A file name in a folder that goes with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

class Seeds : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  /// `using CUDA` of the seeds: loads an installed plug-in where that is not done by itself.
  void using_backend(std::string_view name);
  /// The devices of all back ends that are functional, by name.
  std::vector<Device> gpus() const;
  /// What gpu(x) goes to.
  std::string gpu_text() const { return here.choice(here.preference, false).device; }
  /// What was said since the last call.
  std::vector<std::string> heard();

  BackendFacts& cuda() { return here.at("CUDA"); }
  /// Where CUDA is functional: true. Elsewhere checks that cu(x) says why it is not, and gives false.
  bool cu_works();

  Situation here;

 private:
  std::vector<std::string> said_;
};

/// "CUDA:0", "CPU".
std::string text_of(const Device& device);
/// Shapes agree, and elements to within `tolerance`.
void expect_close(const Array& x, const Array& y, double tolerance = 1e-4);
/// Shapes, types and elements agree.
void expect_equal(const Array& x, const Array& y);

using Lines = std::vector<std::string>;

}  // namespace rosin::seeds
