// A call that a library computes in one of several ways: which is taken, and how they are timed. Read first: calls.hpp.
// Read next: cuda/cudnn_call.cpp, amdgpu/miopen_call.cpp.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vendor/calls.hpp"

namespace rosin::vendor {

/// `Ways`: those of a call, by their numbers. Used from any thread.
///   bytes()          that each array of the call reaches over
///   count()
///   first()          the first that can be used
///   build(way)       whether it can be used, which is made ready now
///   mark(way)        what it is in every process with this library
///   marked(mark)     the one with this mark, if it can be used
///   workspace(way)   bytes
/// `Library`: on the device.
///   run(stream, ways, way, arrays, workspace)
///   search(stream, ways, arrays, workspace, bytes)   where it may find more ways by measuring
template <class Library, class Ways> class WaysCall final : public rosin_call {
 public:
  WaysCall(rosin_device& on, Library& library, std::shared_ptr<Ways> ways, Choice<uint64_t> choice)
      : library_(library), ways_(std::move(ways)), way_(ways_->first()), choice_(std::move(choice)) {
    device = &on;
  }

  uint64_t workspace() const { return Workspace::asked(ways_->workspace(way_)); }

  /// Takes the way of another call, if it is one for this.
  void take(const void* bytes, uint64_t count) {
    uint64_t mark = 0;
    if (!choice_.read(bytes, count, mark)) return;
    if (const std::optional<size_t> way = ways_->marked(mark)) way_ = *way;
  }

  void run(driver::Stream stream, const rosin_place* buffers, rosin_place workspace,
           const rosin_call_numbers*) override {
    const Arrays arrays(*ways_, buffers);
    library_.run(stream, *ways_, way_, arrays.all, Workspace::in(workspace, ways_->workspace(way_)));
  }

  uint64_t tune(driver::Stream stream, const rosin_place* buffers, rosin_place workspace, uint64_t bytes,
                const rosin_call_numbers* numbers) override {
    if constexpr (requires { &Library::search; }) {
      const uint64_t room = bytes > Workspace::lost ? bytes - Workspace::lost : 0;
      library_.search(stream, *ways_, Arrays(*ways_, buffers).all, Workspace::in(workspace, room), room);
    }
    size_t best = way_;
    float least = std::numeric_limits<float>::infinity();
    for (size_t way = 0; way < ways_->count(); ++way) {
      if (!ways_->build(way) || Workspace::asked(ways_->workspace(way)) > bytes) continue;
      way_ = way;
      const float time = time_of([&] { run(stream, buffers, workspace, numbers); }, stream);
      if (time < least) best = way;
      least = std::min(least, time);
    }
    way_ = best;
    return this->workspace();
  }

  std::string_view choice() override {
    choice_.way = ways_->mark(way_);
    return choice_.bytes();
  }

 private:
  struct Arrays {
    driver::Address all[most_call_arrays] = {};
    Arrays(const Ways& ways, const rosin_place* buffers) {
      const std::vector<uint64_t>& bytes = ways.bytes();
      for (size_t i = 0; i < bytes.size(); ++i) all[i] = Workspace::address_of(buffers[i], bytes[i]);
    }
  };

  Library& library_;
  std::shared_ptr<Ways> ways_;
  size_t way_;
  Choice<uint64_t> choice_;
};

/// That of a description, in the way that it says, if it says one. `workspace` gets what it needs.
template <class Library, class Ways>
std::unique_ptr<rosin_call> ways_call(rosin_device& device, Library& library, std::shared_ptr<Ways> ways,
                                      Choice<uint64_t> choice, const rosin_call_description& wanted,
                                      uint64_t* workspace) {
  auto call = std::make_unique<WaysCall<Library, Ways>>(device, library, std::move(ways), std::move(choice));
  call->take(wanted.choice, wanted.choice_bytes);
  *workspace = call->workspace();
  return call;
}

}  // namespace rosin::vendor
